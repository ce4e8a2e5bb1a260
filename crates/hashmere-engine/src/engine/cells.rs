//! What a slot holds: a record, or while a transaction changes it the name of a cell, whose old or new word counts.
//!
//! A reader without the key's lock takes the slot's word from [`Engine::effective`] where it may name a cell. The hot
//! paths load it as it is: a word that names a cell leads below the first segment, which their bounds check refuses,
//! and the general paths that they turn to begin here. `docs/internals/transactions.md` says why the answer is right.

use crate::engine::Engine;
use crate::fault::{self, Fault};
use hashmere_format::cell::{self, named_by, List, Stage, Status};
use hashmere_format::header::at;
use hashmere_format::leaf::Slot;
use hashmere_format::row;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Looks at a slot that names a cell before it is taken for damage. Each that fails means that a transaction ended or
/// began within it.
const LOOKS: u32 = 1000;

impl<M: Mem, H: Host> Engine<M, H> {
    /// The word of a slot that counts at one moment of this call: a slot that names a cell is what the cell's
    /// transaction says. One that names a cell which is not there is returned as it is, and leads nowhere.
    #[inline(always)]
    pub(crate) fn effective(&self, slot_offset: u64) -> Slot {
        let word = self.slot(slot_offset);
        if word.is_empty() || word.offset() >= at::DATA {
            return word;
        }
        self.resolve(slot_offset, word)
    }

    #[cold]
    #[inline(never)]
    fn resolve(&self, slot_offset: u64, mut word: Slot) -> Slot {
        for _ in 0..LOOKS {
            let named = named_by(word);
            // What no client ever was has no memory behind its record.
            let known = self.mem.load(at::CLIENTS_HIGH, Ordering::Acquire);
            let Some((client, place)) = named.filter(|(client, _)| u64::from(*client) < known) else { return word };
            let row = row::offset(client);
            // SYNC(pending), SYNC(committed): the cells of its transaction are seen, and every slot of one that is
            // committed.
            let seen = Status(self.mem.load(row + row::at::STATUS, Ordering::Acquire));
            let list = self.list_of(row);
            let found = self.is_list(client, list).then(|| self.cell_of(list, place, slot_offset)).flatten();
            // SYNC(idle): if a word of the list is a later transaction's, the status is idle or later below.
            self.mem.fence(Ordering::Acquire);
            let now = Status(self.mem.load(row + row::at::STATUS, Ordering::Relaxed));
            let same = now.number() == seen.number() && seen.stage() != Stage::Idle && now.stage() != Stage::Idle;
            let again = self.slot(slot_offset);
            if again == word && same || fault::is(Fault::CellBelieved) {
                return match (found, seen.stage()) {
                    (Some((old, _)), Stage::Pending) => old,
                    (Some((_, new)), _) => new,
                    (None, _) => word,
                };
            }
            word = again;
            self.mem.relax();
        }
        word
    }

    /// Whether a client's transaction is pending or committed and not complete, and has a cell for this slot.
    pub(in crate::engine) fn has_cell(&self, client: u32, slot_offset: u64) -> bool {
        let row = row::offset(client);
        let list = self.list_of(row);
        Status(self.mem.load(row + row::at::STATUS, Ordering::Acquire)).stage() != Stage::Idle
            && list.offset != 0
            && self.is_list(client, list)
            && (0..list.cells).any(|index| self.cell(list, index).0 == slot_offset)
    }

    /// The list of a client's transaction under way; its offset is 0 if there is none.
    pub(in crate::engine) fn list_of(&self, row: u64) -> List {
        let offset = self.mem.load(row + row::at::TRANSACTION, Ordering::Acquire);
        List::at(offset, self.mem.load(row + row::at::LIST, Ordering::Relaxed))
    }

    /// Whether a list lies where one can be.
    pub(in crate::engine) fn is_list(&self, client: u32, list: List) -> bool {
        let bytes = list.bytes();
        list.offset & 7 == 0
            && (list.offset == cell::own_list(client) && bytes <= cell::BYTES || self.is_inside(list.offset, bytes))
    }

    /// The old and the new word of a slot's cell, which is one of those at this place.
    fn cell_of(&self, list: List, place: u64, slot_offset: u64) -> Option<(Slot, Slot)> {
        let mut index = place;
        while index < list.cells {
            let (slot, old, new) = self.cell(list, index);
            if slot == slot_offset {
                return Some((old, new));
            }
            index += cell::WORDS;
        }
        None
    }

    /// The record that was written for a cell; 0: none.
    pub(in crate::engine) fn record_of_cell(&self, list: List, index: u64) -> u64 {
        self.mem.load(list.cell(index) + 24, Ordering::Relaxed)
    }

    /// A cell: the slot, its old and its new word.
    pub(in crate::engine) fn cell(&self, list: List, index: u64) -> (u64, Slot, Slot) {
        let at = list.cell(index);
        let [slot, old, new] = [0, 8, 16].map(|word| self.mem.load(at + word, Ordering::Relaxed));
        (slot, Slot(old), Slot(new))
    }
}
