//! The few words of the header that change over the life of a store, and growing its index in advance.

use crate::engine::index::Tree;
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use hashmere_format::header::at;
use hashmere_format::leaf::Identity;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Flags of [`hashmere_format::header::flag`].
    pub(crate) fn life(&self) -> u64 {
        self.mem.load(at::LIFE, Ordering::Acquire)
    }

    pub(crate) fn change_life(&self, set: u64, clear: u64) {
        let mut now = self.life();
        while let Err(seen) = self.mem.compare_exchange(at::LIFE, now, now & !clear | set) {
            now = seen;
        }
    }

    /// The boot in which the store was last opened for writing.
    pub(crate) fn boot(&self) -> [u64; 2] {
        [at::BOOT_LO, at::BOOT_HI].map(|w| self.mem.load(w, Ordering::Acquire))
    }

    pub(crate) fn set_boot(&self, boot: [u64; 2]) {
        self.mem.store(at::BOOT_LO, boot[0], Ordering::Release);
        self.mem.store(at::BOOT_HI, boot[1], Ordering::Release);
    }

    /// What distinguished the file from its copies then.
    pub(crate) fn file_identity(&self) -> u64 {
        self.mem.load(at::FILE, Ordering::Acquire)
    }

    pub(crate) fn set_file_identity(&self, identity: u64) {
        self.mem.store(at::FILE, identity, Ordering::Release);
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
