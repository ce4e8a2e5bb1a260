//! A new index: one leaf that is empty.

use crate::engine::Engine;
use crate::error::WriteError;
use hashmere_format::header::RootWord;
use hashmere_format::leaf::Identity;
use hashmere_format::root;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Bytes that a new index has at first.
    pub(in crate::engine) fn plant_bytes(&self) -> u64 {
        let start = root::BYTES.next_multiple_of(self.leaf_bytes());
        (start + self.leaf_bytes()).min(self.segment_bytes())
    }

    /// Writes an index of one empty leaf into a claimed segment. Versions in it are larger than `version`; records up
    /// to `floor` are of an index of the past.
    pub(in crate::engine) fn plant(&self, word: RootWord, version: u64, floor: u64) -> Result<(), WriteError> {
        let block = self.segment_offset(word.segment);
        let start = root::BYTES.next_multiple_of(self.leaf_bytes());
        self.back(block, self.plant_bytes())?;
        self.mem.zero(block, root::BYTES);
        let put = |at: u64, value: u64| self.mem.store(block + at, value, Ordering::Relaxed);
        put(root::at::DIR_0, block + root::at::ENTRIES_0);
        put(root::at::VERSION, version);
        put(root::at::FLOOR, floor);
        put(root::at::ARENA, block + start + self.leaf_bytes());
        put(root::at::ARENA_END, block + self.segment_bytes());
        put(root::at::ENTRIES_0, block + start);
        self.blank_leaf(block + start, Identity { depth: 0, tree: 0, prefix: 0 }, version);
        Ok(())
    }
}
