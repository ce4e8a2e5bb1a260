//! Replacing a short value where it is, by one instruction: nothing is appended, nothing dies, the counts stay.
//!
//! `docs/internals/concurrency.md` says why it happens under the key's lock, what readers do, and what a crash leaves.

use crate::engine::feed::report::Happened;
use crate::engine::write::lookup::Lookup;
use crate::engine::{corrupt, Engine, Found, KeyHash, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use crate::types::{Uid, Version};
use hashmere_format::feed::{FeedIntent, Operation};
use hashmere_format::leaf::LockWord;
use hashmere_format::record::{field, VERSION_MASK, VERSION_MAX, VERSION_SHIFT};
use hashmere_format::snapshot::Snapshot;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// What the record must be when its key is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// As it was looked up: the new value comes out of the old one.
    Unchanged,
    /// The key's, with whatever value.
    Anything,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Replaces the value of a key that was looked up, if that can be done in place. `false`: nothing has changed, and
    /// the general write is to do it.
    #[inline(always)]
    pub(super) fn replace_in_place(
        &self,
        writer: &mut Writer,
        lookup: &Lookup,
        (key, kh): (&[u8], KeyHash),
        value: &[u8],
        since: Since,
    ) -> Result<bool, WriteError> {
        let Some(found) = lookup.found.as_ref().filter(|found| self.can_be_replaced(found, value)) else {
            return Ok(false);
        };
        let root = self.enter(writer);
        let done =
            if lookup.root == root { self.replace_locked(writer, lookup, found, kh, value, since) } else { Ok(false) };
        if let Ok(true) = done {
            self.changed(kh.hash);
            self.count_set(writer.row, key, kh);
        }
        self.leave(writer);
        done
    }

    #[inline(always)]
    fn can_be_replaced(&self, found: &Found, value: &[u8]) -> bool {
        is_aligned(found) && self.is_alike(found, value)
    }

    /// Whether a record is one that can be replaced in place but for where it is.
    #[inline(always)]
    fn is_alike(&self, found: &Found, value: &[u8]) -> bool {
        found.header.is_value_first() && found.value_len() == value.len() && self.mem.has_pairs()
    }

    /// Before the draft of a value that could not be replaced in place: sees to it that the next one can be.
    #[inline(always)]
    pub(super) fn align_for_next(&self, writer: &mut Writer, lookup: &Lookup, value: &[u8]) -> Result<(), WriteError> {
        match &lookup.found {
            Some(found) if !is_aligned(found) && self.is_alike(found, value) => self.align(writer, found.bytes()),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn replace_locked(
        &self,
        writer: &mut Writer,
        lookup: &Lookup,
        found: &Found,
        kh: KeyHash,
        value: &[u8],
        since: Since,
    ) -> Result<bool, WriteError> {
        let Some(mut word) = self.lock_place(writer, lookup.root, lookup.path, lookup.place)? else { return Ok(false) };
        let mut done = false;
        // SYNC(snapshot): as in `commit_draft`.
        let snapshot = self.snapshot();
        let wanted = snapshot.concerns_writers() && self.is_wanted(snapshot);
        if self.is_as_looked_up(lookup, found, since) && !wanted {
            let version = ((word.version() + 1) & VERSION_MAX).max(1);
            let stored = match snapshot.concerns_writers() {
                false => self.store_pair(found.record, version, value),
                true => self.store_pair_reported(writer, lookup.root, found.record, version, value),
            };
            if !stored {
                self.unlock_bucket(writer, lookup.place, word);
                return Err(corrupt("a record changed under its key's lock", found.record).into());
            }
            // The record does not become the newest of its store: what is written all the time must be wanted too.
            if !fault::is(Fault::ReplacementUnvisited) {
                self.visit_locked(found);
            }
            word = LockWord(word.0 & !VERSION_MASK | version << VERSION_SHIFT);
            writer.stored.uid = Uid(self.uid(found.tree, found.leaf, found.slot_offset, kh.hash));
            writer.stored.version = Version(version);
            writer.stored.created = false;
            done = true;
        }
        self.unlock_bucket(writer, lookup.place, word);
        Ok(done)
    }

    /// With the key locked: whether the slot leads to the record that was found, which no backup wants.
    #[inline(always)]
    fn is_as_looked_up(&self, lookup: &Lookup, found: &Found, since: Since) -> bool {
        let header = self.mem.load(found.record, Ordering::Relaxed);
        let same = since == Since::Anything || header == found.header.word || fault::is(Fault::ReplacementUnseen);
        same && header & (field::DEAD | field::RETAINED) == 0 && self.is_still_found(found, lookup.epoch)
    }

    /// Whether a backup wants records as they are.
    #[inline(always)]
    fn is_wanted(&self, snapshot: Snapshot) -> bool {
        snapshot.concerns_backup() && !fault::is(Fault::ReplacedForBackup)
    }

    /// The commit with a feed.
    #[inline(never)]
    fn store_pair_reported(&self, writer: &mut Writer, root: u64, record: u64, version: u64, value: &[u8]) -> bool {
        self.note_feed(writer.row, FeedIntent::in_place(Operation::Set, record));
        let stored = self.store_pair(record, version, value);
        if stored {
            self.report(writer, root, Happened { operation: Operation::Set, record, version: Some(version) });
        } else {
            self.note_feed(writer.row, FeedIntent::NONE);
        }
        stored
    }

    /// The commit. Only the client that has the key's lock changes the pair, so it is what was loaded: `false` is
    /// damage.
    #[inline(always)]
    fn store_pair(&self, record: u64, version: u64, value: &[u8]) -> bool {
        let old = [record, record + 8].map(|at| self.mem.load(at, Ordering::Relaxed));
        let new = [old[0] & !VERSION_MASK | version << VERSION_SHIFT, begins_with(old[1], value)];
        if fault::is(Fault::PairDivided) {
            self.mem.store(record, new[0], Ordering::Release);
            self.mem.store(record + 8, new[1], Ordering::Release);
            return true;
        }
        // SYNC(in place): a reader that copied the new value sees the new header when it looks again.
        self.mem.compare_exchange_pair(record, old, new)
    }
}

#[inline(always)]
fn is_aligned(found: &Found) -> bool {
    found.record % 16 == 0
}

/// The word with other bytes at its beginning, at most eight of them.
#[inline(always)]
fn begins_with(word: u64, bytes: &[u8]) -> u64 {
    if let Ok(all) = bytes.try_into() {
        return u64::from_le_bytes(all);
    }
    // No call of `memcpy` for so few.
    bytes.iter().enumerate().fold(word, |word, (n, byte)| word & !(0xff << (8 * n)) | u64::from(*byte) << (8 * n))
}
