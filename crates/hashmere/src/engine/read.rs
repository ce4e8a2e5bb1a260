//! Reading: no lock, no shared store.
//!
//! The fast way is one epoch: load it, find, copy, and if it is still the same, nothing that was read had been
//! reused. When segments are being recycled all the time, the generation of the one segment decides.

use super::index::{Place, Tree};
use super::{corrupt, Engine, KeyHash};
use crate::error::ReadError;
use hashmere_format::header::at;
use hashmere_format::leaf::{Meta, Slot, META};
use hashmere_format::record::Head;
use hashmere_format::segment;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// A record that a slot points at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) head: Head,
    pub(crate) uid: u32,
    /// Offset of the record.
    pub(crate) record: u64,
    /// Offset of the key's first byte; the value follows the key.
    pub(crate) key: u64,
    /// Offset of the slot.
    pub(crate) slot_offset: u64,
    /// What it held.
    pub(crate) slot: Slot,
    pub(super) leaf: u64,
}

impl Found {
    /// Offset of the value.
    #[inline(always)]
    pub(crate) fn value(&self) -> u64 {
        self.key + u64::from(self.head.key_len)
    }
}

/// What a slot's record turned out to be.
enum Seen<R> {
    Match(R),
    Other,
    /// It changed while it was read.
    Torn,
}

/// How a read proves that what it saw belonged together.
#[derive(Clone, Copy)]
enum Proof {
    /// The global epoch had this value before.
    Epoch(u64),
    /// The generation of each segment that is looked at.
    Generation,
}

