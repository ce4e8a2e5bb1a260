//! Splitting a leaf: the index grows by one leaf at a time, and every entry keeps its place.
//!
//! The splitter takes every lock of the leaf, builds the new leaf in private, then notes it in the old one: from
//! that store on the split only goes forward, in this process or in one that repairs. Each later step may be done
//! twice.
//!
//! A lock that does not come is not waited for with others in hand, and not for long: then the leaf is not split now,
//! and the key goes to the overflow tree.

use crate::engine::client::stalled::{Blocked, BRIEF, LOCK_WAIT};
use crate::engine::index::Tree;
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::leaf::{self, Identity, LockWord, LINE, LOCK_WORD, SLOTS};
use hashmere_format::row::{self, Stat};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// A leaf with both buckets of a key full is split when it is filled to this share; below, the key goes to
/// the overflow tree. (With 511 buckets of 7 slots the first such key comes at about 0.77, and at 0.875 about six keys
/// in a thousand have overflowed: a split at the first would waste a tenth of the index.)
const FILL: (u64, u64) = (7, 8);
/// A split that would move less than one in this many entries, or leave less, separates nothing: the keys collide.
const LOPSIDED: u64 = 32;

/// What was done for a hash whose buckets are full.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum Growth {
    /// There may be a slot now.
    Grown,
    /// To split its leaf would be of no use, or is not possible.
    Useless,
    /// It would, but a living process has kept a lock for it for too long.
    Stalled(Blocked),
}

/// What the entries of a leaf say about splitting it.
struct Census {
    used: u64,
    moving: u64,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Makes a free slot likelier for a hash whose buckets are full, by splitting its leaf. If that was not done in the
    /// first tree, the overflow tree is there, and the key goes there.
    #[cold]
    pub(in crate::engine) fn make_slot(
        &self,
        writer: &mut Writer,
        root: u64,
        hash: u64,
        tree: Tree,
    ) -> Result<Growth, WriteError> {
        let mut made = self.grow_index(writer, root, hash, tree);
        if tree == Tree::First {
            writer.full_at = hash;
            // A strict store that the file system refuses a leaf has places left in the overflow tree: one delete is to
            // make room for one key. The next key asks again. (A cache evicts.) So has one that finds the space lock
            // stalled.
            let refused = match &made {
                Err(WriteError::NoSpace(_)) => !self.layout.is_cache(),
                Err(WriteError::Busy { .. }) => true,
                _ => false,
            };
            if refused && self.depth(self.root_block(root), Tree::Overflow).is_some() {
                made = Ok(Growth::Useless);
            }
        }
        if tree == Tree::First && matches!(made, Ok(Growth::Useless | Growth::Stalled(_))) {
            if let Err(error) = self.prepare_overflow(writer, root) {
                made = Err(error);
            }
        }
        // What this process cannot reach is no matter of room.
        writer.index_full = made.as_ref().is_err_and(WriteError::is_no_room) && self.reach_file().is_ok();
        made
    }

    fn grow_index(&self, writer: &mut Writer, root: u64, hash: u64, tree: Tree) -> Result<Growth, WriteError> {
        if tree == Tree::Overflow && self.leaf_of(root, tree, hash)?.is_none() {
            self.prepare_overflow(writer, root)?;
            return Ok(Growth::Grown);
        }
        let Some(leaf) = self.leaf_of(root, tree, hash)? else {
            return Err(WriteError::Corrupt { what: "the index has no directory", offset: root });
        };
        let Some(id) = Identity::unpack(self.mem.load(leaf + leaf::at::IDENTITY, Ordering::Acquire)) else {
            return Err(WriteError::Corrupt { what: "a leaf has no identity", offset: leaf });
        };
        if let Some(blocked) = self.stalled_within(writer.slot, leaf, self.leaf_bytes())? {
            return Ok(Growth::Stalled(blocked));
        }
        let slots = self.layout.buckets * SLOTS;
        if tree == Tree::First && self.is_clearly_sparse(leaf) {
            return Ok(Growth::Useless);
        }
        let census = self.census(leaf, id.depth);
        let lopsided = census.moving * LOPSIDED < census.used || (census.used - census.moving) * LOPSIDED < census.used;
        let sparse = census.used * FILL.1 < slots * FILL.0 && tree == Tree::First;
        if id.depth >= tree.depth_max() || lopsided || sparse {
            return Ok(Growth::Useless);
        }
        self.split(writer, root, tree, leaf, id)
    }

