//! The handle, and reading.

use crate::key::Name;
use crate::{
    CheckReport, Error, Expiry, Item, Key, Metadata, Mode, OpenError, ReadError, Stats, Version, View, WriteError,
};
use hashmere_engine::{resolve, FileEngine, SharedEngine, StoreHandle};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A handle on an open store. Clones share it; it is used from any number of threads, and goes on
/// working in a forked child. The last clone to be dropped closes it.
#[derive(Clone)]
pub struct Store {
    pub(crate) shared: Arc<SharedEngine>,
}

impl Store {
    /// Removes a store's file. Processes that have it open go on with the removed one; the process that opens the name
    /// next gets a new one. `false`: there was none.
    ///
    /// # Errors
    /// [`OpenError::NotAStore`] if the file is something else; it is left alone. Otherwise as [`crate::Options::open`].
    pub fn remove(name_or_path: impl AsRef<Path>) -> Result<bool, OpenError> {
        hashmere_engine::remove(name_or_path.as_ref())
    }

    /// The file that a name or path means.
    ///
    /// # Errors
    /// [`OpenError::BadName`], or what is wrong with the namespace folder.
    pub fn path_of(name_or_path: impl AsRef<Path>) -> Result<PathBuf, OpenError> {
        resolve(name_or_path.as_ref())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.shared.path()
    }

    /// Whether it was opened read-only.
    pub fn is_read_only(&self) -> bool {
        self.shared.is_read_only()
    }

    /// Whether it refuses when it is full, or evicts.
    pub fn mode(&self) -> Mode {
        self.shared.mode()
    }

    #[inline(always)]
    pub(crate) fn engine(&self) -> &FileEngine {
        self.shared.engine()
    }

    /// How to reach a key. For bytes nothing is left of this in the compiled call.
    #[inline(always)]
    pub(crate) fn name<'k>(&self, key: impl Into<Key<'k>>) -> Name<'k> {
        Name::of(self.engine(), key)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Vec<u8>>, ReadError> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.map(|_| value))
    }

    /// The value of a key with flags, version, expiry and UID.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get_item<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Item>, ReadError> {
        match self.name(key) {
            Name::Key(key, kh) => self.shared.item(key, kh),
            Name::At(at) => self.item_of_entry(at),
        }
    }

    /// A view of the value where it is stored, without a copy: see [`View`].
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn view<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<View>, ReadError> {
        Ok(match self.name(key) {
            Name::Key(key, kh) => {
                let view = self.shared.view_of(key, kh)?;
                self.engine().count_read(view.is_some(), key, kh);
                view
            }
            Name::At(at) => {
                let view = self.shared.view_at(at)?;
                self.shared.count_use_at(view.is_some(), at);
                view
            }
        })
    }

    /// Everything about a key except its value.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn metadata<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Metadata>, ReadError> {
        match self.name(key) {
            Name::Key(key, kh) => self.engine().peek(key, kh),
            Name::At(at) => self.metadata_of_entry(at),
        }
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn contains_key<'k>(&self, key: impl Into<Key<'k>>) -> Result<bool, ReadError> {
        Ok(self.metadata(key)?.is_some())
    }

    /// Whether a key is still there with the version that it was seen with: `false` if it was changed or removed since.
    ///
    /// By a [`Uid`](crate::Uid) or [`EntryId`](crate::EntryId) this does not look through a bucket: it loads the words
    /// that lead to the entry, and the one of its version (and by an id the key, to be sure that it is no other). They
    /// stay in the caller's cache until a process changes the key or a neighbour. A touch is no change.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn is_up_to_date<'k>(&self, key: impl Into<Key<'k>>, version: Version) -> Result<bool, ReadError> {
        match self.name(key) {
            Name::Key(key, kh) => Ok(self.engine().peek(key, kh)?.is_some_and(|meta| meta.version == version)),
            Name::At(at) => self.is_entry_up_to_date(at, version),
        }
    }

    /// How long a key still lives; `None` if it is not there.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn ttl<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Expiry>, ReadError> {
        let now = hashmere_os::clock::now_ms();
        Ok(self.metadata(key)?.map(|meta| Expiry {
            remaining: meta.expires_at_ms.map(|at| Duration::from_millis(at.saturating_sub(now))),
        }))
    }

    /// How many keys are stored, at once and without reading any of them: exact while there are no writers, except that
    /// expired ones, which no read returns, count until they are cleaned away ([`compact`](Self::compact) does so).
    /// [`len_exact`](Self::len_exact) leaves them out.
    pub fn len(&self) -> u64 {
        self.engine().items()
    }

    /// How many keys a scan returns now: those that have expired do not count. It looks at every key.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn len_exact(&self) -> Result<u64, ReadError> {
        self.keys().try_fold(0, |count, key| key.map(|_| count + 1))
    }

    /// Whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Statistics. No process is stopped for them.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Reads the whole store and names what contradicts itself. Others may go on writing: what they are changing is not
    /// reported. If they clear the store again and again, the report is empty and says that no segment was looked at.
    pub fn check(&self) -> CheckReport {
        self.engine().check()
    }

    /// Makes everything that any process was acknowledged before this call survive a crash of the machine and a power
    /// cut. Durable stores only ([`crate::Options::durable`]). Several callers at a time share the work.
    ///
    /// # Errors
    /// [`WriteError::InvalidState`] if the store is not durable, [`Busy`](WriteError::Busy) if a process is stopped
    /// within a write or a sync (call again), [`Io`](WriteError::Io) if the disk fails: then this and every later write
    /// and sync of any process fails, with [`Poisoned`](WriteError::Poisoned).
    pub fn sync(&self) -> Result<(), WriteError> {
        let engine = self.engine();
        if self.is_read_only() {
            return Err(WriteError::ReadOnly);
        }
        let writer = engine.writer()?;
        engine.sync(&writer).map(|_| ())
    }

    /// Repairs what dead clients left, removes every key that has expired and cleans whatever pays, over the whole
    /// store; returns the bytes that became free. Writing does this incrementally, where it is worth it; this is for a
    /// quiet moment.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn compact(&self) -> Result<u64, WriteError> {
        let engine = self.engine();
        let mut writer = engine.writer()?;
        engine.sweep()?;
        Ok(engine.compact(&mut writer)? * engine.segment_bytes())
    }

    /// Gives the store another maximum size, for all processes that have it open; [`crate::Options::max_bytes`] does
    /// the same at opening.
    ///
    /// A larger one counts from now on. For a smaller one a cache drops what has not been used lately (or everything,
    /// if its index alone would take half of the new size), and a strict store is compacted; the memory of what is no
    /// longer needed is given back, and the file keeps its length, with holes. That takes as long as dropping or moving
    /// what is in the way. What is held back (by a view, by a stopped process) is given back when it is let go. Readers
    /// and writers go on; a backup under way is given up.
    ///
    /// # Errors
    /// [`OpenError::BadOption`]: too small for any store. [`OpenError::OptionMismatch`]: what must stay does not fit,
    /// that is the keys of a strict store, or regions; it has the maximum that it had. [`WriteError::ReadOnly`],
    /// [`WriteError::Busy`].
    pub fn set_max_bytes(&self, bytes: u64) -> Result<(), Error> {
        self.shared.set_max_bytes(bytes)
    }
}

impl StoreHandle for Store {
    #[inline]
    fn shared(&self) -> &Arc<SharedEngine> {
        &self.shared
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path()).finish_non_exhaustive()
    }
}
