//! Repairing what a crashed client left.
//!
//! The caller holds the crashed client's liveness lock: the proof of its end, and what keeps other repairers out. It
//! acts under that client's own slot number, so that its own end leaves the same row behind, to be repaired again:
//! every step may be repeated.

use crate::engine::index::Tree;
use crate::engine::log::segments::Memory;
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::{at, RootWord};
use hashmere_format::leaf::{self, Identity, LockWord, LOCK_WORD};
use hashmere_format::row;
use hashmere_format::segment::{self, Born, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Repairs and frees the row of `slot`, if it has an owner, who is dead.
    pub(in crate::engine) fn recover(&self, slot: u32) -> Result<(), WriteError> {
        let row = row::offset(slot);
        // What it had in hand was there before it died; a repair that could not reach it would forget it.
        self.reach_file()?;
        // First: what it holds back needs no repair.
        self.withdraw_snapshot(slot);
        let state = self.mem.load(row + row::at::STATE, Ordering::Acquire);
        if state & 1 == 0 {
            return Ok(());
        }
        let active = self.mem.load(row + row::at::ACTIVE, Ordering::Relaxed);
        let root = if active == 0 { self.root() } else { active };
        if fault::is(Fault::RepairUnnamed) {
            self.mem.store(row + row::at::STATE, state & !1, Ordering::Release);
        }
        self.recover_commit(slot, root);
        self.repair_report_in_place(slot, root);
        self.recover_cells(slot, root);
        self.recover_index(slot, root)?;
        // While the locks of the crashed client are still held: no client can have moved what its key leads to.
        self.recover_new_large(slot)?;
        self.recover_locks_of_transaction(slot);
        self.recover_locks(slot);
        self.recover_segments(slot);
        self.recover_chunks(slot);
        // It may have died between leaving a hole and saying so.
        self.note_hole(0);
        for pin in 0..row::PINS {
            self.mem.store(row + row::at::PINS + 8 * pin, 0, Ordering::Relaxed);
        }
        // Release: what they led this repair to is done before they go.
        self.mem.store(row + row::at::OPEN, 0, Ordering::Release);
        self.mem.store(row + row::at::ACTIVE, 0, Ordering::Release);
        self.mem.store(row + row::at::STATE, state & !1, Ordering::Release);
        Ok(())
    }

    /// A commit that happened but was not counted is counted; one that did not happen leaves nothing.
    fn recover_commit(&self, slot: u32, root: u64) {
        let row = row::offset(slot);
        // SYNC(intent): pairs with the release store in `announce`: where the intent is in force, its other words
        // belong to it.
        let target = self.mem.load(row + row::at::INTENT, Ordering::Acquire);
        if target == 0 || fault::is(Fault::CommitForgotten) {
            return;
        }
        let new = self.mem.load(row + row::at::INTENT_NEW, Ordering::Relaxed);
        let old = self.mem.load(row + row::at::INTENT_OLD, Ordering::Relaxed);
        let happened = self.is_inside(target, 8) && target & 7 == 0 && {
            let now = self.mem.load(target, Ordering::Acquire);
            // A slot emptied by a removal may have been filled by another key since; one filled by
            // us stays as it is while the key's lock is ours.
            if new == 0 {
                now != old
            } else {
                now == new
            }
        };
        if happened {
            if self.layout.is_durable() {
                self.complete_checksums(leaf::Slot(new), leaf::Slot(old));
            }
            self.repair_report(slot, root, leaf::Slot(new), leaf::Slot(old));
            self.mark_large_dead(old);
            self.complete_counts(row);
        } else {
            self.mem.store(row + row::at::INTENT, 0, Ordering::Release);
        }
    }

    /// The index lock, a split, a leaf on its way.
    fn recover_index(&self, slot: u32, root: u64) -> Result<(), WriteError> {
        let row = row::offset(slot);
        let held = LockWord(self.mem.load(at::INDEX_LOCK, Ordering::Acquire)).owner() == Some(slot);
        let old = self.mem.load(row + row::at::SPLIT, Ordering::Relaxed);
        let new = self.mem.load(row + row::at::LEAF, Ordering::Relaxed);
        if !held && old == 0 && new == 0 {
            return Ok(());
        }
        self.acquire_global(slot, at::INDEX_LOCK)?;
        if self.is_inside(self.root_block(root), hashmere_format::root::BYTES) {
            self.repair_arena(root);
            if old != 0 && self.can_be_leaf(old) {
                self.recover_split(slot, root, old);
            }
            // A repaired split has taken care of its leaf, and given the index lock back.
            self.acquire_global(slot, at::INDEX_LOCK)?;
            let new = self.mem.load(row + row::at::LEAF, Ordering::Relaxed);
            if new != 0 && self.is_leaf_of(new, root) {
                if self.is_in_index(root, new) && !fault::is(Fault::SpareTwice) {
                    self.unlock_leaf(slot, new);
                } else {
                    self.spare_leaf(slot, root, new);
                }
            }
        }
        for segment in 0..self.segments() {
            let word = self.state(segment);
            if word.owner == slot + 1 && word.state == State::Index {
                self.recover_arena_segment(segment, u64::from(word.length), slot, root);
            }
        }
        self.mem.store(row + row::at::LEAF, 0, Ordering::Release);
        self.mem.store(row + row::at::SPLIT, 0, Ordering::Release);
        self.release_global(at::INDEX_LOCK);
        Ok(())
    }

    fn recover_split(&self, slot: u32, root: u64, old: u64) {
        let target = self.mem.load(old + leaf::at::SPLIT, Ordering::Acquire);
        let id = Identity::unpack(self.mem.load(old + leaf::at::IDENTITY, Ordering::Acquire));
        // Only the owner of the locks notes a target, and only while it holds them all.
        let mine = self
            .leaf_buckets(old)
            .next()
            .is_some_and(|b| LockWord(self.mem.load(b + LOCK_WORD, Ordering::Acquire)).owner() == Some(slot));
        let mine = mine && !fault::is(Fault::SplitUndone);
        if let (Some(id), true, true) = (id, mine, target != 0 && self.can_be_leaf(target)) {
            self.publish(slot, root, Tree::from_number(id.tree), old, target);
        } else {
            self.unlock_leaf(slot, old);
        }
    }

    /// Bucket locks, and the other global ones.
    fn recover_locks(&self, slot: u32) {
        let row = row::offset(slot);
        for field in [row::at::LOCK_2, row::at::LOCK] {
            let bucket = self.mem.load(row + field, Ordering::Relaxed);
            if bucket != 0 && bucket & (leaf::LINE - 1) == 0 && self.is_inside(bucket, leaf::LINE) {
                let word = LockWord(self.mem.load(bucket + LOCK_WORD, Ordering::Acquire));
                if word.owner() == Some(slot) {
                    self.release(bucket + LOCK_WORD, self.moved_on(word));
                }
            }
            // Release: a row that forgets a lock before it is free would leave it to the slot's next owner.
            self.mem.store(row + field, 0, fault::relaxes(Fault::RowRelaxed));
        }
        for offset in [at::SPACE_LOCK, at::RESERVE_LOCK, at::SYNC_LOCK, at::REGION_LOCK] {
            if LockWord(self.mem.load(offset, Ordering::Acquire)).owner() == Some(slot) {
                if offset == at::REGION_LOCK && !fault::is(Fault::DropUnfinished) {
                    self.repair_regions();
                }
                if offset == at::SPACE_LOCK {
                    self.repair_maximum();
                }
                self.release_global(offset);
            }
        }
    }

    /// Large records that the crashed client was about to commit, or just had.
    fn recover_new_large(&self, slot: u32) -> Result<(), WriteError> {
        for segment in 0..self.segments() {
            let word = self.state(segment);
            if word.owner == slot + 1 && word.state == State::LargeNew {
                self.recover_large(segment, slot)?;
            }
        }
        Ok(())
    }

    /// Segments that the crashed client owned. One scan of the table: deaths are rare.
    fn recover_segments(&self, slot: u32) {
        for segment in 0..self.segments() {
            let word = self.state(segment);
            if word.owner != slot + 1 {
                continue;
            }
            match word.state {
                State::Open => self.recover_open(slot, segment),
                State::Cleaning => {
                    // A large record of one segment is walked like any other. Of a longer one the last tail may be
                    // under the crashed owner's name already.
                    let last = segment + u64::from(word.length) - 1;
                    if last != segment {
                        self.set_state(last, Word::new(State::Tail));
                    }
                    // A region that was dropped has no bytes of records in use.
                    let is_region = self.field(segment, segment::at::USED) == 0;
                    let state = match last != segment {
                        true if is_region => State::PendingFree,
                        true => State::Large,
                        false => State::Sealed,
                    };
                    self.set_state(segment, Word::new(state).long(word.length));
                }
                State::Claimed => self.free(segment, u64::from(word.length), slot, Memory::Most),
                _ => self.set_state(segment, Word { owner: 0, ..word }),
            }
        }
    }

    /// A segment that was being appended to: the records before the head are whole.
    fn recover_open(&self, slot: u32, segment: u64) {
        let row = row::offset(slot);
        let start = self.segment_offset(segment);
        let named = self.mem.load(row + row::at::OPEN, Ordering::Relaxed) == segment + 1;
        let head = self.mem.load(row + row::at::HEAD, Ordering::Relaxed);
        let known = self.field(segment, segment::at::USED);
        let used = if named && head >= start && head <= start + self.segment_bytes() { head - start } else { 0 };
        let used = used.max(known).min(self.segment_bytes());
        self.set_field(segment, segment::at::USED, used);
        self.set_field(segment, segment::at::BORN, self.born_until_now());
        let mut expiry = (u64::MAX, 0, 0);
        for record in self.records(segment, used) {
            if let Some(at) = self.head_at(record.offset, record.header).expires {
                expiry = (expiry.0.min(at), expiry.1.max(at), expiry.2 + record.bytes());
            }
        }
        self.set_field(segment, segment::at::EXPIRE_MIN, expiry.0);
        self.set_field(segment, segment::at::EXPIRE_MAX, expiry.1);
        self.set_field(segment, segment::at::EXPIRING, expiry.2);
        let partial = self.segment_bytes() - used > self.segment_bytes() / 4;
        self.set_state(segment, Word::new(if partial { State::Partial } else { State::Sealed }));
        self.offer(segment);
    }

    /// What is known of the age of a segment whose owner died: it was appended to up to now.
    pub(in crate::engine) fn born_until_now(&self) -> u64 {
        Born { first: 0, last: RootWord::unpack(self.root()).generation }.pack()
    }

    /// A segment taken for the index of `root`: it counts if the arena moved there. Needs the index lock.
    fn recover_arena_segment(&self, segment: u64, length: u64, slot: u32, root: u64) {
        let start = self.segment_offset(segment);
        let end = start + length * self.segment_bytes();
        let block = self.root_block(root);
        let arena_end = block + hashmere_format::root::at::ARENA_END;
        let counts =
            block == start || self.is_inside(arena_end, 8) && self.mem.load(arena_end, Ordering::Relaxed) == end;
        if counts || root != self.root() {
            // Of an index of the past it is freed with the rest, once no operation is under way there.
            self.set_state(segment, Word::new(State::Index).long(length as u32));
        } else {
            self.free(segment, length, slot, Memory::Most);
        }
    }

    /// A large record whose writer died: it counts if the index leads to it.
    pub(in crate::engine) fn recover_large(&self, segment: u64, slot: u32) -> Result<(), WriteError> {
        let offset = self.segment_offset(segment);
        let word = self.state(segment);
        if self.is_referred(offset) && !fault::is(Fault::LargeUnasked) {
            self.set_field(segment, segment::at::BORN, self.born_until_now());
            self.set_state(segment, Word { state: State::Large, owner: 0, ..word });
            return Ok(());
        }
        self.free_unless_held(segment, slot).map(|_| ())
    }

    pub(in crate::engine) fn retire_writer(&self, mut writer: Writer) {
        self.withdraw_snapshot(writer.slot);
        self.retire_segment(&mut writer);
        self.retire_feed(&mut writer.feed);
        for pin in 0..row::PINS {
            self.mem.store(writer.row + row::at::PINS + 8 * pin, 0, Ordering::Release);
        }
        let state = self.mem.load(writer.row + row::at::STATE, Ordering::Relaxed);
        self.mem.store(writer.row + row::at::STATE, state & !1, Ordering::Release);
        self.host.release(writer.slot);
    }
}
