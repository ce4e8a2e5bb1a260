//! What is followed: a store of this machine, or one that is served. Both give the same events.

mod address;
mod failed;
mod line;
mod link;
mod local;
mod remote;
mod socket;
#[cfg(not(feature = "tls"))]
#[path = "tls_absent.rs"]
mod tls;
#[cfg(feature = "tls")]
mod tls;

pub use address::Served;
pub(crate) use local::Local;
pub(crate) use remote::Remote;

use crate::error::ReplicaError;
use hashmere::Store;
use hashmere_feed::{Change, Event, FeedStart, Token};
use std::time::Duration;

/// The source of a replica.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file.
    Local(Box<Local>),
    /// A server.
    Remote(Box<Remote>),
}

impl Source {
    /// What is there, at most about `max` events (a transaction is not divided); waits for the first one for as long as
    /// this.
    pub fn next_batch(&mut self, max: usize, timeout: Duration) -> Result<Vec<Event>, ReplicaError> {
        match self {
            Source::Local(local) => local.next_batch(max, timeout),
            Source::Remote(remote) => {
                let batch = remote.next_batch(max, timeout)?;
                Ok(batch.into_iter().map(|stamped| stamped.event).collect())
            }
        }
    }

    /// Goes back to what is behind this, or to the start.
    pub fn rewind(&mut self, done: Option<Token>) -> Result<(), ReplicaError> {
        match self {
            Source::Local(local) => local.rewind(done),
            Source::Remote(remote) => {
                remote.rewind(done);
                Ok(())
            }
        }
    }

    /// Whether everything below this position was given.
    pub fn has_given(&self, position: u64) -> bool {
        match self {
            Source::Local(_) => true,
            Source::Remote(remote) => remote.has_given(position),
        }
    }

    /// Where its feed ends, as far as is known; `None`: it is not.
    pub fn end(&self) -> Option<u64> {
        match self {
            Source::Local(local) => local.end(),
            Source::Remote(remote) => remote.end(),
        }
    }

    /// How long ago something happened that it says was at this time, by its own clock.
    pub fn age_ms(&self, ts_ms: u64) -> u64 {
        match self {
            Source::Local(_) => hashmere_os::clock::now_ms().saturating_sub(ts_ms),
            Source::Remote(remote) => remote.age_ms(ts_ms),
        }
    }

    /// For how long nothing has been heard of it; of a local one 0.
    pub fn silent_ms(&self) -> u64 {
        match self {
            Source::Local(_) => 0,
            Source::Remote(remote) => remote.silent_ms(),
        }
    }

    /// Why it cannot be followed at the moment.
    pub fn trouble(&self) -> Option<&str> {
        match self {
            Source::Local(_) => None,
            Source::Remote(remote) => remote.trouble(),
        }
    }

    /// Given that nothing came: whether there was nothing when this was called first.
    pub fn is_drained(&mut self) -> bool {
        match self {
            Source::Local(_) => true,
            Source::Remote(remote) => remote.is_drained(),
        }
    }

    /// A copy of every key begins.
    pub fn begin_copy(&mut self, to: &Store) {
        if let Source::Remote(remote) = self {
            remote.begin_copy(to);
        }
    }

    /// These were applied.
    pub fn applied(&mut self, changes: &[&Change]) {
        if let Source::Remote(remote) = self {
            remote.applied(changes);
        }
    }

    /// All keys were applied: deletes those of the target that the source does not have.
    pub fn sweep(&mut self, to: &Store) -> Result<(), ReplicaError> {
        match self {
            Source::Local(local) => local.sweep(to),
            Source::Remote(remote) => remote.sweep(to),
        }
    }

    /// Whether its name has been removed, or leads to another store by now. (A server's tokens say so.)
    pub fn is_replaced(&self) -> bool {
        match self {
            Source::Local(local) => local.is_replaced(),
            Source::Remote(_) => false,
        }
    }
}

/// Where to begin behind what is done.
pub(crate) fn start_at(done: Option<Token>) -> FeedStart {
    done.map_or(FeedStart::Start, FeedStart::At)
}
