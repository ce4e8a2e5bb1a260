//! Looking a key up before its lock is taken, and finding out under the lock whether that still holds.

use crate::engine::index::{Path, Place, Tree};
use crate::engine::{Engine, Found, KeyHash};
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Where a key was found, or found absent.
#[derive(Clone, Copy)]
pub(crate) struct Lookup {
    pub(in crate::engine) epoch: u64,
    pub(in crate::engine) root: u64,
    pub(in crate::engine) path: Path,
    pub(in crate::engine) place: Place,
    pub(in crate::engine) found: Option<Found>,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Finds the key before its lock is taken. The exchanges of `enter` and of the lock keep the processor from doing
    /// this ahead of them, so the look goes first, beside the writing of the record, and under the lock one word is
    /// compared.
    #[inline(always)]
    pub(super) fn look_up(&self, key: &[u8], kh: KeyHash) -> Option<Lookup> {
        let epoch = self.mem.load(at::EPOCH, Ordering::Acquire);
        let root = self.root();
        let Ok(Some(path)) = self.path_of(root, Tree::First, kh.hash) else { return None };
        let place = self.place(path.leaf, kh.hash);
        let mut mask = self.matching(place, kh.hash);
        if mask == 0 {
            return Some(Lookup { epoch, root, path, place, found: None });
        }
        // Should another key have the same tag, `mutate` looks on.
        let found = self.found_at(key, kh, Tree::First, place, place.take_slot(&mut mask), Fault::KeyUncompared)?;
        Some(Lookup { epoch, root, path, place, found: Some(found) })
    }

    /// Asks for the line of the record that a key most likely has.
    #[inline(always)]
    pub(in crate::engine) fn prefetch_record(&self, place: Place, kh: KeyHash) {
        let mut mask = self.matching(place, kh.hash);
        if mask != 0 {
            self.mem.prefetch(self.slot(place.take_slot(&mut mask)).offset());
        }
    }

    /// With the key locked: whether the slot leads to the same record. As in `look` nothing at all was recycled since
    /// it was read.
    #[inline(always)]
    pub(in crate::engine) fn is_still_found(&self, found: &Found, epoch: u64) -> bool {
        let same = self.slot(found.slot_offset) == found.slot && self.validate_epoch(epoch);
        same || fault::is(Fault::LookupBelieved)
    }

    /// With the key locked: whether the record has the value that was looked up.
    #[inline(always)]
    pub(in crate::engine) fn is_not_replaced(&self, found: &Found) -> bool {
        !found.header.is_value_first()
            || self.mem.load(found.record, Ordering::Relaxed) == found.header.word
            || fault::is(Fault::ReplacementUnseen)
    }
}
