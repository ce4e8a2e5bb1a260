//! A feed in an event loop: a file descriptor that becomes readable when there is an event.

use crate::error::FeedError;
use crate::feed::Feed;
use hashmere_engine::{SharedEngine, Watched, Watcher};
use hashmere_os::fork;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// Readable when a feed has an event. In an event loop: wait until it is readable, take events with
/// [`next_within`](Feed::next_within) and no time until there is none, [`arm`](Self::arm) it, and wait again; if
/// something came in between it is readable at once.
#[derive(Debug)]
pub struct ReadyFd(Watcher<Changes>);

/// The changes of a store.
#[derive(Debug)]
struct Changes {
    shared: Arc<SharedEngine>,
    born: u64,
}

impl Feed {
    /// A file descriptor for event loops. Starts a thread of this process, which ends when it is dropped.
    ///
    /// # Errors
    /// Those of making a descriptor and a thread.
    pub fn ready_fd(&self) -> Result<ReadyFd, FeedError> {
        let watched = Changes { shared: self.shared().clone(), born: fork::generation() };
        Ok(ReadyFd(Watcher::new(watched, self.waits_at())?))
    }
}

impl Watched for Changes {
    /// Feed, position and generation.
    type Since = (u64, u64, u64);

    fn wait(&self, (feed, position, generation): Self::Since, is_stopped: &dyn Fn() -> bool) {
        let engine = self.shared.engine();
        while engine.has_no_news(feed, position, generation) && !is_stopped() {
            engine.wait_for_feed(feed, position, generation, Duration::from_millis(100));
        }
    }

    fn wake(&self) {
        self.shared.engine().wake_followers();
    }

    fn is_ours(&self) -> bool {
        self.born == fork::generation()
    }
}

impl ReadyFd {
    /// Takes the event back; readable again when there is something behind what the feed has returned.
    pub fn arm(&self, feed: &Feed) {
        self.0.arm(feed.waits_at());
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
