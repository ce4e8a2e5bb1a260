//! Leases: names that one thread of one process has at a time, or several threads of several processes share, by a lock
//! of the kernel on a byte behind the end of the file.
//!
//! Nothing of a lease is stored in the file, so no clear, write or damage ends it, and the kernel drops it with the
//! process. Within a process the kernel does not distinguish threads; a set of what is taken does. For crates that
//! build locks on it.

use crate::error::WriteError;
use crate::fork_handle::SharedEngine;
use crate::lease_set::Taken;
use hashmere_os::fork;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// The first byte lock of leases; from here on there is one for each of 2^61 hashes.
const FIRST: u64 = 1 << 61;
/// Bits of a hash that do not count.
const SHIFT: u32 = 3;

/// A lease; dropping it gives it back. In a forked child it is the parent's: dropping it there does nothing.
#[derive(Debug)]
pub struct Lease {
    store: Arc<SharedEngine>,
    number: u64,
    born: u64,
}

/// What [`SharedEngine::lease_state`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Not held.
    Free,
    /// Held by a thread of this process, by this handle.
    Ours,
    /// Held by another handle, of this process or of another: the kernel does not say whose.
    Others,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.born != fork::generation() {
            return;
        }
        let opened = self.store.opened();
        // While the set is locked: another thread must not take it between the two.
        let mut taken = opened.leases.taken();
        if let Some(Taken::Shared(threads @ 2..)) = taken.get_mut(&self.number) {
            *threads -= 1;
            return;
        }
        // A lock that the kernel does not give back goes with the process.
        let _ = opened.presence.unlock(self.number);
        taken.remove(&self.number);
    }
}

impl SharedEngine {
    /// Takes the lease of a name, if it is free: held by no other thread, no other process, no other handle of this
    /// one. Not even clearing the store ends it; the death of the process does, by whatever cause.
    ///
    /// # Errors
    /// [`ReadOnly`](WriteError::ReadOnly), [`Io`](WriteError::Io).
    pub fn try_lease(self: &Arc<Self>, name: &[u8]) -> Result<Option<Lease>, WriteError> {
        if self.is_read_only() {
            return Err(WriteError::ReadOnly);
        }
        let number = self.lease_number(name);
        let opened = self.opened();
        let mut taken = opened.leases.taken();
        if taken.contains_key(&number) {
            return Ok(None);
        }
        let locked = opened.presence.try_exclusive(number);
        if !locked.map_err(|source| WriteError::Io { action: "take a lease of the store", source })? {
            return Ok(None);
        }
        taken.insert(number, Taken::Exclusive);
        Ok(Some(Lease { store: self.clone(), number, born: fork::generation() }))
    }

    /// Takes the lease of a name beside others that share it, unless one has it for itself alone.
    ///
    /// # Errors
    /// As [`try_lease`](Self::try_lease).
    pub fn try_lease_shared(self: &Arc<Self>, name: &[u8]) -> Result<Option<Lease>, WriteError> {
        if self.is_read_only() {
            return Err(WriteError::ReadOnly);
        }
        let number = self.lease_number(name);
        let opened = self.opened();
        let mut taken = opened.leases.taken();
        match taken.get_mut(&number) {
            Some(Taken::Exclusive) => return Ok(None),
            Some(Taken::Shared(threads)) => *threads += 1,
            None => {
                let locked = opened.presence.try_shared(number);
                if !locked.map_err(|source| WriteError::Io { action: "share a lease of the store", source })? {
                    return Ok(None);
                }
                taken.insert(number, Taken::Shared(1));
            }
        }
        Ok(Some(Lease { store: self.clone(), number, born: fork::generation() }))
    }

    fn lease_number(&self, name: &[u8]) -> u64 {
        FIRST + (self.engine().hash(name).hash >> SHIFT)
    }

    /// Whether the lease of a name is held, and by this handle or by another (of whichever process): at about this
    /// moment, without taking it.
    ///
    /// # Errors
    /// [`Io`](WriteError::Io).
    pub fn lease_state(&self, name: &[u8]) -> Result<LeaseState, WriteError> {
        let number = self.lease_number(name);
        let opened = self.opened();
        if opened.leases.taken().contains_key(&number) {
            return Ok(LeaseState::Ours);
        }
        let other = opened.presence.is_locked_by_other(number);
        let other = other.map_err(|source| WriteError::Io { action: "look at a lease of the store", source })?;
        Ok(if other { LeaseState::Others } else { LeaseState::Free })
    }

    /// The file, by device and inode: the same for every handle that this process has of it.
    ///
    /// # Errors
    /// [`Io`](WriteError::Io).
    pub fn file_id(&self) -> Result<(u64, u64), WriteError> {
        let opened = self.opened();
        if let Some(id) = opened.leases.file.get() {
            return Ok(*id);
        }
        let metadata = opened.engine.mem.file().metadata();
        let metadata = metadata.map_err(|source| WriteError::Io { action: "look at the file", source })?;
        Ok(*opened.leases.file.get_or_init(|| (metadata.dev(), metadata.ino())))
    }
}
