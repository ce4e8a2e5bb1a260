//! Zero-copy views and reservations.

use crate::engine::{Draft, Found, KeyHash, Pin, WriterGuard};
use crate::error::{ReadError, WriteError};
use crate::fork_handle::SharedEngine;
use crate::open::FileEngine;
use crate::types::{Address, Attributes, Metadata, Stored, Uid};
use hashmere_format::hash::fingerprint;
use hashmere_format::leaf::Slot;
use hashmere_mem::Mem;
use hashmere_os::fork;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value in place in the file.
///
/// It stays as it was for as long as the view is held, also when the key is overwritten or deleted: what is
/// held back is the reuse of the one segment that the value is in. A process can hold views into 24 segments for each
/// of its threads; further ones, those of a read-only client, and those of values of at most 8 bytes, which writes
/// replace in place, are copies ([`is_zero_copy`](Self::is_zero_copy)).
///
/// A view taken before a fork is safe in the parent only as long as the parent holds it, and in the child as long as
/// the parent does: a child that needs it longer takes its own.
pub struct View {
    bytes: Bytes,
    meta: Metadata,
}

enum Bytes {
    Pinned {
        shared: Arc<SharedEngine>,
        engine: *const FileEngine,
        pin: Pin,
        offset: u64,
        len: usize,
        born: u64,
        /// Where it was found, under which root, when the pin held it.
        slot_offset: u64,
        slot: Slot,
        root: u64,
    },
    Owned {
        shared: Arc<SharedEngine>,
        bytes: Vec<u8>,
        /// Of the key.
        hash: KeyHash,
    },
}

// SAFETY: no client changes the bytes while the pin is held, and the engine pointer is used for its mapping and
// for atomic operations only. `SharedEngine` outlives the view and never frees an engine before its own drop.
unsafe impl Send for View {}
// SAFETY: as above; a shared view only reads.
unsafe impl Sync for View {}

impl View {
    pub(crate) fn owned(shared: &Arc<SharedEngine>, bytes: Vec<u8>, hash: KeyHash, meta: Metadata) -> View {
        View { bytes: Bytes::Owned { shared: shared.clone(), bytes, hash }, meta }
    }

    #[inline(always)]
    pub(crate) fn pinned(
        shared: &Arc<SharedEngine>,
        engine: *const FileEngine,
        pin: Pin,
        (found, root): (&Found, u64),
        meta: Metadata,
    ) -> View {
        let (offset, len, born) = (found.value(), meta.value_len as usize, fork::generation());
        let (slot_offset, slot, shared) = (found.slot_offset, found.slot, shared.clone());
        let bytes = Bytes::Pinned { shared, engine, pin, offset, len, born, slot_offset, slot, root };
        View { bytes, meta }
    }

    /// Flags, version and the rest, as they were when the view was taken.
    pub fn metadata(&self) -> Metadata {
        self.meta
    }

    /// Whether the view looks into the file, rather than being a copy.
    pub fn is_zero_copy(&self) -> bool {
        matches!(self.bytes, Bytes::Pinned { .. })
    }

    /// Whether the key still has this value: `false` if it was changed or removed, or has expired. A touch is no
    /// change.
    ///
    /// Of a value in place that does not expire this is one load, of the word that leads to it, as long as it is so
    /// (and one of a word that only a `clear` changes). For no other record takes the place of one that is held: the
    /// same word means the same record. Otherwise the entry of the key is looked at; the key is never looked up.
    ///
    /// # Errors
    /// See [`ReadError`].
    #[inline]
    pub fn is_up_to_date(&self) -> Result<bool, ReadError> {
        if let Bytes::Pinned { engine, born, slot_offset, slot, root, .. } = &self.bytes {
            // In a forked child the pin is the parent's, which may have let it go.
            if self.meta.expires_at_ms.is_none() && *born == fork::generation() {
                // SAFETY: as in `deref`.
                if unsafe { (**engine).leads_to(*slot_offset, *slot, *root) } {
                    return Ok(true);
                }
            }
        }
        self.has_its_version()
    }

