//! With all locks held: cells, the commit, and what follows it.

use crate::engine::feed::report::Happened;
use crate::engine::transact::locks::Held;
use crate::engine::transact::{Becomes, Drafts, Part};
use crate::engine::{Engine, Writer};
use crate::fault::{self, Fault};
use crate::types::{Uid, Version};
use hashmere_format::cell::{slot_naming, Stage};
use hashmere_format::feed::Operation;
use hashmere_format::leaf::{LockWord, Slot};
use hashmere_format::record::{VERSION_MASK, VERSION_MAX, VERSION_SHIFT};
use hashmere_format::row;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Writes the cells and the counts after the commit.
    pub(super) fn write_cells(&self, writer: &Writer, root: u64, parts: &[Part<'_>], held: &Held<'_>) {
        let (mut items, mut bytes) = (0, 0);
        let mut index = 0;
        for part in parts {
            if !part.changes() {
                continue;
            }
            let Some(site) = &part.site else { continue };
            let old = site.found.as_ref();
            let new = part.becomes.draft();
            items += i64::from(new.is_some()) - i64::from(old.is_some());
            bytes += new.map_or(0, |draft| draft.bytes as i64) - old.map_or(0, |found| found.bytes() as i64);
            let slot_offset = old.map(|found| found.slot_offset).or(site.free).unwrap_or(0);
            let record = part.becomes.written().map_or(0, |draft| draft.offset);
            let words = [slot_offset, old.map_or(0, |found| found.slot.0), Self::new_word(part).0, record];
            self.write_cell(held, index, words);
            index += 1;
        }
        // A tombstone of a key that was absent has no slot.
        for part in parts.iter().filter(|part| !part.changes()) {
            let Some(tombstone) = part.becomes.written() else { continue };
            self.write_cell(held, index, [0, 0, 0, tombstone.offset]);
            index += 1;
        }
        (index..held.list.cells).for_each(|index| self.write_cell(held, index, [0; 4]));
        self.note_counts(writer.row, root, items, bytes);
    }

    fn write_cell(&self, held: &Held<'_>, index: u64, words: [u64; 4]) {
        for (at, word) in (held.list.cell(index)..).step_by(8).zip(words) {
            self.mem.store(at, word, Ordering::Relaxed);
        }
    }

    /// What a part's slot is to hold.
    fn new_word(part: &Part<'_>) -> Slot {
        match (&part.site, part.becomes.draft()) {
            (Some(site), Some(draft)) => Slot::new(site.hash, draft.offset),
            _ => Slot::EMPTY,
        }
    }

    /// Says that the transaction is pending, and makes each slot name its cell. `Err`: the part whose key finds no slot
    /// any more.
    pub(super) fn name_cells(&self, writer: &Writer, parts: &mut [Part<'_>], held: &Held<'_>) -> Result<(), usize> {
        let row = writer.row;
        // SYNC(pending): the cells are seen by every reader that sees the status, or a slot that names one.
        let pending = self.next_status(row);
        if !fault::is(Fault::PendingLate) {
            self.set_transaction_status(row, pending);
        }
        let mut index = 0;
        for (number, part) in parts.iter_mut().enumerate() {
            if !part.changes() {
                continue;
            }
            let Some(site) = &mut part.site else { continue };
            if let Some(old) = &site.found {
                let name = slot_naming(writer.slot, index, old.slot.tag());
                // SYNC(committed): a reader that sees the commit sees every slot name its cell, or what comes later.
                self.mem.store(old.slot_offset, name.0, Ordering::Release);
                index += 1;
                continue;
            }
            let name = slot_naming(writer.slot, index, site.hash);
            loop {
                let Some(free) = site.free else { return Err(number) };
                self.mem.store(held.list.cell(index), free, Ordering::Relaxed);
                if self.mem.compare_exchange(free, 0, name.0).is_ok() {
                    break;
                }
                site.free = self.free_slot(self.place(site.leaf, site.hash));
            }
            index += 1;
        }
        if fault::is(Fault::PendingLate) {
            self.set_transaction_status(row, pending);
        }
        Ok(())
    }

    /// Gives every slot that names a cell of this client's transaction its old word back. Also for a repair, and again
    /// for another one.
    pub(super) fn undo_cells(&self, row: u64, client: u32, list: hashmere_format::cell::List) {
        for index in 0..list.cells {
            let (slot_offset, old, _) = self.cell(list, index);
            self.finish_cell(client, index, slot_offset, old);
        }
        self.set_transaction_status(row, self.transaction_status(row).at(Stage::Idle));
    }

    /// Makes a slot that names this cell hold a word.
    pub(super) fn finish_cell(&self, client: u32, index: u64, slot_offset: u64, word: Slot) {
        let is_slot = slot_offset & 7 == 0 && slot_offset != 0 && self.is_inside(slot_offset, 8);
        if is_slot && self.slot(slot_offset) == slot_naming(client, index, self.slot(slot_offset).tag()) {
            // SYNC(commit): as for a single write.
            self.mem.store(slot_offset, word.0, Ordering::Release);
        }
    }

    /// From the point on at which nothing can fail: versions, the commit, and what follows.
    pub(super) fn commit_cells(
        &self,
        writer: &mut Writer,
        root: u64,
        parts: &mut [Part<'_>],
        drafts: &mut Drafts,
        held: &mut Held<'_>,
    ) {
        let row = writer.row;
        self.give_versions(parts, held);
        for part in parts.iter() {
            if let Some(draft) = part.becomes.written() {
                self.mem.store(draft.offset, draft.word | part.version << VERSION_SHIFT, Ordering::Relaxed);
                if self.layout.is_durable() {
                    self.finish_checksum(draft.offset);
                }
            }
        }
        if !fault::is(Fault::HeadLate) {
            self.pass_drafts(writer, drafts, parts);
        }
        let status = self.transaction_status(row);
        // SYNC(committed): THE COMMIT. Records, slots and cells are stored before it.
        self.set_transaction_status(row, status.at(Stage::Committed));
        if fault::is(Fault::HeadLate) {
            self.pass_drafts(writer, drafts, parts);
        }
        // SYNC(snapshot): loaded after `enter`, as in a single write.
        if self.snapshot().has_feed() {
            self.report_parts(writer, root, parts);
        }
        for index in 0..held.list.cells {
            let (slot_offset, _, new) = self.cell(held.list, index);
            if slot_offset != 0 {
                // SYNC(commit): the record's words are seen by every reader that sees the slot.
                self.mem.store(slot_offset, new.0, Ordering::Release);
            }
        }
        self.finish_parts(writer, root, parts, drafts);
        self.complete_counts(row);
        // SYNC(idle): no slot names a cell of it any more.
        self.set_transaction_status(row, status.at(Stage::Idle));
        self.count_parts(writer, parts);
    }

    /// One entry of the feed for all that changes.
    #[cold]
    #[inline(never)]
    fn report_parts(&self, writer: &mut Writer, root: u64, parts: &[Part<'_>]) {
        let happened = parts.iter().filter(|part| part.changes()).filter_map(|part| {
            let (operation, record) = match &part.becomes {
                Becomes::Put(draft) => (Operation::Set, draft.offset),
                Becomes::Refresh(draft) => (Operation::Touch, draft.offset),
                Becomes::Gone(_) => (Operation::Delete, part.old()?.record),
                Becomes::Same => return None,
            };
            Some(Happened { operation, record, version: Some(part.version) })
        });
        self.report_all(writer.slot, &mut writer.feed, root, happened);
    }

    /// Chooses the versions of all parts, and what the lock words are to hold.
    fn give_versions(&self, parts: &mut [Part<'_>], held: &mut Held<'_>) {
        let most = self.count_versions(parts, held, 0);
        // SYNC(snapshot): loaded once for all: the whole transaction is of before the moment of a backup, or none is.
        let Some(floor) = self.floor_for(most) else { return };
        // Versions again; a note of overflow stays.
        held.locks.iter_mut().for_each(|lock| {
            lock.word = LockWord(lock.word.0 & !VERSION_MASK | lock.before.0 & VERSION_MASK);
        });
        self.count_versions(parts, held, floor + 1);
        let olds = parts.iter().filter_map(Part::old);
        olds.for_each(|old| self.retain_for_snapshot(old.slot));
    }

    /// Versions from the words of the locks, at least this large; the largest that is given.
    fn count_versions(&self, parts: &mut [Part<'_>], held: &mut Held<'_>, least: u64) -> u64 {
        let mut most = 0;
        for part in parts.iter_mut().filter(|part| part.changes() || part.becomes.written().is_some()) {
            let word = &mut held.locks[part.lock].word;
            let next = ((word.version() + 1) & VERSION_MAX).max(1);
            part.version = match (&part.becomes, &part.site) {
                (Becomes::Refresh(_), Some(site)) => {
                    part.version = site.found.as_ref().map_or(next, |found| found.version());
                    continue;
                }
                (Becomes::Put(draft), _) => next.max(draft.least).max(least),
                _ => next,
            };
            most = most.max(part.version);
            *word = LockWord(word.0 & !VERSION_MASK | part.version << VERSION_SHIFT);
        }
        most
    }

    /// After the commit: marks, and what was stored.
    fn finish_parts(&self, writer: &mut Writer, root: u64, parts: &mut [Part<'_>], drafts: &mut Drafts) {
        for part in parts.iter_mut() {
            part.was_there = part.lives;
            let Some(draft) = part.becomes.draft() else { continue };
            let Some(site) = &part.site else { continue };
            let slot_offset = site.found.as_ref().map(|found| found.slot_offset).or(site.free).unwrap_or(0);
            part.stored.uid = Uid(self.uid(site.tree, site.leaf, slot_offset, site.hash));
            part.stored.version = Version(part.version);
            part.stored.created = !part.lives;
            if self.layout.is_durable() {
                self.mark_live(draft.offset);
            }
            if draft.is_large() {
                self.finish_large(draft, root);
            }
        }
        for old in parts.iter().filter_map(Part::old) {
            // Until our locks are released our row holds the segment back: see `is_marking_dead`.
            self.mem.store(writer.row + row::at::INTENT_OLD, old.slot.0, Ordering::Release);
            self.mark_dead(writer, old);
            drafts.dead_large.extend(writer.dead_large.take());
        }
        if self.layout.is_durable() {
            let tombstones = parts.iter().filter_map(|part| match &part.becomes {
                Becomes::Gone(tombstone) => tombstone.as_ref(),
                _ => None,
            });
            tombstones.clone().for_each(|tombstone| self.end_tombstone(tombstone.offset));
            self.complete_members(parts.iter().filter_map(|part| part.becomes.written()).map(|draft| draft.offset));
            // Not before: until the transaction is complete, its tombstones are needed.
            for tombstone in tombstones.filter(|tombstone| tombstone.is_large()) {
                self.finish_large(tombstone, root);
                drafts.dead_large.push(self.segment_of(tombstone.offset));
            }
        }
    }
}
