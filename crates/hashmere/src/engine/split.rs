//! Splitting a leaf: the index grows by one leaf at a time, and every entry keeps its place.
//!
//! The splitter takes every lock of the leaf, builds the new leaf in private, then notes it in the old one: from
//! that store on the split only goes forward, whoever completes it. Each later step may be done twice.

use super::index::Tree;
use super::{Engine, Lane};
use crate::canary::{self, Canary};
use crate::error::WriteError;
use hashmere_format::header::at;
use hashmere_format::leaf::{self, Identity, Meta, LINE, META, SLOTS};
use hashmere_format::row::{self, Stat};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// A leaf with both buckets of a key full is split when it is filled to this share; below, the key goes to
/// the overflow tree. (With 511 buckets of 7 slots the first such key comes at about 0.77, and at 0.875 about six keys in a thousand
/// have overflowed: a split at the first would waste a tenth of the index.)
const FILL: (u64, u64) = (7, 8);
/// A split that would move less than one in this many entries, or leave less, separates nothing: the keys collide.
const LOPSIDED: u64 = 32;

/// What the entries of a leaf say about splitting it.
struct Census {
    used: u64,
    moving: u64,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Makes a free slot likelier for a hash whose buckets are full: splits its leaf, or says that it should go to the
    /// overflow tree (`false`). For a hash of the overflow tree itself `false` means that nothing helps.
    #[cold]
    pub(super) fn make_slot(&self, lane: &mut Lane, root: u64, hash: u64, tree: Tree) -> Result<bool, WriteError> {
        let made = self.grow_index(lane, root, hash, tree);
        lane.index_full = matches!(made, Err(WriteError::Full { .. } | WriteError::NoSpace(_)));
        made
    }

    fn grow_index(&self, lane: &mut Lane, root: u64, hash: u64, tree: Tree) -> Result<bool, WriteError> {
        if tree == Tree::Overflow && self.leaf_of(root, tree, hash)?.is_none() {
            self.plant_overflow(lane.slot, root)?;
            return Ok(true);
        }
        let Some(leaf) = self.leaf_of(root, tree, hash)? else {
            return Err(WriteError::Corrupt { what: "the index has no directory", offset: root });
        };
        let Some(id) = Identity::unpack(self.mem.load(leaf + leaf::at::IDENTITY, Ordering::Acquire)) else {
            return Err(WriteError::Corrupt { what: "a leaf has no identity", offset: leaf });
        };
        let slots = self.buckets * SLOTS;
        if tree == Tree::First && self.is_clearly_sparse(leaf) {
            if self.depth(self.root_block(root), Tree::Overflow).is_none() {
                self.plant_overflow(lane.slot, root)?;
            }
            return Ok(false);
        }
        let census = self.census(leaf, id.depth);
        let lopsided = census.moving * LOPSIDED < census.used || (census.used - census.moving) * LOPSIDED < census.used;
        let sparse = census.used * FILL.1 < slots * FILL.0 && tree == Tree::First;
        if id.depth >= tree.depth_max() || lopsided || sparse {
            if tree == Tree::First && self.depth(self.root_block(root), Tree::Overflow).is_none() {
                self.plant_overflow(lane.slot, root)?;
            }
            return Ok(false);
        }
        self.split(lane, root, tree, leaf, id)
    }

    /// Whether 32 buckets spread over the leaf say that it is far from filled.
    fn is_clearly_sparse(&self, leaf: u64) -> bool {
        const SAMPLE: u64 = 32;
        if self.buckets < 4 * SAMPLE {
            return false;
        }
        let step = self.buckets / SAMPLE;
        let used: u64 = (0..SAMPLE)
            .map(|i| leaf + (self.first + i * step) * LINE)
            .map(|bucket| Self::slots(bucket).map(|s| u64::from(!self.slot(s).is_empty())).sum::<u64>())
            .sum();
        // Two slots of a hundred below, so that the sample's own error leaves the split where it was.
        used * FILL.1 * 50 < SAMPLE * SLOTS * FILL.0 * 49
    }

    fn census(&self, leaf: u64, depth: u32) -> Census {
        let mut census = Census { used: 0, moving: 0 };
        for slot in self.leaf_slots(leaf).map(|s| self.slot(s)).filter(|s| !s.is_empty()) {
            census.used += 1;
            census.moving += slot.tag() >> depth & 1;
        }
        census
    }

    /// Offsets of all slots of a leaf.
    pub(super) fn leaf_slots(&self, leaf: u64) -> impl Iterator<Item = u64> {
        self.leaf_buckets(leaf).flat_map(Self::slots)
    }

    /// Offsets of all buckets of a leaf.
    pub(super) fn leaf_buckets(&self, leaf: u64) -> impl Iterator<Item = u64> {
        (self.first..self.lines).map(move |line| leaf + line * LINE)
    }

