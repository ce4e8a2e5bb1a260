//! How a queue of a pool is made.

use crate::layout::Kind;

/// How a queue is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueOptions {
    pub(crate) kind: Option<Kind>,
    pub(crate) bound: Option<u64>,
}

impl QueueOptions {
    /// Any number of producers and consumers, room for every element of the pool.
    pub fn new() -> QueueOptions {
        QueueOptions::default()
    }

    /// Fewer producers or consumers, for more speed.
    pub fn kind(self, kind: Kind) -> QueueOptions {
        QueueOptions { kind: Some(kind), ..self }
    }

    /// The most elements that it takes, at least 1: then a push can find it full.
    pub fn bound(self, bound: u64) -> QueueOptions {
        QueueOptions { bound: Some(bound), ..self }
    }
}
