//! A readers-writer lock for each key: a lease of the kernel that readers share and a writer has alone, and a second
//! one, the turn, for one that waits. `docs/internals/queues.md` has what a crash at each step means.

use crate::error::QueueError;
use crate::holders::{Holders, Name, READ, RWLOCK, WRITE};
use crate::mutex::{refuse_cache, Holder, LOOK_EVERY};
use crate::own::{self, Own};
use hashmere_engine::{Lease, LeaseState, StoreHandle};
use hashmere_os::fork;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What errors call it.
const WHAT: &str = "readers-writer lock";
/// The prefixes of a key in the names of its leases.
const HELD: &[u8] = b"\0rwlock\0";
const TURN: &[u8] = b"\0rwlock turn\0";
/// A lock that lies free for so long is not taken by the one that has the turn: it is stopped.
const PASSED_OVER: Duration = Duration::from_millis(300);

/// What a [`RwLock`] is locked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RwLockMode {
    /// Beside other readers.
    Read,
    /// Alone.
    Write,
}

/// A readers-writer lock between processes. The key is its own: while it is locked its value names the holders, else
/// the key is absent.
///
/// The death of a holder, at any instruction, releases what it held; a holder that is stopped keeps it. It is held by a
/// lock of the kernel and not by the key, so it stays held when the store is cleared or the key deleted; only the names
/// of the holders go with the key. Not recursive, in no combination of reading and writing.
///
/// Readers and writers that find it free take it. Those that do not compete for the *turn*, and the one that has the
/// turn is the next to take the lock: no reader or writer that comes later passes it. So neither readers nor writers
/// starve; among those that wait there is no order.
#[derive(Clone, Debug)]
pub struct RwLock {
    holders: Arc<Holders>,
    held: Arc<[u8]>,
    turn: Arc<[u8]>,
}

/// Holds a [`RwLock`]; dropping it, in whatever thread, releases it. In a forked child it is the parent's: dropping it
/// there does nothing.
#[derive(Debug)]
pub struct RwLockGuard {
    holders: Arc<Holders>,
    lease: Option<Lease>,
    own: Arc<Own>,
    name: Name,
    abandoned: bool,
}

/// Waits for a [`RwLock`] in several steps, and keeps its turn between them: for callers that have to do something else
/// from time to time. Dropping it gives the turn up.
#[derive(Debug)]
pub struct RwLockWaiter {
    lock: RwLock,
    mode: RwLockMode,
    turn: Option<Lease>,
    /// Since when the lock is free and another one has the turn.
    passed_over: Option<Instant>,
    born: u64,
}

impl RwLock {
    /// The readers-writer lock of a key.
    ///
    /// # Errors
    /// [`BadOption`](QueueError::BadOption) if the store is a cache.
    pub fn new(store: &impl StoreHandle, key: &[u8]) -> Result<RwLock, QueueError> {
        let store = store.shared();
        refuse_cache(store)?;
        let holders = Holders { store: store.clone(), key: key.to_vec(), head: RWLOCK };
        Ok(RwLock { holders: Arc::new(holders), held: [HELD, key].concat().into(), turn: [TURN, key].concat().into() })
    }

    /// Locks it for reading, beside other readers, waiting as long as `timeout`; `None`: a living process, which
    /// [`writer`](Self::writer) names, held it for writing all the while, or had its turn to.
    ///
    /// # Errors
    /// [`Reentered`](QueueError::Reentered) if it was locked by this thread, for reading or writing and by whatever
    /// handle, and not released since: it could wait for itself (with a `timeout` of zero there is no wait: it returns
    /// `None`). The store's; [`Broken`](QueueError::Broken) if the key holds something else.
    pub fn read(&self, timeout: Duration) -> Result<Option<RwLockGuard>, QueueError> {
        self.waiter(RwLockMode::Read).wait(timeout)
    }

