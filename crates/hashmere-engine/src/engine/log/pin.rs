//! Pins: a view holds back the recycling of the one segment that it looks into.
//!
//! A pin word holds a segment (plus one) and how many views of this client hold it. A stopped client holds back
//! its few segments, nothing else; a dead one is swept.

use crate::engine::Engine;
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::RootWord;
use hashmere_format::leaf::Slot;
use hashmere_format::row;
use hashmere_format::segment::{self, Born};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// A pin that was taken: offset of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pin(u64);

const COUNT: u64 = 1 << 32;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Whether the slot in which a record was found, under a root, still leads to it. If its segment has been pinned
    /// since then, the same word is the same record: no other is written there. Before anything else becomes of the
    /// key its slot has another word: a cell, before a transaction; none, before a split opens the leaf that has the
    /// key now. What a clear does to the slots is unknown, so the root is looked at behind the slot.
    #[inline(always)]
    pub(crate) fn leads_to(&self, slot_offset: u64, slot: Slot, root: u64) -> bool {
        self.slot(slot_offset) == slot && self.root() == root
    }

    /// Pins the segment that a slot points into, provided that it still does. `None`: it does not, or this client has
    /// no pin left (`exhausted`).
    #[inline(always)]
    pub(crate) fn pin(&self, slot_offset: u64, slot: Slot, root: u64, exhausted: &mut bool) -> Option<Pin> {
        let row = self.own_row();
        let pin = if row == 0 { None } else { self.raise_pin(row, self.segment_of(slot.offset())) };
        let Some(pin) = pin else {
            *exhausted = true;
            return None;
        };
        // SYNC(pin): pairs with the fence in `free_unless_held`. The cleaner moves every slot, fences, looks for pins;
        // we pin, fence, look at the slot. One of us sees the other.
        self.mem.fence(Ordering::SeqCst);
        let is_same = self.slot(slot_offset) == slot || self.effective(slot_offset) == slot;
        if is_same && self.root() == root || fault::is(Fault::PinBelieved) {
            return Some(pin);
        }
        self.unpin(pin);
        None
    }

    /// Pins a segment: in a word that its number says, if that is free or has it already, else in any. (So one segment
    /// may be in several words, each with views of its own.)
    #[inline(always)]
    pub(in crate::engine) fn raise_pin(&self, row: u64, segment: u64) -> Option<Pin> {
        let offset = row + row::at::PINS + 8 * (segment % row::PINS);
        let word = self.mem.load(offset, Ordering::Relaxed);
        let more = word as u32 == segment as u32 + 1 && word >> 32 < u64::from(u32::MAX);
        if word == 0 || more {
            let next = if more { word + COUNT } else { COUNT | (segment + 1) };
            if self.mem.compare_exchange(offset, word, next).is_ok() {
                return Some(Pin(offset));
            }
        }
        self.raise_any_pin(row, segment)
    }

    #[cold]
    #[inline(never)]
    fn raise_any_pin(&self, row: u64, segment: u64) -> Option<Pin> {
        let mut free = None;
        for i in 0..row::PINS {
            let offset = row + row::at::PINS + 8 * i;
            let mut word = self.mem.load(offset, Ordering::Relaxed);
            while word as u32 == segment as u32 + 1 && word >> 32 < u64::from(u32::MAX) {
                match self.mem.compare_exchange(offset, word, word + COUNT) {
                    Ok(_) => return Some(Pin(offset)),
                    Err(now) => word = now,
                }
            }
            if word == 0 {
                free = free.or(Some(offset));
            }
        }
        let offset = free?;
        if self.mem.compare_exchange(offset, 0, COUNT | (segment + 1)).is_ok() {
            return Some(Pin(offset));
        }
        // Another thread took that word: look again from the start.
        self.raise_any_pin(row, segment)
    }

    /// Lets a pin go.
    #[inline(always)]
    pub(crate) fn unpin(&self, pin: Pin) {
        let mut word = self.mem.load(pin.0, Ordering::Relaxed);
        loop {
            let next = if word >> 32 <= 1 { 0 } else { word - COUNT };
            // SYNC(unpin): what the view read was read before this.
            match self.mem.compare_exchange(pin.0, word, next) {
                Ok(_) if next == 0 => return self.return_if_left(row::offset_of(pin.0)),
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Whether a row's client may be between marking a record of this segment dead and counting it.
    fn is_marking_dead(&self, row: u64, segment: u64) -> bool {
        // SYNC(dead): pairs with the release store in `unlock_bucket`: where this is zero, the record was counted.
        if self.mem.load(row + row::at::LOCK, Ordering::Acquire) == 0 {
            return false;
        }
        // SYNC(dead): a transaction names one record after the other; where it names the next, the last was counted.
        let old = Slot(self.mem.load(row + row::at::INTENT_OLD, Ordering::Acquire));
        self.is_inside(old.offset(), 8) && self.segment_of(old.offset()) == segment
    }

    /// Whether a living client holds a segment back: by a backup that wants something in it, by a pin, by being about
    /// to count a record in it as dead, or by an operation that began before the store was cleared, when the segment
    /// was in use already: the locks of the index of today do not keep it out. Dead ones are repaired on the way.
    pub(in crate::engine) fn is_held_back(&self, segment: u64) -> Result<bool, WriteError> {
        if self.is_retained_by_backup(segment)? {
            return Ok(true);
        }
        let root = self.root();
        let first = Born::unpack(self.mem.load(self.entry_of(segment) + segment::at::BORN, Ordering::Relaxed)).first;
        for slot in self.rows() {
            let row = row::offset(slot);
            // SYNC(active): pairs with the exchange in `enter`, by the fence in `goes` that comes before this.
            let active = self.mem.load(row + row::at::ACTIVE, Ordering::Acquire);
            let past = active != 0 && active != root && RootWord::unpack(active).generation >= first;
            let past = past && !fault::is(Fault::ActiveIgnored);
            // SYNC(unpin): pairs with the compare-exchange in `unpin`: where the pin is gone, the view has read all
            // that it reads.
            let pinned = (0..row::PINS)
                .any(|i| self.mem.load(row + row::at::PINS + 8 * i, Ordering::Acquire) as u32 == segment as u32 + 1);
            let pinned = pinned && !fault::is(Fault::PinIgnored);
            let marking = || self.is_marking_dead(row, segment) && !fault::is(Fault::MarkingIgnored);
            if !pinned && !past && !marking() {
                continue;
            }
            let dead =
                self.host.try_claim(slot).map_err(|source| WriteError::Io { action: "probe a pin's owner", source })?;
            if !dead {
                return Ok(true);
            }
            let done = self.recover(slot);
            self.host.release(slot);
            done?;
        }
        Ok(false)
    }
}
