//! What the commit of a transaction does with one of its keys.

use crate::engine::transact::part::{Becomes, Part};
use hashmere_format::leaf::Slot;

/// What the commit needs of a part that has a cell, in words side by side: its loops are as short as this is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The slot that changes; 0: none, the record only says that an absent key was deleted.
    pub(super) slot: u64,
    /// What it holds, and what it is to hold.
    pub(super) old: Slot,
    pub(super) new: Slot,
    /// The record that was written, and its header word without version; 0: none.
    pub(super) record: u64,
    pub(super) word: u64,
    /// The least version that it is to get, and the one that it gets.
    pub(super) least: u64,
    pub(super) version: u64,
    /// It keeps the version of the record that it replaces.
    pub(super) keeps_version: bool,
}

/// What a transaction counts.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    /// By how much items and bytes grow.
    pub(super) items: u64,
    pub(super) bytes: u64,
    /// Keys that are set, and keys that go.
    pub(super) sets: u64,
    pub(super) deletes: u64,
}

impl Part {
    /// With the key found, or a free slot for it: what the commit is to do with it, which counts in `totals`.
    #[inline(always)]
    pub(super) fn plan(&mut self, totals: &mut Totals) {
        let (slot, old, version, bytes) = match &self.site.found {
            Some(found) => (found.slot_offset, found.slot, found.version(), found.bytes()),
            None => (self.site.free.unwrap_or(0), Slot::EMPTY, 0, 0),
        };
        let is_new = old.is_empty();
        match &self.becomes {
            Becomes::Put(draft) | Becomes::Refresh(draft) => {
                let refreshes = matches!(self.becomes, Becomes::Refresh(_));
                self.step = Some(Step {
                    slot,
                    old,
                    new: Slot::new(self.site.hash, draft.offset),
                    record: draft.offset,
                    word: draft.word,
                    least: draft.least,
                    version,
                    keeps_version: refreshes && !is_new,
                });
                totals.items = totals.items.wrapping_add(u64::from(is_new));
                totals.bytes = totals.bytes.wrapping_add(draft.bytes).wrapping_sub(bytes);
                totals.sets += u64::from(!refreshes);
            }
            Becomes::Gone(tombstone) => {
                let (record, word) = tombstone.as_ref().map_or((0, 0), |draft| (draft.offset, draft.word));
                let slot = if is_new { 0 } else { slot };
                let step = Step { slot, old, new: Slot::EMPTY, record, word, least: 0, version, keeps_version: false };
                self.step = (slot | record != 0).then_some(step);
                // (Of a key that is not there the record is not counted: it is dead from the start.)
                totals.items = totals.items.wrapping_sub(u64::from(!is_new));
                let written = tombstone.as_ref().filter(|_| !is_new).map_or(0, |draft| draft.bytes);
                totals.bytes = totals.bytes.wrapping_add(written).wrapping_sub(bytes);
                totals.deletes += u64::from(self.was_there);
            }
            Becomes::Same => self.step = None,
        }
    }
}
