//! Reading under a pin: what was found stays as it is until the pin is let go.

use crate::engine::index::Tree;
use crate::engine::{Engine, Found, KeyHash, Pin};
use crate::fault::Fault;
use hashmere_mem::{Host, Mem};

impl<M: Mem, H: Host> Engine<M, H> {
    /// Pins the record of a key, by one look-up: the slot that has the key's tag says which segment it is in, and once
    /// that is pinned and the slot still the same, nothing in the record changes while it is read.
    ///
    /// `None`: the key is absent, overflowed or expired, another one has its tag, the slot changed, or this client has
    /// no pin left. The whole protocol finds out which.
    #[inline(always)]
    pub(crate) fn pin_key(&self, key: &[u8], kh: KeyHash) -> Option<(Found, Pin)> {
        let root = self.root();
        let path = self.path_of(root, Tree::First, kh.hash).ok()??;
        let place = self.place(path.leaf, kh.hash);
        let mut mask = self.matching(place, kh.hash);
        if mask == 0 || self.access.read_only {
            return None;
        }
        let slot_offset = place.take_slot(&mut mask);
        let slot = self.slot(slot_offset);
        if slot.is_empty() {
            return None;
        }
        let pin = self.pin(slot_offset, slot, root, &mut false)?;
        let found = self.found_in(key, kh, (Tree::First, place.leaf), slot_offset, slot, Fault::ReadUncompared);
        match found.filter(|found| !self.has_expired(found)) {
            Some(found) => Some((found, pin)),
            None => {
                self.unpin(pin);
                None
            }
        }
    }
}
