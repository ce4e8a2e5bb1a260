//! A queue in an event loop: a file descriptor that becomes readable when there is something to pop.
//!
//! An eventfd has no name by which another process could find it, so no other process raises it: a thread of this
//! process sleeps on the queue as any waiting pop does, and raises it. A push costs no more than with a waiting pop.

use crate::error::QueueError;
use crate::layout::queue;
use crate::pool::Inner;
use crate::queue::Queue;
use crate::ring::Ring;
use crate::wait::{is_ready, sleep};
use hashmere_engine::WriteError;
use hashmere_mem::Mem;
use hashmere_os::backoff::Backoff;
use hashmere_os::eventfd::EventFd;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Readable when a queue has something to pop. In an event loop: wait until it is readable, [`acknowledge`](Self::acknowledge),
/// pop as much as you like, and wait again; if something is left it is readable at once.
pub struct ReadyFd {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    pool: Arc<Inner>,
    ring: Ring,
    event: EventFd,
    stop: AtomicBool,
    /// Whether the last event was acknowledged.
    armed: Mutex<bool>,
    rearmed: Condvar,
}

impl Queue {
    /// A file descriptor for event loops. Starts a thread of this process, which ends when it is dropped.
    ///
    /// # Errors
    /// Those of making a descriptor and a thread.
    pub fn ready_fd(&self) -> Result<ReadyFd, QueueError> {
        let io = |action| move |source| QueueError::from(WriteError::Io { action, source });
        let shared = Arc::new(Shared {
            pool: self.pool.clone(),
            ring: self.ring,
            event: EventFd::new().map_err(io("make an event descriptor"))?,
            stop: AtomicBool::new(false),
            armed: Mutex::new(true),
            rearmed: Condvar::new(),
        });
        let watched = shared.clone();
        let thread = std::thread::Builder::new().name("hashmere-ready".into()).spawn(move || watched.watch());
        Ok(ReadyFd { shared, thread: Some(thread.map_err(io("start a thread"))?) })
    }
}

impl Shared {
    fn watch(&self) {
        while !self.stop.load(Ordering::Acquire) {
            if !self.wait_until_ready() {
                return;
            }
            let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
            *armed = false;
            self.event.raise();
            while !*armed && !self.stop.load(Ordering::Acquire) {
                armed = self.rearmed.wait(armed).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn wait_until_ready(&self) -> bool {
        let mut backoff = Backoff::new(Duration::MAX);
        let mem = self.pool.mem();
        while !is_ready(mem, &self.ring) {
            if self.stop.load(Ordering::Acquire) {
                return false;
            }
            // The crashed process may have held what is waited for. What cannot be repaired now may be the next time.
            let _ = self.pool.recover();
            sleep(mem, &self.ring, backoff.next().unwrap_or_default());
        }
        true
    }
}

impl ReadyFd {
    /// Takes the event back. Call it before popping.
    pub fn acknowledge(&self) {
        let mut armed = self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.event.clear();
        *armed = true;
        self.shared.rearmed.notify_one();
    }
}

impl AsFd for ReadyFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }
}

impl AsRawFd for ReadyFd {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.event.as_raw_fd()
    }
}

impl Drop for ReadyFd {
    fn drop(&mut self) {
        if !self.shared.pool.region.is_ours() {
            // A forked child has no such thread.
            return;
        }
        self.shared.stop.store(true, Ordering::Release);
        let armed = self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.rearmed.notify_one();
        drop(armed);
        let mem = self.shared.pool.mem();
        mem.fetch_add(self.shared.ring.entry + queue::EVENT, 1, Ordering::AcqRel);
        mem.wake(self.shared.ring.entry + queue::EVENT);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
