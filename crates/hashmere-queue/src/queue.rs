//! One queue of a pool: its name and figures, and a look at its first element.

use crate::layout::{queue, Kind};
use crate::open_pool::OpenPool;
use crate::ring::Ring;
use crate::transfer::peek;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// One queue in [`PoolStats`](crate::PoolStats).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueueStats {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Most elements that it takes.
    pub bound: u64,
    /// Elements in it.
    pub len: u64,
    /// Elements ever pushed to it (below 2^48).
    pub pushed: u64,
    /// Whether a process sleeps until it is pushed to.
    pub has_sleepers: bool,
}

/// A queue of a pool. Clones name the same one.
#[derive(Clone)]
pub struct Queue {
    pub(crate) pool: Arc<OpenPool>,
    pub(crate) ring: Ring,
}

impl Queue {
    /// Its name.
    pub fn name(&self) -> String {
        ring_name(self.pool.mem(), &self.ring)
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.ring.kind
    }

    /// Most elements that it takes.
    pub fn bound(&self) -> u64 {
        self.ring.bound
    }

    /// Elements in it at about this moment.
    pub fn len(&self) -> u64 {
        self.ring.len(self.pool.mem())
    }

    /// Whether there were none at about this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the first element's bytes, which stays where it is; `None`: the queue is empty.
    pub fn peek(&self) -> Option<Vec<u8>> {
        peek(self.pool.mem(), &self.ring, &self.pool.geometry, self.pool.region.offset())
    }
}

/// The figures of one queue.
pub(crate) fn ring_stats<M: Mem>(mem: &M, ring: &Ring) -> QueueStats {
    QueueStats {
        name: ring_name(mem, ring),
        kind: ring.kind,
        bound: ring.bound,
        len: ring.len(mem),
        pushed: ring.tail(mem).position(),
        has_sleepers: mem.load(ring.entry + queue::SLEEPERS, Ordering::Relaxed) != 0,
    }
}

fn ring_name<M: Mem>(mem: &M, ring: &Ring) -> String {
    let len = mem.load(ring.entry + queue::NAME_LEN, Ordering::Acquire).min(queue::NAME_MAX as u64);
    let mut name = vec![0; len as usize];
    mem.read(ring.entry + queue::NAME, &mut name);
    String::from_utf8_lossy(&name).into_owned()
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("name", &self.name()).field("len", &self.len()).finish_non_exhaustive()
    }
}
