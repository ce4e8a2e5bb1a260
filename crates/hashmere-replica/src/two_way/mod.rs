//! Two stores that both write: the last writer of a key wins, on both sides.
//!
//! `docs/internals/replicas.md` has the rules and what they promise.

#[cfg(test)]
mod death;
#[cfg(test)]
mod deaths;
mod entry;
mod follower;
#[cfg(test)]
mod histories;
mod side;
mod sidecar;
mod stamp;
mod stamped;

use crate::error::ReplicaError;
use crate::source::Served;
use crate::status::ReplicaStatus;
use follower::Follower;
use hashmere::Store;
pub use stamp::{BadStamp, Stamp};
pub use stamped::{Stamped, StampedFeed};
use std::time::Duration;

/// Keeps a store equal to another one, where both are written to.
///
/// Both keep their changes. What is applied has the [`origin`](hashmere::Options::origin) that the store was opened
/// with.
#[derive(Debug)]
pub struct TwoWay {
    /// One for each direction that this process serves.
    followers: Vec<Follower>,
}

impl TwoWay {
    /// Both directions between two stores of this machine. Resumes where the sidecars say; begins by merging every key
    /// where they say nothing.
    ///
    /// # Errors
    /// As [`Replicator::open`](crate::Replicator::open), and those of the sidecars, which lie beside the stores.
    pub fn open(a: &Store, b: &Store) -> Result<TwoWay, ReplicaError> {
        if crate::file::is_same(a, b) {
            return Err(ReplicaError::SameStore { path: b.path().into() });
        }
        Ok(TwoWay { followers: vec![Follower::open(b, a)?, Follower::open(a, b)?] })
    }

    /// One direction: what is written to a store that is served comes to this one. The other direction is that of a
    /// replicator beside the served one.
    ///
    /// # Errors
    /// Those of [`open`](Self::open). [`step`](Self::step) connects.
    pub fn open_served(peer: &Served, store: &Store) -> Result<TwoWay, ReplicaError> {
        Ok(TwoWay { followers: vec![Follower::open_served(peer, store)?] })
    }

    /// Deals with what there is, some of it; waits for the first change for about as long as this. `false`: there was
    /// nothing.
    ///
    /// # Errors
    /// Those of the stores, and of a server that refuses for good. The call may be tried again.
    pub fn step(&mut self, timeout: Duration) -> Result<bool, ReplicaError> {
        let share = timeout / self.followers.len() as u32;
        let mut is_idle = true;
        for follower in &mut self.followers {
            is_idle &= !follower.step(share)?;
        }
        Ok(!is_idle)
    }

    /// How far each direction is.
    pub fn status(&self) -> Vec<ReplicaStatus> {
        self.followers.iter().map(Follower::status).collect()
    }

    /// Why a served store cannot be followed at the moment; it is tried again.
    pub fn trouble(&self) -> Option<&str> {
        self.followers.iter().find_map(Follower::trouble)
    }

    /// To be called when [`step`](Self::step) had nothing, and again after each such step: whether everything is
    /// applied that had happened when this was called first.
    pub fn is_caught_up(&mut self) -> bool {
        self.followers.iter_mut().all(Follower::is_caught_up)
    }
}
