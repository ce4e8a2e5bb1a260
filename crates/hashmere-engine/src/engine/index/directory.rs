//! The directory and the arena that leaves come from: everything that changes under the index lock.

use crate::engine::index::Tree;
use crate::engine::log::backing::WHOLE_FROM;
use crate::engine::log::segments::Need;
use crate::engine::Engine;
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::{at, RootWord};
use hashmere_format::leaf::{self, Identity, LockWord, LINE, LOCK_WORD};
use hashmere_format::root::{self, chunk_of, chunk_start};
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    fn word(&self, offset: u64) -> u64 {
        self.mem.load(offset, Ordering::Relaxed)
    }

    fn put(&self, offset: u64, value: u64) {
        self.mem.store(offset, value, Ordering::Release);
    }

    /// Takes a leaf for the client `slot` and notes it in the client's row. Needs the index lock. Its content is
    /// anything.
    pub(in crate::engine) fn take_leaf(&self, slot: u32, root: u64) -> Result<u64, WriteError> {
        let block = self.root_block(root);
        let note = row::offset(slot) + row::at::LEAF;
        // One that could not be given back when it was not needed after all.
        let kept = self.word(note);
        if kept != 0 && self.is_leaf_of(kept, root) && !self.is_in_index(root, kept) {
            return Ok(kept);
        }
        let spare = self.word(block + root::at::SPARE);
        if spare != 0 && !self.is_leaf_of(spare, root) {
            // A damaged list leads nowhere; what was on it is lost until the next clear.
            self.put(block + root::at::SPARE, 0);
        } else if spare != 0 {
            self.back_index(slot, spare, self.leaf_bytes())?;
            self.put(note, spare);
            self.put(block + root::at::SPARE, self.word(spare + leaf::at::NEXT));
            return Ok(spare);
        }
        let bytes = self.leaf_bytes();
        let offset = self.arena_room(slot, root, bytes)?;
        self.put(note, offset);
        self.put(block + root::at::ARENA, offset + bytes);
        Ok(offset)
    }

    /// Puts a leaf that did not get into the index on the list of spare ones. Needs the index lock.
    pub(in crate::engine) fn spare_leaf(&self, slot: u32, root: u64, offset: u64) {
        let block = self.root_block(root);
        let spare = self.word(block + root::at::SPARE);
        // Taken but not yet off the list, or not yet out of the arena: then it was never taken.
        if spare != offset && self.word(block + root::at::ARENA) != offset {
            self.put(offset + leaf::at::NEXT, spare);
            self.put(block + root::at::SPARE, offset);
        }
        self.put(row::offset(slot) + row::at::LEAF, 0);
    }

    /// The offset of the next `bytes` of the arena, with memory behind them; the caller moves the arena on. Needs the
    /// index lock.
    fn arena_room(&self, slot: u32, root: u64, bytes: u64) -> Result<u64, WriteError> {
        let block = self.root_block(root);
        let next = self.word(block + root::at::ARENA);
        let offset = next.checked_next_multiple_of(bytes.min(self.leaf_bytes())).unwrap_or(u64::MAX);
        let end = offset.saturating_add(bytes);
        if end <= self.word(block + root::at::ARENA_END) && self.is_inside(offset, bytes) {
            self.back_index(slot, offset, bytes)?;
            if offset != next {
                self.put(block + root::at::ARENA, offset);
            }
            return Ok(offset);
        }
        let n = bytes.div_ceil(self.segment_bytes());
        let segment = self.claim_index(slot, n, bytes)?;
        let offset = self.segment_offset(segment);
        self.set_field(segment, segment::at::BORN, RootWord::unpack(root).generation);
        self.join(segment, n, Word::owned(State::Index, slot));
        // End first zero, then the start, then the end: in between the arena is empty, never wrong.
        self.put(block + root::at::ARENA_END, 0);
        self.put(block + root::at::ARENA, offset);
        self.put(block + root::at::ARENA_END, offset + n * self.segment_bytes());
        self.set_state(segment, Word::new(State::Index).long(n as u32));
        Ok(offset)
    }

    /// How much memory a new segment of the index gets when it needs `bytes` of it.
    pub(in crate::engine) fn index_step(&self, bytes: u64) -> u64 {
        if self.segments() >= WHOLE_FROM {
            self.segment_bytes()
        } else {
            bytes
        }
    }

    /// Claims segments for the index, with memory for `bytes`. Index growth may use the reserve's place in a full store
    /// no more than writers may.
    pub(in crate::engine) fn claim_index(&self, slot: u32, n: u64, bytes: u64) -> Result<u64, WriteError> {
        let mut refused = None;
        let claimed = match n {
            1 => self.claim(slot, Need::Normal, self.index_step(bytes), &mut refused)?,
            n => self.find_extent(slot, n, &mut refused)?,
        };
        claimed.ok_or_else(|| self.full(refused))
    }

    /// Completes what a dead owner of the index lock left half done in the arena. `slot` holds the index lock.
    pub(in crate::engine) fn repair_arena(&self, root: u64) {
        let block = self.root_block(root);
        let (next, end) = (self.word(block + root::at::ARENA), self.word(block + root::at::ARENA_END));
        // A chunk of a directory is entered before the arena moves past it.
        for tree in [Tree::First, Tree::Overflow] {
            for chunk in 1..root::CHUNKS {
                let pointer = self.word(block + tree.pointers() + 8 * chunk);
                let offset = pointer.wrapping_add(8 * chunk_start(chunk));
                if pointer != 0 && offset >= next && offset < end {
                    self.put(block + root::at::ARENA, offset.saturating_add(8 * chunk_start(chunk)));
                }
            }
        }
    }

    /// Doubles a directory if its depth is still `depth`. Needs the index lock.
    pub(in crate::engine) fn double(&self, slot: u32, root: u64, tree: Tree, depth: u32) -> Result<(), WriteError> {
        let block = self.root_block(root);
        if self.depth(block, tree) != Some(depth) {
            return Ok(());
        }
        if depth >= tree.depth_max() {
            return Err(WriteError::TooManyCollisions);
        }
        let old = 1u64 << depth;
        let chunk = chunk_of(old);
        let pointer = block + tree.pointers() + 8 * chunk;
        if self.word(pointer) == 0 {
            if chunk == 0 {
                return Err(self.outside("a directory lies outside the file", 0).into());
            }
            let bytes = 8 * chunk_start(chunk);
            let offset = self.arena_room(slot, root, bytes)?;
            self.put(pointer, offset.wrapping_sub(8 * chunk_start(chunk)));
            self.put(block + root::at::ARENA, offset + bytes);
        }
        if fault::is(Fault::DepthEarly) {
            self.set_depth(block, tree, depth + 1);
        }
        for index in 0..old {
            let leaf = self.word(self.entry_inside(block, tree, index)?);
            self.mem.store(self.entry_inside(block, tree, index + old)?, leaf, Ordering::Relaxed);
        }
        // SYNC(depth): a reader that sees the new depth sees the new half.
        self.set_depth(block, tree, depth + 1);
        Ok(())
    }

    /// Entries that the file has room for: a damaged depth says more.
    pub(in crate::engine) fn entries_max(&self) -> u64 {
        self.layout.bytes_of(self.segments()) >> 3
    }

    /// Offset of a directory entry that may be stored to.
    pub(in crate::engine) fn entry_inside(&self, block: u64, tree: Tree, index: u64) -> Result<u64, WriteError> {
        let offset = self.entry(block, tree, index);
        if offset & 7 == 0 && self.is_inside(offset, 8) {
            return Ok(offset);
        }
        Err(self.outside("a directory entry lies outside the file", offset).into())
    }

    pub(in crate::engine) fn set_depth(&self, block: u64, tree: Tree, depth: u32) {
        match tree {
            Tree::First => self.put(block + root::at::DEPTH_0, u64::from(depth)),
            Tree::Overflow => self.put(block + root::at::DEPTH_1, u64::from(depth) + 1),
        }
    }

    /// Creates the overflow tree if it is not there.
    pub(in crate::engine) fn plant_overflow(&self, slot: u32, root: u64) -> Result<(), WriteError> {
        self.acquire_global(slot, at::INDEX_LOCK)?;
        let planted = self.plant_locked(slot, root);
        self.release_global(at::INDEX_LOCK);
        planted
    }

    fn plant_locked(&self, slot: u32, root: u64) -> Result<(), WriteError> {
        let block = self.root_block(root);
        if self.depth(block, Tree::Overflow).is_some() {
            return Ok(());
        }
        let leaf = self.take_leaf(slot, root)?;
        let version = self.word(block + root::at::VERSION);
        self.blank_leaf(leaf, Identity { depth: 0, tree: 1, prefix: 0 }, version);
        self.put(block + root::at::DIR_1, block + root::at::ENTRIES_1);
        self.put(block + root::at::ENTRIES_1, leaf);
        self.set_depth(block, Tree::Overflow, 0);
        self.put(row::offset(slot) + row::at::LEAF, 0);
        Ok(())
    }

    /// Writes an empty leaf whose buckets start from a version.
    pub(in crate::engine) fn blank_leaf(&self, leaf: u64, identity: Identity, version: u64) {
        self.mem.zero(leaf, self.leaf_bytes());
        let word = LockWord(version << hashmere_format::record::VERSION_SHIFT);
        for line in self.layout.first..self.layout.lines {
            self.mem.store(leaf + line * LINE + LOCK_WORD, word.0, Ordering::Relaxed);
        }
        self.mem.store(leaf + leaf::at::IDENTITY, identity.pack(), Ordering::Release);
    }

    /// Whether a whole leaf can be at an offset that was read from the file.
    pub(in crate::engine) fn can_be_leaf(&self, offset: u64) -> bool {
        offset & !self.layout.leaf_mask == 0 && self.is_inside_if_aligned(offset)
    }

    /// Whether a leaf at this offset can belong to the index of `root`.
    pub(in crate::engine) fn is_leaf_of(&self, leaf: u64, root: u64) -> bool {
        if !self.can_be_leaf(leaf) {
            return false;
        }
        let segment = self.segment_of(leaf);
        self.state(segment).state == State::Index
            && self.field(segment, segment::at::BORN) == RootWord::unpack(root).generation
    }

    /// Whether the directory leads to this leaf.
    pub(in crate::engine) fn is_in_index(&self, root: u64, leaf: u64) -> bool {
        let Some(id) = Identity::unpack(self.word(leaf + leaf::at::IDENTITY)) else { return false };
        matches!(self.leaf_of(root, Tree::from_number(id.tree), u64::from(id.prefix)), Ok(Some(found)) if found == leaf)
    }

    /// Leaves of a tree, each once.
    pub(in crate::engine) fn leaves(&self, root_word: u64, tree: Tree) -> impl Iterator<Item = u64> + '_ {
        let block = self.block_within(root_word);
        let depth = self.depth(block, tree);
        let entries = depth.map_or(0, |d| (1u64 << d).min(self.entries_max()));
        (0..entries).filter_map(move |index| {
            let leaf = self.leaf_of(root_word, tree, index).ok().flatten()?;
            let id = Identity::unpack(self.mem.load(leaf, Ordering::Acquire))?;
            (u64::from(id.prefix) == index & ((1 << id.depth) - 1) && index >> id.depth == 0).then_some(leaf)
        })
    }

    /// The owners of the locks of the index that are held at this moment.
    pub(in crate::engine) fn held_locks(&self, root: u64) -> Vec<u32> {
        let mut held = Vec::new();
        for tree in [Tree::First, Tree::Overflow] {
            for leaf in self.leaves(root, tree) {
                for bucket in self.leaf_buckets(leaf) {
                    held.extend(LockWord(self.mem.load(bucket + LOCK_WORD, Ordering::Relaxed)).owner());
                }
            }
        }
        held
    }
}
