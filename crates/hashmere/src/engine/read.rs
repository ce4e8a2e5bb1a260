//! Reading: no lock, no shared store.
//!
//! The fast way is one epoch: load it, find, copy, and if it is still the same, nothing that was read had been
//! reused. When segments are being recycled all the time, the generation of the one segment decides.

use super::index::{Place, Tree};
use super::{corrupt, Engine, KeyHash};
use crate::canary::{self, Canary};
use crate::error::ReadError;
use hashmere_format::header::at;
use hashmere_format::leaf::{Meta, Slot, META};
use hashmere_format::record::Head;
use hashmere_format::row::Stat;
use hashmere_format::segment;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// A record that a slot points at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) head: Head,
    /// Offset of the record.
    pub(crate) record: u64,
    /// Offset of the key's first byte; the value follows the key.
    pub(crate) key: u64,
    /// Offset of the slot.
    pub(crate) slot_offset: u64,
    /// What it held.
    pub(crate) slot: Slot,
    pub(super) leaf: u64,
    pub(super) tree: Tree,
}

impl Found {
    /// Bytes of the whole record.
    #[inline(always)]
    pub(super) fn bytes(&self) -> u64 {
        (self.value() + self.head.value_len - self.record + 7) & !7
    }
    /// Offset of the value.
    #[inline(always)]
    pub(crate) fn value(&self) -> u64 {
        self.key + self.head.key_len
    }
}

