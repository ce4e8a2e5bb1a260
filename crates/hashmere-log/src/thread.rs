//! An open log of this process, and what each thread has of it: its ring.

use crate::error::LogError;
use crate::format::Format;
use crate::handle::Handle;
use crate::layout::{at, flag, wake_flag};
use crate::line::Level;
use crate::manual_drainer::ManualDrainer;
use crate::options::{LogOptions, OnFull, OnNoDrainer, OnTooLong};
use crate::ring::Cursor;
use crate::sink::Sink;
use crate::timestamp;
use hashmere_engine::{ClientId, SharedEngine};
use hashmere_mem::Mem;
use hashmere_os::backoff::Backoff;
use hashmere_os::process;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

thread_local! {
    /// Those of this thread. Few: they are looked through.
    static THREADS: RefCell<Vec<Thread>> = const { RefCell::new(Vec::new()) };
    /// Room for lines that are put together.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An open log, as its threads share it.
pub(crate) struct Shared {
    /// Different for each log that this process, or one that it was forked from, has opened.
    pub(crate) id: u64,
    pub(crate) name: Box<str>,
    pub(crate) store: Arc<SharedEngine>,
    pub(crate) options: LogOptions,
    /// Set when the last handle is gone: threads then give their rings back.
    pub(crate) closed: Arc<AtomicBool>,
    /// As the process opened it: in a forked child it is the parent's.
    pub(crate) handle: Arc<Handle>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        leave_closed();
    }
}

impl Shared {
    /// One more that is open in this process.
    pub(crate) fn new(store: &Arc<SharedEngine>, name: &str, options: LogOptions, handle: Handle) -> Shared {
        static LOGS: AtomicU64 = AtomicU64::new(0);
        let id = LOGS.fetch_add(1, Ordering::Relaxed);
        let closed = Arc::new(AtomicBool::new(false));
        Shared { id, name: name.into(), store: store.clone(), options, closed, handle: Arc::new(handle) }
    }

    /// The log as this process has it: a forked child opens it again.
    pub(crate) fn handle(&self) -> Result<Arc<Handle>, LogError> {
        if self.handle.region.is_ours() {
            return Ok(self.handle.clone());
        }
        Ok(Arc::new(Handle::existing(&self.store, &self.name)?))
    }
}

/// A thread in a log.
pub(crate) struct Thread {
    log: u64,
    closed: Arc<AtomicBool>,
    handle: Arc<Handle>,
    cursor: Cursor,
}

impl Thread {
    /// Whether its log is still open in this process.
    fn is_open(&self) -> bool {
        self.handle.region.is_ours() && !self.closed.load(Ordering::Acquire)
    }
}

/// Gives the rings back that this thread has in logs that are closed. Its others notice with their next ring.
pub(crate) fn leave_closed() {
    let _ = THREADS.try_with(|threads| {
        if let Ok(mut threads) = threads.try_borrow_mut() {
            threads.retain(Thread::is_open);
        }
    });
}

/// Does something with the ring that this thread has in a log, which it claims if need be.
#[inline(always)]
pub(crate) fn with(shared: &Shared, act: impl FnOnce(&mut Thread) -> Result<bool, LogError>) -> Result<bool, LogError> {
    let done = THREADS.try_with(|threads| {
        let Ok(mut threads) = threads.try_borrow_mut() else { return Err(LogError::Reentered) };
        let known = threads.iter_mut().find(|thread| thread.log == shared.id && thread.handle.region.is_ours());
        match known {
            Some(thread) => act(thread),
            None => act(join(shared, &mut threads)?),
        }
    });
    // A thread that is about to end has given its rings back.
    done.unwrap_or(Err(LogError::Reentered))
}

/// Claims a ring.
#[cold]
#[inline(never)]
fn join<'a>(shared: &Shared, threads: &'a mut Vec<Thread>) -> Result<&'a mut Thread, LogError> {
    // Those of the process that we were forked from are not ours.
    threads.retain(Thread::is_open);
    let handle = shared.handle()?;
    if handle.region.is_dropped() {
        return Err(LogError::Removed);
    }
    let cursor = claim(&handle)?;
    threads.push(Thread { log: shared.id, closed: shared.closed.clone(), handle, cursor });
    let last = threads.len() - 1;
    Ok(&mut threads[last])
}

