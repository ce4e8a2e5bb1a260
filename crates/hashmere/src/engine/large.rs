//! Large records: segments of their own, in a row, so that a view of one is one slice.

use super::clean::Cleaning;
use super::client::back_error;
use super::segments::{Need, RESERVE};
use super::{Draft, Engine, KeyHash, Lane};
use crate::error::WriteError;
use hashmere_format::header::{RootWord, PAGE};
use hashmere_format::leaf::Meta;
use hashmere_format::record::Head;
use hashmere_format::row::Stat;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};

impl<M: Mem, H: Host> Engine<M, H> {
    /// Writes head and key of a large record in fresh segments.
    #[cold]
    pub(super) fn draft_large(
        &self,
        lane: &mut Lane,
        key: &[u8],
        kh: KeyHash,
        head: Head,
        bytes: u64,
    ) -> Result<Draft, WriteError> {
        let n = bytes.div_ceil(self.segment_bytes());
        let segment = self.claim_run(lane, n)?;
        let offset = self.segment_offset(segment);
        self.set_field(segment, segment::at::BORN, RootWord::unpack(self.root()).generation);
        self.set_field(segment, segment::at::DEAD, 0);
        self.set_field(segment, segment::at::USED, bytes);
        self.set_field(segment, segment::at::EXPIRE_MIN, head.expires.unwrap_or(u64::MAX));
        self.set_field(segment, segment::at::EXPIRE_MAX, head.expires.unwrap_or(0));
        self.set_field(segment, segment::at::EXPIRING, if head.expires.is_some() { bytes } else { 0 });
        if let Some(expires) = head.expires {
            self.lower(hashmere_format::header::at::NEXT_EXPIRY, expires);
        }
        let draft = self.write_head(offset, key, kh, head, true);
        Ok(draft)
    }

    /// Claims `n` segments in a row with memory behind them, the first in state "large, new".
    fn claim_run(&self, lane: &mut Lane, n: u64) -> Result<u64, WriteError> {
        let slot = lane.slot;
        let mut refused = None;
        let mut rounds = 0;
        loop {
            let run = match self.free_run(slot, n) {
                Some(run) => Some(run),
                None => self.grow(slot, n, Need::Normal, &mut refused)?,
            };
            if let Some(first) = run {
                let bytes = n * self.segment_bytes();
                match self.mem.back(self.segment_offset(first), bytes.next_multiple_of(PAGE)).map_err(back_error) {
                    Ok(()) => {
                        // Only now: whoever repairs after us reads what a new large record has.
                        self.set_state(first, Word::owned(State::LargeNew, slot).long(n as u32));
                        (1..n).for_each(|tail| self.set_state(first + tail, Word::new(State::Tail)));
                        return Ok(first);
                    }
                    Err(error) => {
                        self.free(first, n, slot);
                        refused = Some(error);
                    }
                }
            }
            rounds += 1;
            if lane.cleaning != Cleaning::No || rounds > self.segments() || !self.free_something(lane, n)? {
                return Err(self.full(refused));
            }
        }
    }

    /// Claims a row of free segments, leaving the reserve.
    fn free_run(&self, slot: u32, n: u64) -> Option<u64> {
        if self.free_segments() < n + RESERVE {
            return None;
        }
        let total = self.segments();
        let mut start = 0;
        while start + n <= total {
            let taken = (start..start + n).take_while(|s| self.take_free(*s, slot)).count() as u64;
            if taken == n {
                return Some(start);
            }
            for segment in start..start + taken {
                self.free(segment, 1, slot);
            }
            start += taken + 1;
        }
        None
    }

    /// After its commit a large record is nobody's.
    #[cold]
    pub(super) fn settle_large(&self, draft: &Draft, root: u64) {
        let segment = self.segment_of(draft.offset);
        self.set_field(segment, segment::at::USED, draft.bytes);
        self.set_field(segment, segment::at::BORN, RootWord::unpack(root).generation);
        let word = self.state(segment);
        self.set_state(segment, Word { state: State::Large, owner: 0, ..word });
    }

    /// Gives a draft up.
    pub(crate) fn abandon(&self, lane: &Lane, draft: &Draft) {
        if draft.is_large() {
            let segment = self.segment_of(draft.offset);
            self.free(segment, u64::from(self.state(segment).length), lane.slot);
        }
    }

    /// Frees a large record that was superseded, unless somebody is at it already.
    pub(super) fn reclaim_large(&self, segment: u64, slot: u32) -> Result<bool, WriteError> {
        let word = self.state(segment);
        let is_dead = || self.field(segment, segment::at::DEAD) != 0 || self.is_stale(segment);
        if word.state != State::Large || !is_dead() {
            return Ok(false);
        }
        if !self.change_state(segment, word, Word { state: State::Cleaning, owner: slot + 1, ..word }) {
            return Ok(false);
        }
        // Between the look and the claim it may have been freed and filled with another record of the same length.
        if !is_dead() {
            self.set_state(segment, word);
            return Ok(false);
        }
        if self.is_durable() {
            self.stamp(self.segment_offset(segment));
        }
        self.free_records(segment, slot)
    }

    /// Removes the key of a large record, unless it was visited and has not expired (then it loses the mark).
    pub(super) fn drop_large(&self, lane: &mut Lane, segment: u64) -> Result<(), WriteError> {
        let record = self.segment_offset(segment);
        let generation = self.generation(segment);
        let Some((head, key_offset)) = self.parse(record) else { return Ok(()) };
        let mut key = Vec::new();
        self.mem.append_to(key_offset, head.key_len as usize, &mut key);
        let kh = self.hash_of(&head, &key);
        let mut referred = false;
        self.mutate_record(lane, (&key, kh), record, |engine, lane, root, found, held| {
            referred = true;
            let expired = engine.is_expired(&found.head);
            let (word, bit) = engine.mark(found.leaf, found.slot_offset);
            let marks = engine.mem.load(word, std::sync::atomic::Ordering::Relaxed);
            if !expired && marks & bit != 0 {
                engine.mem.store(word, marks & !bit, std::sync::atomic::Ordering::Relaxed);
                return;
            }
            engine.commit_removal(lane, root, found);
            held.meta = Meta(held.meta.0.wrapping_add(Meta::STEP));
            engine.count_at(lane.row, if expired { Stat::Expired } else { Stat::Evicted }, 1);
        })?;
        if !referred {
            // Nothing leads to it: whoever superseded it died before it counted. It may have been freed and filled again since.
            let word = self.state(segment);
            let mine = Word { state: State::Cleaning, owner: lane.slot + 1, ..word };
            if word.state == State::Large && self.change_state(segment, word, mine) {
                if self.generation(segment) == generation {
                    self.set_field(segment, segment::at::DEAD, 1);
                }
                self.set_state(segment, word);
            }
        }
        Ok(())
    }

    /// A large record whose writer died: it counts if the index leads to it.
    pub(super) fn recover_large(&self, segment: u64, slot: u32) -> Result<(), WriteError> {
        let offset = self.segment_offset(segment);
        let word = self.state(segment);
        if self.is_referred(offset) {
            self.set_field(segment, segment::at::BORN, RootWord::unpack(self.root()).generation);
            self.set_state(segment, Word { state: State::Large, owner: 0, ..word });
            return Ok(());
        }
        self.free_unless_held(segment, slot).map(|_| ())
    }
}
