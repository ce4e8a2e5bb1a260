//! Access by UID and handle.

use crate::canary::{self, Canary};
use crate::engine::{Found, KeyHash};
use crate::error::{ReadError, WriteError};
use crate::types::{Address, Cas, Change, Expected, Handle, Item, Pair, Stored, Uid, Update, Updated};
use crate::Store;
use hashmere_format::hash::fingerprint;
use hashmere_mem::Mem;

impl Store {
    /// The UID of a key: a number by which it is found faster than by its bytes, for as long as it exists.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn uid_of(&self, key: &[u8]) -> Result<Option<Uid>, ReadError> {
        Ok(self.meta(key)?.map(|meta| meta.uid))
    }

    /// The handle of a key: its UID, and a fingerprint that tells when the UID has come to mean another key.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn handle_of(&self, key: &[u8]) -> Result<Option<Handle>, ReadError> {
        let hash = self.engine().hash(key).hash;
        Ok(self.uid_of(key)?.map(|uid| Handle::new(uid, fingerprint(hash))))
    }

    /// Reads what stands at a UID or handle.
    pub(crate) fn read_at<R>(
        &self,
        at: Address,
        mut take: impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<R, ReadError> {
        let engine = self.engine();
        loop {
            let root = engine.root_word();
            let Some((slot_offset, slot)) = engine.slot_of_uid(root, at.uid.0)? else {
                if engine.root_word() == root {
                    return Err(ReadError::Stale);
                }
                continue;
            };
            let read = engine.read_slot(root, at.uid.0, slot_offset, slot, |found| {
                if let Some(wanted) = at.fingerprint {
                    if fingerprint(self.key_hash(found).hash) != wanted && !canary::is(Canary::HandleUnchecked) {
                        return Ok(None);
                    }
                }
                if engine.is_past(found) {
                    return Ok(None);
                }
                take(found).map(Some)
            })?;
            match read {
                Some(Some(taken)) => return Ok(taken),
                Some(None) => return Err(ReadError::Stale),
                None => {}
            }
        }
    }

    fn key_hash(&self, found: &Found) -> KeyHash {
        let engine = self.engine();
        match engine.supplied_with(found) {
            Some(hash) => KeyHash { hash, is_supplied: true },
            None => {
                let mut small = [0u8; 64];
                let len = found.key_len();
                if let Some(key) = small.get_mut(..len) {
                    engine.mem.read(found.key(), key);
                    return engine.hash(key);
                }
                engine.hash(&self.key_at(found))
            }
        }
    }

    fn key_at(&self, found: &Found) -> Vec<u8> {
        let mut key = Vec::with_capacity(found.key_len());
        self.engine().mem.append_to(found.key(), found.key_len(), &mut key);
        key
    }

    /// Key, value and the rest of what a UID or handle names.
    ///
    /// # Errors
    /// [`ReadError::Stale`]: nothing is there, or (by handle) another key.
    pub fn get_at(&self, at: impl Into<Address>) -> Result<Pair, ReadError> {
        let engine = self.engine();
        self.read_at(at.into(), |found| {
            let mut value = Vec::new();
            let len = found.value_len();
            value.try_reserve_exact(len).map_err(|_| ReadError::OutOfMemory { bytes: len as u64 })?;
            engine.mem.append_to(found.value(), len, &mut value);
            engine.visit(found);
            Ok(Pair { key: self.key_at(found), value, meta: engine.meta_of_found(found) })
        })
    }

    /// Replaces the content of `buffer` by the value of what a UID or handle names.
    ///
    /// # Errors
    /// As [`get_at`](Self::get_at).
    pub fn get_at_into(&self, at: impl Into<Address>, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        let engine = self.engine();
        self.read_at(at.into(), |found| {
            buffer.clear();
            engine.mem.append_to(found.value(), found.value_len(), buffer);
            engine.visit(found);
            Ok(())
        })
    }

    /// The key that a UID or handle names, with its hash.
    fn name_at(&self, at: Address) -> Result<(Vec<u8>, KeyHash, Item), WriteError> {
        let engine = self.engine();
        Ok(self.read_at(at, |found| {
            let key = self.key_at(found);
            let kh = self.key_hash(found);
            let mut value = Vec::new();
            engine.mem.append_to(found.value(), found.value_len(), &mut value);
            Ok((key, kh, Item { value, meta: engine.meta_of_found(found) }))
        })?)
    }

    /// Stores a value for the key that a UID or handle names.
    ///
    /// # Errors
    /// [`WriteError::Stale`]: nothing is there, or (by handle) another key. Else as [`set`](Self::set).
    pub fn set_at(&self, at: impl Into<Address>, value: &[u8]) -> Result<Stored, WriteError> {
        let at = at.into();
        match self.change_at(at, Change::Set(value))? {
            Cas::Stored(stored) => Ok(stored),
            _ => Err(WriteError::Stale),
        }
    }

    /// Removes the key that a UID or handle names.
    ///
    /// # Errors
    /// As [`set_at`](Self::set_at).
    pub fn delete_at(&self, at: impl Into<Address>) -> Result<(), WriteError> {
        self.change_at(at.into(), Change::Remove).map(|_| ())
    }

    fn change_at(&self, at: Address, change: Change<'_>) -> Result<Cas, WriteError> {
        let engine = self.engine();
        loop {
            let (key, kh, item) = self.name_at(at)?;
            let mut lane = engine.lane_for(&key, kh)?;
            let done = engine.compare_and_set(&mut lane, &key, kh, Expected::Version(item.meta.version), change)?;
            if matches!(done, Cas::Stored(_) | Cas::Removed) {
                return Ok(done);
            }
        }
    }

    /// Shows what a UID or handle names to `f` and does what it says: see [`update`](Self::update).
    ///
    /// # Errors
    /// As [`set_at`](Self::set_at).
    pub fn update_at(&self, at: impl Into<Address>, mut f: impl FnMut(&Item) -> Update) -> Result<Updated, WriteError> {
        let at = at.into();
        let (key, kh, _) = self.name_at(at)?;
        let mut gone = false;
        let updated = self.update_hashed(&key, kh, |item| match item.filter(|i| i.meta.uid == at.uid) {
            Some(item) => f(item),
            None => {
                gone = true;
                Update::Keep
            }
        })?;
        if gone {
            return Err(WriteError::Stale);
        }
        Ok(updated)
    }
}
