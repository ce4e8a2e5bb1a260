//! Where a key that is locked is, or could go.

use crate::engine::commit::held::HeldKey;
use crate::engine::index::{Place, Tree};
use crate::engine::{Engine, Found, KeyHash, Writer};
use crate::error::{ReadError, WriteError};
use crate::fault::{self, Fault};
use hashmere_format::header;
use hashmere_format::leaf::{LockWord, Slot, LOCK_WORD};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Where an attempt may put a new key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) enum Reach {
    /// Into its leaf of the first tree.
    #[default]
    First,
    /// Into the overflow tree, if there is no slot for it.
    Overflow,
    /// There under its second hash.
    Second,
}

/// Where the key is, or could be.
pub(in crate::engine) struct Site {
    pub(in crate::engine) found: Option<Found>,
    /// A free slot in the emptier of the buckets.
    pub(in crate::engine) free: Option<u64>,
    pub(in crate::engine) tree: Tree,
    pub(in crate::engine) leaf: u64,
    pub(in crate::engine) hash: u64,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Finds the key among its candidates, and a free slot, in both trees.
    pub(in crate::engine) fn locate(
        &self,
        writer: &Writer,
        root: u64,
        key: &[u8],
        kh: KeyHash,
        held: &mut HeldKey,
    ) -> Result<Site, WriteError> {
        let place = held.place;
        let found = self.look(key, kh, kh.hash, place, Tree::First)?;
        if found.is_none() && held.word.has_overflow() {
            for hash in self.layout.hasher.overflow(key) {
                let place = self.lock_overflow(writer, root, hash, held)?;
                let found = self.look(key, kh, hash, place, Tree::Overflow)?;
                if found.is_some() {
                    return Ok(Site { found, free: None, tree: Tree::Overflow, leaf: place.leaf, hash });
                }
                if !held.goes_on() {
                    break;
                }
            }
        }
        let free = if found.is_none() { self.free_slot(place) } else { None };
        Ok(Site { found, free, tree: Tree::First, leaf: place.leaf, hash: kh.hash })
    }

    /// Looks at both buckets of one tree, holding the key's lock.
    pub(in crate::engine) fn look(
        &self,
        key: &[u8],
        kh: KeyHash,
        hash: u64,
        place: Place,
        tree: Tree,
    ) -> Result<Option<Found>, ReadError> {
        let refusals = self.refusals();
        loop {
            // Under the key's lock its own record does not change; another key's may be recycled while we look, and
            // become a draft of ours. So a match counts only if nothing at all was recycled in between.
            let epoch = self.mem.load(header::at::EPOCH, Ordering::Acquire);
            let mut mask = self.matching(place, hash);
            let mut found = None;
            while mask != 0 && found.is_none() {
                found = self.found_at(key, kh, tree, place, place.take_slot(&mut mask), Fault::KeyUncompared);
            }
            // SYNC(recycle): as in `validate_epoch`.
            self.mem.fence(Ordering::Acquire);
            if found.is_none() && self.refusals() != refusals {
                // A slot with this tag leads to where we have no addresses: it may be this key's.
                return Err(self.unreachable());
            }
            if found.is_none() || self.mem.load(header::at::EPOCH, Ordering::Relaxed) == epoch {
                return Ok(found);
            }
        }
    }

    /// A free slot in the emptier of the two buckets.
    pub(in crate::engine) fn free_slot(&self, place: Place) -> Option<u64> {
        let [a, b] = place.buckets().map(|bucket| {
            let free = Self::slots(bucket).filter(|s| self.slot(*s).is_empty());
            free.fold((0, None), |(n, first), s| (n + 1, first.or(Some(s))))
        });
        if a.0 >= b.0 {
            a.1
        } else {
            b.1
        }
    }

    /// The slot that leads to exactly this record, with its key locked.
    pub(in crate::engine) fn find_record(
        &self,
        writer: &Writer,
        root: u64,
        record: u64,
        (key, kh): (&[u8], KeyHash),
        held: &mut HeldKey,
    ) -> Result<Option<Found>, WriteError> {
        let first = self.slot_of_record(held.place, Slot::new(kh.hash, record), Tree::First);
        if first.is_some() || !held.word.has_overflow() {
            return Ok(first);
        }
        for hash in self.layout.hasher.overflow(key) {
            let place = self.lock_overflow(writer, root, hash, held)?;
            let found = self.slot_of_record(place, Slot::new(hash, record), Tree::Overflow);
            if found.is_some() || !held.goes_on() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    pub(in crate::engine) fn slot_of_record(&self, place: Place, slot: Slot, tree: Tree) -> Option<Found> {
        let slot_offset = place.buckets().into_iter().flat_map(Self::slots).find(|s| self.slot(*s) == slot)?;
        let header = self.header(slot.offset())?;
        Some(Found { header, record: slot.offset(), slot_offset, slot, leaf: place.leaf, tree })
    }

    /// Whether the index leads to the record at `offset`. For repairs: no other client may be changing its key.
    pub(in crate::engine) fn is_referred(&self, offset: u64) -> bool {
        let Some((head, key_offset)) = self.parse(offset) else { return false };
        if head.version == 0 {
            return false;
        }
        let mut key = Vec::new();
        self.mem.append_to(key_offset, head.key_len as usize, &mut key);
        let kh = self.hash_of(&head, &key);
        let root = self.root();
        self.candidates(&key, kh).into_iter().any(|(tree, hash)| {
            let leaf = self.leaf_of(root, tree, hash).ok().flatten();
            leaf.is_some_and(|leaf| {
                self.slot_of_record(self.place(leaf, hash), Slot::new(hash, offset), tree).is_some()
            })
        })
    }

    /// A free slot in the overflow tree, whose existence the bucket notes first; with `Reach::Second` among those of
    /// the key's second hash, which the bucket of the first one notes as well. `Err` within: the hash for which there
    /// is none.
    #[cold]
    pub(in crate::engine) fn overflow_site(
        &self,
        writer: &Writer,
        root: u64,
        key: &[u8],
        held: &mut HeldKey,
        reach: Reach,
    ) -> Result<Result<Site, u64>, WriteError> {
        let [mut hash, second] = self.layout.hasher.overflow(key);
        if self.leaf_of(root, Tree::Overflow, hash)?.is_none() {
            return Ok(Err(hash));
        }
        let mut place = self.lock_overflow(writer, root, hash, held)?;
        if reach == Reach::Second {
            if !fault::is(Fault::SecondUnsaid) {
                self.note_overflow(place.first, held.second.as_mut().map(|(_, word)| word));
            }
            hash = second;
            place = self.lock_overflow(writer, root, hash, held)?;
        }
        let Some(free) = self.free_slot(place) else { return Ok(Err(hash)) };
        // The note comes before the entry: a reader that misses in the buckets must know to look on.
        if !fault::is(Fault::OverflowUnsaid) {
            self.note_overflow(held.place.first, Some(&mut held.word));
        }
        Ok(Ok(Site { found: None, free: Some(free), tree: Tree::Overflow, leaf: place.leaf, hash }))
    }

    /// Says of a bucket that is locked, and in the word that it gets when it is released, that a key of it is found
    /// under its next hash.
    pub(in crate::engine) fn note_overflow(&self, bucket: u64, word: Option<&mut LockWord>) {
        if let Some(word) = word {
            *word = LockWord(word.0 | LockWord::OVERFLOW);
        }
        self.mem.fetch_or(bucket + LOCK_WORD, LockWord::OVERFLOW, Ordering::Release);
    }
}
