//! Where a key's slot is.
//!
//! hash -> directory entry -> leaf -> two candidate buckets of seven slots; a bucket whose keys did not all
//! fit says so in its lock word, and they are in the overflow tree, which is the same thing under another hash.

pub(super) mod directory;
pub(super) mod found;
pub(super) mod plant;
pub(super) mod scan;
pub(super) mod split;
pub(super) mod version_floor;

use crate::engine::Engine;
use crate::error::ReadError;
use hashmere_format::hash::{buckets, TAG_MASK};
use hashmere_format::leaf::{LINE, SLOTS};
use hashmere_format::root;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::{AtomicU64, Ordering};

/// Of the eight words of each bucket the last is its lock.
const SLOTS_MASK: u32 = ((1 << SLOTS) - 1) * 0x101;
const _: () = assert!(TAG_MASK <= u32::MAX as u64);

/// What this process knows of the index.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The last root word whose block was found to lie within the file.
    trusted_root: AtomicU64,
}

impl Index {
    #[inline(always)]
    pub(super) fn trusted_root(&self) -> u64 {
        self.trusted_root.load(Ordering::Relaxed)
    }
}

/// Which of the two trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    First,
    Overflow,
}

impl Tree {
    pub(super) fn number(self) -> u32 {
        match self {
            Tree::First => 0,
            Tree::Overflow => 1,
        }
    }
    pub(super) fn from_number(number: u32) -> Tree {
        if number == 0 {
            Tree::First
        } else {
            Tree::Overflow
        }
    }
    pub(super) fn depth_max(self) -> u32 {
        match self {
            Tree::First => root::DEPTH_MAX,
            Tree::Overflow => root::DEPTH_MAX_1,
        }
    }
    pub(super) fn pointers(self) -> u64 {
        match self {
            Tree::First => root::at::DIR_0,
            Tree::Overflow => root::at::DIR_1,
        }
    }
}

/// A directory, as deep as it was at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directory {
    block: u64,
    tree: Tree,
    depth: u32,
}

/// How a hash leads to its leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) leaf: u64,
    /// Offset of the directory entry.
    entry: u64,
    /// Depth of the directory.
    depth: u64,
}

/// The two buckets in which a hash may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) leaf: u64,
    /// The first bucket, whose lock guards the key.
    pub(super) first: u64,
    /// The second.
    pub(super) second: u64,
}

impl Place {
    /// Offset of the first slot in a mask of [`Engine::matching`], which loses it. (Some slot if there is none.)
    #[inline(always)]
    pub(super) fn take_slot(self, mask: &mut u32) -> u64 {
        let i = u64::from(mask.trailing_zeros());
        *mask &= mask.wrapping_sub(1);
        let bucket = if i & 8 == 0 { self.first } else { self.second };
        bucket + 8 * (i & 7)
    }

