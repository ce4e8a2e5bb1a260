//! Writing one key.

use crate::key::Name;
use crate::{
    Attributes, CasOutcome, Change, Expected, Item, Key, Reservation, Store, Stored, Ttl, Uid, Update, Updated,
    WriteError,
};
use hashmere_engine::{Address, KeyHash, Rounds, When};

impl Store {
    /// Stores a value without attributes, whether the key was there or not.
    ///
    /// The new value is complete and visible to every process when this returns; until then every reader sees the old
    /// one.
    ///
    /// # Errors
    /// [`WriteError::ReadOnly`], [`Full`](WriteError::Full), [`NoSpace`](WriteError::NoSpace),
    /// [`Busy`](WriteError::Busy), [`TooLarge`](WriteError::TooLarge), [`WrongLength`](WriteError::WrongLength) and the
    /// rest of [`WriteError`]: nothing has changed then.
    #[inline]
    pub fn set<'k>(&self, key: impl Into<Key<'k>>, value: &[u8]) -> Result<Stored, WriteError> {
        self.set_with(key, value, Attributes::NONE)
    }

    /// Stores a value with flags and expiry.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    #[inline(always)]
    pub fn set_with<'k>(
        &self,
        key: impl Into<Key<'k>>,
        value: &[u8],
        attributes: Attributes,
    ) -> Result<Stored, WriteError> {
        let engine = self.engine();
        match Name::of(engine, key) {
            Name::Key(key, kh) => engine.set_hashed(key, kh, value, attributes),
            Name::At(at) => self.set_entry(at, value, attributes),
        }
    }

    /// Stores a value if the key is absent. `None`: it is there, and stays as it is.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn add<'k>(
        &self,
        key: impl Into<Key<'k>>,
        value: &[u8],
        attributes: Attributes,
    ) -> Result<Option<Stored>, WriteError> {
        match self.name(key) {
            Name::Key(key, kh) => self.shared.put(key, kh, value, attributes, When::Absent),
            Name::At(at) => self.add_entry(at),
        }
    }

    /// Stores a value if the key is there. `None`: it is absent, and stays so.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn replace<'k>(
        &self,
        key: impl Into<Key<'k>>,
        value: &[u8],
        attributes: Attributes,
    ) -> Result<Option<Stored>, WriteError> {
        match self.name(key) {
            Name::Key(key, kh) => self.shared.put(key, kh, value, attributes, When::Present),
            Name::At(at) => self.replace_entry(at, value, attributes),
        }
    }

    /// Puts bytes behind a value, keeping flags and expiry. `None`: the key is absent.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn append<'k>(&self, key: impl Into<Key<'k>>, tail: &[u8]) -> Result<Option<Stored>, WriteError> {
        self.extend(self.name(key), tail.len(), |old| [old, tail].concat())
    }

    /// Puts bytes in front of a value, keeping flags and expiry. `None`: the key is absent.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn prepend<'k>(&self, key: impl Into<Key<'k>>, head: &[u8]) -> Result<Option<Stored>, WriteError> {
        self.extend(self.name(key), head.len(), |old| [head, old].concat())
    }

    fn extend(
        &self,
        name: Name<'_>,
        by: usize,
        build: impl Fn(&[u8]) -> Vec<u8>,
    ) -> Result<Option<Stored>, WriteError> {
        let engine = self.engine();
        let (key, kh) = match name {
            Name::Key(key, kh) => (key, kh),
            Name::At(at) => return self.extend_entry(at, build),
        };
        let updated = engine.update(key, kh, &mut || self.shared.item(key, kh), &mut |item| {
            let Some(item) = item else { return Ok(Update::Keep) };
            // What the store cannot hold is not even built.
            engine.admit(key.len() as u64, item.value.len() as u64 + by as u64)?;
            Ok(Update::Set(build(&item.value)))
        })?;
        Ok(match updated {
            Updated::Stored(stored) => Some(stored),
            Updated::Unchanged | Updated::Removed => None,
        })
    }

    /// Makes room for a value of `value_len` bytes, to be filled in place: see [`Reservation`]. The expiry is counted
    /// from now.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn reserve<'k>(
        &self,
        key: impl Into<Key<'k>>,
        value_len: u64,
        attributes: Attributes,
    ) -> Result<Reservation<'_>, WriteError> {
        match self.name(key) {
            Name::Key(key, kh) => self.shared.reserve(key, kh, value_len, attributes),
            Name::At(at) => self.shared.reserve_at(at, value_len, attributes),
        }
    }

    /// Removes a key. `false`: it was not there.
    ///
    /// # Errors
    /// As [`set`](Self::set), except that it needs no room.
    pub fn delete<'k>(&self, key: impl Into<Key<'k>>) -> Result<bool, WriteError> {
        let engine = self.engine();
        match Name::of(engine, key) {
            Name::Key(key, kh) => engine.remove(&mut *engine.writer_for(key, kh)?, key, kh, None),
            Name::At(at) => self.delete_entry(at),
        }
    }

    /// Removes a key and returns its value; exactly one of several callers gets it.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn take<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Vec<u8>>, WriteError> {
        let engine = self.engine();
        let (key, kh) = match Name::of(engine, key) {
            Name::Key(key, kh) => (key, kh),
            Name::At(at) => return self.take_entry(at),
        };
        let mut rounds = Rounds::default();
        loop {
            engine.begin_round(rounds, key, kh)?;
            let Some(item) = self.shared.item(key, kh)? else { return Ok(None) };
            let mut writer = engine.writer_for(key, kh)?;
            let taken = engine.end_round(&mut rounds, &mut writer, |writer| {
                Ok(engine.remove(writer, key, kh, Some(item.metadata.version))?.then_some(()))
            })?;
            if taken.is_some() {
                return Ok(Some(item.value));
            }
        }
    }

    /// Sets or removes a key if it is as expected: absent, at a version, or with a value.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn cas<'k>(
        &self,
        key: impl Into<Key<'k>>,
        expected: Expected<'_>,
        change: Change<'_>,
    ) -> Result<CasOutcome, WriteError> {
        match self.name(key) {
            Name::Key(key, kh) => self.shared.cas_hashed(key, kh, expected, change),
            Name::At(at) => self.compare_and_set_entry(at, expected, change),
        }
    }

    /// Calls `f` with a key and does what it returns, atomically for that key.
    ///
    /// No lock is held while `f` runs, so it may take its time and may use the store: read any key, this one too (it
    /// sees what is stored at that moment, not what `f` is going to return), and write other keys. If another writer
    /// changed the key during the call, it is called again with what is there then. After 16 times the writers of the
    /// key let it go first, each for up to 5 ms; so it does not starve beside writers without pause if it takes less
    /// than that.
    ///
    /// # Errors
    /// As [`set`](Self::set). Within `f`, a write of this key (or [`clear`](Self::clear)) by the same thread through
    /// this handle or a clone of it is refused with [`Reentered`](WriteError::Reentered): `f` would be asked again
    /// without end. [`InvalidState`](WriteError::InvalidState) if the key changed each of a thousand times that `f` was
    /// asked, and for 5 seconds.
    pub fn update_with<'k>(
        &self,
        key: impl Into<Key<'k>>,
        f: impl FnMut(Option<&Item>) -> Update,
    ) -> Result<Updated, WriteError> {
        match self.name(key) {
            Name::Key(key, kh) => self.shared.update_hashed(key, kh, f),
            Name::At(at) => self.update_entry(at, f),
        }
    }

    /// Gives a key another expiry. Its version stays. `false`: it is not there.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn touch<'k>(&self, key: impl Into<Key<'k>>, ttl: Ttl) -> Result<bool, WriteError> {
        let engine = self.engine();
        let deadline = engine.deadline(ttl);
        let (key, kh) = match self.name(key) {
            Name::Key(key, kh) => (key, kh),
            Name::At(at) => return Ok(self.touch_entry(at, deadline)?.is_some()),
        };
        let touched = engine.touch_in_place(&mut *engine.writer_for(key, kh)?, key, kh, deadline, None)?;
        match touched {
            Some(touched) => Ok(touched),
            None => Ok(self.get_and_touch_key(key, kh, deadline, None)?.is_some()),
        }
    }

    /// Gives a key another expiry and returns it, as it is with that expiry.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn get_and_touch<'k>(&self, key: impl Into<Key<'k>>, ttl: Ttl) -> Result<Option<Item>, WriteError> {
        let deadline = self.engine().deadline(ttl);
        match self.name(key) {
            Name::Key(key, kh) => self.get_and_touch_key(key, kh, deadline, None),
            Name::At(at) => self.touch_entry(at, deadline),
        }
    }

    #[cold]
    fn touch_entry(&self, at: Address, deadline: Option<u64>) -> Result<Option<Item>, WriteError> {
        let Some((key, kh)) = self.key_of_entry(at)? else { return Ok(None) };
        self.get_and_touch_key(&key, kh, deadline, Some(at.uid))
    }

    /// With `only` it is not there if it has another UID.
    fn get_and_touch_key(
        &self,
        key: &[u8],
        kh: KeyHash,
        deadline: Option<u64>,
        only: Option<Uid>,
    ) -> Result<Option<Item>, WriteError> {
        let engine = self.engine();
        let mut rounds = Rounds::default();
        loop {
            engine.begin_round(rounds, key, kh)?;
            let item = self.shared.item(key, kh)?.filter(|item| only.is_none_or(|uid| item.metadata.uid == uid));
            let Some(mut item) = item else { return Ok(None) };
            let mut writer = engine.writer_for(key, kh)?;
            let touched = engine.end_round(&mut rounds, &mut writer, |writer| {
                let touched = match engine.touch_in_place(writer, key, kh, deadline, Some(item.metadata.version))? {
                    Some(touched) => touched,
                    // A record without a word for its expiry is written again.
                    None => {
                        engine.with_index_room(writer, |writer| engine.refresh(writer, key, kh, &item, deadline))?
                    }
                };
                Ok(touched.then_some(()))
            })?;
            if touched.is_some() {
                item.metadata.expires_at_ms = deadline;
                return Ok(Some(item));
            }
        }
    }

    /// Removes every key. Readers see all of them or none within one call; no operation waits for it. What is not a key
    /// stays: regions (pools, logs) and leases (mutexes).
    ///
    /// # Errors
    /// [`Reentered`](WriteError::Reentered) within a function given to [`update_with`](Self::update_with).
    /// [`WriteError::Full`] or [`NoSpace`](WriteError::NoSpace) if there is not even room for an empty index.
    pub fn clear(&self) -> Result<(), WriteError> {
        let engine = self.engine();
        let mut writer = engine.writer_for_all()?;
        engine.clear(&mut writer)
    }
}