    /// Locks it for writing, alone, waiting as long as `timeout`; `None`: living processes held it all the while, which
    /// [`writer`](Self::writer) and [`readers`](Self::readers) name.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write(&self, timeout: Duration) -> Result<Option<RwLockGuard>, QueueError> {
        self.waiter(RwLockMode::Write).wait(timeout)
    }

    /// To wait for it in several steps.
    pub fn waiter(&self, mode: RwLockMode) -> RwLockWaiter {
        RwLockWaiter { lock: self.clone(), mode, turn: None, passed_over: None, born: fork::generation() }
    }

    /// The process that holds it for writing at about this moment; `None`: none, or one that is gone, or one whose name
    /// went when the store was cleared or the key deleted.
    ///
    /// # Errors
    /// The store's; [`Broken`](QueueError::Broken) if the key holds something else.
    pub fn writer(&self) -> Result<Option<Holder>, QueueError> {
        Ok(self.holders.named(|name| name.holds == WRITE)?.pop())
    }

    /// The processes that hold it for reading at about this moment, each as often as it does. Those that are gone are
    /// not among them, nor those whose names went when the store was cleared or the key deleted.
    ///
    /// # Errors
    /// As [`writer`](Self::writer).
    pub fn readers(&self) -> Result<Vec<Holder>, QueueError> {
        self.holders.named(|name| name.holds == READ)
    }

    fn try_take(&self, mode: RwLockMode, file: (u64, u64)) -> Result<Option<RwLockGuard>, QueueError> {
        let lease = match mode {
            RwLockMode::Read => self.holders.store.try_lease_shared(&self.held)?,
            RwLockMode::Write => self.holders.store.try_lease(&self.held)?,
        };
        let Some(lease) = lease else { return Ok(None) };
        // The name of a writer that died stays until a writer comes, for every reader to find.
        let (name, gone) = match mode {
            RwLockMode::Read => self.holders.add(READ, |name| name.holds == WRITE)?,
            RwLockMode::Write => self.holders.add(WRITE, |_| false)?,
        };
        let own = Own::took(WHAT, file, &self.holders.key);
        let abandoned = gone.contains(&WRITE);
        Ok(Some(RwLockGuard { holders: self.holders.clone(), lease: Some(lease), own, name, abandoned }))
    }
}

impl RwLockWaiter {
    /// Waits as long as `timeout`; `None`: it is not to be had yet: call it again to wait on.
    ///
    /// # Errors
    /// As [`RwLock::read`].
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<RwLockGuard>, QueueError> {
        if self.born != fork::generation() {
            // The turn is the parent's.
            (self.turn, self.passed_over, self.born) = (None, None, fork::generation());
        }
        let lock = self.lock.clone();
        let (store, key) = (&lock.holders.store, &lock.holders.key);
        let file = store.file_id()?;
        if Own::count(WHAT, file, key) > 0 {
            return own::refuse(WHAT, key, timeout);
        }
        let until = Instant::now().checked_add(timeout);
        loop {
            // The version before the leases: a release changes the key last, so that this is seen.
            let seen = store.metadata(key)?.map(|meta| meta.version);
            if self.may_try()? {
                if let Some(guard) = lock.try_take(self.mode, file)? {
                    self.turn = None;
                    return Ok(Some(guard));
                }
            }
            let left = until.map_or(LOOK_EVERY, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            if self.turn.is_none() {
                self.turn = store.try_lease(&lock.turn)?;
                if self.turn.is_some() {
                    // It may have been released before this one had the turn.
                    continue;
                }
            }
            store.wait(key, seen, left.min(LOOK_EVERY))?;
        }
    }

    /// Whether it has the turn, or no other does, or one that is stopped.
    fn may_try(&mut self) -> Result<bool, QueueError> {
        let store = &self.lock.holders.store;
        if self.turn.is_some() || store.lease_state(&self.lock.turn)? == LeaseState::Free {
            self.passed_over = None;
            return Ok(true);
        }
        if store.lease_state(&self.lock.held)? != LeaseState::Free {
            self.passed_over = None;
            return Ok(false);
        }
        Ok(self.passed_over.get_or_insert_with(Instant::now).elapsed() >= PASSED_OVER)
    }
}

impl RwLockGuard {
    /// Whether a writer died with it, and no other writer had it since: what it protects may be half done. A writer
    /// that gets this is expected to repair it; readers get it until then. A death behind which the store was cleared
    /// is not noticed, and that of a reader leaves nothing to notice.
    pub fn was_abandoned(&self) -> bool {
        self.abandoned
    }
}

impl Drop for RwLockGuard {
    fn drop(&mut self) {
        if !self.own.release() {
            return;
        }
        // First the lease, so that a waiter that the key wakes finds it free. A death in between: the next holder finds
        // it abandoned, which is nearly so.
        drop(self.lease.take());
        let _ = self.holders.remove(&self.name);
    }
}
