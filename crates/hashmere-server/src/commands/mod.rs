//! What requests do to the store, for all three protocols: the calls of the store, the counters and the lines of
//! `watch` that go with them. Nothing here parses a request or writes a reply.

pub mod count;
pub mod delete;
pub mod flush;
pub mod lease;
pub mod marks;
pub mod set;
pub mod touch;

use hashmere::{Stored, WriteError};

/// The result of storing, and of deleting at a version.
#[derive(Debug)]
pub enum Outcome {
    /// Stored, with a value of this length.
    Stored(Stored, u64),
    /// Stored as stale: it came with a token that is not that of the lease.
    StoredStale(Stored),
    /// The condition on presence is not met.
    NotStored,
    /// The key has another version.
    Exists,
    /// The key is not there, and has to be.
    NotFound,
    /// Above the item limit.
    TooLarge,
    /// The store refused.
    Failed(WriteError),
}

impl Outcome {
    /// Deleted.
    pub fn gone() -> Outcome {
        Outcome::Stored(Stored::default(), 0)
    }

    fn of(stored: Result<Option<Stored>, WriteError>, value: &[u8]) -> Outcome {
        match stored {
            Ok(Some(stored)) => Outcome::Stored(stored, value.len() as u64),
            Ok(None) => Outcome::NotStored,
            Err(error) => Outcome::Failed(error),
        }
    }
}
