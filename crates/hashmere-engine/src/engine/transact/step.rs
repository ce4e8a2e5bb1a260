//! What the commit of a transaction goes through, one step for each part that changes something.

use crate::engine::transact::part::{Becomes, Part};
use hashmere_format::leaf::Slot;

/// What the commit needs of a part that changes something, in words side by side: its loops are as short as this is.
#[derive(Clone, Copy)]
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
    /// Which of the locks is the key's.
    pub(super) lock: usize,
    pub(super) part: usize,
}

/// By how much a step changes the counts.
pub(super) struct Growth {
    pub(super) items: i64,
    pub(super) bytes: i64,
}

impl Step {
    #[inline(always)]
    pub(super) fn of(part: &Part<'_>, number: usize) -> (Step, Growth) {
        let (slot, old, version, lost, freed) = match &part.site.found {
            Some(found) => (found.slot_offset, found.slot, found.version(), 1, found.bytes()),
            None => (part.site.free.unwrap_or(0), Slot::EMPTY, 0, 0, 0),
        };
        let (record, word, least, gained, filled) = match &part.becomes {
            Becomes::Put(draft) | Becomes::Refresh(draft) => (draft.offset, draft.word, draft.least, 1, draft.bytes),
            Becomes::Gone(Some(tombstone)) => (tombstone.offset, tombstone.word, 0, 0, 0),
            Becomes::Gone(None) | Becomes::Same => (0, 0, 0, 0, 0),
        };
        let new = if gained == 0 { Slot::EMPTY } else { Slot::new(part.site.hash, record) };
        let keeps_version = matches!(part.becomes, Becomes::Refresh(_)) && !old.is_empty();
        let lock = part.lock;
        (
            Step { slot, old, new, record, word, least, version, keeps_version, lock, part: number },
            Growth { items: gained - lost, bytes: filled as i64 - freed as i64 },
        )
    }
}