    /// Makes the overflow tree if it is not there, with two leaves: a key has one in either, so that a process that is
    /// stopped in one does not stop the tree.
    fn prepare_overflow(&self, writer: &mut Writer, root: u64) -> Result<(), WriteError> {
        match self.depth(self.root_block(root), Tree::Overflow) {
            None => self.plant_overflow(writer.slot, root)?,
            Some(0) => {}
            Some(_) => return Ok(()),
        }
        let id = Identity { depth: 0, tree: 1, prefix: 0 };
        let Some(leaf) = self.leaf_of(root, Tree::Overflow, 0)? else { return Ok(()) };
        match self.split(writer, root, Tree::Overflow, leaf, id) {
            // One leaf serves as well, as long as no process stops there.
            Ok(_) => Ok(()),
            Err(error) if error.is_no_room() || matches!(error, WriteError::Busy { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether 32 buckets spread over the leaf say that it is far from filled.
    fn is_clearly_sparse(&self, leaf: u64) -> bool {
        const SAMPLE: u64 = 32;
        if self.layout.buckets < 4 * SAMPLE {
            return false;
        }
        let step = self.layout.buckets / SAMPLE;
        let used: u64 = (0..SAMPLE)
            .map(|i| leaf + (self.layout.first + i * step) * LINE)
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
    pub(in crate::engine) fn leaf_slots(&self, leaf: u64) -> impl Iterator<Item = u64> {
        self.leaf_buckets(leaf).flat_map(Self::slots)
    }

    /// Offsets of all buckets of a leaf.
    pub(in crate::engine) fn leaf_buckets(&self, leaf: u64) -> impl Iterator<Item = u64> {
        (self.layout.first..self.layout.lines).map(move |line| leaf + line * LINE)
    }

    pub(in crate::engine) fn split(
        &self,
        writer: &mut Writer,
        root: u64,
        tree: Tree,
        leaf: u64,
        id: Identity,
    ) -> Result<Growth, WriteError> {
        if let Err(blocked) = self.acquire_soon(writer.slot, at::INDEX_LOCK, LOCK_WAIT)? {
            return Ok(Growth::Stalled(blocked));
        }
        let taken = self.take_leaf(writer.slot, root);
        self.release_global(at::INDEX_LOCK);
        let new = taken?;
        self.mem.store(writer.row + row::at::SPLIT, leaf, Ordering::Relaxed);
        let mut result = self.lock_leaf(writer.slot, leaf);
        let unchanged = Identity::unpack(self.mem.load(leaf + leaf::at::IDENTITY, Ordering::Acquire)) == Some(id);
        if matches!(result, Ok(Growth::Grown)) && unchanged && self.root() == root {
            self.build(writer.slot, leaf, new, id);
            result = self.prepare_directory(writer.slot, root, tree, id.depth);
            if matches!(result, Ok(Growth::Grown)) {
                // SYNC(split): from here on the split only goes forward.
                self.mem.store(leaf + leaf::at::SPLIT, new, Ordering::Release);
                self.publish(writer.slot, root, tree, leaf, new);
                self.count_at(writer.row, Stat::Splits, 1);
                return result;
            }
        }
        self.unlock_leaf(writer.slot, leaf);
        self.mem.store(writer.row + row::at::SPLIT, 0, Ordering::Release);
        self.return_leaf(writer.slot, root, new)?;
        // Another process split it: there is room now. Or a lock did not come, or there was no memory: say so.
        result
    }

    /// Takes every lock of a leaf, in order. For one that does not come at once it waits without the others, which are
    /// those of keys that have nothing to do with it.
    fn lock_leaf(&self, slot: u32, leaf: u64) -> Result<Growth, WriteError> {
        let limit = LOCK_WAIT.min(self.access.busy_timeout);
        let start = self.host.monotonic();
        loop {
            let mut missing = None;
            for bucket in self.leaf_buckets(leaf) {
                let taken = self.try_acquire(slot, bucket + LOCK_WORD).is_some()
                    || self.acquire_within(slot, bucket + LOCK_WORD, BRIEF.min(limit))?.is_ok();
                if !taken {
                    missing = Some(bucket + LOCK_WORD);
                    break;
                }
            }
            let Some(lock) = missing else { return Ok(Growth::Grown) };
            self.unlock_leaf(slot, leaf);
            let waited = self.host.monotonic().saturating_sub(start);
            match self.acquire_within(slot, lock, limit.saturating_sub(waited))? {
                Ok(word) => self.release(lock, word),
                Err(blocked) if fault::is(Fault::LockAwaited) => return Err(self.busy(blocked.owner, blocked.waited)),
                Err(blocked) => {
                    self.note_stalled(lock);
                    return Ok(Growth::Stalled(blocked));
                }
            }
        }
    }

    /// Takes the index lock and makes the directory deep enough, which may fail and so comes before the point of no
    /// return.
    fn prepare_directory(&self, slot: u32, root: u64, tree: Tree, depth: u32) -> Result<Growth, WriteError> {
        if let Err(blocked) = self.acquire_soon(slot, at::INDEX_LOCK, BRIEF)? {
            return Ok(Growth::Stalled(blocked));
        }
        if self.depth(self.root_block(root), tree) == Some(depth) {
            if let Err(error) = self.double(slot, root, tree, depth) {
                self.release_global(at::INDEX_LOCK);
                return Err(error);
            }
        }
        Ok(Growth::Grown)
    }

    /// Gives a leaf back that did not get into the index. If the lock for that does not come, the row keeps it for the
    /// next split.
    fn return_leaf(&self, slot: u32, root: u64, leaf: u64) -> Result<(), WriteError> {
        if self.acquire_soon(slot, at::INDEX_LOCK, BRIEF)?.is_err() {
            return Ok(());
        }
        self.spare_leaf(slot, root, leaf);
        self.release_global(at::INDEX_LOCK);
        Ok(())
    }

    /// Writes the new leaf: the entries whose next hash bit is one, at their places; every bucket locked in our name.
    fn build(&self, slot: u32, old: u64, new: u64, id: Identity) {
        let child = Identity { depth: id.depth + 1, prefix: id.prefix | 1 << id.depth, ..id };
        self.mem.zero(new, self.layout.first * LINE);
        for word in (LINE..self.layout.first * LINE).step_by(8) {
            self.mem.store(new + word, self.mem.load(old + word, Ordering::Relaxed), Ordering::Relaxed);
        }
        for (from, to) in self.leaf_buckets(old).zip(self.leaf_buckets(new)) {
            for (source, target) in Self::slots(from).zip(Self::slots(to)) {
                let entry = self.slot(source);
                let moves = !entry.is_empty() && entry.tag() >> id.depth & 1 == 1;
                self.mem.store(target, if moves { entry.0 } else { 0 }, Ordering::Relaxed);
            }
            let word = LockWord(self.mem.load(from + LOCK_WORD, Ordering::Relaxed)).released();
            self.mem.store(to + LOCK_WORD, word.held_by(slot).0, Ordering::Relaxed);
        }
        self.mem.store(new + leaf::at::IDENTITY, child.pack(), Ordering::Release);
    }

    /// Everything after the point of no return; each step may be repeated by a repair. `slot` holds every lock of both
    /// leaves, and the index lock.
    pub(in crate::engine) fn publish(&self, slot: u32, root: u64, tree: Tree, old: u64, new: u64) {
        let Some(child) = Identity::unpack(self.mem.load(new + leaf::at::IDENTITY, Ordering::Acquire)) else { return };
        let bit = child.depth.saturating_sub(1);
        let block = self.root_block(root);
        let depth = self.depth(block, tree).unwrap_or(0);
        if fault::is(Fault::SplitClearsFirst) {
            self.clear_moved(old, bit);
        }
        for index in (u64::from(child.prefix)..1 << depth).step_by(1 << child.depth) {
            // A damaged depth says more than there are, up to two thousand millions.
            let Ok(entry) = self.entry_inside(block, tree, index) else { break };
            self.mem.store(entry, new, Ordering::Release);
        }
        self.release_global(at::INDEX_LOCK);
        let shrunk = Identity { depth: child.depth, prefix: child.prefix & !(1 << bit), tree: child.tree };
        self.mem.store(old + leaf::at::IDENTITY, shrunk.pack(), Ordering::Release);
        self.clear_moved(old, bit);
        self.mem.store(old + leaf::at::SPLIT, 0, Ordering::Release);
        // The new leaf opens only now: until the old entries are gone a writer there could let a record be recycled
        // that an old entry still points at.
        self.unlock_leaf(slot, new);
        self.mem.store(row::offset(slot) + row::at::LEAF, 0, Ordering::Release);
        self.unlock_leaf(slot, old);
        self.mem.store(row::offset(slot) + row::at::SPLIT, 0, Ordering::Release);
    }

    /// Clears the entries of a leaf that are in the new one.
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
    pub(in crate::engine) fn unlock_leaf(&self, slot: u32, leaf: u64) {
        for bucket in self.leaf_buckets(leaf) {
            let word = LockWord(self.mem.load(bucket + LOCK_WORD, Ordering::Relaxed));
            if word.owner() == Some(slot) {
                self.release(bucket + LOCK_WORD, word);
            }
        }
    }

    /// Splits an index that is smaller than `items` need, level by level.
    pub(crate) fn presize(&self, writer: &mut Writer, items: u64) -> Result<(), WriteError> {
        let depth = self.layout.leaves_for(items).map_or(Tree::First.depth_max(), u64::ilog2);
        let root = self.enter(writer);
        let mut result = Ok(());
        'levels: for level in 0..depth {
            for prefix in 0..1u64 << level {
                let Ok(Some(leaf)) = self.leaf_of(root, Tree::First, prefix) else { continue };
                let id = Identity::unpack(self.mem.load(leaf, Ordering::Acquire));
                if let Some(id) = id.filter(|id| id.depth == level) {
                    result = self.split(writer, root, Tree::First, leaf, id).map(|_| ());
                    if result.is_err() {
                        break 'levels;
                    }
                }
            }
        }
        self.mem.store(writer.row + hashmere_format::row::at::ACTIVE, 0, Ordering::Release);
        result
    }
}