    #[cold]
    fn has_its_version(&self) -> Result<bool, ReadError> {
        let (shared, hash) = match &self.bytes {
            Bytes::Owned { shared, hash, .. } => (shared, *hash),
            // The record is as it was, with its key: its segment is held back. (But in a forked child, when the parent
            // has let it go.)
            Bytes::Pinned { shared, engine, slot, .. } => {
                // SAFETY: as in `deref`.
                let hash = unsafe { (**engine).hash_of_record(slot.offset()) };
                let Some(hash) = hash else { return Ok(false) };
                (shared, hash)
            }
        };
        let at = Address { uid: self.meta.uid, fingerprint: Some(fingerprint(hash.hash)) };
        match shared.read_at(at, |found| Ok(found.version())) {
            Ok(version) => Ok(version == self.meta.version.0),
            Err(ReadError::Stale) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Deref for View {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Owned { bytes, .. } => bytes,
            Bytes::Pinned { engine, offset, len, .. } => {
                // SAFETY: the engine lives as long as `shared`, which we hold. The range was validated when the pin was
                // taken, and values that are replaced in place are never shown so; the pin keeps their segment from
                // being reused.
                unsafe { (**engine).mem.slice(*offset, *len) }
            }
        }
    }
}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("meta", &self.meta).field("zero_copy", &self.is_zero_copy()).finish()
    }
}

impl Drop for View {
    #[inline]
    fn drop(&mut self) {
        if let Bytes::Pinned { engine, pin, born, shared, .. } = &self.bytes {
            // In a forked child the pin is the parent's.
            if *born == fork::generation() {
                // SAFETY: as in `deref`.
                unsafe { (**engine).unpin(*pin) };
            }
            let _ = shared;
        }
    }
}

/// Room for a value in the file, to be filled in place and committed.
///
/// No reader sees it before [`commit`](Self::commit). Dropped uncommitted it leaves nothing. While it is held, other
/// writes of the same thread take another client slot.
pub struct Reservation<'a> {
    engine: &'a FileEngine,
    writer: WriterGuard<'a>,
    key: Vec<u8>,
    hash: KeyHash,
    /// What is reserved for is the entry with this UID, not whatever the key is.
    only: Option<Uid>,
    draft: Option<Draft>,
    offset: u64,
    len: usize,
    born: u64,
}

impl SharedEngine {
    /// Room for a value of `value_len` bytes, to be filled in place and committed.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn reserve(
        &self,
        key: &[u8],
        kh: KeyHash,
        value_len: u64,
        attributes: Attributes,
    ) -> Result<Reservation<'_>, WriteError> {
        Reservation::new(self.engine(), key.into(), kh, None, value_len, attributes)
    }

    /// The same for what a UID or entry id names.
    ///
    /// # Errors
    /// [`WriteError::Stale`]: nothing is there, or (by entry id) another key.
    pub fn reserve_at(
        &self,
        at: Address,
        value_len: u64,
        attributes: Attributes,
    ) -> Result<Reservation<'_>, WriteError> {
        let engine = self.engine();
        let (key, kh) = self.read_at(at, |found| Ok((engine.key_of(found), self.key_hash(found))))?;
        Reservation::new(engine, key, kh, Some(at.uid), value_len, attributes)
    }
}

impl<'a> Reservation<'a> {
    fn new(
        engine: &'a FileEngine,
        key: Vec<u8>,
        hash: KeyHash,
        only: Option<Uid>,
        len: u64,
        attributes: Attributes,
    ) -> Result<Self, WriteError> {
        let mut writer = engine.writer_for(&key, hash)?;
        let draft = engine.begin(&mut writer, &key, hash, len, attributes)?;
        let offset = draft.value;
        let (draft, len, born) = (Some(draft), len as usize, fork::generation());
        Ok(Reservation { engine, writer, key, hash, only, draft, offset, len, born })
    }

    /// Makes what was written the key's value.
    ///
    /// # Errors
    /// As setting a key; [`WriteError::InvalidState`] in a forked child, to which the reservation does
    /// not belong; [`WriteError::Stale`] if it was made for an entry that is gone by now.
    pub fn commit(mut self) -> Result<Stored, WriteError> {
        if self.born != fork::generation() {
            return Err(WriteError::InvalidState("a reservation was made before a fork and belongs to the parent"));
        }
        let Some(draft) = self.draft.take() else {
            return Err(WriteError::InvalidState("a reservation was committed twice"));
        };
        self.engine.finish_reserved(&mut self.writer, &self.key, self.hash, draft, self.only)?;
        Ok(self.writer.stored)
    }
}

impl Deref for Reservation<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the range belongs to this reservation alone, and was backed when it was made.
        unsafe { self.engine.mem.slice(self.offset, self.len) }
    }
}

impl DerefMut for Reservation<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range lies in this writer's open segment behind its head (or in segments of its own), where
        // only the holder of the writer writes, which is us.
        unsafe { self.engine.mem.slice_mut(self.offset, self.len) }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if let Some(draft) = self.draft.take() {
            if self.born == fork::generation() {
                self.engine.abandon(&self.writer, &draft);
            }
        }
    }
}
