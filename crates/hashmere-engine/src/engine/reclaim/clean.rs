//! Cleaning: what lives moves out of a segment, and the segment is free. Compaction, expiry, eviction and giving memory
//! back are all this.

use crate::engine::client::writer_state::Cleaning;
use crate::engine::commit::held::HeldKey;
use crate::engine::{Engine, Found, KeyHash, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::feed::Operation;
use hashmere_format::header::at;
use hashmere_format::leaf::Slot;
use hashmere_format::record::{field, Head};
use hashmere_format::row::{self, Stat};
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// What happens to records that live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Policy {
    /// They move.
    Move,
    /// Those that were visited move, up to this many bytes; the others go.
    Evict {
        /// Bytes that may still move.
        budget: u64,
    },
}

/// Segments looked at by one incremental cleaning.
const WINDOW: u64 = 64;
/// Dead segments' worth in the window below which nothing is cleaned incrementally: the longer compaction is deferred,
/// the less there is to move. With 256 KiB segments this is 1.5 MiB, which still lies in a second-level cache of 2 MiB.
const COMPACTION_THRESHOLD: u64 = 6;

impl<M: Mem, H: Host> Engine<M, H> {
    /// The operation is over: nothing is held back for it any more, and what it left is cleaned.
    #[inline(always)]
    pub(in crate::engine) fn leave(&self, writer: &mut Writer) {
        self.mem.store(writer.row + row::at::ACTIVE, 0, Ordering::Release);
        if writer.dead_large.is_some() || writer.made_dead >= self.segment_bytes() {
            self.clean_incrementally(writer);
        }
        self.sync_if_due(writer);
    }

