//! A store of this machine.

use super::start_at;
use crate::error::{At, ReplicaError};
use crate::file::file_of;
use crate::sweep::{key_of, sweep};
use hashmere::Store;
use hashmere_feed::{Event, Feed, FeedOptions, Token};
use std::time::Duration;

/// The store and its feed.
#[derive(Debug)]
pub(crate) struct Local {
    store: Store,
    /// Device and inode.
    file: Option<(u64, u64)>,
    feed: Feed,
}

impl Local {
    /// Follows it behind this.
    pub fn open(store: &Store, done: Option<Token>) -> Result<Local, ReplicaError> {
        let file = file_of(store.path());
        Ok(Local { store: store.clone(), file, feed: follow(store, done)? })
    }

    pub fn next_batch(&mut self, max: usize, timeout: Duration) -> Result<Vec<Event>, ReplicaError> {
        self.feed.next_batch(max, timeout).at(&self.store)
    }

    pub fn rewind(&mut self, done: Option<Token>) -> Result<(), ReplicaError> {
        self.feed = follow(&self.store, done)?;
        Ok(())
    }

    pub fn end(&self) -> Option<u64> {
        hashmere_feed::info(&self.store).map(|info| info.position)
    }

    pub fn sweep(&self, to: &Store) -> Result<(), ReplicaError> {
        // Looked up now, not noted while they were copied: docs/internals/replicas.md says why that is right.
        sweep(to, |pair| self.store.contains_key(key_of(pair)).at(&self.store))
    }

    pub fn is_replaced(&self) -> bool {
        self.file.is_some() && file_of(self.store.path()) != self.file
    }
}

fn follow(store: &Store, done: Option<Token>) -> Result<Feed, ReplicaError> {
    Feed::open(store, start_at(done), FeedOptions::new().values(true)).at(store)
}
