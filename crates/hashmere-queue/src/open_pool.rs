//! What is open of a pool in this process, and how its queues come to be.

use crate::error::QueueError;
use crate::layout::{queue, Geometry, Kind};
use crate::recover::{Liveness, PoolCore};
use hashmere_engine::{ClientId, Region, SharedEngine, WriteError};
use hashmere_mem::{MapMem, Mem};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// The queue that every pool has, and in which all its elements are at first.
pub(crate) const FREE: &str = "free";

pub(crate) fn is_name(name: &str) -> bool {
    (1..=queue::NAME_MAX).contains(&name.len()) && !name.contains('\0')
}

/// Whether a pool can have this name: the same rule in every language, and C ends a name with a NUL.
pub(crate) fn check_name(name: &str) -> Result<(), QueueError> {
    if (1..=hashmere_format::region::NAME_MAX).contains(&name.len()) && !name.contains('\0') {
        return Ok(());
    }
    Err(QueueError::BadOption("the name of a pool has 1 to 128 bytes, none of them NUL"))
}

/// Writes the entry of a queue that does not exist yet; its last store makes it exist.
pub(crate) fn write_queue<M: Mem>(core: &PoolCore<M>, id: u64, name: &str, kind: Kind, bound: u64) {
    let entry = core.base + core.geometry.queue(id);
    core.mem.write(entry + queue::NAME, name.as_bytes());
    core.mem.store(entry + queue::NAME_LEN, name.len() as u64, Ordering::Relaxed);
    core.mem.store(entry + queue::KIND, kind as u64, Ordering::Relaxed);
    core.mem.store(entry + queue::BOUND, bound, Ordering::Relaxed);
    // SYNC(queue): a process that sees the state sees the rest.
    core.mem.store(entry + queue::STATE, 1, Ordering::Release);
}

/// An open pool, as its handles share it.
pub(crate) struct OpenPool {
    pub(crate) region: Region,
    pub(crate) geometry: Geometry,
    pub(crate) name: Box<str>,
}

impl OpenPool {
    #[inline(always)]
    pub(crate) fn mem(&self) -> &MapMem {
        self.region.mem()
    }

    pub(crate) fn core(&self) -> PoolCore<'_, MapMem> {
        PoolCore { mem: self.mem(), base: self.region.offset(), geometry: &self.geometry }
    }

    /// Clears up after crashed processes.
    pub(crate) fn recover(&self) -> Result<u64, QueueError> {
        if !self.region.is_ours() {
            return Err(QueueError::Forked);
        }
        let store = self.region.store();
        Ok(self.core().recover(store.client()?, &Others(store))?)
    }
}

struct Others<'a>(&'a Arc<SharedEngine>);

impl Liveness for Others<'_> {
    fn is_gone(&self, client: ClientId) -> Result<bool, WriteError> {
        self.0.is_gone(client)
    }
}
