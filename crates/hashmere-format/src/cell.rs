//! Cells: what a slot holds while a transaction changes it.
//!
//! A cell names the slot, the word that it held and the word that it is to hold. The slot holds a word that names the
//! client whose transaction this is; that client's status word says which of the two counts. So one store of a status
//! changes all keys of a transaction. `docs/internals/transactions.md` has the protocol.
//!
//! A slot that names a cell has an offset below [`at::DATA`], where no record is: [`at::CELLS`], plus [`BYTES`] for
//! each client, plus eight for each of the [`WORDS`] places that the list of cells is looked up from.

use crate::header::{at, limit};
use crate::leaf::Slot;

/// Words of a client's own list, and how many places a slot tells apart.
pub const WORDS: u64 = 24;
/// Bytes of a client's own list.
pub const BYTES: u64 = 8 * WORDS;
/// Words of a cell: offset of the slot, the old word, the new word, offset of the record that was written (also one
/// that only says that the key was deleted; 0 none).
pub const CELL_WORDS: u64 = 4;
/// Most keys of a transaction.
pub const KEYS_MAX: u64 = 1024;
/// Most locks of a transaction: that of each key, and two in the overflow tree.
pub const LOCKS_MAX: u64 = 3 * KEYS_MAX;

/// Offset of a client's own list.
#[inline(always)]
pub fn own_list(client: u32) -> u64 {
    at::CELLS + u64::from(client) * BYTES
}

/// The word of a slot whose cell is number `index` of a client's transaction. It keeps the slot's tag.
pub fn slot_naming(client: u32, index: u64, tag: u64) -> Slot {
    slot_naming_place(client, index % WORDS, tag)
}

/// The same, given the place that is looked up from: the number of the cell modulo [`WORDS`].
#[inline(always)]
pub fn slot_naming_place(client: u32, place: u64, tag: u64) -> Slot {
    Slot::new(tag, own_list(client) + 8 * place)
}

/// The client and the place that a slot names; `None` if it is empty or leads to a record, or to where no list is.
#[inline(always)]
pub fn named_by(slot: Slot) -> Option<(u32, u64)> {
    let at = slot.offset().wrapping_sub(at::CELLS);
    (at < at::DATA - at::CELLS).then_some(((at / BYTES) as u32, at % BYTES / 8))
}

/// What a transaction has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Stage {
    /// No slot names its cells.
    Idle = 0,
    /// The old words count.
    Pending = 1,
    /// The new words count.
    Committed = 2,
}

/// The status word of a client's transaction: the number of the transaction (of all that clients of this slot made),
/// and its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u64);

impl Status {
    /// The stage; a damaged one is idle.
    pub fn stage(self) -> Stage {
        match self.0 & 3 {
            1 => Stage::Pending,
            2 => Stage::Committed,
            _ => Stage::Idle,
        }
    }
    /// The number.
    pub fn number(self) -> u64 {
        self.0 >> 2
    }
    /// The same transaction in another stage.
    pub fn at(self, stage: Stage) -> Status {
        Status(self.0 & !3 | stage as u64)
    }
    /// The same with a number of at least this.
    pub fn above(self, number: u64) -> Status {
        Status(self.0.max(number << 2))
    }
    /// The next transaction, pending.
    pub fn next(self) -> Status {
        Status(((self.0 >> 2) + 1) << 2 | Stage::Pending as u64)
    }
}

/// What the list of a transaction has room for: cells first, then locks. A cell of slot 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Offset of its first word.
    pub offset: u64,
    /// Cells.
    pub cells: u64,
    /// Offsets of lock words that are held, or about to be taken.
    pub locks: u64,
}

impl List {
    /// The word that says how long it is.
    pub fn lengths(self) -> u64 {
        self.cells | self.locks << 32
    }
    /// The list at an offset, given that word; a damaged one says no more than the most.
    pub fn at(offset: u64, lengths: u64) -> List {
        List { offset, cells: (lengths & u64::from(u32::MAX)).min(KEYS_MAX), locks: (lengths >> 32).min(LOCKS_MAX) }
    }
    /// Bytes of the list.
    #[inline(always)]
    pub fn bytes(self) -> u64 {
        8 * (CELL_WORDS * self.cells + self.locks)
    }
    /// Offset of a cell.
    #[inline(always)]
    pub fn cell(self, index: u64) -> u64 {
        self.offset + 8 * CELL_WORDS * index
    }
    /// Offset of the word that names a lock.
    #[inline(always)]
    pub fn lock(self, index: u64) -> u64 {
        self.cell(self.cells) + 8 * index
    }
}

const _: () = assert!(at::CELLS + limit::CLIENTS as u64 * BYTES <= at::DATA);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_names_its_client_and_place_and_keeps_its_tag() {
        for client in [0, 1, limit::CLIENTS - 1] {
            for index in [0, 1, WORDS - 1, WORDS, KEYS_MAX - 1] {
                let slot = slot_naming(client, index, u64::MAX);
                assert_eq!(named_by(slot), Some((client, index % WORDS)));
                assert_eq!(slot.tag(), crate::hash::TAG_MASK);
                assert!(!slot.is_empty() && !slot_naming(client, index, 0).is_empty());
            }
        }
        assert_eq!(named_by(Slot::EMPTY), None);
        assert_eq!(named_by(Slot::new(5, at::DATA)), None);
        assert_eq!(named_by(Slot::new(5, at::CELLS - 8)), None);
    }

    #[test]
    fn a_status_goes_through_its_stages() {
        let idle = Status(7 << 2);
        let pending = idle.next();
        assert_eq!((pending.number(), pending.stage()), (8, Stage::Pending));
        let committed = pending.at(Stage::Committed);
        assert_eq!((committed.number(), committed.stage()), (8, Stage::Committed));
        assert_eq!(committed.at(Stage::Idle).next().number(), 9);
        let list = List { offset: 64, cells: 3, locks: 9 };
        assert_eq!(List::at(64, list.lengths()), list);
        assert_eq!((list.cell(1), list.lock(1), list.bytes()), (96, 168, 168));
        assert_eq!(List::at(0, u64::MAX), List { offset: 0, cells: KEYS_MAX, locks: LOCKS_MAX });
    }
}