    /// After an operation: cleans what it left.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn clean_incrementally(&self, writer: &mut Writer) {
        if let Some(segment) = writer.dead_large.take() {
            // What fails here is found again by the next look at this segment; the operation itself is done.
            let _ = self.reclaim_large(segment, writer.slot);
        }
        // Of a reservation that is committed again after making room, the draft is still where moved records would go.
        if writer.made_dead >= self.segment_bytes() && writer.cleaning == Cleaning::No && !writer.index_full {
            let _ = self.clean_what_pays(writer);
        }
    }

    /// Looks at the next few segments and cleans the best of them if at least half would be gained.
    pub(in crate::engine) fn clean_what_pays(&self, writer: &mut Writer) -> Result<(), WriteError> {
        writer.made_dead = 0;
        // With half of each dead, two segments pay for the one that is being filled; with more, several cost no more.
        let effort = self.segment_bytes() + self.segment_bytes() / 4;
        self.clean_window(writer, COMPACTION_THRESHOLD * self.segment_bytes(), self.segment_bytes() / 2, effort)
    }

    /// Looks at the next few segments. If at least `threshold` bytes of them are dead, cleans those with at least
    /// `least` dead bytes each, the deadest first, until `effort` bytes were moved.
    fn clean_window(&self, writer: &mut Writer, threshold: u64, least: u64, mut effort: u64) -> Result<(), WriteError> {
        let total = self.segments().max(1);
        let hand = self.mem.load(at::CLEAN_HAND, Ordering::Relaxed) % total;
        let window = WINDOW.min(total);
        self.mem.store(at::CLEAN_HAND, (hand + window) % total, Ordering::Relaxed);
        let mut best: Vec<(u64, u64)> = Vec::new();
        let mut sum = 0;
        for i in 0..window {
            let segment = (hand + i) % total;
            if let Some(dead) = self.free_if_dead(writer, segment)? {
                sum += dead;
                if dead >= least {
                    best.push((dead, segment));
                }
            }
        }
        if sum < threshold {
            return Ok(());
        }
        best.sort_unstable_by(|a, b| b.cmp(a));
        let before = writer.cleaning;
        writer.cleaning = Cleaning::Incremental;
        // What a backup holds back would not become free.
        let frees = |(_, segment): &(u64, u64)| !self.snapshot().is_held() || !self.has_retained(*segment);
        for (dead, segment) in best.into_iter().filter(frees) {
            // To walk over what is dead is an eighth of the work of moving it.
            let work = self.segment_bytes().saturating_sub(dead) + self.segment_bytes() / 8;
            let Some(rest) = effort.checked_sub(work) else { break };
            effort = rest;
            match self.clean_segment(writer, segment, Policy::Move) {
                // No room to move to: the emergency reclaim comes when it must.
                Err(error) if error.is_no_room() => break,
                // A record of it has to stay for now; the others are gone from there.
                Err(WriteError::Busy { .. }) => {}
                Err(error) => {
                    writer.cleaning = before;
                    return Err(error);
                }
                Ok(_) => {}
            }
        }
        writer.cleaning = before;
        Ok(())
    }

    /// Frees a segment if that costs nothing; else says how many bytes in it are dead, if it can be cleaned.
    pub(in crate::engine) fn free_if_dead(&self, writer: &Writer, segment: u64) -> Result<Option<u64>, WriteError> {
        let word = self.state(segment);
        match word.state {
            State::PendingFree => {
                self.free_pending(segment, writer.slot)?;
            }
            State::Large if self.field(segment, segment::at::DEAD) != 0 || self.is_stale(segment) => {
                self.reclaim_large(segment, writer.slot)?;
            }
            State::Index if word.owner == 0 && self.is_stale(segment) && self.take_over(writer, segment, word) => {
                // It may have become an index segment of today between the look and the claim.
                if self.is_stale(segment) {
                    self.free_unless_held(segment, writer.slot)?;
                } else {
                    self.set_state(segment, word);
                }
            }
            State::Sealed | State::Partial => {
                let used = self.field(segment, segment::at::USED).min(self.segment_bytes());
                // SYNC(dead): pairs with the counting of dead bytes: what is counted here was marked before.
                let dead = self.mem.load(self.entry_of(segment) + segment::at::DEAD, Ordering::Acquire);
                if dead >= used || self.is_stale(segment) {
                    if self.take_over(writer, segment, word) {
                        // It may have been refilled between the look and the claim.
                        let used = self.field(segment, segment::at::USED);
                        if self.field(segment, segment::at::DEAD) >= used || self.is_stale(segment) {
                            self.free_records(segment, writer.slot)?;
                        } else {
                            self.set_state(segment, word);
                        }
                    }
                    return Ok(None);
                }
                if word.state == State::Partial {
                    self.offer_again(segment);
                }
                // A sealed segment's unused end is gained as well.
                let tail = if word.state == State::Sealed { self.segment_bytes().saturating_sub(used) } else { 0 };
                return Ok(Some(dead.min(used) + tail));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Takes a segment that is in this state in order to free it.
    fn take_over(&self, writer: &Writer, segment: u64, word: Word) -> bool {
        self.change_state(segment, word, Word { state: State::Cleaning, owner: writer.slot + 1, ..word })
    }

    /// Moves what lives out of a segment and frees it. `false`: it was not to be had.
    pub(in crate::engine) fn clean_segment(
        &self,
        writer: &mut Writer,
        segment: u64,
        policy: Policy,
    ) -> Result<bool, WriteError> {
        let word = self.state(segment);
        if !matches!(word.state, State::Sealed | State::Partial)
            || !self.change_state(segment, word, Word::owned(State::Cleaning, writer.slot))
        {
            return Ok(false);
        }
        if let Err(error) = self.empty_segment(writer, segment, policy) {
            self.set_state(segment, Word::new(State::Sealed).protected(word.protected));
            return Err(error);
        }
        self.count_at(writer.row, Stat::Cleaned, 1);
        self.free_records(segment, writer.slot)?;
        Ok(true)
    }

    /// Moves what lives out of a segment in state cleaning, or drops it. A record whose key has been locked for too
    /// long stays there, and when all others are dealt with the answer is `Busy`.
    pub(in crate::engine) fn empty_segment(
        &self,
        writer: &mut Writer,
        segment: u64,
        mut policy: Policy,
    ) -> Result<(), WriteError> {
        let used = self.field(segment, segment::at::USED).min(self.segment_bytes());
        let mut records = self.records(segment, used);
        let mut busy = None;
        for record in records.by_ref() {
            // Most of them are: of what is passed over only the first word is read.
            if !record.header.has(field::DEAD) {
                let head = self.head_at(record.offset, record.header);
                match self.relocate(writer, record.offset, &head, record.key(), &mut policy) {
                    // Whatever the reason that nothing leads to it: what is about to be freed is dead.
                    Ok(()) if self.layout.is_durable() => self.stamp(record.offset),
                    Ok(()) => {}
                    Err(error @ WriteError::Busy { .. }) => busy = Some(error),
                    Err(error) => return Err(error),
                }
            }
        }
        let end = records.offset();
        if end != self.segment_offset(segment) + used {
            // The records behind cannot be read, so they cannot be freed either: `check` names them. It must not look
            // worth cleaning.
            self.set_field(segment, segment::at::DEAD, 0);
            return Err(WriteError::Corrupt { what: "a segment holds something that is no record", offset: end });
        }
        busy.map_or(Ok(()), Err)
    }

    /// Moves one record, or drops it, if the index leads to it.
    fn relocate(
        &self,
        writer: &mut Writer,
        record: u64,
        head: &Head,
        key: u64,
        policy: &mut Policy,
    ) -> Result<(), WriteError> {
        let mut name = std::mem::take(&mut writer.key);
        name.clear();
        self.mem.append_to(key, head.key_len as usize, &mut name);
        let kh = self.hash_of(head, &name);
        // Room first: finding it may take system calls, which have no place under a lock.
        let target = match policy {
            Policy::Evict { budget: 0 } => Ok(0),
            _ => self.room_as_aligned(writer, record, head),
        };
        let mut evicted = None;
        let done = target.and_then(|target| {
            self.mutate_record(writer, (&name, kh), record, |engine, writer, root, found, held| {
                if engine.relocate_locked(writer, root, found, head, target, policy, held) {
                    evicted = engine.describe_evicted(found);
                }
            })
        });
        self.note_evicted(&name, evicted);
        writer.key = name;
        done
    }

    /// Room for a record that moves. One that could be replaced in place where it is can be where it goes.
    fn room_as_aligned(&self, writer: &mut Writer, record: u64, head: &Head) -> Result<u64, WriteError> {
        let header = head.header(self.layout.lengths);
        if record % 16 == 0 && header.is_value_first() && self.mem.has_pairs() {
            self.align(writer, header.bytes())?;
        }
        self.room(writer, header.bytes())
    }

    /// Locks a record's key and, if the index still leads to exactly this record, lets `act` deal with it.
    pub(in crate::engine) fn mutate_record(
        &self,
        writer: &mut Writer,
        (key, kh): (&[u8], KeyHash),
        record: u64,
        act: impl FnOnce(&Self, &mut Writer, u64, &Found, &mut HeldKey),
    ) -> Result<(), WriteError> {
        let done = self.mutate_record_while_active(writer, (key, kh), record, act);
        self.mem.store(writer.row + hashmere_format::row::at::ACTIVE, 0, Ordering::Release);
        done
    }

    fn mutate_record_while_active(
        &self,
        writer: &mut Writer,
        (key, kh): (&[u8], KeyHash),
        record: u64,
        act: impl FnOnce(&Self, &mut Writer, u64, &Found, &mut HeldKey),
    ) -> Result<(), WriteError> {
        let (root, mut held) = loop {
            let root = self.enter(writer);
            if let Some(locked) = self.lock_key(writer, root, kh.hash)? {
                break (root, HeldKey::key(locked));
            }
        };
        let found = self.find_record(writer, root, record, (key, kh), &mut held);
        if fault::is(Fault::MoveBelieved) {
            self.unlock_key(writer, &held);
            let Some(locked) = self.lock_key(writer, root, kh.hash)? else { return Ok(()) };
            held = HeldKey::key(locked);
        }
        if let Ok(Some(found)) = &found {
            act(self, writer, root, found, &mut held);
        }
        self.unlock_key(writer, &held);
        self.changed(kh.hash);
        found.map(|_| ())
    }

    /// With the key locked: drops the record or moves it to `target`. `true`: it was dropped though it had not expired.
    #[allow(clippy::too_many_arguments)]
    fn relocate_locked(
        &self,
        writer: &mut Writer,
        root: u64,
        found: &Found,
        head: &Head,
        target: u64,
        policy: &mut Policy,
        held: &mut HeldKey,
    ) -> bool {
        let (record, bytes) = (found.record, head.record_bytes(self.layout.lengths));
        // As it is now, under the lock: it may have been touched since it was first looked at.
        let expired = self.has_expired(found);
        if expired || !self.may_stay(found, bytes, policy) {
            let operation = if expired { Operation::Expire } else { Operation::Evict };
            self.commit_removal(writer, root, found, held, operation);
            self.count_at(writer.row, if expired { Stat::Expired } else { Stat::Evicted }, 1);
            return !expired;
        }
        self.mem.copy(record, target, bytes);
        // The mark of death may have come between the look and the lock only from ourselves, in an earlier life; that
        // of being kept, from one who died before its commit.
        let word = self.mem.load(target, Ordering::Relaxed) & !(field::DEAD | field::RETAINED);
        self.mem.store(target, word, Ordering::Relaxed);
        let moved = Slot::new(found.slot.tag(), target);
        if self.layout.is_durable() {
            self.checksum_copy(target, bytes);
        }
        self.advance(writer, &self.copied(target, &self.head_of(found), bytes));
        if self.layout.is_durable() {
            // Of the two records one must be dead for the medium, also if we die in between: so a move is announced
            // like a write.
            self.announce(writer, root, found.slot_offset, found.slot, moved, 0, 0);
        }
        // SYNC(commit): the copy is seen by every reader that sees the slot.
        self.mem.store(found.slot_offset, moved.0, Ordering::Release);
        if self.layout.is_durable() {
            self.mark_live(target);
            self.stamp(record);
            self.counted(writer);
        }
        let dead = self.mem.load(record, Ordering::Relaxed) | field::DEAD;
        // Release: not before the slot leads elsewhere, or a death in between would leave a record that is in use and
        // marked.
        self.mem.store(record, dead, fault::relaxes(Fault::MarkRelaxed));
        // Counted like any other: a segment whose cleaning is cut short is worth the more next time.
        let entry = self.entry_of(self.segment_of(record));
        self.mem.fetch_add(entry + segment::at::DEAD, bytes, Ordering::Release);
        self.count_at(writer.row, Stat::Moved, 1);
        false
    }

    fn may_stay(&self, found: &Found, bytes: u64, policy: &mut Policy) -> bool {
        let Policy::Evict { budget } = policy else { return true };
        let stays = self.use_up_mark(found) && bytes <= *budget && !fault::is(Fault::MarkIgnored);
        *budget -= if stays { bytes } else { 0 };
        stays
    }

    /// Whether a record was visited. It goes or gets another round: either way the mark is used up, or the slot's next
    /// key would inherit it.
    pub(in crate::engine) fn use_up_mark(&self, found: &Found) -> bool {
        let (word, bit) = self.mark(found.leaf, found.slot_offset);
        let marks = self.mem.load(word, Ordering::Relaxed);
        if marks & bit != 0 {
            // A lost race with a reader's mark costs a hint.
            self.mem.store(word, marks & !bit, Ordering::Relaxed);
        }
        marks & bit != 0
    }

    /// Drops what has expired and cleans whatever pays, over the whole store. Returns how many segments that freed.
    pub fn compact(&self, writer: &mut Writer) -> Result<u64, WriteError> {
        self.refuse_if_poisoned()?;
        self.reach_file()?;
        let before = self.vacant();
        self.retire_segment(writer);
        writer.cleaning = Cleaning::Incremental;
        // Where nothing ever had an expiry, nothing is looked for.
        let expires = self.mem.load(at::NEXT_EXPIRY, Ordering::Relaxed) != u64::MAX;
        let mut dropped = if expires { self.expire_all(writer).map(|()| true) } else { Ok(false) };
        if expires {
            self.mem.store(at::NEXT_EXPIRY, 0, Ordering::Relaxed);
        }
        while let Ok(true) = dropped {
            dropped = self.drop_expired(writer, 1);
        }
        writer.cleaning = Cleaning::No;
        match dropped {
            // No room to move the rest to: what can be done without is done.
            Ok(_) => {}
            Err(error) if error.is_no_room() => {}
            Err(error) => return Err(error),
        }
        // No write waits for this one: a quarter is worth it, and all of them at once.
        for _ in 0..=self.segments() / WINDOW {
            self.clean_window(writer, 0, self.segment_bytes() / 4, u64::MAX)?;
        }
        self.sync_for_room(writer)?;
        Ok(self.vacant().saturating_sub(before))
    }
}
