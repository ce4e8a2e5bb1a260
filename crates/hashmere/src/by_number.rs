//! Access by UID and handle.

use crate::{
    Address, CasOutcome, Change, EntryId, Item, Pair, ReadError, Store, Stored, Uid, Update, Updated, WriteError,
};

impl Store {
    /// The UID of a key: a number by which it is found faster than by its bytes, for as long as it exists.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn uid_of(&self, key: &[u8]) -> Result<Option<Uid>, ReadError> {
        Ok(self.metadata(key)?.map(|meta| meta.uid))
    }

    /// The handle of a key: its UID, and a fingerprint that tells when the UID has come to mean another key.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn id_of(&self, key: &[u8]) -> Result<Option<EntryId>, ReadError> {
        self.shared.id_of(key)
    }

    /// Key, value and the rest of what a UID or entry id names.
    ///
    /// # Errors
    /// [`ReadError::Stale`]: nothing is there, or (by entry id) another key.
    pub fn get_at(&self, at: impl Into<Address>) -> Result<Pair, ReadError> {
        let engine = self.engine();
        self.shared.read_at(at.into(), |found| {
            let value = engine.value_of(found)?;
            engine.visit(found);
            Ok(Pair { key: engine.key_of(found), value, metadata: engine.meta_of_found(found) })
        })
    }

    /// Replaces the content of `buffer` by the value of what a UID or entry id names.
    ///
    /// # Errors
    /// As [`get_at`](Self::get_at).
    pub fn get_at_into(&self, at: impl Into<Address>, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        let engine = self.engine();
        self.shared.read_at(at.into(), |found| {
            buffer.clear();
            engine.append_value(found, buffer);
            engine.visit(found);
            Ok(())
        })
    }

    /// Stores a value for the key that a UID or entry id names.
    ///
    /// # Errors
    /// [`WriteError::Stale`]: nothing is there, or (by entry id) another key. Else as [`set`](Self::set).
    pub fn set_at(&self, at: impl Into<Address>, value: &[u8]) -> Result<Stored, WriteError> {
        let at = at.into();
        match self.shared.change_at(at, Change::Set(value))? {
            CasOutcome::Stored(stored) => Ok(stored),
            _ => Err(WriteError::Stale),
        }
    }

    /// Removes the key that a UID or entry id names.
    ///
    /// # Errors
    /// As [`set_at`](Self::set_at).
    pub fn delete_at(&self, at: impl Into<Address>) -> Result<(), WriteError> {
        self.shared.change_at(at.into(), Change::Remove).map(|_| ())
    }

    /// Shows what a UID or entry id names to `f` and does what it says: see [`update_with`](Self::update_with).
    ///
    /// # Errors
    /// As [`set_at`](Self::set_at).
    pub fn update_with_at(
        &self,
        at: impl Into<Address>,
        f: impl FnMut(&Item) -> Update,
    ) -> Result<Updated, WriteError> {
        self.shared.update_with_at(at.into(), f)
    }
}
