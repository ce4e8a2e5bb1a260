//! Draining: one process at a time has the role; it merges the rings into the history and delivers that.

use crate::error::LogError;
use crate::handle::Handle;
use crate::layout::{at, row, wake_flag, BUSY};
use crate::merge::Merged;
use crate::output::Scratch;
use crate::ready_fd::NewLines;
use crate::sink::Sink;
use crate::timestamp::{Moment, GRACE_NS};
use hashmere_engine::Watcher;
use hashmere_mem::Mem;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a line that is being written is waited for. Then its writer is stopped, and the line comes later, out of
/// order.
const STRAGGLER: Duration = Duration::from_millis(20);
/// Looks at a line that is being written before the processor is left to others.
const SPINS: u32 = 200;
/// Others may log all the time: then a pass ends after this many merges.
const ROUNDS: u32 = 16;
/// While there was something to do lately the drainer naps, and is woken only by rings that are half full.
const NAP: Duration = Duration::from_millis(1);
const NAPS: u32 = 16;
/// Waits in vain until it looks for rings of crashed processes again, whose half lines and losses it tells of.
const IDLE: u32 = 32;
/// It wakes by itself this often: the wake flag may be missed while it is being set.
const SLEEP: Duration = Duration::from_millis(100);

/// The role of the drainer, and what one does in it: for programs that drain in a loop of their own. See
/// [`Log::drain`](crate::Log::drain) for a thread that does it.
///
/// Dropping it gives the role back, without another pass.
#[derive(Debug)]
pub struct ManualDrainer {
    handle: Arc<Handle>,
    sink: Sink,
    scratch: Scratch,
    /// Rings whose writer is stopped in a line, with their tails.
    stopped: HashMap<u64, u64>,
    naps: u32,
    /// For a caller that waits in an event loop. It ends before the role is given back.
    watcher: Option<Watcher<NewLines>>,
}

/// Takes the role of the drainer.
pub(crate) fn take_role(handle: &Handle) -> Result<(), LogError> {
    let core = handle.core();
    if !core.take_role(handle.client, handle)? {
        return Err(LogError::Taken { pid: core.get(at::DRAINER_PID) as u32 });
    }
    core.put(at::DRAINER_PID, std::process::id().into());
    Ok(())
}

impl ManualDrainer {
    pub(crate) fn new(handle: Arc<Handle>, sink: Sink) -> Result<ManualDrainer, LogError> {
        take_role(&handle)?;
        ManualDrainer::with_role(handle, sink)
    }

    /// Recovers and frees the rings of dead threads.
    pub(crate) fn recover_rings(&self) -> Result<(), LogError> {
        Ok(self.handle.core().recover_rings(self.handle.client, &*self.handle)?)
    }

    /// Of a thread that has just taken the role.
    pub(crate) fn with_role(handle: Arc<Handle>, sink: Sink) -> Result<ManualDrainer, LogError> {
        let drain = ManualDrainer {
            handle,
            sink,
            scratch: Scratch::default(),
            stopped: HashMap::new(),
            naps: 0,
            watcher: None,
        };
        let core = drain.handle.core();
        core.check_history()?;
        core.recover_merge();
        core.mem.swap(core.base + at::WAKE_FLAG, wake_flag::AWAKE, Ordering::SeqCst);
        Ok(drain)
    }

    /// Takes all lines that are in the rings and delivers them. Returns how many lines that were, and whether there are
    /// more that are too young (by some millionths of a second).
    ///
    /// # Errors
    /// [`Output`](LogError::Output): the lines stay in the log, and the next pass tries again.
    /// [`Dropped`](LogError::Removed), when nothing is left of it; the store's errors.
    pub fn poll(&mut self) -> Result<(u64, bool), LogError> {
        let mut all = Merged::default();
        for _ in 0..ROUNDS {
            let (merged, moved) = self.round(u64::MAX)?;
            all = Merged { lines: all.lines + merged.lines, notes: all.notes + merged.notes, more: merged.more };
            if !moved || !merged.more {
                break;
            }
        }
        if all.lines + all.notes > 0 {
            self.naps = 0;
        }
        if all == Merged::default() && self.handle.region.is_dropped() {
            return Err(LogError::Removed);
        }
        if let Some(watcher) = self.watcher.as_ref().filter(|_| !all.more) {
            watcher.arm(());
        }
        Ok((all.lines, all.more))
    }

    /// Merges lines that are not younger than this, and delivers what there is. Also whether anything came of it: then
    /// whatever found no room in the history finds it now.
    fn round(&mut self, youngest: u64) -> Result<(Merged, bool), LogError> {
        let core = self.handle.core();
        let moment = Moment::now(&core);
        let (handle, stopped) = (&self.handle, &mut self.stopped);
        let horizon = moment.horizon().min(youngest);
        let merged = core.merge(horizon, &moment, |ring| recovered_tail(handle, stopped, ring))?;
        let delivered = self.sink.deliver(&core, &mut self.scratch)?;
        Ok((merged, delivered || merged.lines + merged.notes > 0))
    }

