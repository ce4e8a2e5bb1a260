//! What a crashed process left of a transaction is completed: forward if it is committed, else back.

use crate::engine::feed::repair::operation_between;
use crate::engine::feed::report::Happened;
use crate::engine::Engine;
use crate::fault::{self, Fault};
use hashmere_format::cell::{List, Stage};
use hashmere_format::feed::Operation;
use hashmere_format::leaf::{LockWord, Slot, LINE, LOCK_WORD};
use hashmere_format::record::{field, VERSION_MAX};
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Makes every slot hold what counts, before anything else of the client is repaired.
    pub(in crate::engine) fn recover_cells(&self, client: u32, root: u64) {
        let row = row::offset(client);
        let Some(list) = self.list_left(client) else { return };
        let status = self.transaction_status(row);
        let committed = (status.stage() == Stage::Committed) != fault::is(Fault::RepairBackward);
        match status.stage() {
            Stage::Idle => {}
            _ if committed => self.complete_cells(client, list, root),
            _ => {
                (0..list.cells).for_each(|index| self.give_up_draft_of(row, self.record_of_cell(list, index)));
                self.undo_cells(row, client, list);
            }
        }
    }

    /// A draft that the head of its segment passed, but that no slot will lead to, is dead. (One that it did not pass
    /// is nothing, and a large one is freed by its state.)
    fn give_up_draft_of(&self, row: u64, record: u64) {
        let Some(header) = self.header(record) else { return };
        let segment = self.segment_of(record);
        let head = if self.mem.load(row + row::at::OPEN, Ordering::Relaxed) == segment + 1 {
            self.mem.load(row + row::at::HEAD, Ordering::Relaxed)
        } else {
            self.segment_offset(segment) + self.field(segment, segment::at::USED)
        };
        if self.state(segment).state == State::Open && record < head && !header.has(field::DEAD) {
            self.count_dead(record, header.bytes());
        }
    }

    /// The list that a client left, if one is there.
    fn list_left(&self, client: u32) -> Option<List> {
        let list = self.list_of(row::offset(client));
        (list.offset != 0 && self.is_list(client, list)).then_some(list)
    }

    fn complete_cells(&self, client: u32, list: List, root: u64) {
        let row = row::offset(client);
        self.repair_report_of_cells(client, list, root);
        for index in 0..list.cells {
            let (slot_offset, old, new) = self.cell(list, index);
            if slot_offset == 0 {
                continue;
            }
            self.finish_cell(client, index, slot_offset, new);
            self.mark_large_dead(old.0);
        }
        if self.layout.is_durable() {
            self.complete_records(client, list);
        }
        self.complete_counts(row);
        // Before the locks are released: a second repair shall look at none of these slots.
        self.set_transaction_status(row, self.transaction_status(row).at(Stage::Idle));
    }

    /// Reports what the transaction changed. A key that went gets a version that no other write gets.
    fn repair_report_of_cells(&self, client: u32, list: List, root: u64) {
        let cells = (0..list.cells).map(|index| self.cell(list, index)).filter(|(slot_offset, ..)| *slot_offset != 0);
        let happened = cells.filter_map(|(_, old, new)| {
            if new.is_empty() {
                let version = Some(self.version_above(old.offset(), list.cells)?);
                return Some(Happened { operation: Operation::Delete, record: old.offset(), version });
            }
            let version_of = |slot: Slot| Some(self.header(slot.offset())?.version());
            let operation = operation_between(version_of(old), version_of(new)?);
            Some(Happened { operation, record: new.offset(), version: None })
        });
        self.report_for(client, root, happened);
    }

    /// The version that the lock of a record's key has when it was released by a repair.
    fn version_above(&self, record: u64, steps: u64) -> Option<u64> {
        let (head, key_at) = self.parse(record)?;
        let mut key = Vec::new();
        self.mem.append_to(key_at, head.key_len as usize, &mut key);
        let version = self.version_of_bucket(self.hash_of(&head, &key)).ok()?;
        Some((version + steps) & VERSION_MAX)
    }

    /// What the medium needs, in the order of a transaction that is not killed: the new records live, the old ones and
    /// the tombstones are dead, the transaction is complete.
    fn complete_records(&self, client: u32, list: List) {
        let cells = || (0..list.cells).map(|index| (self.cell(list, index), self.record_of_cell(list, index)));
        cells().for_each(|((_, _, new), _)| self.complete_checksums(new, Slot::EMPTY));
        cells().for_each(|((_, old, _), _)| self.complete_checksums(Slot::EMPTY, old));
        for ((_, _, new), record) in cells().filter(|(_, record)| self.is_inside(*record, 16)) {
            if new.is_empty() {
                self.end_tombstone(record);
            }
        }
        self.complete_members(cells().map(|(_, record)| record).filter(|record| self.is_inside(*record, 16)));
        // One in segments of its own is freed like any other dead record, not like a draft.
        for (_, record) in cells().filter(|((_, _, new), record)| new.is_empty() && self.is_inside(*record, 16)) {
            let segment = self.segment_of(record);
            let word = self.state(segment);
            if word.state == State::LargeNew && word.owner == client + 1 && self.segment_offset(segment) == record {
                self.set_state(segment, Word { state: State::Large, owner: 0, ..word });
            }
        }
    }

    /// Releases the locks that a transaction held, each with its version moved on: it may be that of all keys.
    pub(in crate::engine) fn recover_locks_of_transaction(&self, client: u32) {
        let row = row::offset(client);
        if let Some(list) = self.list_left(client) {
            for index in 0..list.locks {
                let bucket = self.mem.load(list.lock(index), Ordering::Relaxed);
                if bucket == 0 || bucket & (LINE - 1) != 0 || !self.is_inside(bucket, LINE) {
                    continue;
                }
                let word = LockWord(self.mem.load(bucket + LOCK_WORD, Ordering::Acquire));
                if word.owner() == Some(client) {
                    self.release(bucket + LOCK_WORD, self.moved_on_by(word, list.cells.max(1)));
                }
            }
        }
        // Release: a row that forgets a lock before it is free would leave it to the slot's next owner.
        self.mem.store(row + row::at::TRANSACTION, 0, Ordering::Release);
    }
}
