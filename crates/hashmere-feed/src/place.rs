//! Where a consumer waits for what comes next: for programs that wait on behalf of many.

use crate::feed::Feed;
use hashmere_engine::StoreHandle;
use std::time::Duration;

/// A place behind what a feed has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) feed: u64,
    pub(crate) position: u64,
    pub(crate) generation: u64,
}

impl Feed {
    /// Behind what this feed has returned.
    pub fn place(&self) -> Place {
        let (feed, position, generation) = self.waits_at();
        Place { feed, position, generation }
    }
}

impl Place {
    /// Whether a feed at this place of the store has something to return, or an error.
    pub fn has_news(&self, store: &impl StoreHandle) -> bool {
        !store.shared().engine().has_no_news(self.feed, self.position, self.generation)
    }

    /// Waits for that, at most about as long as this.
    pub fn wait(&self, store: &impl StoreHandle, timeout: Duration) {
        store.shared().engine().wait_for_feed(self.feed, self.position, self.generation, timeout);
    }
}