    /// A descriptor for event loops (`poll`, `epoll` and what is built on them): readable while there is something to
    /// drain. A [`poll`](Self::poll) that leaves nothing takes that back; no other code reads it. Starts a thread of
    /// this process, which ends with this.
    ///
    /// # Errors
    /// Those of making a descriptor and a thread.
    pub fn ready_fd(&mut self) -> Result<BorrowedFd<'_>, LogError> {
        let watcher = match self.watcher.take() {
            Some(watcher) => watcher,
            None => Watcher::new(NewLines(self.handle.clone()), ())?,
        };
        Ok(Watcher::as_fd(self.watcher.insert(watcher)))
    }

    /// Waits for something to do, at most `timeout`; may return early.
    pub fn wait(&mut self, timeout: Duration) {
        let core = self.handle.core();
        let word = core.base + at::WAKE_FLAG;
        self.naps = self.naps.saturating_add(1);
        if self.naps % IDLE == NAPS + 1 {
            // There is time for it. Whatever fails here is found again.
            let _ = self.recover_rings();
        }
        if self.naps <= NAPS {
            let seen = core.get(at::EVENT) as u32;
            core.mem.store(word, wake_flag::NAPS, Ordering::Relaxed);
            core.mem.wait(core.base + at::EVENT, seen, NAP.min(timeout));
        } else {
            core.sleep_for_lines(SLEEP.min(timeout));
        }
        core.mem.store(word, wake_flag::AWAKE, Ordering::Relaxed);
    }

    /// Drains what was logged before this call, and gives the role back. Returns how many lines that were. Waits for
    /// nothing but the output: lines of a damaged log that say they are of the future are left where they are.
    ///
    /// # Errors
    /// Those of [`poll`](Self::poll); the role is given back then as well.
    pub fn finish(mut self) -> Result<u64, LogError> {
        self.watcher = None;
        // A thread that logs from here on looks after its own lines; those of before are there after some millionths of
        // a second.
        let core = self.handle.core();
        core.mem.swap(core.base + at::WAKE_FLAG, wake_flag::NO_DRAINER, Ordering::SeqCst);
        let started = Instant::now();
        while started.elapsed() < Duration::from_nanos(2 * GRACE_NS) {
            core.mem.relax();
        }
        let begun = Moment::now(&core).stamp();
        let (mut lines, mut any) = (0, false);
        loop {
            // What other threads log during the rounds may never end, and is younger.
            let (merged, moved) = self.round(begun)?;
            lines += merged.lines;
            any |= moved;
            if !moved || !merged.more {
                break;
            }
        }
        if !any && self.handle.region.is_dropped() {
            return Err(LogError::Removed);
        }
        Ok(lines)
    }

    /// Position up to which lines were delivered, to whomever.
    pub fn position(&self) -> u64 {
        self.handle.core().get(at::SENT)
    }

    /// Counts the lines up to a position, which a [`Follower`](crate::Follower) of this process has shown, as
    /// delivered.
    pub fn skip_to(&mut self, position: u64) {
        let core = self.handle.core();
        if position > core.get(at::SENT) && position <= core.get(at::END) && position % 8 == 0 {
            core.put(at::CHUNK, 0);
            core.put(at::SENT, position);
        }
    }
}

impl Drop for ManualDrainer {
    fn drop(&mut self) {
        self.watcher = None;
        if self.handle.region.is_ours() {
            self.handle.core().give_role_back();
        }
    }
}

/// The tail of a ring as soon as no line is being written behind it, or its writer is found to be dead or stopped.
fn recovered_tail(handle: &Handle, stopped: &mut HashMap<u64, u64>, ring: u64) -> u64 {
    let core = handle.core();
    let word = core.geometry.row(ring) + row::TAIL;
    let mut spins = 0;
    let mut since = None;
    loop {
        // SYNC(line), SYNC(busy): the lines before it are whole.
        let tail = core.get(word);
        if tail & BUSY == 0 {
            stopped.remove(&ring);
            return tail;
        }
        if stopped.get(&ring) == Some(&tail) {
            return tail & !BUSY;
        }
        spins += 1;
        if spins < SPINS {
            core.mem.relax();
            continue;
        }
        let since = since.get_or_insert_with(Instant::now);
        // A dead one can be told from a stopped one; what the store says of the others does not matter here.
        if spins == SPINS && core.recover_ring(ring, handle.client, handle).unwrap_or(false) {
            continue;
        }
        if since.elapsed() >= STRAGGLER {
            stopped.insert(ring, tail);
            return tail & !BUSY;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}
