//! A mutex for each key: a lease of the key's name says whether it is held, the key's value names the holder, whose
//! death releases it.

use crate::error::QueueError;
use crate::own::{self, Own};
use hashmere_engine::{
    Attributes, CasOutcome, Change, ClientId, Expected, Lease, LeaseState, Mode, SharedEngine, StoreHandle, Version,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest sleep between two looks at whether the holder lives.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What errors call it.
const WHAT: &str = "mutex";

/// A mutex between processes. The key is its own: while it is locked its value names the holder, else the key is
/// absent.
///
/// The death of the holder, at any instruction, releases it; a holder that is stopped keeps it. It is held by a lock of
/// the kernel and not by the key, so it stays held when the store is cleared or the key deleted; only the holder's name
/// goes with the key: see [`holder`](Self::holder). Not fair, not recursive.
#[derive(Clone, Debug)]
pub struct Mutex {
    store: Arc<SharedEngine>,
    key: Vec<u8>,
}

/// Holds a [`Mutex`]; dropping it, in whatever thread, releases it. In a forked child it is the parent's: dropping it
/// there does nothing.
#[derive(Debug)]
pub struct MutexGuard<'a> {
    mutex: &'a Mutex,
    lease: Option<Lease>,
    mine: Arc<Own>,
    version: Version,
    abandoned: bool,
}

/// Who holds a [`Mutex`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Process id, in its own PID namespace; 0: held by a living process, but its name went with the key.
    pub pid: u32,
    /// What the process calls itself, its first 16 bytes; empty if that is not known.
    pub name: String,
}

/// What such a value says: the holder.
pub(crate) fn holder_of(value: &[u8]) -> Result<ClientId, QueueError> {
    let word = value.first_chunk::<8>().filter(|_| value.len() == 8).map(|bytes| u64::from_le_bytes(*bytes));
    word.and_then(ClientId::unpack).ok_or(QueueError::Broken("the key of a mutex holds something else"))
}

/// Keys that processes agree by must not be evicted.
pub(crate) fn refuse_cache(store: &Arc<SharedEngine>) -> Result<(), QueueError> {
    match store.mode() {
        Mode::Cache => Err(QueueError::BadOption(
            "a cache may drop the key at any time; use a strict store to wait for each other",
        )),
        _ => Ok(()),
    }
}

impl Mutex {
    /// The mutex of a key.
    ///
    /// # Errors
    /// [`BadOption`](QueueError::BadOption) if the store is a cache.
    pub fn new(store: &impl StoreHandle, key: &[u8]) -> Result<Mutex, QueueError> {
        let store = store.shared();
        refuse_cache(store)?;
        Ok(Mutex { store: store.clone(), key: key.to_vec() })
    }

    /// Locks it, waiting as long as `timeout`; `None`: it was held all the while, by a living process, which
    /// [`holder`](Self::holder) names.
    ///
    /// # Errors
    /// [`Reentered`](QueueError::Reentered) if it was locked by this thread, by whatever handle, and not released
    /// since: it would wait for itself (with a `timeout` of zero there is no wait: it returns `None`). The store's;
    /// [`Broken`](QueueError::Broken) if the key holds something else.
    pub fn lock(&self, timeout: Duration) -> Result<Option<MutexGuard<'_>>, QueueError> {
        let file = self.store.file_id()?;
        if Own::count(WHAT, file, &self.key) > 0 {
            return own::refuse(WHAT, &self.key, timeout);
        }
        let until = Instant::now().checked_add(timeout);
        loop {
            // The version before the lease: a release changes the key last, so that this is seen.
            let seen = self.store.metadata(&self.key)?.map(|meta| meta.version);
            if let Some(lease) = self.store.try_lease(&self.key)? {
                let (version, abandoned) = self.sign()?;
                let mine = Own::took(WHAT, file, &self.key);
                return Ok(Some(MutexGuard { mutex: self, lease: Some(lease), mine, version, abandoned }));
            }
            let left = until.map_or(LOOK_EVERY, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            self.store.wait(&self.key, seen, left.min(LOOK_EVERY))?;
        }
    }

    /// Holding the lease: names this client in the key. Whether the holder before died with it.
    fn sign(&self) -> Result<(Version, bool), QueueError> {
        let me = self.store.client()?.pack().to_le_bytes();
        loop {
            if let Some(stored) = self.store.add(&self.key, &me, Attributes::NONE)? {
                return Ok((stored.version, false));
            }
            let Some(item) = self.store.get_item(&self.key)? else { continue };
            // A living holder has given the lease back and is about to remove its name.
            let abandoned = self.store.is_gone(holder_of(&item.value)?)?;
            let expected = Expected::Version(item.metadata.version);
            if let CasOutcome::Stored(stored) = self.store.cas(&self.key, expected, Change::Set(&me))? {
                return Ok((stored.version, abandoned));
            }
        }
    }

    /// Its holder at about this moment; `None`: there is none, or it is gone. The key names it; if the store was
    /// cleared or the key deleted since it was locked, the holder is named only if this handle is it, else its process
    /// id is 0: another one holds it.
    ///
    /// # Errors
    /// The store's; [`Broken`](QueueError::Broken) if the key holds something else.
    pub fn holder(&self) -> Result<Option<Holder>, QueueError> {
        let item = self.store.get_item(&self.key)?;
        let signed = item.map(|item| holder_of(&item.value)).transpose()?;
        let named = match signed.and_then(|client| self.store.process_of(client)) {
            Some(process) => Some(process),
            // Whether it is held the kernel knows, and not by whom.
            None => match self.store.lease_state(&self.key)? {
                LeaseState::Free => None,
                LeaseState::Ours => self.store.process_of(self.store.client()?),
                LeaseState::Others => Some((0, String::new())),
            },
        };
        Ok(named.map(|(pid, name)| Holder { pid, name }))
    }
}

impl MutexGuard<'_> {
    /// Whether the holder before died with it: what it protects may be half done. A death behind which the store was
    /// cleared is not noticed.
    pub fn was_abandoned(&self) -> bool {
        self.abandoned
    }
}

impl Drop for MutexGuard<'_> {
    fn drop(&mut self) {
        if !self.mine.release() {
            return;
        }
        // First the lease, so that a waiter that the key wakes finds it free. A client that takes it in between signs
        // over our name, and the version is not ours any more. A death in between: the next holder finds it abandoned,
        // which is nearly so.
        drop(self.lease.take());
        let expected = Expected::Version(self.version);
        let _ = self.mutex.store.cas(&self.mutex.key, expected, Change::Remove);
    }
}
