//! With all locks held: cells, the commit, and what follows it.

use crate::engine::feed::report::Happened;
use crate::engine::transact::locks::Held;
use crate::engine::transact::step::{Step, Totals};
use crate::engine::transact::{Becomes, Drafts, Part};
use crate::engine::{Engine, Writer};
use crate::fault::{self, Fault};
use hashmere_format::cell::{slot_naming, slot_naming_place, Stage, Status, WORDS};
use hashmere_format::feed::Operation;
use hashmere_format::leaf::{LockWord, Slot};
use hashmere_format::record::{VERSION_MASK, VERSION_MAX, VERSION_SHIFT};
use hashmere_format::row;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// What the commit does with the parts that have a cell.
#[inline(always)]
fn steps_of(parts: &[Part]) -> impl Iterator<Item = &Step> + Clone {
    parts.iter().filter_map(|part| part.step.as_ref())
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Plans what the commit does with each part, writes the cells and the counts after the commit.
    #[inline(always)]
    pub(super) fn write_cells(&self, writer: &Writer, root: u64, parts: &mut [Part], held: &Held<'_>) -> Totals {
        let mut totals = Totals::default();
        let mut cells = 0;
        for part in parts {
            part.plan(&mut totals);
            if let Some(step) = &part.step {
                self.write_words(held.list.cell(cells), [step.slot, step.old.0, step.new.0, step.record]);
                cells += 1;
            }
        }
        for index in cells..held.list.cells {
            self.write_words(held.list.cell(index), [0; 4]);
        }
        self.note_counts(writer.row, root, totals.items as i64, totals.bytes as i64);
        totals
    }

    #[inline(always)]
    fn write_words(&self, at: u64, words: [u64; 4]) {
        self.mem.store(at, words[0], Ordering::Relaxed);
        self.mem.store(at + 8, words[1], Ordering::Relaxed);
        self.mem.store(at + 16, words[2], Ordering::Relaxed);
        self.mem.store(at + 24, words[3], Ordering::Relaxed);
    }

    /// Says that the transaction is pending, and makes each slot name its cell; returns the status. `Err`: the part
    /// whose key finds no slot any more.
    #[inline(always)]
    pub(super) fn name_cells(&self, writer: &Writer, parts: &mut [Part], held: &Held<'_>) -> Result<Status, usize> {
        let row = writer.row;
        // SYNC(pending): the cells are seen by every reader that sees the status, or a slot that names one.
        let pending = self.next_status(row);
        if !fault::is(Fault::PendingLate) {
            self.set_transaction_status(row, pending);
        }
        let (mut index, mut place) = (0, 0);
        for (number, part) in parts.iter_mut().enumerate() {
            let Some(step) = &part.step else { continue };
            if !step.old.is_empty() {
                let name = slot_naming_place(writer.slot, place, step.old.tag());
                // SYNC(committed): a reader that sees the commit sees every slot name its cell, or what comes later.
                self.mem.store(step.slot, name.0, Ordering::Release);
            } else if step.slot != 0 && !self.name_new(writer, part, index, held) {
                return Err(number);
            }
            index += 1;
            place = if place + 1 == WORDS { 0 } else { place + 1 };
        }
        if fault::is(Fault::PendingLate) {
            self.set_transaction_status(row, pending);
        }
        Ok(pending)
    }

    /// Makes the free slot of a new key name its cell, or another one if that was taken. `false`: there is none.
    #[inline(never)]
    fn name_new(&self, writer: &Writer, part: &mut Part, index: u64, held: &Held<'_>) -> bool {
        let name = slot_naming(writer.slot, index, part.site.hash);
        let Some(step) = &mut part.step else { return false };
        while let Some(free) = part.site.free {
            step.slot = free;
            self.mem.store(held.list.cell(index), free, Ordering::Relaxed);
            if self.mem.compare_exchange(free, 0, name.0).is_ok() {
                return true;
            }
            part.site.free = self.free_slot(self.place(part.site.leaf, part.site.hash));
        }
        false
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
    #[inline(always)]
    pub(super) fn commit_cells(
        &self,
        writer: &mut Writer,
        root: u64,
        parts: &mut [Part],
        drafts: &mut Drafts,
        held: &mut Held<'_>,
        pending: Status,
    ) {
        let row = writer.row;
        self.give_versions(parts, held);
        if !fault::is(Fault::HeadLate) {
            self.pass_drafts(writer, drafts, parts);
        }
        // SYNC(committed): THE COMMIT. Records, slots and cells are stored before it.
        self.set_transaction_status(row, pending.at(Stage::Committed));
        if fault::is(Fault::HeadLate) {
            self.pass_drafts(writer, drafts, parts);
        }
        // SYNC(snapshot): loaded after `enter`, as in a single write.
        if self.snapshot().has_feed() {
            self.report_steps(writer, root, parts);
        }
        for step in steps_of(parts).filter(|step| step.slot != 0) {
            // SYNC(commit): the record's words are seen by every reader that sees the slot.
            self.mem.store(step.slot, step.new.0, Ordering::Release);
        }
        self.finish_steps(writer, root, parts, drafts);
        self.complete_counts(row);
        // SYNC(idle): no slot names a cell of it any more.
        self.set_transaction_status(row, pending.at(Stage::Idle));
    }

    /// One entry of the feed for all that changes.
    #[cold]
    #[inline(never)]
    fn report_steps(&self, writer: &mut Writer, root: u64, parts: &[Part]) {
        let happened = steps_of(parts).filter(|step| step.slot != 0).map(|step| {
            let (operation, record) = match (step.new.is_empty(), step.keeps_version) {
                (true, _) => (Operation::Delete, step.old.offset()),
                (false, true) => (Operation::Touch, step.record),
                (false, false) => (Operation::Set, step.record),
            };
            Happened { operation, record, version: Some(step.version) }
        });
        self.report_all(writer.slot, &mut writer.feed, root, happened);
    }

    /// Chooses the versions of all parts, and what the lock words are to hold.
    #[inline(always)]
    fn give_versions(&self, parts: &mut [Part], held: &mut Held<'_>) {
        // SYNC(snapshot): one answer for all: the whole transaction is of before the moment of a backup, or none is.
        if self.snapshot().concerns_writers() {
            self.give_versions_above(parts, held);
        } else {
            self.count_versions(parts, held, 0);
        }
        if self.layout.is_durable() {
            steps_of(parts).filter(|step| step.record != 0).for_each(|step| self.finish_checksum(step.record));
        }
    }

    /// The same while a backup begins or is in force.
    #[cold]
    #[inline(never)]
    fn give_versions_above(&self, parts: &mut [Part], held: &mut Held<'_>) {
        let most = self.count_versions(parts, held, 0);
        let Some(floor) = self.floor_for(most) else { return };
        // Versions again; a note of overflow stays.
        held.locks.iter_mut().for_each(|lock| {
            lock.word = LockWord(lock.word.0 & !VERSION_MASK | lock.before.0 & VERSION_MASK);
        });
        self.count_versions(parts, held, floor + 1);
        let olds = steps_of(parts).map(|step| step.old).filter(|old| !old.is_empty());
        olds.for_each(|old| self.retain_for_snapshot(old));
    }

    /// Versions from the words of the locks, at least this large, into the records; the largest that is given.
    #[inline(always)]
    fn count_versions(&self, parts: &mut [Part], held: &mut Held<'_>, least: u64) -> u64 {
        let mut most = 0;
        let locks = held.locks.as_mut_slice();
        for part in parts {
            let Some(step) = &mut part.step else { continue };
            if !step.keeps_version {
                let word = &mut locks[part.lock].word;
                let next = ((word.version() + 1) & VERSION_MAX).max(1);
                step.version = if step.new.is_empty() { next } else { next.max(step.least).max(least) };
                most = most.max(step.version);
                *word = LockWord(word.0 & !VERSION_MASK | step.version << VERSION_SHIFT);
            }
            if step.record != 0 {
                self.mem.store(step.record, step.word | step.version << VERSION_SHIFT, Ordering::Relaxed);
            }
        }
        most
    }

    /// After the commit: marks.
    #[inline(always)]
    fn finish_steps(&self, writer: &mut Writer, root: u64, parts: &[Part], drafts: &mut Drafts) {
        if self.layout.is_durable() || drafts.are_large {
            self.finish_drafts(root, parts);
        }
        let mut marked = false;
        for part in parts {
            let (Some(step), Some(old)) = (&part.step, &part.site.found) else { continue };
            // Until our locks are released our row holds the segment back: see `is_marking_dead`.
            self.mem.store(writer.row + row::at::INTENT_OLD, step.old.0, Ordering::Release);
            self.mark_dead(writer, old);
            if let Some(segment) = writer.dead_large.take() {
                drafts.dead_large.push(segment);
            }
            marked = true;
        }
        if !marked {
            // SYNC(waited): no count of dead bytes orders the commit before the look at those who wait.
            self.mem.fence(Ordering::SeqCst);
        }
        if self.layout.is_durable() {
            self.finish_members(root, parts, drafts);
        }
    }

    /// The new records of a durable store are alive now, and those in segments of their own are no drafts any more.
    #[cold]
    #[inline(never)]
    fn finish_drafts(&self, root: u64, parts: &[Part]) {
        for draft in parts.iter().filter_map(|part| part.becomes.draft()) {
            if self.layout.is_durable() {
                self.mark_live(draft.offset);
            }
            if draft.is_large() {
                self.finish_large(draft, root);
            }
        }
    }

    /// In a durable store: tombstones, and that the transaction is complete.
    #[cold]
    #[inline(never)]
    fn finish_members(&self, root: u64, parts: &[Part], drafts: &mut Drafts) {
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
