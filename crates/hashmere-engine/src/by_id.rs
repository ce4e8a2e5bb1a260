//! The record that a UID or entry id names.

use crate::engine::{Found, KeyHash};
use crate::error::{ReadError, WriteError};
use crate::fault::{self, Fault};
use crate::fork_handle::SharedEngine;
use crate::types::{Address, CasOutcome, Change, EntryId, Expected, Item, Update, Updated};
use crate::view::View;
use hashmere_format::hash::fingerprint;
use hashmere_mem::Mem;
use std::borrow::Cow;
use std::sync::Arc;

impl SharedEngine {
    /// The id of a key.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn id_of(&self, key: &[u8], kh: KeyHash) -> Result<Option<EntryId>, ReadError> {
        Ok(self.engine().peek(key, kh)?.map(|meta| EntryId::new(meta.uid, fingerprint(kh.hash))))
    }

    /// The id of what a UID or entry id names.
    ///
    /// # Errors
    /// [`ReadError::Stale`]: nothing is there, or (by entry id) another key.
    pub fn id_at(&self, at: Address) -> Result<EntryId, ReadError> {
        self.read_at(at, |found| Ok(EntryId::new(at.uid, fingerprint(self.key_hash(found).hash))))
    }

    /// Hands the record that a UID or entry id names to `take`, which copies what it needs; what it returns is only
    /// used if the record proves to have been valid all the while.
    ///
    /// # Errors
    /// [`ReadError::Stale`]: nothing is there, or (by entry id) another key.
    pub fn read_at<R>(
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
                    if fingerprint(self.key_hash(found).hash) != wanted && !fault::is(Fault::EntryIdUnchecked) {
                        return Ok(None);
                    }
                }
                if engine.has_expired(found) {
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

    /// The same for a read of the value, which counts as a use of it; `None`: nothing is there, or (by entry id)
    /// another key.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn use_at<R>(
        &self,
        at: Address,
        mut take: impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Option<R>, ReadError> {
        let engine = self.engine();
        let used = self.read_at(at, |found| {
            let taken = take(found)?;
            engine.visit(found);
            Ok(taken)
        });
        let used = match used {
            Ok(taken) => Some(taken),
            Err(ReadError::Stale) => None,
            Err(error) => return Err(error),
        };
        self.count_use_at(used.is_some(), at);
        Ok(used)
    }

    /// A view of the value where it is stored, of what a UID or entry id names; `None`: nothing is there, or (by entry
    /// id) another key. The key is not looked up. Nothing is counted.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn view_at(self: &Arc<Self>, at: Address) -> Result<Option<View>, ReadError> {
        let engine = self.engine();
        let mut exhausted = engine.access.read_only;
        loop {
            let root = engine.root_word();
            let seen = self.read_at(at, |found| {
                if !exhausted && !found.header.is_value_first() {
                    return Ok((*found, None));
                }
                // A copy, as where a key is viewed.
                let bytes = engine.value_of(found)?;
                engine.visit(found);
                let hash = self.key_hash(found);
                Ok((*found, Some(View::owned(self, bytes, hash, engine.meta_of_found(found)))))
            });
            let found = match seen {
                Ok((_, Some(copied))) => return Ok(Some(copied)),
                Ok((found, None)) => found,
                Err(ReadError::Stale) => return Ok(None),
                Err(error) => return Err(error),
            };
            let Some(pin) = engine.pin(found.slot_offset, found.slot, root, &mut exhausted) else { continue };
            // Between the look and the pin the slot may have gone elsewhere and come back: what counts is what is there
            // now, and stays if it is in the segment that is pinned.
            match self.read_at(at, |now| Ok(*now)) {
                Ok(now) if now.record == found.record && !now.header.is_value_first() => {
                    engine.visit(&now);
                    return Ok(Some(View::pinned(self, engine, pin, (&now, root), engine.meta_of_found(&now))));
                }
                Ok(_) | Err(ReadError::Stale) => engine.unpin(pin),
                Err(error) => {
                    engine.unpin(pin);
                    return Err(error);
                }
            }
        }
    }

    /// Counts a read by a UID or entry id.
    pub fn count_use_at(&self, is_hit: bool, at: Address) {
        let engine = self.engine();
        engine.count_read_of(is_hit, || {
            let named = self.read_at(at, |found| Ok((engine.key_of(found), self.key_hash(found).hash)));
            named.ok().map(|(key, hash)| (Cow::Owned(key), hash))
        });
    }

    /// The hash of the key of a record.
    pub fn key_hash(&self, found: &Found) -> KeyHash {
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
                engine.hash(&engine.key_of(found))
            }
        }
    }

    /// The key that a UID or entry id names, with its hash and the item.
    ///
    /// # Errors
    /// [`WriteError::Stale`]: nothing is there, or (by entry id) another key.
    pub fn name_at(&self, at: Address) -> Result<(Vec<u8>, KeyHash, Item), WriteError> {
        let engine = self.engine();
        Ok(self.read_at(at, |found| {
            let key = engine.key_of(found);
            let kh = self.key_hash(found);
            Ok((key, kh, Item { value: engine.value_of(found)?, metadata: engine.meta_of_found(found) }))
        })?)
    }

    /// Changes the key that a UID or entry id names.
    ///
    /// # Errors
    /// [`WriteError::Stale`]: nothing is there, or (by entry id) another key.
    pub fn change_at(&self, at: Address, change: Change<'_>) -> Result<CasOutcome, WriteError> {
        self.change_at_if(at, |_| true, change)
    }

    /// Changes the key that a UID or entry id names if it is as `expected`, atomically; else it returns its version.
    ///
    /// # Errors
    /// As [`change_at`](Self::change_at).
    pub fn change_at_if(
        &self,
        at: Address,
        expected: impl Fn(&Item) -> bool,
        change: Change<'_>,
    ) -> Result<CasOutcome, WriteError> {
        let mut seen = None;
        loop {
            let (key, kh, item) = self.name_at(at)?;
            let version = item.metadata.version;
            if !expected(&item) {
                return Ok(CasOutcome::Mismatch(version));
            }
            // It changed since it was seen, so its version did. Only in a damaged file its key leads to another entry.
            if seen.replace(version) == Some(version) {
                return Err(self.misplaced(at));
            }
            let done = self.cas_hashed(&key, kh, Expected::Version(version), change)?;
            if matches!(done, CasOutcome::Stored(_) | CasOutcome::Removed) {
                return Ok(done);
            }
        }
    }

    #[cold]
    fn misplaced(&self, at: Address) -> WriteError {
        let engine = self.engine();
        let slot = engine.slot_of_uid(engine.root_word(), at.uid.0);
        let offset = slot.ok().flatten().map_or(0, |(offset, _)| offset);
        WriteError::Corrupt { what: "an entry is not where its key leads to", offset }
    }

    /// Shows what a UID or entry id names to `f` and does what it says.
    ///
    /// # Errors
    /// As [`change_at`](Self::change_at), and those of `f`.
    pub fn update_with_at(
        self: &Arc<Self>,
        at: Address,
        mut f: impl FnMut(&Item) -> Result<Update, WriteError>,
    ) -> Result<Updated, WriteError> {
        let (key, kh, _) = self.name_at(at)?;
        let mut failed = None;
        let updated = self.update_hashed(&key, kh, |item| {
            let item = item.filter(|i| i.metadata.uid == at.uid).ok_or(WriteError::Stale);
            item.and_then(&mut f).unwrap_or_else(|error| {
                failed = Some(error);
                Update::Keep
            })
        })?;
        failed.map_or(Ok(updated), Err)
    }
}
