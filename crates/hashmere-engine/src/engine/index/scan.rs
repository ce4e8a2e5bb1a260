//! Scanning: a position in the index that stays meaningful while the index grows.
//!
//! Leaves are visited in the order of their bit-reversed prefixes, so a leaf that splits becomes two neighbours in that
//! order. An interval is entered at the depth of the leaf found there; its entries are visited place by place, and at
//! each place in every leaf that now covers a part of the interval. An entry never changes its place or leaves
//! its hash's interval, so one that exists all the while is seen exactly once.

use crate::engine::index::found::Found;
use crate::engine::index::Tree;
use crate::engine::{corrupt, Engine};
use crate::error::ReadError;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::leaf::{Identity, Slot, LINE, SLOTS};
use hashmere_format::segment;
use hashmere_format::uid::{depth_max, reverse, Scan, UidParts};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// What one step of a scan found: the position behind it, and the slot, if there was one.
pub struct Step {
    /// Where the next step begins.
    pub next: Scan,
    /// UID, offset and content of the slot.
    pub entry: Option<(u32, u64, Slot)>,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// One step of a scan: the entry at a position, and the position behind it. Of a leaf that has the interval for
    /// itself empty places are passed in the same step. `places` is how many may be looked at, 1 at least; those that
    /// were are taken off.
    pub fn scan_step(&self, root: u64, from: Scan, places: &mut usize) -> Result<Step, ReadError> {
        let tree = Tree::from_number(from.tree);
        let bits = depth_max(from.tree);
        let fresh = from.line == 0;
        let line = u64::from(from.line);
        if !fresh && (line < self.layout.first || line >= self.layout.lines) || from.reached >> bits != 0 {
            return Err(ReadError::BadCursor);
        }
        let most = std::mem::replace(places, places.saturating_sub(1)).max(1);
        if tree == Tree::Overflow && self.depth(self.block_within(root), tree).is_none() {
            return Ok(Step { next: Scan { tree: 2, ..Scan::START }, entry: None });
        }
        loop {
            let (leaf, id) = match self.leaf_at(root, tree, from.reached, bits) {
                Ok(found) => found,
                // Cleared during the step: the next step looks under the new root.
                Err(_) if self.root() != root => return Ok(Step { next: from, entry: None }),
                Err(error) => return Err(error),
            };
            // A leaf of less depth than the interval: the store was cleared since, and nothing is left to be seen
            // twice.
            let depth = if fresh { id.depth } else { from.depth.min(id.depth) };
            let at = Scan { depth, line: if fresh { self.layout.first as u32 } else { from.line }, ..from };
            let (passed, slot_offset, slot) = self.first_entry(leaf, at, if depth == id.depth { most } else { 1 });
            let place = u64::from(at.line) * SLOTS + u64::from(at.slot) + passed;
            let at = Scan { line: (place / SLOTS) as u32, slot: (place % SLOTS) as u32, ..at };
            self.mem.fence(Ordering::Acquire);
            // The leaf may have been split between our looking it up and our reading its slots.
            let same = matches!(self.leaf_at(root, tree, from.reached, bits), Ok(now) if now == (leaf, id));
            if !same && !fault::is(Fault::ScanBelieved) {
                continue;
            }
            // An entry that a split is moving is in both leaves; it belongs to the one whose prefix it has.
            let mine = !slot.is_empty() && slot.tag() as u32 & ((1u32 << id.depth) - 1) == id.prefix;
            let uid = self.uid(tree, leaf, slot_offset, slot.tag());
            let entry = mine.then_some((uid, slot_offset, slot));
            *places = places.saturating_sub(passed as usize);
            return Ok(Step { next: self.after(at, id, bits), entry });
        }
    }

