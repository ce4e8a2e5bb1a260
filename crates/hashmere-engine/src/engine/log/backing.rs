//! Memory behind segments: which of the free ones have it, and what the file system refused.
//!
//! A *free* segment has memory behind all of it, a *hole* has none: to take one is to ask the file system, as it is to
//! grow. So what counts as free can be written to whatever the file system says, and a request that it refuses leaves
//! holes where there were holes.

use crate::engine::client::writer_state::Cleaning;
use crate::engine::log::segments::{Memory, Need, RESERVE};
use crate::engine::{back_error, Engine};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory is put behind an open segment in steps of this, so that a small store stays small.
pub(super) const STEP: u64 = 64 << 10;
/// From this many segments on a segment is backed whole: fewer system calls, larger batches of pages.
pub(in crate::engine) const WHOLE_FROM: u64 = 32;
/// How long a cache that was refused memory lives within what it has before it asks again, in milliseconds. (Where the
/// file system says how much it has left, that is asked each time.)
const ASK_AGAIN_MS: u64 = 1000;

/// The part of the hole hand that is a segment; all ones: there is no hole. The bits above it count how often a segment
/// became one.
const HAND: u64 = u32::MAX as u64;

/// What the file system refused this process last.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// When to ask again, in milliseconds of the monotonic clock; 0: at once.
    until: AtomicU64,
    /// The smallest request that was refused.
    bytes: AtomicU64,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Puts memory behind a range.
    pub(in crate::engine) fn back(&self, offset: u64, bytes: u64) -> Result<(), WriteError> {
        let asked = if fault::is(Fault::MemoryUnasked) { 0 } else { bytes };
        let done = self.mem.back(offset, asked).map_err(back_error);
        if let Err(WriteError::NoSpace(_)) = done {
            self.note_refusal(bytes);
        }
        done
    }

    fn note_refusal(&self, bytes: u64) {
        let now = self.monotonic_ms();
        let fresh = self.log.refused.until.swap(now + ASK_AGAIN_MS, Ordering::Relaxed) > now;
        let least = if fresh { self.log.refused.bytes.load(Ordering::Relaxed).min(bytes) } else { bytes };
        self.log.refused.bytes.store(least, Ordering::Relaxed);
        self.say_refused();
    }

    fn say_refused(&self) {
        if self.mem.load(at::NO_SPACE, Ordering::Relaxed) == 0 {
            self.mem.store(at::NO_SPACE, self.host.now_ms(), Ordering::Relaxed);
        }
    }

    /// The file system gave memory for another segment.
    pub(super) fn note_given(&self) {
        self.forget_refusal();
        if self.mem.load(at::NO_SPACE, Ordering::Relaxed) != 0 {
            self.mem.store(at::NO_SPACE, 0, Ordering::Relaxed);
        }
    }

    fn monotonic_ms(&self) -> u64 {
        self.host.monotonic().as_millis() as u64
    }

    /// Why the file system need not be asked for this many bytes more: it says itself that it has less, or it just
    /// refused them to a cache, which can do without. A strict store and a cleaner are never refused from memory.
    pub(in crate::engine) fn foreseen(&self, need: Need, bytes: u64) -> Option<WriteError> {
        let known = self.layout.is_cache() && need == Need::Normal && self.remembers(bytes);
        if !known && self.mem.left().is_none_or(|left| bytes <= left) {
            return None;
        }
        self.say_refused();
        Some(WriteError::NoSpace(std::io::ErrorKind::StorageFull.into()))
    }

    fn remembers(&self, bytes: u64) -> bool {
        let until = self.log.refused.until.load(Ordering::Relaxed);
        until != 0 && bytes >= self.log.refused.bytes.load(Ordering::Relaxed) && self.monotonic_ms() < until
    }

    /// Forgets what was refused; `false`: there was nothing. For a cache in which nothing can go instead.
    pub(in crate::engine) fn forget_refusal(&self) -> bool {
        self.log.refused.until.swap(0, Ordering::Relaxed) != 0
    }

    /// How much memory a new segment of the log gets at first.
    pub(super) fn first_step(&self, need: Need) -> u64 {
        if self.segments() >= WHOLE_FROM || need == Need::Reserve {
            return self.segment_bytes();
        }
        STEP.min(self.segment_bytes())
    }

    /// Claims one segment for `slot`, with memory behind its first `bytes`: a free one, a hole, or by growth. `None`:
    /// there is none to be had, because of the maximum size or because the file system has no room (then the error is
    /// in `refused`).
    pub(in crate::engine) fn claim(
        &self,
        slot: u32,
        need: Need,
        bytes: u64,
        refused: &mut Option<WriteError>,
    ) -> Result<Option<u64>, WriteError> {
        while let Some(segment) = self.claim_free(slot, need) {
            match self.back(self.segment_offset(segment), bytes) {
                Ok(()) => return Ok(Some(segment)),
                // It had less than it should: a process died while it took memory, or another program punched a hole.
                Err(error) => *refused = Some(error),
            }
            self.leave_hole(segment);
        }
        if let Some(error) = self.foreseen(need, bytes) {
            *refused = Some(error);
            return Ok(None);
        }
        let new = match self.claim_hole(slot, need) {
            Some(segment) => Some(segment),
            None => self.grow(slot, 1, need, refused),
        };
        let Some(segment) = new else { return Ok(None) };
        match self.back(self.segment_offset(segment), bytes) {
            Ok(()) => {
                self.note_given();
                Ok(Some(segment))
            }
            Err(error) => {
                *refused = Some(error);
                self.undo_claim(segment);
                Ok(None)
            }
        }
    }

    /// The same for a caller that can do without growth in no other way: it waits for a stalled space lock as for any
    /// lock.
    pub(in crate::engine) fn claim_patiently(&self, slot: u32, need: Need, bytes: u64) -> Result<u64, WriteError> {
        self.patiently(Cleaning::No, || {
            let mut refused = None;
            self.claim(slot, need, bytes, &mut refused)?.ok_or_else(|| self.full(refused))
        })
    }

    pub(super) fn undo_claim(&self, segment: u64) {
        if fault::is(Fault::HoleForgotten) {
            self.set_state(segment, Word::new(State::Free));
        } else {
            self.leave_hole(segment);
        }
    }

    /// A hole, unless what may become of the reserve would be spent with it.
    fn claim_hole(&self, slot: u32, need: Need) -> Option<u64> {
        let total = self.segments();
        let growth = self.segments_max().saturating_sub(total);
        if need == Need::Normal && growth < RESERVE && growth + self.vacant() <= RESERVE {
            return None;
        }
        let hand = self.mem.load(at::HOLE_HAND, Ordering::Acquire);
        let taken = (self.first_hole(1)..total).find(|segment| self.take_vacant(*segment, State::Hole, slot));
        let next = taken.map_or(HAND, |segment| segment + 1);
        // A hole that was left since then may have been passed over: it has changed the word, which then stays.
        let _ = self.mem.compare_exchange(at::HOLE_HAND, hand, hand & !HAND | next);
        taken
    }

    /// A segment became a hole.
    pub(in crate::engine) fn note_hole(&self, segment: u64) {
        let mut now = self.mem.load(at::HOLE_HAND, Ordering::Relaxed);
        loop {
            let next = (now & !HAND).wrapping_add(HAND + 1) | (now & HAND).min(segment);
            match self.mem.compare_exchange(at::HOLE_HAND, now, next) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }

    /// From where on to look for holes. A death may have lost one, so the hint is not believed where `n` segments
    /// cannot be had by growth.
    pub(super) fn first_hole(&self, n: u64) -> u64 {
        if self.segments() + n + RESERVE > self.segments_max() {
            return 0;
        }
        self.mem.load(at::HOLE_HAND, Ordering::Relaxed) & HAND
    }

    /// Whether a segment holds nothing, with memory behind it or without.
    pub(in crate::engine) fn is_vacant(&self, segment: u64) -> bool {
        matches!(self.state(segment).state, State::Free | State::Hole)
    }

    /// How many hold nothing.
    pub(in crate::engine) fn vacant(&self) -> u64 {
        (0..self.segments()).filter(|segment| self.is_vacant(*segment)).count() as u64
    }

    /// Makes a claimed segment a hole: what memory it has goes back to the file system.
    pub(in crate::engine) fn leave_hole(&self, segment: u64) {
        // First of all: from this state on another process may claim it and write there.
        if fault::is(Fault::HoleEarly) {
            self.set_state(segment, Word::new(State::Hole));
        }
        self.mem.unback(self.segment_offset(segment), self.segment_bytes());
        if !fault::is(Fault::HoleEarly) {
            self.blank(segment);
            self.set_state(segment, Word::new(State::Hole));
        }
        self.note_hole(segment);
    }

    /// Makes a claimed segment free with all its memory if few are free, else a hole.
    pub(super) fn vacate(&self, segment: u64, memory: Memory, slot: u32) {
        let is_retained = self.mem.load(at::FREE_COUNT, Ordering::Relaxed) < self.keep_most();
        if !is_retained || !self.is_whole_with(segment, memory) {
            self.leave_hole(segment);
            // The file system has this much more now.
            self.forget_refusal();
        } else {
            self.blank(segment);
            self.set_state(segment, Word::new(State::Free));
            self.mem.fetch_add(at::FREE_COUNT, 1, Ordering::Relaxed);
            self.offer(segment);
        }
        if self.is_above_maximum() {
            self.trim(slot, Some(segment));
        }
    }

    fn is_whole_with(&self, segment: u64, memory: Memory) -> bool {
        match memory {
            Memory::All => true,
            Memory::Most => self.back(self.segment_offset(segment), self.segment_bytes()).is_ok(),
            Memory::Little => false,
        }
    }

    /// What is known of the memory behind an emptied segment.
    pub(super) fn memory_of(&self, segment: u64, length: u64) -> Memory {
        let used = self.field(segment, segment::at::USED);
        if length > 1 || used.saturating_add(STEP) > self.segment_bytes() {
            return Memory::All;
        }
        if self.segments() >= WHOLE_FROM || used >= self.segment_bytes() / 2 {
            Memory::Most
        } else {
            Memory::Little
        }
    }

    /// Puts memory behind a piece of the index. Where the file system has none, a free segment gives its own.
    pub(in crate::engine) fn back_index(&self, slot: u32, offset: u64, bytes: u64) -> Result<(), WriteError> {
        let mut done = self.back(offset, bytes);
        while let Err(WriteError::NoSpace(_)) = done {
            let Some(segment) = self.claim_free(slot, Need::Normal) else { break };
            self.leave_hole(segment);
            done = self.back(offset, bytes);
        }
        done
    }
}
