//! A queue in an event loop: a file descriptor that becomes readable when there is something to pop.

use crate::error::QueueError;
use crate::layout::queue;
use crate::open_pool::OpenPool;
use crate::queue::Queue;
use crate::ring::Ring;
use crate::wait::{is_ready, sleep};
use hashmere_engine::{Watched, Watcher};
use hashmere_mem::Mem;
use hashmere_os::backoff::Backoff;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// Readable when a queue has something to pop. In an event loop: wait until it is readable,
/// [`acknowledge`](Self::acknowledge), pop as much as you like, and wait again; if something is left it is readable at
/// once.
#[derive(Debug)]
pub struct ReadyFd(Watcher<Elements>);

/// What is in a queue.
struct Elements {
    pool: Arc<OpenPool>,
    ring: Ring,
}

impl fmt::Debug for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elements").field("queue", &self.ring.entry).finish_non_exhaustive()
    }
}

impl Queue {
    /// A file descriptor for event loops. Starts a thread of this process, which ends when it is dropped.
    ///
    /// # Errors
    /// Those of making a descriptor and a thread.
    pub fn ready_fd(&self) -> Result<ReadyFd, QueueError> {
        Ok(ReadyFd(Watcher::new(Elements { pool: self.pool.clone(), ring: self.ring }, ())?))
    }
}

impl Watched for Elements {
    type Since = ();

    fn wait(&self, (): (), is_stopped: &dyn Fn() -> bool) {
        let mut backoff = Backoff::new(Duration::MAX);
        let mem = self.pool.mem();
        while !is_ready(mem, &self.ring) && !is_stopped() {
            // The crashed process may have held what is waited for. What cannot be repaired now may be the next time.
            let _ = self.pool.recover();
            sleep(mem, &self.ring, backoff.next().unwrap_or_default());
        }
    }

    fn wake(&self) {
        let mem = self.pool.mem();
        mem.fetch_add(self.ring.entry + queue::EVENT, 1, Ordering::AcqRel);
        mem.wake(self.ring.entry + queue::EVENT);
    }

    fn is_ours(&self) -> bool {
        self.pool.region.is_ours()
    }
}

impl ReadyFd {
    /// Takes the event back. Call it before popping.
    pub fn acknowledge(&self) {
        self.0.arm(());
    }
}

impl AsFd for ReadyFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for ReadyFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}