    /// Both buckets. (The hot paths name them one by one: an array would live in memory.)
    pub(super) fn buckets(self) -> [u64; 2] {
        [self.first, self.second]
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Depth of a directory; `None` while the overflow tree does not exist.
    #[inline(always)]
    pub(super) fn depth(&self, block: u64, tree: Tree) -> Option<u32> {
        // SYNC(depth): pairs with the release store of `double`: at the new depth, the new half can be read.
        match tree {
            Tree::First => Some(self.mem.load(block + root::at::DEPTH_0, Ordering::Acquire) as u32 & 31),
            Tree::Overflow => (self.mem.load(block + root::at::DEPTH_1, Ordering::Acquire) as u32 & 31).checked_sub(1),
        }
    }

    /// Offset of a directory entry.
    #[inline(always)]
    pub(super) fn entry(&self, block: u64, tree: Tree, index: u64) -> u64 {
        let pointer = block + tree.pointers() + 8 * root::chunk_of(index);
        self.mem.load(pointer, Ordering::Acquire).wrapping_add(8 * index)
    }

    /// The leaf of a hash; `None` if the overflow tree does not exist.
    #[inline(always)]
    pub(super) fn leaf_of(&self, root_word: u64, tree: Tree, hash: u64) -> Result<Option<u64>, ReadError> {
        Ok(self.path_of(root_word, tree, hash)?.map(|path| path.leaf))
    }

    /// How a hash leads to its leaf; `None` if the overflow tree does not exist.
    ///
    /// What is read here is only made to lie within the file: a damaged entry leads to a wrong place, never outside.
    #[inline(always)]
    pub(super) fn path_of(&self, root_word: u64, tree: Tree, hash: u64) -> Result<Option<Path>, ReadError> {
        match self.directory(root_word, tree)? {
            Some(directory) => self.path_in(directory, hash).map(Some),
            None => Ok(None),
        }
    }

    /// The directory of a tree as deep as it is now; `None` if the overflow tree does not exist.
    #[inline(always)]
    pub(super) fn directory(&self, root_word: u64, tree: Tree) -> Result<Option<Directory>, ReadError> {
        let block = self.root_block(root_word);
        if self.index.trusted_root() != root_word {
            self.trust(root_word, block)?;
        }
        Ok(self.depth(block, tree).map(|depth| Directory { block, tree, depth }))
    }

    /// How a hash leads to its leaf in a directory. Of one that was doubled since then the entries of before still
    /// count: they lead to the leaf that a key had then.
    #[inline(always)]
    pub(super) fn path_in(&self, directory: Directory, hash: u64) -> Result<Path, ReadError> {
        // A damaged depth is below 32: its pointer is still within the root block.
        let index = hash & ((1 << directory.depth) - 1);
        let entry = self.entry(directory.block, directory.tree, index) & !7;
        if !self.is_inside_if_aligned(entry) {
            return Err(self.outside("a directory entry lies outside the file", entry));
        }
        let leaf = self.mem.load(entry, Ordering::Acquire) & self.layout.leaf_mask;
        if !self.is_inside_if_aligned(leaf) {
            return Err(self.outside("a leaf lies outside the file", leaf));
        }
        Ok(Path { leaf, entry, depth: u64::from(directory.depth) })
    }

    /// Whether the same hash would lead the same way now: neither was the leaf split, nor the directory doubled, nor
    /// the store cleared. (After a doubling the leaf may be the same all the same: then one look more does no harm.)
    #[inline(always)]
    pub(super) fn is_still(&self, root_word: u64, tree: Tree, path: Path) -> bool {
        let depth = self.depth(self.root_block(root_word), tree);
        self.mem.load(path.entry, Ordering::Acquire) & self.layout.leaf_mask == path.leaf
            && depth.map(u64::from) == Some(path.depth)
            && self.root() == root_word
    }

    /// The same of many paths of the first tree under one root: its depth for [`is_still_at`](Self::is_still_at), or no
    /// depth that there is if this is not the root any more.
    #[inline(always)]
    pub(super) fn depth_under(&self, root_word: u64) -> u64 {
        let depth = self.depth(self.root_block(root_word), Tree::First);
        depth.filter(|_| self.root() == root_word).map_or(u64::MAX, u64::from)
    }

    #[inline(always)]
    pub(super) fn is_still_at(&self, depth: u64, path: Path) -> bool {
        self.mem.load(path.entry, Ordering::Acquire) & self.layout.leaf_mask == path.leaf && path.depth == depth
    }

    #[cold]
    #[inline(never)]
    fn trust(&self, root_word: u64, block: u64) -> Result<(), ReadError> {
        if !self.is_inside(block, root::BYTES) {
            return Err(self.outside("the root block lies outside the file", block));
        }
        self.index.trusted_root.store(root_word, Ordering::Relaxed);
        Ok(())
    }

    /// The buckets of a hash in a leaf.
    #[inline(always)]
    pub(super) fn place(&self, leaf: u64, hash: u64) -> Place {
        let (a, b) = buckets(hash, self.layout.buckets);
        let base = leaf + self.layout.first_bytes;
        let place = Place { leaf, first: base + a * LINE, second: base + b * LINE };
        // The second line is needed about every other time: fetch both at once.
        self.mem.prefetch(place.first);
        self.mem.prefetch(place.second);
        place
    }

    /// Which slots of a place hold a tag: one bit each, eight for each bucket. A hint: what they lead to is for the
    /// caller to load and prove.
    ///
    /// Both buckets at once, though half of the time the first would do: which of them it is cannot be predicted, and a
    /// branch that is taken wrongly costs more than a line that was asked for anyway.
    #[inline(always)]
    pub(super) fn matching(&self, place: Place, tag: u64) -> u32 {
        self.mem.agreeing(place.first, place.second, tag as u32, TAG_MASK as u32) & SLOTS_MASK
    }

    /// Offsets of the slots of a bucket.
    #[inline(always)]
    pub(super) fn slots(bucket: u64) -> impl Iterator<Item = u64> {
        (0..SLOTS).map(move |i| bucket + 8 * i)
    }

    /// The UID of a slot, given the hash (of its tree) of the key in it.
    #[inline(always)]
    pub(super) fn uid(&self, tree: Tree, leaf: u64, slot_offset: u64, hash: u64) -> u32 {
        let within = slot_offset - leaf;
        let mask = (1u64 << tree.depth_max()) - 1;
        hashmere_format::uid::UidParts {
            tree: tree.number(),
            bits: (hash & mask) as u32,
            line: (within / LINE) as u32,
            slot: (within % LINE / 8) as u32,
        }
        .uid()
    }

    /// Offset and bit of the visited mark of a slot (cache mode).
    #[inline(always)]
    pub(super) fn mark(&self, leaf: u64, slot_offset: u64) -> (u64, u64) {
        let within = slot_offset - leaf;
        let (line, slot) = (within / LINE, within % LINE / 8);
        (leaf + LINE + (line & !7), 1 << ((line & 7) * 8 + slot))
    }
}
