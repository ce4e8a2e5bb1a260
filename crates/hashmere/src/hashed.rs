//! The family of calls with a hash that the caller supplies.

use crate::{Attributes, Counter, Item, ReadError, Store, Stored, Uid, Update, Updated, WriteError};
use hashmere_engine::{Tick, When};

/// Calls that take the key's hash from the caller, for those who have one already: see [`Store::hashed`].
///
/// A key stored with a hash is found with the same hash only; the same bytes stored without one, or with another, are another
/// key. Equal hashes of different keys are handled, but many of them cost time. Such a record takes eight bytes more.
#[derive(Clone, Copy, Debug)]
pub struct Hashed<'a> {
    store: &'a Store,
}

impl Store {
    /// The calls with a caller-supplied hash.
    pub fn hashed(&self) -> Hashed<'_> {
        Hashed { store: self }
    }
}

impl<'a> Hashed<'a> {
    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }
}

impl Hashed<'_> {
    /// As [`Store::get`].
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get(&self, key: &[u8], hash: u64) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self.get_item(key, hash)?.map(|item| item.value))
    }

    /// As [`Store::get_into`].
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get_into(&self, key: &[u8], hash: u64, buffer: &mut Vec<u8>) -> Result<bool, ReadError> {
        buffer.clear();
        let engine = self.store.engine();
        self.store.shared.fetch_bytes(engine, key, engine.supplied(hash), buffer)
    }

    /// As [`Store::get_item`].
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get_item(&self, key: &[u8], hash: u64) -> Result<Option<Item>, ReadError> {
        self.store.shared.item(key, self.store.engine().supplied(hash))
    }

    /// As [`Store::contains_key`].
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn contains_key(&self, key: &[u8], hash: u64) -> Result<bool, ReadError> {
        Ok(self.store.engine().peek(key, self.store.engine().supplied(hash))?.is_some())
    }

    /// As [`Store::uid_of`].
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn uid_of(&self, key: &[u8], hash: u64) -> Result<Option<Uid>, ReadError> {
        Ok(self.store.engine().peek(key, self.store.engine().supplied(hash))?.map(|meta| meta.uid))
    }

    /// As [`Store::set`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn set(&self, key: &[u8], hash: u64, value: &[u8]) -> Result<Stored, WriteError> {
        let kh = self.store.engine().supplied(hash);
        self.store
            .shared
            .put(key, kh, value, Attributes::NONE, When::Always)?
            .ok_or(WriteError::InvalidState("nothing was stored"))
    }

    /// As [`Store::set_with`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn set_with(&self, key: &[u8], hash: u64, value: &[u8], attributes: Attributes) -> Result<Stored, WriteError> {
        let kh = self.store.engine().supplied(hash);
        self.store
            .shared
            .put(key, kh, value, attributes, When::Always)?
            .ok_or(WriteError::InvalidState("nothing was stored"))
    }

    /// As [`Store::add`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn add(
        &self,
        key: &[u8],
        hash: u64,
        value: &[u8],
        attributes: Attributes,
    ) -> Result<Option<Stored>, WriteError> {
        self.store.shared.put(key, self.store.engine().supplied(hash), value, attributes, When::Absent)
    }

    /// As [`Store::delete`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn delete(&self, key: &[u8], hash: u64) -> Result<bool, WriteError> {
        let engine = self.store.engine();
        let kh = engine.supplied(hash);
        let mut writer = engine.writer_for(key, kh)?;
        engine.remove(&mut writer, key, kh, None)
    }

    /// As [`Store::incr`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn incr(&self, key: &[u8], hash: u64, by: u64, counter: Counter) -> Result<Option<u64>, WriteError> {
        let kh = self.store.engine().supplied(hash);
        self.store.tick(key, kh, counter, |n| Tick::Set(n.wrapping_add(by)))
    }

    /// As [`Store::update_with`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn update_with(
        &self,
        key: &[u8],
        hash: u64,
        f: impl FnMut(Option<&Item>) -> Update,
    ) -> Result<Updated, WriteError> {
        self.store.shared.update_hashed(key, self.store.engine().supplied(hash), f)
    }
}
