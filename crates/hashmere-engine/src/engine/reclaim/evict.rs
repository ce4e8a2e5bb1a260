//! Cache mode: room is made from what has expired, then from garbage, then from what was not used.
//!
//! Segments are taken in the order of a hand that goes round the file, which is the order in which they were filled: a
//! FIFO in which a record that was read since it last moved gets another round (the idea of S3-FIFO and SIEVE).

use crate::engine::client::writer_state::Cleaning;
use crate::engine::index::Tree;
use crate::engine::reclaim::clean::Policy;
use crate::engine::reclaim::large::Lot;
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use hashmere_format::feed::Operation;
use hashmere_format::header::at;
use hashmere_format::row::Stat;
use hashmere_format::segment::{self, State};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Share of a segment that visited records may take with them when it is evicted: at least the rest is gained.
const SECOND_CHANCE: (u64, u64) = (1, 2);
/// The same of a protected one, where most were visited: to drop them for want of room would undo what protects them.
const PROTECTED_CHANCE: (u64, u64) = (7, 8);
/// An expired share below this does not pay for moving the rest.
const EXPIRED_MIN: (u64, u64) = (1, 8);
/// When nothing that has expired was worth taking, it is looked for again after this.
const LOOK_AGAIN_MS: u64 = 1000;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Gets one segment back that is above the maximum: in a cache what was not used goes, else what lives moves.
    pub(in crate::engine) fn empty_one(&self, writer: &mut Writer, segment: u64) -> Result<bool, WriteError> {
        if self.layout.is_cache() {
            return self.evict_segment(writer, segment);
        }
        self.free_if_dead(writer, segment)?;
        self.clean_segment(writer, segment, Policy::Move)
    }

    /// Makes one segment's worth of room. `false`: there is nothing left that can go.
    pub(in crate::engine) fn evict(&self, writer: &mut Writer) -> Result<bool, WriteError> {
        let enough = self.segment_bytes() * EXPIRED_MIN.0 / EXPIRED_MIN.1;
        if self.drop_expired(writer, enough)? {
            return Ok(true);
        }
        let first = self.evicts_protected(writer);
        let mut busy = None;
        // Twice round: the first may have done no more than take the marks off large records.
        for protected in [first, !first, first, !first] {
            match self.evict_one_of(writer, protected) {
                Err(error @ WriteError::Busy { .. }) => busy = Some(error),
                Ok(false) => {}
                done => return done,
            }
        }
        busy.map_or(Ok(false), Err)
    }

    /// Frees the first segment that can be had of those that are protected, or of the others.
    fn evict_one_of(&self, writer: &mut Writer, protected: bool) -> Result<bool, WriteError> {
        let clock_hand = if protected { at::PROTECTED_HAND } else { at::EVICT_HAND };
        let total = self.segments();
        let hand = self.mem.load(clock_hand, Ordering::Relaxed) % total.max(1);
        let mut busy = None;
        for i in 0..total {
            let segment = (hand + i) % total;
            let word = self.state(segment);
            if word.protected != protected || !may_be_emptied(word.state) {
                continue;
            }
            // The hand first: what cannot be evicted shall not stop the next one here again.
            self.mem.store(clock_hand, (segment + 1) % total, Ordering::Relaxed);
            match self.evict_segment(writer, segment) {
                Err(error @ WriteError::Busy { .. }) => busy = Some(error),
                Ok(false) => {}
                done => return done,
            }
        }
        busy.map_or(Ok(false), Err)
    }

    /// Frees a segment, if it can be had.
    pub(in crate::engine) fn evict_segment(&self, writer: &mut Writer, segment: u64) -> Result<bool, WriteError> {
        match self.state(segment).state {
            State::Sealed | State::Partial => {}
            State::Large => return self.evict_large(writer, segment),
            State::PendingFree | State::Index => {
                self.free_if_dead(writer, segment)?;
                return Ok(self.is_vacant(segment));
            }
            _ => return Ok(false),
        }
        match self.free_if_dead(writer, segment)? {
            // It was all garbage, and is free now (or another client's).
            None => Ok(self.is_vacant(segment)),
            Some(dead) => {
                let word = self.state(segment);
                if dead * 2 >= self.segment_bytes() && !word.protected {
                    return self.clean_or_let_go(writer, segment, Policy::Move);
                }
                let share = if word.protected { PROTECTED_CHANCE } else { SECOND_CHANCE };
                let budget = self.segment_bytes() * share.0 / share.1;
                self.protecting(writer, word.protected, |writer| {
                    self.clean_or_let_go(writer, segment, Policy::Evict { budget })
                })
            }
        }
    }

    /// Cleans a segment. Where there is no room for those that would move, a cache that needs room lets go of them as
    /// well: so it gains a segment also when nothing is free, not even the reserve.
    fn clean_or_let_go(&self, writer: &mut Writer, segment: u64, policy: Policy) -> Result<bool, WriteError> {
        let may_let_go = self.layout.is_cache() && writer.cleaning == Cleaning::Emergency;
        match self.clean_segment(writer, segment, policy) {
            Err(error) if error.is_no_room() && may_let_go => {
                self.clean_segment(writer, segment, Policy::Evict { budget: 0 })
            }
            done => done,
        }
    }

    /// Drops a record whose slot a new key could take, for which the index of a full cache cannot grow: best one that
    /// was not visited. `false`: none of them can go.
    pub(in crate::engine) fn evict_beside(&self, writer: &mut Writer) -> Result<bool, WriteError> {
        let Some(leaf) = self.leaf_of(self.root(), Tree::First, writer.full_at)? else { return Ok(false) };
        let buckets = self.place(leaf, writer.full_at).buckets();
        let mut seats: Vec<u64> = buckets.into_iter().flat_map(Self::slots).collect();
        seats.sort_by_key(|seat| self.is_marked(leaf, *seat));
        for seat in seats {
            let slot = self.slot(seat);
            if slot.is_empty() || self.evict_record(writer, slot.offset())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_marked(&self, leaf: u64, slot_offset: u64) -> bool {
        let (word, bit) = self.mark(leaf, slot_offset);
        self.mem.load(word, Ordering::Relaxed) & bit != 0
    }

    fn evict_record(&self, writer: &mut Writer, record: u64) -> Result<bool, WriteError> {
        let Some((head, key_offset)) = self.parse(record) else { return Ok(false) };
        let mut key = Vec::new();
        self.mem.append_to(key_offset, head.key_len as usize, &mut key);
        let kh = self.hash_of(&head, &key);
        let (mut is_gone, mut evicted) = (false, None);
        self.mutate_record(writer, (&key, kh), record, |engine, writer, root, found, held| {
            is_gone = true;
            let expired = engine.has_expired(found);
            let operation = if expired { Operation::Expire } else { Operation::Evict };
            engine.commit_removal(writer, root, found, held, operation);
            engine.count_at(writer.row, if expired { Stat::Expired } else { Stat::Evicted }, 1);
            evicted = if expired { None } else { engine.describe_evicted(found) };
        })?;
        self.note_evicted(&key, evicted);
        Ok(is_gone)
    }

    /// Drops a large record unless it was visited.
    pub(in crate::engine) fn evict_large(&self, writer: &mut Writer, segment: u64) -> Result<bool, WriteError> {
        self.free_if_dead(writer, segment)?;
        if self.state(segment).state != State::Large {
            return Ok(self.is_vacant(segment));
        }
        self.drop_large(writer, segment, Lot::Unvisited)?;
        self.reclaim_large(segment, writer.slot)
    }

    /// Cleans the segment with most expired bytes, if there are `enough` in it.
    pub(super) fn drop_expired(&self, writer: &mut Writer, enough: u64) -> Result<bool, WriteError> {
        let now = self.host.now_ms();
        if self.mem.load(at::NEXT_EXPIRY, Ordering::Relaxed) > now {
            return Ok(false);
        }
        let dropped = self.skip_busy(writer, |writer, left| {
            let mut best = (0, 0);
            let mut next = u64::MAX;
            for segment in (0..self.segments()).filter(|segment| !left.contains(segment)) {
                let first = self.field(segment, segment::at::EXPIRE_MIN);
                let state = self.state(segment).state;
                if !matches!(state, State::Sealed | State::Partial | State::Large) {
                    continue;
                }
                if first > now {
                    next = next.min(first);
                    continue;
                }
                best = best.max((self.expired_bytes(segment, first, now), segment));
            }
            if best.0 < enough {
                self.mem.store(at::NEXT_EXPIRY, next.min(now + LOOK_AGAIN_MS), Ordering::Relaxed);
                return Ok((None, Ok(false)));
            }
            Ok((Some(best.1), self.drop_expired_of(writer, best.1)))
        });
        match dropped {
            // What is left there comes later; there are other ways to room.
            Err(WriteError::Busy { .. }) => Ok(false),
            Err(error) if error.is_no_room() => Ok(false),
            dropped => dropped,
        }
    }

    fn drop_expired_of(&self, writer: &mut Writer, segment: u64) -> Result<bool, WriteError> {
        if self.state(segment).state == State::Large {
            self.drop_large(writer, segment, Lot::Expired)?;
            return self.reclaim_large(segment, writer.slot);
        }
        self.clean_or_let_go(writer, segment, Policy::Move)
    }

    /// How much of a segment has expired, taking its expiry times as spread evenly from first to last.
    fn expired_bytes(&self, segment: u64, first: u64, now: u64) -> u64 {
        let last = self.field(segment, segment::at::EXPIRE_MAX);
        let bytes = self.field(segment, segment::at::EXPIRING);
        if now >= last {
            return bytes;
        }
        let share = u128::from(bytes) * (u128::from(now - first) + 1) / (u128::from(last - first) + 1);
        share as u64
    }
}

/// Whether a segment in this state may be evicted, or be free at a second look. Most others are offline in a cache that
/// was made much smaller, and cost a look each.
fn may_be_emptied(state: State) -> bool {
    matches!(state, State::Sealed | State::Partial | State::Large | State::PendingFree | State::Index)
}