    /// Where a scan begins with the entry that a UID names.
    pub fn position_of(&self, root: u64, uid: u32) -> Result<Scan, ReadError> {
        let place = UidParts::from_uid(uid);
        let bits = depth_max(place.tree);
        let reached = reverse(place.bits, bits);
        let (_, id) = self.leaf_at(root, Tree::from_number(place.tree), reached, bits)?;
        Ok(Scan { tree: place.tree, depth: id.depth, reached, line: place.line, slot: place.slot })
    }

    /// The first place from a position on that is not empty, or else the last of the leaf or of the `most` that may be
    /// looked at: how many were passed, and what it holds.
    #[inline]
    fn first_entry(&self, leaf: u64, from: Scan, most: usize) -> (u64, u64, Slot) {
        let (mut line, mut slot) = (u64::from(from.line), u64::from(from.slot));
        let mut passed = 0;
        loop {
            let slot_offset = leaf + line * LINE + 8 * slot;
            let word = self.effective(slot_offset);
            if !word.is_empty() || passed + 1 >= most as u64 || line + 1 == self.layout.lines && slot + 1 == SLOTS {
                return (passed, slot_offset, word);
            }
            passed += 1;
            slot += 1;
            if slot == SLOTS {
                (line, slot) = (line + 1, 0);
            }
        }
    }

    /// The leaf that covers a reversed hash.
    fn leaf_at(&self, root: u64, tree: Tree, reached: u32, bits: u32) -> Result<(u64, Identity), ReadError> {
        let hash = u64::from(reverse(reached, bits));
        let leaf = self.leaf_of(root, tree, hash)?.ok_or_else(|| corrupt("a tree lost its directory", root))?;
        let word = self.mem.load(leaf, Ordering::Acquire);
        // A leaf is never deeper than its directory, whose depth is looked at afterwards: by a damaged one, a scan
        // would go through as many intervals as a large store has.
        let deepest = self.depth(self.root_block(root), tree).unwrap_or(0);
        let id = Identity::unpack(word).filter(|id| id.depth <= bits.min(deepest));
        Ok((leaf, id.ok_or_else(|| corrupt("a leaf has no identity", leaf))?))
    }

    /// The position behind (`at`, in the leaf `id`): the next leaf at this place, then the next place, then the next
    /// interval.
    fn after(&self, at: Scan, id: Identity, bits: u32) -> Scan {
        let depth = if fault::is(Fault::CursorSlips) { id.depth } else { at.depth };
        let interval = 1u32 << (bits - depth);
        let origin = at.reached & !(interval - 1);
        // A scan may begin in the middle of a leaf; what comes next is at the beginning of one.
        let leaf = 1u32 << (bits - id.depth);
        let reached = (at.reached & !(leaf - 1)) + leaf;
        if reached < origin + interval {
            return Scan { reached, ..at };
        }
        if u64::from(at.slot) + 1 < SLOTS {
            return Scan { reached: origin, slot: at.slot + 1, ..at };
        }
        if u64::from(at.line) + 1 < self.layout.lines {
            return Scan { reached: origin, slot: 0, line: at.line + 1, ..at };
        }
        if origin + interval < 1 << bits {
            return Scan { reached: origin + interval, line: 0, slot: 0, depth: 0, ..at };
        }
        Scan { tree: at.tree + 1, ..Scan::START }
    }