fn claim(handle: &Handle) -> Result<Cursor, LogError> {
    let core = handle.core();
    let pid = process::pid();
    let name = process::describe(pid).map(|process| process.name).unwrap_or_default();
    let claim = || core.claim(handle.client, pid, name.as_bytes());
    if let Some(cursor) = claim() {
        return Ok(cursor);
    }
    core.recover_rings(handle.client, handle)?;
    if let Some(cursor) = claim() {
        return Ok(cursor);
    }
    // A thread gives its ring back at its very end, which a `join` may return before (Python's does).
    for sleep in handle.wait_for_endings() {
        std::thread::sleep(sleep);
        if let Some(cursor) = core.has_free_ring().then(claim).flatten() {
            return Ok(cursor);
        }
    }
    handle.waited_in_vain();
    Err(LogError::TooMany { rings: handle.geometry.rings })
}

/// Lends out the thread's buffer, empty. A call that asks for it while it is lent gets another one.
pub(crate) fn with_buffer<R>(act: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    const KEPT: usize = 64 << 10;
    let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
    buffer.clear();
    let result = act(&mut buffer);
    if buffer.capacity() <= KEPT {
        let _ = BUFFER.try_with(|cell| cell.set(buffer));
    }
    result
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.handle.region.is_ours() {
            self.handle.core().release(&self.cursor);
        }
    }
}

impl Thread {
    /// Logs text.
    #[inline(always)]
    pub(crate) fn text(&mut self, shared: &Shared, level: Level, text: &[u8]) -> Result<bool, LogError> {
        if text.len() as u64 > self.handle.geometry.line_max() {
            return self.long(shared, level, text);
        }
        self.put(shared, level, 0, text)
    }

    /// Logs an encoded text with fields.
    pub(crate) fn fields(&mut self, shared: &Shared, level: Level, payload: &[u8]) -> Result<bool, LogError> {
        let (bytes, limit) = (payload.len() as u64, self.handle.geometry.line_max());
        if bytes > limit {
            return Err(LogError::TooLong { bytes, limit });
        }
        self.put(shared, level, flag::FIELDS, payload)
    }