/// Attempts by generation before a read gives up: each failure means that *this* record's segment was
/// recycled within the copy, so in practice the second attempt succeeds.
const ATTEMPTS: u32 = 100_000;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Finds a key and hands its record to `take`, which copies what it needs; what it returns is only used if the
    /// record proves to have been valid all the while. An expired record is absent.
    #[inline(always)]
    pub(crate) fn read<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        mut take: impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Option<R>, ReadError> {
        let epoch = self.mem.load(at::EPOCH, Ordering::Acquire);
        if let Some(answer) = self.try_read(key, kh, Proof::Epoch(epoch), &mut take)? {
            return Ok(answer);
        }
        self.read_again(key, kh, &mut take)
    }

    #[cold]
    #[inline(never)]
    fn read_again<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        take: &mut impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Option<R>, ReadError> {
        for attempt in 0..ATTEMPTS {
            if let Some(answer) = self.try_read(key, kh, Proof::Generation, take)? {
                self.count(hashmere_format::row::Stat::Retries, u64::from(attempt) + 1);
                return Ok(answer);
            }
            self.mem.relax();
        }
        Err(corrupt("an index entry never came to rest", kh.hash))
    }

    /// One attempt; the outer `None` says that something moved and nothing is known.
    #[inline(always)]
    fn try_read<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        proof: Proof,
        take: &mut impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Option<Option<R>>, ReadError> {
        let root = self.root();
        let Some(leaf) = self.leaf_of(root, Tree::First, kh.hash)? else { return Ok(Some(None)) };
        let place = self.place(leaf, kh.hash);
        match self.search(key, kh, kh.hash, place, Tree::First, root, proof, take) {
            Ok(Seen::Match(answer)) => return Ok(Some(answer)),
            Ok(Seen::Torn) => return Ok(None),
            Ok(Seen::Other) => {}
            Err(error) => return if self.is_settled(root, proof) { Err(error) } else { Ok(None) },
        }
        if Meta(self.mem.load(place.bucket[0] + META, Ordering::Acquire)).has_overflow() {
            match self.search_overflow(key, kh, root, proof, take) {
                Ok(Seen::Match(answer)) => return Ok(Some(answer)),
                Ok(Seen::Torn) => return Ok(None),
                Ok(Seen::Other) => {}
                Err(error) => return if self.is_settled(root, proof) { Err(error) } else { Ok(None) },
            }
        }
        // SYNC(split): pairs with the release stores in `split::publish`. A slot that a split cleared is seen empty only after
        // its new leaf can be seen in the directory.
        self.mem.fence(Ordering::Acquire);
        let same = self.leaf_of(root, Tree::First, kh.hash)? == Some(leaf);
        Ok((same && self.is_settled(root, proof)).then_some(None))
    }

    #[cold]
    #[inline(never)]
    fn search_overflow<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        root: u64,
        proof: Proof,
        take: &mut impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Seen<Option<R>>, ReadError> {
        let hash = self.hasher.overflow(key);
        let Some(leaf) = self.leaf_of(root, Tree::Overflow, hash)? else { return Ok(Seen::Other) };
        let place = self.place(leaf, hash);
        let seen = self.search(key, kh, hash, place, Tree::Overflow, root, proof, take)?;
        if !matches!(seen, Seen::Other) {
            return Ok(seen);
        }
        self.mem.fence(Ordering::Acquire);
        let same = self.leaf_of(root, Tree::Overflow, hash)? == Some(leaf);
        Ok(if same { Seen::Other } else { Seen::Torn })
    }

    /// Looks through both buckets of one tree.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn search<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        hash: u64,
        place: Place,
        tree: Tree,
        root: u64,
        proof: Proof,
        take: &mut impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Seen<Option<R>>, ReadError> {
        let tag = Slot::new(hash, 0).tag();
        for bucket in place.bucket {
            for slot_offset in Self::slots(bucket) {
                let slot = self.slot(slot_offset);
                if slot.tag() != tag || slot.is_empty() {
                    continue;
                }
                match self.examine(key, kh, hash, (tree, place.leaf, slot_offset, slot), root, proof, take)? {
                    Seen::Other => {}
                    seen => return Ok(seen),
                }
            }
        }
        Ok(Seen::Other)
    }

    /// Compares one record with the key and, if it is the one, takes from it.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn examine<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        hash: u64,
        (tree, leaf, slot_offset, slot): (Tree, u64, u64, Slot),
        root: u64,
        proof: Proof,
        take: &mut impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Seen<Option<R>>, ReadError> {
        let generation = match proof {
            Proof::Epoch(_) => 0,
            Proof::Generation => match self.hold_generation(slot_offset, slot, root)? {
                Some(generation) => generation,
                None => return Ok(Seen::Torn),
            },
        };
        let Some((head, key_offset)) = self.parse(slot.offset()) else {
            return self.damaged(slot, root, proof);
        };
        let mut seen = Seen::Other;
        if head.key_len as usize == key.len() && head.hash == kh.supplied && self.mem.matches(key_offset, key) {
            let uid = self.uid(tree, leaf, slot_offset, hash);
            let found = Found { head, uid, record: slot.offset(), key: key_offset, slot_offset, slot, leaf };
            seen = Seen::Match(if self.is_expired(&head) { None } else { Some(take(&found)?) });
        }
        // SYNC(recycle): pairs with the release fence in `segments::claim`. If any word above was written after a
        // recycling, the load below sees that recycling.
        self.mem.fence(Ordering::Acquire);
        let valid = match proof {
            Proof::Epoch(epoch) => matches!(seen, Seen::Other) || self.mem.load(at::EPOCH, Ordering::Relaxed) == epoch,
            Proof::Generation => self.generation(self.segment_of(slot.offset())) == generation,
        };
        Ok(if valid { seen } else { Seen::Torn })
    }

    /// Holds on to a segment's generation while the slot is known to point into it. Afterwards an unchanged generation
    /// proves that the record was not reused.
    fn hold_generation(&self, slot_offset: u64, slot: Slot, root: u64) -> Result<Option<u64>, ReadError> {
        if !self.is_inside(slot.offset(), 8) {
            return if self.root() == root && self.slot(slot_offset) == slot {
                Err(corrupt("a slot points outside the file", slot.offset()))
            } else {
                Ok(None)
            };
        }
        let generation = self.generation(self.segment_of(slot.offset()));
        let same = self.slot(slot_offset) == slot && self.root() == root;
        Ok(same.then_some(generation))
    }

    #[inline(always)]
    pub(super) fn generation(&self, segment: u64) -> u64 {
        self.mem.load(self.entry_of(segment) + segment::at::GENERATION, Ordering::Acquire)
    }

    /// Reads a record's head; `None` if it cannot be one: its lengths do not fit where it stands.
    #[inline(always)]
    pub(super) fn parse(&self, record: u64) -> Option<(Head, u64)> {
        if !self.is_inside(record, 8) {
            return None;
        }
        let within = (record - at::DATA) & (self.segment_bytes() - 1);
        let end = record - within + self.segment_bytes();
        let head = Head::read(self.lengths, |word| {
            let offset = record + 8 * word;
            // Only the last words of a segment can be reached here, and only by a damaged or torn record.
            if offset + 8 <= end {
                self.mem.load(offset, Ordering::Relaxed)
            } else {
                0
            }
        });
        let bytes = head.record_bytes(self.lengths);
        if record + bytes > end && !(within == 0 && self.is_inside(record, bytes)) {
            return None;
        }
        Some((head, record + 8 * head.words(self.lengths)))
    }

    #[inline(always)]
    pub(super) fn is_expired(&self, head: &Head) -> bool {
        match head.expires {
            None => false,
            Some(at) => at <= self.host.now_ms(),
        }
    }

    /// Whether a record has expired.
    pub(crate) fn is_past(&self, found: &Found) -> bool {
        self.is_expired(&found.head)
    }

    /// Asks for the cache lines of a hash's buckets.
    pub(crate) fn fetch_buckets(&self, kh: KeyHash) {
        if let Ok(Some(leaf)) = self.leaf_of(self.root(), Tree::First, kh.hash) {
            self.place(leaf, kh.hash);
        }
    }

    /// Asks for the cache line of the record that a hash's buckets most likely lead to.
    pub(crate) fn fetch_record(&self, kh: KeyHash) {
        let Ok(Some(leaf)) = self.leaf_of(self.root(), Tree::First, kh.hash) else { return };
        let tag = Slot::new(kh.hash, 0).tag();
        let candidates = self.place(leaf, kh.hash).bucket.into_iter().flat_map(Self::slots);
        for slot in candidates.map(|s| self.slot(s)).filter(|s| s.tag() == tag && !s.is_empty()) {
            self.mem.prefetch(slot.offset());
        }
    }

    #[cold]
    fn damaged<R>(&self, slot: Slot, root: u64, proof: Proof) -> Result<Seen<R>, ReadError> {
        self.mem.fence(Ordering::Acquire);
        if self.is_settled(root, proof) && matches!(proof, Proof::Epoch(_)) {
            return Err(corrupt("a slot points at something that is no record", slot.offset()));
        }
        Ok(Seen::Torn)
    }

    /// Whether nothing was recycled or cleared since the read began (by generation: since it looked at its root).
    #[inline(always)]
    fn is_settled(&self, root: u64, proof: Proof) -> bool {
        let epoch = match proof {
            Proof::Epoch(epoch) => self.mem.load(at::EPOCH, Ordering::Acquire) == epoch,
            Proof::Generation => true,
        };
        epoch && self.root() == root
    }
}