    /// Reads the record of a slot that a scan or a UID named. `None`: the slot holds something else by now.
    pub fn read_slot<R>(
        &self,
        root: u64,
        uid: u32,
        slot_offset: u64,
        slot: Slot,
        take: impl FnOnce(&Found) -> Result<R, ReadError>,
    ) -> Result<Option<R>, ReadError> {
        if !self.is_inside(slot.offset(), 8) {
            let same = self.effective(slot_offset) == slot && self.root() == root;
            return if same { Err(self.outside("a slot points outside the file", slot_offset)) } else { Ok(None) };
        }
        let number = self.segment_of(slot.offset());
        let generation = self.mem.load(self.entry_of(number) + segment::at::GENERATION, Ordering::Acquire);
        if self.effective(slot_offset) != slot || self.root() != root {
            return Ok(None);
        }
        let header = self.header(slot.offset());
        let taken = match header {
            None => None,
            Some(header) => {
                let place = UidParts::from_uid(uid);
                let leaf = slot_offset - u64::from(place.line) * LINE - 8 * u64::from(place.slot);
                let tree = Tree::from_number(place.tree);
                let found = Found { header, record: slot.offset(), slot_offset, slot, leaf, tree };
                Some(take(&found))
            }
        };
        self.mem.fence(Ordering::Acquire);
        if self.mem.load(self.entry_of(number) + segment::at::GENERATION, Ordering::Relaxed) != generation {
            return Ok(None);
        }
        if header.is_some_and(|header| !self.validate_header(slot.offset(), header)) {
            return Ok(None);
        }
        match taken {
            Some(result) => result.map(Some),
            None => Err(self.outside("a slot points at something that is no record", slot.offset())),
        }
    }

    /// The slot that a UID names, if something is there that the UID can mean.
    #[inline]
    pub fn slot_of_uid(&self, root: u64, uid: u32) -> Result<Option<(u64, Slot)>, ReadError> {
        let place = UidParts::from_uid(uid);
        let tree = Tree::from_number(place.tree);
        if u64::from(place.slot) >= SLOTS
            || u64::from(place.line) < self.layout.first
            || u64::from(place.line) >= self.layout.lines
        {
            return Ok(None);
        }
        loop {
            let leaf = match self.leaf_of(root, tree, u64::from(place.bits)) {
                Ok(Some(leaf)) => leaf,
                Err(error) if self.root() == root => return Err(error),
                _ => return Ok(None),
            };
            let slot_offset = leaf + u64::from(place.line) * LINE + 8 * u64::from(place.slot);
            let slot = self.effective(slot_offset);
            let mask = (1u64 << tree.depth_max()) - 1;
            let mask = if fault::is(Fault::UidUnchecked) { 0 } else { mask };
            if !slot.is_empty() && (slot.tag() ^ u64::from(place.bits)) & mask == 0 {
                return Ok(Some((slot_offset, slot)));
            }
            self.mem.fence(Ordering::Acquire);
            let now = self.leaf_of(root, tree, u64::from(place.bits));
            if self.root() != root || matches!(now, Ok(Some(now)) if now == leaf) {
                return Ok(None);
            }
        }
    }

    /// The root word and the epoch, for callers that scan.
    pub fn root_word(&self) -> u64 {
        self.mem.load(at::ROOT, Ordering::Acquire)
    }

    /// How many leaves both trees have at most.
    pub fn leaves_of(&self, root: u64) -> u64 {
        let block = self.block_within(root);
        [Tree::First, Tree::Overflow].iter().filter_map(|tree| self.depth(block, *tree)).map(|depth| 1 << depth).sum()
    }

    /// A random place of the index: a leaf with the chance of its share of the hashes, a slot in it.
    pub fn random_place(&self, root: u64, random: u64) -> Result<Option<(u32, u64, Slot)>, ReadError> {
        let leaves = 1u64 << self.depth(self.block_within(root), Tree::First).unwrap_or(0);
        let pick = (random >> 40) % self.leaves_of(root).max(leaves);
        let tree = if pick < leaves { Tree::First } else { Tree::Overflow };
        let Some(leaf) = self.leaf_of(root, tree, random & 0xf_ffff)? else { return Ok(None) };
        let line = self.layout.first + (random >> 20 & 0xffff) % self.layout.buckets;
        let slot_offset = leaf + line * LINE + 8 * ((random >> 36 & 0xffff) % SLOTS);
        let slot = self.effective(slot_offset);
        Ok((!slot.is_empty()).then(|| (self.uid(tree, leaf, slot_offset, slot.tag()), slot_offset, slot)))
    }
}
