//! Which leases this process holds on a file: the kernel does not distinguish its threads.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The leases that one open file of this process has.
#[derive(Default)]
pub(crate) struct Leases {
    taken: Mutex<HashSet<u64>>,
    /// Device and inode.
    pub(crate) file: OnceLock<(u64, u64)>,
}

impl Leases {
    /// What it guards is whole at every moment, so a panic elsewhere does no harm.
    pub(crate) fn taken(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
