//! Reading: no lock, no shared store.
//!
//! The fast way is one epoch: load it, find, copy, and if it is still the same, nothing that was read had been
//! reused. When segments are being recycled all the time, the generation of the one segment decides.

pub(super) mod ahead;
pub(super) mod fetch;
pub(super) mod pinned;
pub(super) mod wait;

use crate::engine::index::{Place, Tree};
use crate::engine::{corrupt, Engine, Found, KeyHash};
use crate::error::ReadError;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::leaf::{LockWord, Slot, LOCK_WORD};
use hashmere_format::record::{field, Head, RecordHeader};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// What the fast way of reading came to.
pub(crate) enum Probe {
    /// The record, and the epoch under which it was found.
    At(Found, u64),
    /// The key is not there; proved.
    Absent,
    /// Something moved, or is damaged, or has expired: the whole protocol decides.
    Unsure,
}

/// What a slot's record turned out to be.
enum Seen<R> {
    Match(R),
    Other,
    /// It changed while it was read.
    Torn,
}

/// Where a key may be: under its hash in the first tree, and under two in the overflow tree.
const CANDIDATES: usize = 3;

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
        match self.probe(key, kh) {
            Probe::At(found, epoch) => {
                let taken = take(&found);
                if self.validate(&found, epoch) {
                    return taken.map(Some);
                }
            }
            Probe::Absent => return Ok(None),
            Probe::Unsure => {}
        }
        self.read_by_generation(key, kh, &mut take)
    }

    /// The fast way: the caller copies what it needs of the record and then asks [`validate`](Self::validate).
    #[inline(always)]
    pub(crate) fn probe(&self, key: &[u8], kh: KeyHash) -> Probe {
        let epoch = self.mem.load(at::EPOCH, Ordering::Acquire);
        let root = self.root();
        let Ok(Some(path)) = self.path_of(root, Tree::First, kh.hash) else { return Probe::Unsure };
        let place = self.place(path.leaf, kh.hash);
        let mut mask = self.matching(place, kh.hash);
        if mask != 0 {
            // Not this key's, no record, or expired: the full protocol finds out which, whether that is damage, and
            // whether another slot is the right one. No loop here: it would have its invariants computed for every
            // look-up, and nearly none needs it.
            return match self.found_at(key, kh, Tree::First, place, place.take_slot(&mut mask), Fault::ReadUncompared) {
                Some(found) if !self.has_expired(&found) => Probe::At(found, epoch),
                _ => Probe::Unsure,
            };
        }
        let overflows = LockWord(self.mem.load(place.first + LOCK_WORD, Ordering::Acquire)).has_overflow();
        // SYNC(split): pairs with the release stores in `split::publish`. A slot that a split cleared is seen empty
        // only after its new leaf can be seen in the directory.
        self.mem.fence(Ordering::Acquire);
        let still = self.is_still(root, Tree::First, path) || fault::is(Fault::MissBelieved);
        if still && !overflows && self.mem.load(at::EPOCH, Ordering::Relaxed) == epoch {
            return Probe::Absent;
        }
        Probe::Unsure
    }

    /// What a slot leads to, if that is this key's record. It may be recycled at any moment: the caller proves that it
    /// was not.
    #[inline(always)]
    pub(in crate::engine) fn found_at(
        &self,
        key: &[u8],
        kh: KeyHash,
        tree: Tree,
        place: Place,
        slot_offset: u64,
        fault: Fault,
    ) -> Option<Found> {
        self.found_in(key, kh, (tree, place.leaf), slot_offset, self.slot(slot_offset), fault)
    }

    /// The same for a slot that was loaded already.
    #[inline(always)]
    fn found_in(
        &self,
        key: &[u8],
        kh: KeyHash,
        (tree, leaf): (Tree, u64),
        slot_offset: u64,
        slot: Slot,
        fault: Fault,
    ) -> Option<Found> {
        let record = slot.offset();
        let header = self.header(record)?;
        let found = Found { header, record, slot_offset, slot, leaf, tree };
        let is_alike = header.key_len as usize == key.len() && self.has_hash(record, header, kh);
        (is_alike && (fault::is(fault) || self.mem.matches(record + header.key_at(), key))).then_some(found)
    }

    /// Whether nothing at all was recycled since this epoch was loaded, so that what was read since then was what it
    /// seemed.
    #[inline(always)]
    pub(crate) fn validate_epoch(&self, epoch: u64) -> bool {
        // SYNC(recycle): pairs with the release fence in `segments::take_vacant`. If any word that was read since was
        // written after a recycling, the load below sees that recycling.
        self.mem.fence(Ordering::Acquire);
        self.mem.load(at::EPOCH, Ordering::Relaxed) == epoch || fault::is(Fault::EpochIgnored)
    }

    /// Whether what was copied of a record is what it was at one moment: nothing was recycled since the epoch was
    /// loaded, and the value is the one that belongs to the header.
    #[inline(always)]
    pub(crate) fn validate(&self, found: &Found, epoch: u64) -> bool {
        self.validate_epoch(epoch) && self.validate_header(found.record, found.header)
    }

    /// Whether a record is this key's: the whole key counts, and whether the caller supplied its hash.
    #[inline(always)]
    pub(in crate::engine) fn is_named(&self, record: u64, header: RecordHeader, key: &[u8], kh: KeyHash) -> bool {
        header.key_len as usize == key.len()
            && self.has_hash(record, header, kh)
            && self.mem.matches(record + header.key_at(), key)
    }

    #[inline(always)]
    fn has_hash(&self, record: u64, header: RecordHeader, kh: KeyHash) -> bool {
        if kh.is_supplied {
            self.supplied_hash(record, header) == Some(kh.hash)
        } else {
            !header.has(field::HASHED)
        }
    }

    fn supplied_hash(&self, record: u64, header: RecordHeader) -> Option<u64> {
        header.has(field::HASHED).then(|| self.mem.load(record + header.hash_at(), Ordering::Relaxed))
    }

    /// The whole protocol: with the overflow tree, with expiry, and by generation, so that recycling of other segments
    /// does not disturb it.
    #[cold]
    #[inline(never)]
    pub(crate) fn read_by_generation<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        take: &mut impl FnMut(&Found) -> Result<R, ReadError>,
    ) -> Result<Option<R>, ReadError> {
        for attempt in 0..ATTEMPTS {
            if let Some(answer) = self.try_read(key, kh, take)? {
                if attempt != 0 {
                    self.count_retries(u64::from(attempt));
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
        let mut leaves = [None; CANDIDATES];
        for (n, leaf) in leaves.iter_mut().enumerate() {
            let (tree, hash) = self.candidate(n, key, kh);
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
            if !LockWord(self.mem.load(place.first + LOCK_WORD, Ordering::Acquire)).has_overflow() {
                break;
            }
        }
        // SYNC(split): as in `probe`.
        self.mem.fence(Ordering::Acquire);
        for (n, leaf) in leaves.into_iter().enumerate().filter(|(_, leaf)| leaf.is_some()) {
            let (tree, hash) = self.candidate(n, key, kh);
            if !matches!(self.leaf_of(root, tree, hash), Ok(now) if now == leaf) {
                return Ok(None);
            }
        }
        Ok((self.root() == root).then_some(None))
    }

    /// The tree and the hash under which a key is looked for first, second, third.
    fn candidate(&self, n: usize, key: &[u8], kh: KeyHash) -> (Tree, u64) {
        match n.checked_sub(1) {
            None => (Tree::First, kh.hash),
            Some(second) => (Tree::Overflow, self.layout.hasher.overflow(key)[second]),
        }
    }

    /// All of them.
    pub(in crate::engine) fn candidates(&self, key: &[u8], kh: KeyHash) -> [(Tree, u64); CANDIDATES] {
        std::array::from_fn(|n| self.candidate(n, key, kh))
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
            let slot = self.effective(slot_offset);
            if slot.is_empty() || slot.tag() != tag {
                continue;
            }
            let Some(generation) = self.hold_generation(slot_offset, slot, root)? else { return Ok(Seen::Torn) };
            let mut seen = Seen::Other;
            let header = self.header(slot.offset());
            if let Some(header) = header.filter(|header| self.is_named(slot.offset(), *header, key, kh)) {
                let (record, leaf) = (slot.offset(), place.leaf);
                let found = Found { header, record, slot_offset, slot, leaf, tree };
                seen = Seen::Match(if self.is_expired(record, header) { None } else { Some(take(&found)) });
            }
            // SYNC(recycle): as in `validate_epoch`.
            self.mem.fence(Ordering::Acquire);
            let recycled = self.generation(self.segment_of(slot.offset())) != generation;
            if recycled && !fault::is(Fault::GenerationIgnored) {
                return Ok(Seen::Torn);
            }
            if header.is_some_and(|header| !self.validate_header(slot.offset(), header)) {
                return Ok(Seen::Torn);
            }
            if header.is_none() {
                return Err(self.outside("a slot points at something that is no record", slot.offset()));
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
            return if self.root() == root && self.effective(slot_offset) == slot {
                Err(self.outside("a slot points outside the file", slot.offset()))
            } else {
                Ok(None)
            };
        }
        let generation = self.generation(self.segment_of(slot.offset()));
        let same = self.effective(slot_offset) == slot && self.root() == root;
        Ok(same.then_some(generation))
    }

    /// The whole head of a record.
    pub(in crate::engine) fn head_of(&self, found: &Found) -> Head {
        self.head_at(found.record, found.header)
    }

    /// The caller's flags of a record, and the marks above them.
    #[inline(always)]
    pub(in crate::engine) fn flags_of(&self, found: &Found) -> u64 {
        if !found.header.has(field::FLAGS) {
            return 0;
        }
        self.mem.load(found.record + found.header.flags_at(), Ordering::Relaxed)
    }

    /// Wall clock of a record's expiry; `None` is never.
    #[inline(always)]
    pub(in crate::engine) fn expiry_of(&self, found: &Found) -> Option<u64> {
        self.expiry(found.record, found.header).filter(|at| *at != u64::MAX)
    }

    /// What a record's expiry word says, if it has one.
    #[inline(always)]
    fn expiry(&self, record: u64, header: RecordHeader) -> Option<u64> {
        header.has(field::EXPIRES).then(|| self.mem.load(record + header.expires_at(), Ordering::Relaxed))
    }

    /// The hash that the caller supplied with a record's key, as it was supplied.
    pub fn hash_of_caller(&self, found: &Found) -> Option<u64> {
        self.supplied_with(found).map(|spread| self.layout.hasher.as_supplied(spread))
    }

    /// The hash that the caller supplied with a record's key, if so.
    pub(crate) fn supplied_with(&self, found: &Found) -> Option<u64> {
        self.supplied_hash(found.record, found.header)
    }

    /// The hash of the key of a record that cannot change; `None`: there is none.
    pub(crate) fn hash_of_record(&self, record: u64) -> Option<KeyHash> {
        let header = self.header(record)?;
        if let Some(hash) = self.supplied_hash(record, header) {
            return Some(KeyHash { hash, is_supplied: true });
        }
        let mut key = Vec::new();
        self.mem.append_to(record + header.key_at(), header.key_len as usize, &mut key);
        Some(self.hash(&key))
    }

    #[inline(always)]
    pub(in crate::engine) fn is_expired(&self, record: u64, header: RecordHeader) -> bool {
        match self.expiry(record, header) {
            None => false,
            Some(at) => at <= self.host.now_ms() && !fault::is(Fault::ExpiryIgnored),
        }
    }

    /// Reads the record of a pinned slot again; `None` if it is not this key's.
    pub(crate) fn look_again(&self, found: &Found, key: &[u8], kh: KeyHash) -> Option<Found> {
        let header = self.header(found.record)?;
        self.is_named(found.record, header, key, kh).then_some(Found { header, ..*found })
    }

    /// Whether a record has expired.
    #[inline(always)]
    pub fn has_expired(&self, found: &Found) -> bool {
        self.is_expired(found.record, found.header)
    }

    /// The hash under which a record was stored.
    pub(in crate::engine) fn hash_of(&self, head: &Head, key: &[u8]) -> KeyHash {
        match head.hash {
            Some(hash) => KeyHash { hash, is_supplied: true },
            None => self.hash(key),
        }
    }
}
