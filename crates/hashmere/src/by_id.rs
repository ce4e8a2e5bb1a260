//! Calls that reach their key by the number of its entry.

use crate::key::Name;
use crate::{
    Attributes, CasOutcome, Change, EntryId, Expected, Item, Key, Metadata, ReadError, Store, Stored, Update, Updated,
    Version, WriteError,
};
use hashmere_engine::{Address, Found};

/// `None` for an entry that is gone.
fn if_there<T>(result: Result<T, WriteError>) -> Result<Option<T>, WriteError> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(WriteError::Stale) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Store {
    /// The id of a key: a number by which it is found faster than by its bytes for as long as it exists, and which does
    /// not find another key afterwards.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn id_of<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<EntryId>, ReadError> {
        match self.name(key) {
            Name::Key(key, kh) => self.shared.id_of(key, kh),
            Name::At(at) => match self.shared.id_at(at) {
                Ok(id) => Ok(Some(id)),
                Err(ReadError::Stale) => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    /// The bytes of a key that is there.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn key_of<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Vec<u8>>, ReadError> {
        match self.name(key) {
            Name::Key(key, kh) => Ok(self.engine().peek(key, kh)?.map(|_| key.to_vec())),
            Name::At(at) => self.read_entry(at, |found| Ok(self.engine().key_of(found))),
        }
    }

    /// What `take` makes of an entry; `None` if it is gone.
    pub(crate) fn read_entry<R>(
        &self,
        at: Address,
        take: impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Option<R>, ReadError> {
        match self.shared.read_at(at, take) {
            Ok(taken) => Ok(Some(taken)),
            Err(ReadError::Stale) => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[cold]
    pub(crate) fn item_of_entry(&self, at: Address) -> Result<Option<Item>, ReadError> {
        let engine = self.engine();
        self.shared
            .use_at(at, |found| Ok(Item { value: engine.value_of(found)?, metadata: engine.meta_of_found(found) }))
    }

    #[cold]
    pub(crate) fn metadata_of_entry(&self, at: Address) -> Result<Option<Metadata>, ReadError> {
        self.read_entry(at, |found| Ok(self.engine().meta_of_found(found)))
    }

    #[inline]
    pub(crate) fn is_entry_up_to_date(&self, at: Address, version: Version) -> Result<bool, ReadError> {
        Ok(self.read_entry(at, |found| Ok(found.version()))? == Some(version.0))
    }

    #[cold]
    pub(crate) fn set_entry(&self, at: Address, value: &[u8], attributes: Attributes) -> Result<Stored, WriteError> {
        match self.shared.change_at(at, Change::SetWith(value, attributes))? {
            CasOutcome::Stored(stored) => Ok(stored),
            _ => Err(WriteError::Stale),
        }
    }

    #[cold]
    pub(crate) fn replace_entry(
        &self,
        at: Address,
        value: &[u8],
        attributes: Attributes,
    ) -> Result<Option<Stored>, WriteError> {
        if_there(self.set_entry(at, value, attributes))
    }

    /// An entry that is there is not added, and one that is gone is not created again.
    #[cold]
    pub(crate) fn add_entry(&self, at: Address) -> Result<Option<Stored>, WriteError> {
        self.metadata_of_entry(at)?.map_or(Err(WriteError::Stale), |_| Ok(None))
    }

    #[cold]
    pub(crate) fn extend_entry(
        &self,
        at: Address,
        build: impl Fn(&[u8]) -> Vec<u8>,
    ) -> Result<Option<Stored>, WriteError> {
        let updated = if_there(self.shared.update_with_at(at, |item| Ok(Update::Set(build(&item.value)))))?;
        Ok(match updated {
            Some(Updated::Stored(stored)) => Some(stored),
            _ => None,
        })
    }

    #[cold]
    pub(crate) fn delete_entry(&self, at: Address) -> Result<bool, WriteError> {
        Ok(if_there(self.shared.change_at(at, Change::Remove))?.is_some())
    }

    #[cold]
    pub(crate) fn take_entry(&self, at: Address) -> Result<Option<Vec<u8>>, WriteError> {
        let mut value = None;
        let updated = if_there(self.shared.update_with_at(at, |item| {
            value = Some(item.value.clone());
            Ok(Update::Remove)
        }))?;
        Ok(value.filter(|_| updated == Some(Updated::Removed)))
    }

    #[cold]
    pub(crate) fn compare_and_set_entry(
        &self,
        at: Address,
        expected: Expected<'_>,
        change: Change<'_>,
    ) -> Result<CasOutcome, WriteError> {
        let wants_absent = match expected {
            Expected::Absent => true,
            Expected::Version(version) => version == Version(0) && change != Change::Remove,
            Expected::Value(_) => false,
        };
        let is_as_expected = |item: &Item| match expected {
            Expected::Absent => false,
            Expected::Version(version) => version == item.metadata.version,
            Expected::Value(value) => value == item.value,
        };
        match if_there(self.shared.change_at_if(at, is_as_expected, change))? {
            Some(done) => Ok(done),
            None if wants_absent => Err(WriteError::Stale),
            None => Ok(CasOutcome::Absent),
        }
    }

    #[cold]
    pub(crate) fn update_entry(
        &self,
        at: Address,
        mut f: impl FnMut(Option<&Item>) -> Update,
    ) -> Result<Updated, WriteError> {
        self.shared.update_with_at(at, |item| Ok(f(Some(item))))
    }

    /// The key of an entry, for a call that goes on by the key and finds out by itself that the entry is gone.
    #[cold]
    pub(crate) fn key_of_entry(&self, at: Address) -> Result<Option<(Vec<u8>, hashmere_engine::KeyHash)>, WriteError> {
        Ok(if_there(self.shared.name_at(at))?.map(|(key, kh, _)| (key, kh)))
    }
}