    pub(super) fn split(
        &self,
        lane: &mut Lane,
        root: u64,
        tree: Tree,
        leaf: u64,
        id: Identity,
    ) -> Result<bool, WriteError> {
        self.acquire_global(lane.slot, at::INDEX_LOCK)?;
        let taken = self.take_leaf(lane.slot, root);
        self.release_global(at::INDEX_LOCK);
        let new = taken?;
        self.mem.store(lane.row + row::at::SPLIT, leaf, Ordering::Relaxed);
        let mut locked = 0;
        let mut result = Ok(());
        for bucket in self.leaf_buckets(leaf) {
            match self.acquire(lane.slot, bucket + META) {
                Ok(_) => locked += 1,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        let unchanged = Identity::unpack(self.mem.load(leaf + leaf::at::IDENTITY, Ordering::Acquire)) == Some(id);
        if result.is_ok() && unchanged && self.root() == root {
            self.build(lane.slot, leaf, new, id);
            result = self.prepare_directory(lane.slot, root, tree, id.depth);
            if result.is_ok() {
                // SYNC(split): from here on the split only goes forward.
                self.mem.store(leaf + leaf::at::SPLIT, new, Ordering::Release);
                self.publish(lane.slot, root, tree, leaf, new);
                self.count_at(lane.row, Stat::Splits, 1);
                return Ok(true);
            }
        }
        for bucket in self.leaf_buckets(leaf).take(locked) {
            self.release(bucket + META, Meta(self.mem.load(bucket + META, Ordering::Relaxed)));
        }
        self.mem.store(lane.row + row::at::SPLIT, 0, Ordering::Release);
        self.return_leaf(lane.slot, root, new)?;
        // Somebody else split it: there is room now. Or a lock was busy, or there was no memory: say so.
        result.map(|()| true)
    }

    /// Takes the index lock and makes the directory deep enough, which may fail and so comes before the point of no return.
    fn prepare_directory(&self, slot: u32, root: u64, tree: Tree, depth: u32) -> Result<(), WriteError> {
        self.acquire_global(slot, at::INDEX_LOCK)?;
        if self.depth(self.root_block(root), tree) == Some(depth) {
            if let Err(error) = self.double(slot, root, tree, depth) {
                self.release_global(at::INDEX_LOCK);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives a leaf back that did not get into the index.
    pub(super) fn return_leaf(&self, slot: u32, root: u64, leaf: u64) -> Result<(), WriteError> {
        self.acquire_global(slot, at::INDEX_LOCK)?;
        self.spare_leaf(slot, root, leaf);
        self.release_global(at::INDEX_LOCK);
        Ok(())
    }

    /// Writes the new leaf: the entries whose next hash bit is one, at their places; every bucket locked in our name.
    fn build(&self, slot: u32, old: u64, new: u64, id: Identity) {
        let child = Identity { depth: id.depth + 1, prefix: id.prefix | 1 << id.depth, ..id };
        self.mem.zero(new, self.first * LINE);
        for word in (LINE..self.first * LINE).step_by(8) {
            self.mem.store(new + word, self.mem.load(old + word, Ordering::Relaxed), Ordering::Relaxed);
        }
        for (from, to) in self.leaf_buckets(old).zip(self.leaf_buckets(new)) {
            for (source, target) in Self::slots(from).zip(Self::slots(to)) {
                let entry = self.slot(source);
                let moves = !entry.is_empty() && entry.tag() >> id.depth & 1 == 1;
                self.mem.store(target, if moves { entry.0 } else { 0 }, Ordering::Relaxed);
            }
            let meta = Meta(self.mem.load(from + META, Ordering::Relaxed)).released();
            self.mem.store(to + META, meta.held_by(slot).0, Ordering::Relaxed);
        }
        self.mem.store(new + leaf::at::IDENTITY, child.pack(), Ordering::Release);
    }

    /// Everything after the point of no return; each step may be repeated by whoever repairs. `slot` holds every lock of both
    /// leaves, and the index lock.
    pub(super) fn publish(&self, slot: u32, root: u64, tree: Tree, old: u64, new: u64) {
        let Some(child) = Identity::unpack(self.mem.load(new + leaf::at::IDENTITY, Ordering::Acquire)) else { return };
        let bit = child.depth.saturating_sub(1);
        let block = self.root_block(root);
        let depth = self.depth(block, tree).unwrap_or(0);
        if canary::is(Canary::SplitClearsFirst) {
            self.clear_moved(old, bit);
        }
        for index in (u64::from(child.prefix)..1 << depth).step_by(1 << child.depth) {
            if let Ok(entry) = self.entry_inside(block, tree, index) {
                self.mem.store(entry, new, Ordering::Release);
            }
        }
        self.release_global(at::INDEX_LOCK);
        let shrunk = Identity { depth: child.depth, prefix: child.prefix & !(1 << bit), tree: child.tree };
        self.mem.store(old + leaf::at::IDENTITY, shrunk.pack(), Ordering::Release);
        self.clear_moved(old, bit);
        self.mem.store(old + leaf::at::SPLIT, 0, Ordering::Release);
        // The new leaf opens only now: until the old entries are gone a writer there could let a record be recycled that
        // an old entry still points at.
        self.unlock_leaf(slot, new);
        self.mem.store(row::offset(slot) + row::at::LEAF, 0, Ordering::Release);
        self.unlock_leaf(slot, old);
        self.mem.store(row::offset(slot) + row::at::SPLIT, 0, Ordering::Release);
    }

    /// Clears the entries of a leaf that stand in the new one.
    fn clear_moved(&self, old: u64, bit: u32) {
        for slot_offset in self.leaf_slots(old) {
            let entry = self.slot(slot_offset);
            if !entry.is_empty() && entry.tag() >> bit & 1 == 1 {
                // SYNC(split): a reader that sees this zero sees the directory entry stored before it.
                self.mem.store(slot_offset, 0, Ordering::Release);
            }
        }
    }

    /// Releases every lock of a leaf that `slot` holds.
    pub(super) fn unlock_leaf(&self, slot: u32, leaf: u64) {
        for bucket in self.leaf_buckets(leaf) {
            let word = Meta(self.mem.load(bucket + META, Ordering::Relaxed));
            if word.owner() == Some(slot) {
                self.release(bucket + META, word);
            }
        }
    }
}
