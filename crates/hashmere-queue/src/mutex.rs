//! A mutex for each key: the key's value names who holds it, and its death releases it.

use crate::error::QueueError;
use hashmere::{Attributes, Cas, Change, ClientId, Expected, Mode, Store, Version};
use hashmere_os::fork;
use std::time::{Duration, Instant};

/// The longest sleep between two looks at whether the holder lives.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A mutex between processes. The key is its own: while it is locked its value says by whom, else the key is absent.
///
/// Whoever holds it and dies, at any instruction, has released it; a process that is stopped has not. Not fair.
#[derive(Clone, Debug)]
pub struct Mutex {
    store: Store,
    key: Vec<u8>,
}

/// Holds a [`Mutex`]; dropping it releases it. In a forked child it is the parent's: dropping it there does nothing.
#[derive(Debug)]
pub struct MutexGuard<'a> {
    mutex: &'a Mutex,
    version: Version,
    abandoned: bool,
    born: u64,
}

/// Who holds a [`Mutex`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Process id, in its own PID namespace.
    pub pid: u32,
    /// What the process calls itself, its first 16 bytes.
    pub name: String,
}

/// What such a value says: the holder.
pub(crate) fn holder_of(value: &[u8]) -> Result<ClientId, QueueError> {
    let word = value.first_chunk::<8>().filter(|_| value.len() == 8).map(|bytes| u64::from_le_bytes(*bytes));
    word.and_then(ClientId::unpack).ok_or(QueueError::Broken("the key of a mutex holds something else"))
}

/// Keys that processes agree by must not be evicted.
pub(crate) fn refuse_cache(store: &Store) -> Result<(), QueueError> {
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
    pub fn new(store: &Store, key: &[u8]) -> Result<Mutex, QueueError> {
        refuse_cache(store)?;
        Ok(Mutex { store: store.clone(), key: key.to_vec() })
    }

    /// Locks it, waiting as long as `timeout`; `None`: somebody alive held it all the while: [`holder`](Self::holder) says who. It
    /// is not recursive: a thread that holds it waits for itself.
    ///
    /// # Errors
    /// The store's; [`Broken`](QueueError::Broken) if the key holds something else.
    pub fn lock(&self, timeout: Duration) -> Result<Option<MutexGuard<'_>>, QueueError> {
        let until = Instant::now().checked_add(timeout);
        let me = self.store.client()?.pack().to_le_bytes();
        loop {
            if let Some(stored) = self.store.add(&self.key, &me, Attributes::NONE)? {
                return Ok(Some(self.guard(stored.version, false)));
            }
            let Some(item) = self.store.get_item(&self.key)? else { continue };
            if self.store.is_gone(holder_of(&item.value)?)? {
                let expected = Expected::Version(item.meta.version);
                if let Cas::Stored(stored) = self.store.compare_and_set(&self.key, expected, Change::Set(&me))? {
                    return Ok(Some(self.guard(stored.version, true)));
                }
                continue;
            }
            let left = until.map_or(LOOK_EVERY, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            self.store.wait(&self.key, Some(item.meta.version), left.min(LOOK_EVERY))?;
        }
    }
}

impl Mutex {
    /// Who holds it at about this moment; `None`: nobody, or somebody who is gone.
    ///
    /// # Errors
    /// The store's; [`Broken`](QueueError::Broken) if the key holds something else.
    pub fn holder(&self) -> Result<Option<Holder>, QueueError> {
        let Some(item) = self.store.get_item(&self.key)? else { return Ok(None) };
        let process = self.store.process_of(holder_of(&item.value)?);
        Ok(process.map(|(pid, name)| Holder { pid, name }))
    }

    fn guard(&self, version: Version, abandoned: bool) -> MutexGuard<'_> {
        MutexGuard { mutex: self, version, abandoned, born: fork::generation() }
    }
}

impl MutexGuard<'_> {
    /// Whether the holder before died with it: what it protects may be half done.
    pub fn was_abandoned(&self) -> bool {
        self.abandoned
    }
}

impl Drop for MutexGuard<'_> {
    fn drop(&mut self) {
        if self.born != fork::generation() {
            return;
        }
        // Only if it is ours still: the key may have been deleted and locked anew.
        let expected = Expected::Version(self.version);
        let _ = self.mutex.store.compare_and_set(&self.mutex.key, expected, Change::Remove);
    }
}