/// What a slot's record turned out to be.
enum Seen<R> {
    Match(R),
    Other,
    /// It changed while it was read.
    Torn,
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
        let root = self.root();
        let Ok(Some(path)) = self.path_of(root, Tree::First, kh.hash) else {
            return self.read_by_generation(key, kh, &mut take);
        };
        let place = self.place(path.leaf, kh.hash);
        let mut mask = self.matching(place, kh.hash);
        while mask != 0 {
            let slot_offset = place.take_slot(&mut mask);
            let slot = self.slot(slot_offset);
            let Some((head, key_at)) = self.parse(slot.offset()) else {
                // It was just recycled, or the file is damaged: the long way finds out which.
                return self.read_by_generation(key, kh, &mut take);
            };
            let is_key = || canary::is(Canary::ReadUncompared) || self.mem.matches(key_at, key);
            if head.key_len as usize == key.len() && head.hash == kh.supplied && is_key() {
                let (record, leaf, tree) = (slot.offset(), place.leaf, Tree::First);
                let found = Found { head, record, key: key_at, slot_offset, slot, leaf, tree };
                if !self.is_expired(&found.head) {
                    let taken = take(&found);
                    // SYNC(recycle): pairs with the release fence in `segments::take_free`. If any word above was written
                    // after a recycling, the load below sees that recycling.
                    self.mem.fence(Ordering::Acquire);
                    if self.mem.load(at::EPOCH, Ordering::Relaxed) == epoch || canary::is(Canary::EpochIgnored) {
                        return taken.map(Some);
                    }
                }
                return self.read_by_generation(key, kh, &mut take);
            }
        }
        let overflows = Meta(self.mem.load(place.first + META, Ordering::Acquire)).has_overflow();
        // SYNC(split): pairs with the release stores in `split::publish`. A slot that a split cleared is seen empty only
        // after its new leaf can be seen in the directory.
        self.mem.fence(Ordering::Acquire);
        let still = self.is_still(root, Tree::First, path) || canary::is(Canary::MissBelieved);
        if still && !overflows && self.mem.load(at::EPOCH, Ordering::Relaxed) == epoch {
            return Ok(None);
        }
        self.read_by_generation(key, kh, &mut take)
    }

    /// The whole protocol: with the overflow tree, with expiry, and by generation, so that recycling of other segments does not
    /// disturb it.
    #[cold]
    #[inline(never)]
    fn read_by_generation<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        take: &mut impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Option<R>, ReadError> {
        for attempt in 0..ATTEMPTS {
            if let Some(answer) = self.try_read(key, kh, take)? {
                if attempt != 0 {
                    self.count(Stat::Retries, u64::from(attempt));
                }
                return Ok(answer);
            }
            self.mem.relax();
        }
        Err(corrupt("an index entry never came to rest", kh.hash))
    }

    /// One attempt; the outer `None` says that something moved and nothing is known.
    fn try_read<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        take: &mut impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Option<Option<R>>, ReadError> {
        let root = self.root();
        let mut leaves = [None; 2];
        for (tree, leaf) in [Tree::First, Tree::Overflow].into_iter().zip(&mut leaves) {
            let hash = self.tree_hash(tree, key, kh);
            *leaf = match self.leaf_of(root, tree, hash) {
                Ok(leaf) => leaf,
                Err(error) => return if self.root() == root { Err(error) } else { Ok(None) },
            };
            let Some(leaf) = *leaf else { break };
            let place = self.place(leaf, hash);
            match self.search(key, kh, hash, place, tree, root, take)? {
                Seen::Match(answer) => return Ok(Some(answer)),
                Seen::Torn => return Ok(None),
                Seen::Other => {}
            }
            if !Meta(self.mem.load(place.first + META, Ordering::Acquire)).has_overflow() {
                break;
            }
        }
        // SYNC(split): as in `read`.
        self.mem.fence(Ordering::Acquire);
        for (tree, leaf) in [Tree::First, Tree::Overflow].into_iter().zip(leaves) {
            let same = |now| matches!(now, Ok(now) if now == leaf);
            if leaf.is_some() && !same(self.leaf_of(root, tree, self.tree_hash(tree, key, kh))) {
                return Ok(None);
            }
        }
        Ok((self.root() == root).then_some(None))
    }

    fn tree_hash(&self, tree: Tree, key: &[u8], kh: KeyHash) -> u64 {
        match tree {
            Tree::First => kh.hash,
            Tree::Overflow => self.hasher.overflow(key),
        }
    }

    /// Looks through both buckets of one tree.
    #[allow(clippy::too_many_arguments)]
    fn search<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        hash: u64,
        place: Place,
        tree: Tree,
        root: u64,
        take: &mut impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Seen<Option<R>>, ReadError> {
        let tag = Slot::new(hash, 0).tag();
        for slot_offset in place.buckets().into_iter().flat_map(Self::slots) {
            let slot = self.slot(slot_offset);
            if slot.is_empty() || slot.tag() != tag {
                continue;
            }
            let Some(generation) = self.hold_generation(slot_offset, slot, root)? else { return Ok(Seen::Torn) };
            let mut seen = Seen::Other;
            let parsed = self.parse(slot.offset());
            if let Some((head, key_offset)) = parsed {
                if head.key_len as usize == key.len() && head.hash == kh.supplied && self.mem.matches(key_offset, key) {
                    let (record, leaf) = (slot.offset(), place.leaf);
                    let found = Found { head, record, key: key_offset, slot_offset, slot, leaf, tree };
                    seen = Seen::Match(if self.is_expired(&head) { None } else { Some(take(&found)) });
                }
            }
            // SYNC(recycle): as in `read`.
            self.mem.fence(Ordering::Acquire);
            let recycled = self.generation(self.segment_of(slot.offset())) != generation;
            if recycled && !canary::is(Canary::GenerationIgnored) {
                return Ok(Seen::Torn);
            }
            if parsed.is_none() {
                return Err(corrupt("a slot points at something that is no record", slot.offset()));
            }
            match seen {
                Seen::Match(taken) => return taken.transpose().map(Seen::Match),
                _ => continue,
            }
        }
        Ok(Seen::Other)
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
        let room = self.segment_bytes() - ((record - at::DATA) & (self.segment_bytes() - 1));
        let word = self.mem.load(record, Ordering::Relaxed);
        if let Some(head) = Head::read_small(self.lengths, word) {
            let lead = self.lengths.lead();
            let fits = lead + head.key_len + head.value_len <= room;
            return fits.then_some((head, record + lead));
        }
        self.parse_long(record, room)
    }

    /// A record with further words before its key.
    #[inline(never)]
    fn parse_long(&self, record: u64, room: u64) -> Option<(Head, u64)> {
        let head = Head::read(self.lengths, |word| {
            // Only the last words of a segment can be reached here, and only by a damaged or torn record.
            if 8 * word + 8 <= room {
                self.mem.load(record + 8 * word, Ordering::Relaxed)
            } else {
                0
            }
        });
        let bytes = head.record_bytes(self.lengths);
        let large = room == self.segment_bytes() && self.is_inside(record, bytes);
        (bytes <= room || large).then_some((head, record + 8 * head.words(self.lengths)))
    }

    #[inline(always)]
    pub(super) fn is_expired(&self, head: &Head) -> bool {
        match head.expires {
            None => false,
            Some(at) => at <= self.host.now_ms() && !canary::is(Canary::ExpiryIgnored),
        }
    }

    /// Reads the record of a pinned slot anew; `None` if it is not this key's.
    pub(crate) fn look_again(&self, found: &Found, key: &[u8], kh: KeyHash) -> Option<Found> {
        let (head, key_offset) = self.parse(found.record)?;
        let same = head.key_len as usize == key.len() && head.hash == kh.supplied && self.mem.matches(key_offset, key);
        same.then_some(Found { head, key: key_offset, ..*found })
    }

    /// Whether a record has expired.
    pub(crate) fn is_past(&self, found: &Found) -> bool {
        self.is_expired(&found.head)
    }

    /// Asks for the cache lines of a hash's buckets.
    #[inline(always)]
    pub(crate) fn fetch_buckets(&self, kh: KeyHash) -> Option<Place> {
        match self.leaf_of(self.root(), Tree::First, kh.hash) {
            Ok(Some(leaf)) => Some(self.place(leaf, kh.hash)),
            _ => None,
        }
    }

    /// Asks for the cache line of the record that these buckets most likely lead to.
    #[inline(always)]
    pub(crate) fn fetch_record(&self, kh: KeyHash, place: Place) {
        let mut mask = self.matching(place, kh.hash);
        // No match, or an empty slot: some line of the file is fetched, or none; a hint does no harm.
        self.mem.prefetch(self.slot(place.take_slot(&mut mask)).offset());
    }
}
