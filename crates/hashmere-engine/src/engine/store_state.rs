//! The few words of the header that change over the life of a store, and growing its index in advance.

use crate::engine::Engine;
use hashmere_format::header::at;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Flags of [`hashmere_format::header::flag`].
    pub(crate) fn status(&self) -> u64 {
        self.mem.load(at::STATUS, Ordering::Acquire)
    }

    pub(crate) fn change_status(&self, set: u64, clear: u64) {
        let mut now = self.status();
        while let Err(seen) = self.mem.compare_exchange(at::STATUS, now, now & !clear | set) {
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
}
