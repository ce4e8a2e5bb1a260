//! Reading under a pin: what was found stays as it is until the pin is let go.

use crate::engine::read::Probe;
use crate::engine::{Engine, Found, KeyHash, Pin};
use hashmere_mem::{Host, Mem};

/// What a key's value can be shown as.
pub(crate) enum Showing {
    /// Where it is, for as long as the pin is held, and under which root it was found.
    Pinned(Found, Pin, u64),
    /// As a copy, because the next write may replace it in place: copy it, then [`validate`](Engine::validate) it with
    /// this epoch.
    Copied(Found, u64),
    /// Not at all; proved.
    Absent,
    /// Something moved, is damaged, has expired, or this client has no pin left: the whole protocol decides.
    Unsure,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Finds a key and pins its record, by one look-up: if the slot is the same once its segment is pinned, and nothing
    /// was recycled since before the look-up, the record is the one that was found, and stays.
    #[inline(always)]
    pub(crate) fn show_key(&self, key: &[u8], kh: KeyHash) -> Showing {
        if self.access.read_only {
            return Showing::Unsure;
        }
        let root = self.root();
        match self.probe(key, kh) {
            Probe::At(found, epoch) if found.header.is_value_first() => Showing::Copied(found, epoch),
            Probe::At(found, epoch) => match self.pin(found.slot_offset, found.slot, root, &mut false) {
                Some(pin) if self.validate_epoch(epoch) => Showing::Pinned(found, pin, root),
                Some(pin) => {
                    self.unpin(pin);
                    Showing::Unsure
                }
                None => Showing::Unsure,
            },
            Probe::Absent => Showing::Absent,
            Probe::Unsure => Showing::Unsure,
        }
    }
}
