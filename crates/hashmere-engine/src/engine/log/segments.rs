//! Segments: claiming and freeing.
//!
//! The state word of a segment decides who may touch it; every change of hands is one compare-exchange of that word,
//! and a word that names an owner is repaired by the client that proves that owner dead.

use crate::engine::Engine;
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::{at, limit, RootWord};
use hashmere_format::segment::{self, Born, State, Word, CHUNK_ENTRIES};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Free segments that only the cleaner may take, so that it can always finish.
pub(in crate::engine) const RESERVE: u64 = 2;
/// Free segments that keep their memory, at most: what writers and the cleaner pass to and fro. In a small store it is
/// a sixteenth of all.
const KEEP_MAX: u64 = 32;

/// Who asks for a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Need {
    /// A writer: leaves the reserve alone.
    Normal,
    /// A cleaner, holding the reserve lock.
    Reserve,
}

/// What is known of the memory behind a segment that becomes free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Memory {
    /// It is behind all of it.
    All,
    /// Behind most of it, or all: what is missing is worth asking for.
    Most,
    /// Behind the lesser part of it: that goes.
    Little,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Offset of a segment's entry.
    #[inline(always)]
    pub(in crate::engine) fn entry_of(&self, segment: u64) -> u64 {
        // Segment numbers are masked, so a damaged one still stays within the table of pointers.
        let segment = segment & (limit::SEGMENTS - 1);
        let chunk = self.mem.load(at::CHUNKS + 8 * (segment / CHUNK_ENTRIES), Ordering::Acquire) & !7;
        let entry = chunk.wrapping_add(segment % CHUNK_ENTRIES * segment::BYTES);
        if chunk == at::CHUNK_0 || self.is_inside(entry, segment::BYTES) {
            entry
        } else {
            at::CHUNK_0
        }
    }

    pub(in crate::engine) fn field(&self, segment: u64, field: u64) -> u64 {
        self.mem.load(self.entry_of(segment) + field, Ordering::Relaxed)
    }

    pub(in crate::engine) fn set_field(&self, segment: u64, field: u64, value: u64) {
        self.mem.store(self.entry_of(segment) + field, value, Ordering::Relaxed);
    }

    /// The state word; a damaged one reads as an index segment, which no client touches, and a damaged length ends with
    /// the file.
    pub(in crate::engine) fn state(&self, segment: u64) -> Word {
        let word = self.stated(segment);
        if word.length > 1 {
            self.shortened(segment, word)
        } else {
            word
        }
    }

    #[cold]
    fn shortened(&self, segment: u64, word: Word) -> Word {
        let said = self.segments_said();
        let there = if self.layout.bytes_of(said) <= self.log.known() {
            said
        } else {
            said.min(self.layout.segments_in(self.mem.size().saturating_sub(at::DATA)))
        };
        let most = there.saturating_sub(segment).max(1);
        word.long(u64::from(word.length).min(most) as u32)
    }

    /// The state word as it is, for those who look for damage.
    pub(in crate::engine) fn stated(&self, segment: u64) -> Word {
        let word = self.mem.load(self.entry_of(segment) + segment::at::STATE, Ordering::Acquire);
        Word::unpack(word).unwrap_or(Word::new(State::Index))
    }

    pub(in crate::engine) fn set_state(&self, segment: u64, word: Word) {
        self.mem.store(self.entry_of(segment) + segment::at::STATE, word.pack(), Ordering::Release);
    }

    pub(in crate::engine) fn change_state(&self, segment: u64, from: Word, to: Word) -> bool {
        self.mem.compare_exchange(self.entry_of(segment) + segment::at::STATE, from.pack(), to.pack()).is_ok()
    }

    /// How many segments the file has, as far as this process can reach them.
    pub(in crate::engine) fn segments(&self) -> u64 {
        let said = self.segments_said();
        if self.layout.bytes_of(said) <= self.log.known() {
            said
        } else {
            self.layout.segments_in(self.learn(self.layout.bytes_of(said)))
        }
    }

    /// How many segments the header says that the file has.
    pub(in crate::engine) fn segments_said(&self) -> u64 {
        self.mem.load(at::SEGMENTS, Ordering::Acquire).min(limit::SEGMENTS)
    }

    /// How many it may have.
    pub(in crate::engine) fn segments_max(&self) -> u64 {
        let max_bytes = match self.mem.load(at::MAX_BYTES, Ordering::Relaxed) {
            0 => u64::MAX,
            _ if self.log.maximum.is_lifted() => u64::MAX,
            bytes => bytes,
        };
        let bytes = max_bytes.min(limit::ADDRESS).min(self.mem.capacity_limit());
        self.layout.segments_in(bytes.saturating_sub(at::DATA)).min(limit::SEGMENTS)
    }

    /// Free segments, exactly when few.
    pub(in crate::engine) fn free_segments(&self) -> u64 {
        let hint = self.mem.load(at::FREE_COUNT, Ordering::Relaxed);
        if hint > 4 * RESERVE + 16 && hint <= self.segments() {
            return hint;
        }
        let exact = (0..self.segments()).filter(|s| self.state(*s).state == State::Free).count() as u64;
        self.mem.store(at::FREE_COUNT, exact, Ordering::Relaxed);
        exact
    }

    /// Claims a free segment, unless it is one of the reserve.
    pub(in crate::engine) fn claim_free(&self, slot: u32, need: Need) -> Option<u64> {
        let floor = if need == Need::Reserve || fault::is(Fault::ReserveSpent) { 0 } else { RESERVE };
        if self.free_segments() <= floor {
            return None;
        }
        let found = self.find_free(slot);
        if found.is_none() {
            self.mem.store(at::FREE_COUNT, 0, Ordering::Relaxed);
        }
        found
    }

    fn find_free(&self, slot: u32) -> Option<u64> {
        for i in 0..at::FREE_RING_LEN {
            let word = at::FREE_RING + 8 * i;
            if self.mem.load(word, Ordering::Relaxed) == 0 {
                continue;
            }
            if let Some(segment) = self.mem.swap(word, 0, Ordering::AcqRel).checked_sub(1) {
                if segment < self.segments() && self.take_vacant(segment, State::Free, slot) {
                    return Some(segment);
                }
            }
        }
        let total = self.segments();
        let hand = self.mem.load(at::FREE_HAND, Ordering::Relaxed) % total.max(1);
        for i in 0..total {
            let segment = (hand + i) % total;
            if self.take_vacant(segment, State::Free, slot) {
                self.mem.store(at::FREE_HAND, segment + 1, Ordering::Relaxed);
                return Some(segment);
            }
        }
        None
    }

    /// Takes one segment that holds nothing, if it is of this kind: free, or a hole.
    pub(in crate::engine) fn take_vacant(&self, segment: u64, kind: State, slot: u32) -> bool {
        if self.state(segment) != Word::new(kind) {
            return false;
        }
        let taken = self.change_state(segment, Word::new(kind), Word::owned(State::Claimed, slot));
        if taken {
            if kind == State::Free {
                // It may wrap below zero after a death; then it is larger than the file, and counted again.
                self.mem.fetch_add(at::FREE_COUNT, u64::MAX, Ordering::Relaxed);
            }
            // SYNC(recycle): a reader that sees any byte written from here on also sees that the segment was recycled.
            self.mem.fence(Ordering::Release);
        }
        taken
    }

    /// Frees a claimed or emptied segment that `slot` owns (state cleaning, claimed or large, with its tail): from here
    /// on readers that still look at it notice, and its memory may be given back.
    ///
    /// The caller has made sure that no slot of the index points into it and that no client pins it.
    pub(in crate::engine) fn free(&self, segment: u64, length: u64, slot: u32, memory: Memory) {
        self.recycle(segment, length, slot, |part| self.vacate(part, memory, slot));
    }

    /// Like [`free`](Self::free), but the segments stay with `slot`, each claimed on its own, memory and all.
    pub(in crate::engine) fn keep(&self, segment: u64, length: u64, slot: u32) {
        self.recycle(segment, length, slot, |part| self.blank(part));
        // SYNC(recycle): as when a free segment is taken.
        self.mem.fence(Ordering::Release);
    }

    fn recycle(&self, segment: u64, length: u64, slot: u32, each: impl Fn(u64)) {
        // From here on it can only become free: a repair after us completes this, and looks at nothing in it.
        self.set_state(segment, Word::owned(State::Claimed, slot).long(length as u32));
        self.set_field(segment, segment::at::USED, 0);
        let bump = u64::from(!fault::is(Fault::RecycleUnsaid));
        self.mem.fetch_add(self.entry_of(segment) + segment::at::GENERATION, bump, Ordering::AcqRel);
        // SYNC(recycle): pairs with the acquire fence of readers. The bump comes before any reuse of the bytes.
        self.mem.fetch_add(at::EPOCH, bump, Ordering::SeqCst);
        // From the end: a tail becomes ours by name, the head forgets it, then it is free. So at any death a segment is
        // either led by its head or found under our name.
        for tail in (1..length).rev() {
            let head = self.state(segment);
            if fault::is(Fault::TailForgotten) {
                self.set_state(segment, head.long(tail as u32));
            }
            self.set_state(segment + tail, Word::owned(State::Claimed, slot));
            self.set_state(segment, head.long(tail as u32));
            each(segment + tail);
        }
        each(segment);
    }

    /// How many free segments keep their memory.
    pub(in crate::engine) fn keep_most(&self) -> u64 {
        (self.segments() / 16).clamp(2 * RESERVE, KEEP_MAX)
    }

    /// An entry says nothing any more about the former content of its segment.
    pub(in crate::engine) fn blank(&self, segment: u64) {
        self.set_field(segment, segment::at::DEAD, 0);
        self.set_field(segment, segment::at::USED, 0);
        self.set_field(segment, segment::at::EXPIRE_MIN, u64::MAX);
        self.set_field(segment, segment::at::EXPIRE_MAX, 0);
        self.set_field(segment, segment::at::EXPIRING, 0);
    }

    /// Puts a segment into the ring of those that are worth looking at: free, or partly filled.
    pub(in crate::engine) fn offer(&self, segment: u64) {
        for i in 0..at::FREE_RING_LEN {
            if self.mem.load(at::FREE_RING + 8 * i, Ordering::Relaxed) == 0 {
                self.mem.store(at::FREE_RING + 8 * i, segment + 1, Ordering::Release);
                return;
            }
        }
    }

    /// Puts a segment into the ring again, if it fell out of it because the ring was full or its finder died.
    pub(in crate::engine) fn offer_again(&self, segment: u64) {
        let known =
            (0..at::FREE_RING_LEN).any(|i| self.mem.load(at::FREE_RING + 8 * i, Ordering::Relaxed) == segment + 1);
        if !known {
            self.offer(segment);
        }
    }

    /// Frees a segment that held records and holds none that live: in a durable store after the next sync, for what the
    /// medium has of it may still be needed. The caller owns it.
    pub(in crate::engine) fn free_records(&self, segment: u64, slot: u32) -> Result<bool, WriteError> {
        if !self.layout.is_durable() || fault::is(Fault::QuarantineSkipped) {
            return self.free_unless_held(segment, slot);
        }
        // SYNC(dead): every stamp in it was stored before its death was counted or its cleaner passed.
        self.mem.fence(Ordering::SeqCst);
        self.set_field(segment, segment::at::AWAITS, self.mem.load(at::SYNC_NEXT, Ordering::SeqCst));
        self.set_state(segment, Word::new(State::PendingFree).long(self.state(segment).length));
        self.mem.fetch_add(at::WAITING, 1, Ordering::Relaxed);
        Ok(false)
    }

    /// Frees an emptied segment now, or leaves it pending free while a client holds it back. The caller owns it.
    pub(in crate::engine) fn free_unless_held(&self, segment: u64, slot: u32) -> Result<bool, WriteError> {
        let length = self.goes(segment)?;
        length.iter().for_each(|length| self.free(segment, *length, slot, self.memory_of(segment, *length)));
        Ok(length.is_some())
    }

    /// The same, but it stays with `slot`, claimed.
    pub(in crate::engine) fn keep_unless_held(&self, segment: u64, slot: u32) -> Result<bool, WriteError> {
        let length = self.goes(segment)?;
        length.iter().for_each(|length| self.keep(segment, *length, slot));
        Ok(length.is_some())
    }

    /// The length of an emptied segment that no client holds back; else it is pending free now.
    fn goes(&self, segment: u64) -> Result<Option<u64>, WriteError> {
        // SYNC(pin): pairs with the fence in `pin::pin`. Either the pinner sees that its slot moved, or we see its pin.
        self.mem.fence(Ordering::SeqCst);
        let length = self.state(segment).length;
        // Of a long one the tail must be within reach, as must everything that its entry is worth.
        let end = self.segment_offset(segment + u64::from(length));
        let unreachable = length > 1 && !self.is_inside(end - 8, 8);
        if unreachable || self.is_held_back(segment)? {
            if self.layout.is_durable() {
                self.set_field(segment, segment::at::AWAITS, 0);
            }
            self.set_state(segment, Word::new(State::PendingFree).long(length));
            return Ok(None);
        }
        Ok(Some(u64::from(length)))
    }

    /// Looks again at a segment that is pending free. `true`: it is free now.
    pub(in crate::engine) fn free_pending(&self, segment: u64, slot: u32) -> Result<bool, WriteError> {
        let word = self.state(segment);
        let mine = Word { owner: slot + 1, state: State::Cleaning, ..word };
        if word.state != State::PendingFree || !self.is_synced(segment) || self.is_held_back(segment)? {
            return Ok(false);
        }
        if !self.change_state(segment, word, mine) {
            return Ok(false);
        }
        // Between the look and the claim it may have been freed, used, and emptied again.
        if !self.is_synced(segment) {
            self.set_state(segment, word);
            return Ok(false);
        }
        self.free_unless_held(segment, slot)
    }

    #[inline(always)]
    pub(in crate::engine) fn generation(&self, segment: u64) -> u64 {
        self.mem.load(self.entry_of(segment) + segment::at::GENERATION, Ordering::Acquire)
    }

    /// Whether everything in a segment belongs to an index of the past. Freeing it still waits for the operations
    /// that began under that index.
    pub(in crate::engine) fn is_stale(&self, segment: u64) -> bool {
        let now = RootWord::unpack(self.root());
        Born::unpack(self.field(segment, segment::at::BORN)).last < now.generation && segment != now.segment
    }
}
