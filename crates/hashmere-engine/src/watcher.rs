//! An object of a store in an event loop: a file descriptor that is readable while there is something to do.
//!
//! An eventfd has no name by which another process could find it, so no other process raises it: a thread of this
//! process sleeps on the object as any waiting call does, and raises it. Other processes pay no more than for that
//! waiting call.

use crate::WriteError;
use hashmere_os::eventfd::EventFd;
use std::fmt::Debug;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What a [`Watcher`] waits for.
pub trait Watched: Debug + Send + Sync + 'static {
    /// Up to where the owner of the descriptor had dealt with everything, when it armed the watcher.
    type Since: Copy + Debug + Send;

    /// Sleeps until there is something to do, or `is_stopped` says so after [`wake`](Self::wake). Runs in the watcher's
    /// thread.
    fn wait(&self, since: Self::Since, is_stopped: &dyn Fn() -> bool);

    /// Wakes [`wait`](Self::wait).
    fn wake(&self);

    /// Whether this process made it. A forked child has no such thread.
    fn is_ours(&self) -> bool;
}

/// A descriptor, and the thread behind it, which ends when this is dropped.
#[derive(Debug)]
pub struct Watcher<W: Watched> {
    shared: Arc<Shared<W>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<W: Watched> {
    watched: W,
    event: EventFd,
    stop: AtomicBool,
    /// Set when the last event was dealt with, taken by the thread.
    armed: Mutex<Option<W::Since>>,
    rearmed: Condvar,
}

impl<W: Watched> Watcher<W> {
    /// An armed watcher.
    ///
    /// # Errors
    /// [`Io`](WriteError::Io): no descriptor or no thread can be had.
    pub fn new(watched: W, since: W::Since) -> Result<Watcher<W>, WriteError> {
        let io = |action| move |source| WriteError::Io { action, source };
        let shared = Arc::new(Shared {
            watched,
            event: EventFd::new().map_err(io("make an event descriptor"))?,
            stop: AtomicBool::new(false),
            armed: Mutex::new(Some(since)),
            rearmed: Condvar::new(),
        });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("hashmere-ready".into()).spawn(move || theirs.run());
        Ok(Watcher { shared, thread: Some(thread.map_err(io("start a thread"))?) })
    }

    /// Takes the event back. The descriptor is readable again when there is something to do behind `since`, at once if
    /// there is.
    pub fn arm(&self, since: W::Since) {
        let mut armed = self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.event.clear();
        *armed = Some(since);
        self.shared.rearmed.notify_one();
    }
}

impl<W: Watched> AsFd for Watcher<W> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }
}

impl<W: Watched> Shared<W> {
    fn run(&self) {
        let is_stopped = || self.stop.load(Ordering::Acquire);
        while let Some(since) = self.order() {
            self.watched.wait(since, &is_stopped);
            let armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
            // Armed again during the wait: what was found may have been dealt with.
            if armed.is_none() {
                self.event.raise();
            }
        }
    }

    /// Waits until it is armed, and takes that; `None`: it is to end.
    fn order(&self) -> Option<W::Since> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.stop.load(Ordering::Acquire) {
                return None;
            }
            if let Some(since) = armed.take() {
                return Some(since);
            }
            armed = self.rearmed.wait(armed).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<W: Watched> Drop for Watcher<W> {
    fn drop(&mut self) {
        if !self.shared.watched.is_ours() {
            return;
        }
        self.shared.stop.store(true, Ordering::Release);
        let armed = self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.rearmed.notify_one();
        drop(armed);
        self.shared.watched.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::os::fd::AsRawFd;

    /// A number that grows.
    #[derive(Debug, Default)]
    struct Number {
        now: Mutex<u64>,
        changed: Condvar,
    }

    impl Number {
        fn raise_to(&self, to: u64) {
            *self.now.lock().unwrap() = to;
            self.changed.notify_all();
        }
    }

    impl Watched for Arc<Number> {
        type Since = u64;
        fn wait(&self, since: u64, is_stopped: &dyn Fn() -> bool) {
            let mut now = self.now.lock().unwrap();
            while *now <= since && !is_stopped() {
                now = self.changed.wait(now).unwrap();
            }
        }
        fn wake(&self) {
            let _now = self.now.lock().unwrap();
            self.changed.notify_all();
        }
        fn is_ours(&self) -> bool {
            true
        }
    }

    fn is_readable(watcher: &Watcher<Arc<Number>>, timeout_ms: i32) -> bool {
        let mut poll = libc::pollfd { fd: watcher.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry that lives.
        let ready = unsafe { libc::poll(&mut poll, 1, timeout_ms) };
        assert!(ready >= 0, "{}", io::Error::last_os_error());
        ready == 1
    }

    #[test]
    fn readable_from_the_event_until_it_is_armed_behind_it() {
        let number = Arc::new(Number::default());
        let watcher = Watcher::new(number.clone(), 0).unwrap();
        assert!(!is_readable(&watcher, 0));
        number.raise_to(3);
        assert!(is_readable(&watcher, -1));
        // Not all of it was dealt with.
        watcher.arm(2);
        assert!(is_readable(&watcher, -1));
        watcher.arm(3);
        assert!(!is_readable(&watcher, 20));
        number.raise_to(4);
        assert!(is_readable(&watcher, -1));
    }

    #[test]
    fn a_watcher_that_waits_or_was_not_armed_again_can_be_dropped() {
        let number = Arc::new(Number::default());
        drop(Watcher::new(number.clone(), 0).unwrap());
        let watcher = Watcher::new(number.clone(), 0).unwrap();
        number.raise_to(1);
        assert!(is_readable(&watcher, -1));
        drop(watcher);
        assert_eq!(Arc::strong_count(&number), 1);
    }
}
