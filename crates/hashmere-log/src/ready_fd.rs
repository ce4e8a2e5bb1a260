//! A log in an event loop: a descriptor that is readable while there is something to drain or to follow. A thread of this process sleeps as
//! any drainer or follower does, and raises it; a thread that logs pays no more than for that.

use crate::error::LogError;
use crate::handle::Handle;
use crate::layout::{at, wake_flag};
use hashmere_engine::WriteError;
use hashmere_mem::Mem;
use hashmere_os::eventfd::EventFd;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// It wakes by itself this often, and then also sees that it is to end.
const SLEEP: Duration = Duration::from_millis(100);
/// Sleeps in vain before it looks for rings of crashed processes.
const IDLE: u32 = 10;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// Lines in the rings, by the thread that has the role of the drainer.
    Lines,
    /// Lines in the history.
    News,
}

#[derive(Debug)]
struct Shared {
    handle: Arc<Handle>,
    what: For,
    event: EventFd,
    stop: AtomicBool,
    /// Behind which position of the history there is to be something: set when the last event was dealt with.
    armed: Mutex<Option<u64>>,
    rearmed: Condvar,
}

/// The descriptor, and the thread behind it.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(crate) fn new(handle: &Arc<Handle>, what: For, position: u64) -> Result<Watch, LogError> {
        let io = |action| move |source| LogError::from(WriteError::Io { action, source });
        let shared = Arc::new(Shared {
            handle: handle.clone(),
            what,
            event: EventFd::new().map_err(io("make an event descriptor"))?,
            stop: AtomicBool::new(false),
            armed: Mutex::new(Some(position)),
            rearmed: Condvar::new(),
        });
        let watched = shared.clone();
        let thread = std::thread::Builder::new().name("hashmere-ready".into()).spawn(move || watched.watch());
        Ok(Watch { shared, thread: Some(thread.map_err(io("start a thread"))?) })
    }

    /// Everything was dealt with up to this position: it is readable again when there is more.
    pub(crate) fn arm(&self, position: u64) {
        let mut armed = self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.event.clear();
        *armed = Some(position);
        self.shared.rearmed.notify_one();
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn watch(&self) {
        while let Some(position) = self.order() {
            let mut sleeps = 0;
            while !self.is_stopped() && !self.is_ready(position) {
                sleeps += 1;
                if sleeps == IDLE && self.what == For::Lines {
                    // What crashed processes left may have to be reported. Whatever fails here is found again.
                    let _ = self.handle.core().recover_rings(self.handle.client, &*self.handle);
                }
                self.sleep(position);
            }
            let armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
            if armed.is_none() {
                self.event.raise();
            }
        }
    }

    /// Waits for the next order, and takes it.
    fn order(&self) -> Option<u64> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.is_stopped() {
                return None;
            }
            if let Some(position) = armed.take() {
                return Some(position);
            }
            armed = self.rearmed.wait(armed).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_ready(&self, position: u64) -> bool {
        let core = self.handle.core();
        match self.what {
            // That it was dropped is for the drainer to find.
            For::Lines => self.handle.region.is_dropped() || core.has_lines() || core.get(at::SENT) < core.get(at::END),
            For::News => core.get(at::END) > position,
        }
    }

    fn sleep(&self, position: u64) {
        let core = self.handle.core();
        match self.what {
            For::Lines => {
                core.sleep_for_lines(SLEEP);
                // The thread that wakes it has done so; the drainer, which is gone, may have said otherwise.
                let _ = core.mem.compare_exchange(core.base + at::WAKE_FLAG, wake_flag::SLEEPS, wake_flag::AWAKE);
            }
            For::News => core.sleep_for_news(position, SLEEP),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.shared.handle.region.is_ours() {
            // A forked child has no such thread.
            return;
        }
        self.shared.stop.store(true, Ordering::Release);
        let armed = self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.rearmed.notify_one();
        drop(armed);
        let core = self.shared.handle.core();
        match self.shared.what {
            For::Lines => core.wake_drainer(),
            For::News => {
                core.mem.fetch_add(core.base + at::NEWS, 1, Ordering::AcqRel);
                core.mem.wake(core.base + at::NEWS);
            }
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