    #[cold]
    fn long(&mut self, shared: &Shared, level: Level, text: &[u8]) -> Result<bool, LogError> {
        let limit = self.handle.geometry.line_max();
        if shared.options.on_too_long == OnTooLong::Refuse {
            return Err(LogError::TooLong { bytes: text.len() as u64, limit });
        }
        let (mut rest, mut continued, mut all) = (text, 0, true);
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(cut(rest, limit as usize));
            rest = behind;
            let more = if rest.is_empty() { 0 } else { flag::MORE };
            all &= self.put(shared, level, more | continued, part)?;
            continued = flag::CONTINUED;
        }
        Ok(all)
    }

    #[inline(always)]
    fn put(&mut self, shared: &Shared, level: Level, flags: u64, payload: &[u8]) -> Result<bool, LogError> {
        if !self.cursor.has_room(payload.len() as u64) && !self.find_room(shared, payload.len() as u64)? {
            return Ok(false);
        }
        let core = self.handle.core();
        let kind = self.handle.clock;
        self.cursor.append(core.mem, level as u64, flags, payload, || timestamp::now(kind));
        // SYNC(wake_flag): between the commit and this there is no fence; see `ManualDrainer::wait`, which does not
        // sleep forever.
        let state = core.mem.load(core.base + at::WAKE_FLAG, Ordering::Relaxed);
        if state != wake_flag::AWAKE {
            self.notify(shared, state)?;
        }
        Ok(true)
    }

    /// The drainer is not at work.
    #[cold]
    #[inline(never)]
    fn notify(&mut self, shared: &Shared, state: u64) -> Result<(), LogError> {
        let core = self.handle.core();
        match state {
            wake_flag::NAPS => {
                if self.cursor.is_half_full() {
                    self.cursor.look(core.mem);
                }
                if !self.cursor.is_half_full() {
                    return Ok(());
                }
            }
            wake_flag::NO_DRAINER if shared.options.on_no_drainer == OnNoDrainer::Stdout => return self.help(),
            wake_flag::NO_DRAINER => return Ok(()),
            _ => {}
        }
        core.clear_wake_flag(state);
        Ok(())
    }

    /// There is no drainer: writes what there is to standard output. If that fails the line stays in the log.
    fn help(&mut self) -> Result<(), LogError> {
        let core = self.handle.core();
        let mut backoff = Backoff::new(Duration::from_secs(1));
        loop {
            if self.cursor.look(core.mem) == 0 {
                return Ok(());
            }
            // Standard output may be closed: then the line, which is in the log, stays there.
            let written =
                Sink::stdout(Format::Text).and_then(|out| ManualDrainer::new(self.handle.clone(), out)?.finish());
            match written {
                Ok(_) => {}
                // A thread that helps as we do may have looked into our ring before.
                Err(LogError::Taken { .. }) if core.get(at::WAKE_FLAG) == wake_flag::NO_DRAINER => {
                    let Some(time) = backoff.next() else { return Ok(()) };
                    std::thread::sleep(time.min(Duration::from_millis(1)));
                }
                Err(LogError::Taken { .. } | LogError::Output { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the log names a drainer that died, or none.
    pub(crate) fn is_drainer_gone(handle: &Handle) -> Result<bool, LogError> {
        match ClientId::unpack(handle.core().get(at::DRAINER)) {
            Some(client) => Ok(handle.store().is_gone(client)?),
            None => Ok(true),
        }
    }

    /// Makes room for a line, as far as is known none. `false`: the line was dropped.
    #[cold]
    #[inline(never)]
    fn find_room(&mut self, shared: &Shared, payload: u64) -> Result<bool, LogError> {
        let handle = self.handle.clone();
        let mem = handle.region.mem();
        self.cursor.look(mem);
        if handle.region.is_dropped() {
            return Err(LogError::Removed);
        }
        // Once in a round it is worth a look whether there is a drainer.
        if self.cursor.is_half_full()
            && shared.options.on_no_drainer == OnNoDrainer::Stdout
            && Thread::is_drainer_gone(&handle)?
        {
            self.help()?;
            self.cursor.look(mem);
        }
        if self.cursor.has_room(payload) {
            return Ok(true);
        }
        match shared.options.on_full {
            OnFull::Block(timeout) => self.wait_for_room(shared, payload, timeout).map(|()| true),
            OnFull::Drop => {
                self.cursor.skip_line(mem);
                Ok(false)
            }
            OnFull::Overwrite => {
                self.cursor.make_room(mem, payload);
                Ok(true)
            }
        }
    }

    fn wait_for_room(&mut self, shared: &Shared, payload: u64, timeout: Duration) -> Result<(), LogError> {
        let handle = self.handle.clone();
        let core = handle.core();
        let mut backoff = Backoff::new(timeout);
        loop {
            let Some(waiter) = self.cursor.before_waiting(core.mem, payload) else { return Ok(()) };
            if handle.region.is_dropped() {
                return Err(LogError::Removed);
            }
            let gone = Thread::is_drainer_gone(&handle)?;
            if gone && shared.options.on_no_drainer == OnNoDrainer::Stdout {
                self.help()?;
                self.cursor.look(core.mem);
                if self.cursor.has_room(payload) {
                    return Ok(());
                }
            }
            let Some(time) = backoff.next() else {
                let pid = if gone { 0 } else { core.get(at::DRAINER_PID) as u32 };
                return Err(LogError::Full { pid });
            };
            core.wake_drainer();
            waiter.wait(core.mem, time);
        }
    }
}

/// How much of a line goes into its next part: not a piece of a character, if it is text.
fn cut(text: &[u8], limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    let is_inside = |at: &usize| text[*at] & 0xc0 == 0x80;
    (limit - 3..=limit).rev().find(|at| !is_inside(at)).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn characters_are_not_cut() {
        assert_eq!(cut("aaaaaü".as_bytes(), 6), 5);
        assert_eq!(cut("aaaaaü".as_bytes(), 7), 7);
        assert_eq!(cut(&[0x80; 9], 6), 6);
    }
}
