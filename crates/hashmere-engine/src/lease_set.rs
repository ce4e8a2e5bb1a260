//! Which leases this process holds on a file: the kernel does not distinguish its threads.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// How this process has a lease.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Exclusive,
    /// By n threads, at least one.
    Shared(u64),
}

/// The leases that one open file of this process has.
#[derive(Default)]
pub(crate) struct Leases {
    taken: Mutex<HashMap<u64, Taken>>,
    /// Device and inode.
    pub(crate) file: OnceLock<(u64, u64)>,
}

impl Leases {
    /// What it guards is whole at every moment, so a panic elsewhere does no harm.
    pub(crate) fn taken(&self) -> MutexGuard<'_, HashMap<u64, Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
