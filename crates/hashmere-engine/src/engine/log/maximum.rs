//! Another maximum size for a store that exists: a lower one takes segments out of use, a higher one gives them back.
//!
//! The maximum bounds how many segments are *in use*, wherever in the file they are: index and regions cannot move. A
//! segment that is *offline* has no memory behind it and is not to be claimed. Their number is in the header, and
//! changes with their states under the space lock; a holder that dies in between is counted after by its repair.

use crate::engine::log::segments::RESERVE;
use crate::engine::Engine;
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::{at, limit};
use hashmere_format::leaf::LockWord;
use hashmere_format::segment::{State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::{AtomicBool, Ordering};

/// Free segments that stay in use however small the maximum: the reserve, and one for the next writer.
pub(in crate::engine) const KEPT_FREE: u64 = RESERVE + 1;

/// Whether the maximum size counts.
#[derive(Debug, Default)]
pub(super) struct Maximum {
    is_lifted: AtomicBool,
}

impl Maximum {
    pub(super) fn is_lifted(&self) -> bool {
        self.is_lifted.load(Ordering::Relaxed)
    }

    pub(super) fn lift(&self, is_lifted: bool) {
        self.is_lifted.store(is_lifted, Ordering::Relaxed);
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// The maximum size in bytes; 0 is none.
    pub(crate) fn max_bytes(&self) -> u64 {
        self.mem.load(at::MAX_BYTES, Ordering::Acquire)
    }

    /// Whole segments in a file of this many bytes.
    pub(in crate::engine) fn segments_within(&self, bytes: u64) -> u64 {
        self.layout.segments_in(bytes.min(limit::ADDRESS).saturating_sub(at::DATA)).min(limit::SEGMENTS)
    }

    /// Segments that are offline.
    pub(in crate::engine) fn offline(&self) -> u64 {
        self.mem.load(at::OFFLINE, Ordering::Acquire).min(self.segments_said())
    }

    pub(in crate::engine) fn segments_in_use(&self) -> u64 {
        self.segments().saturating_sub(self.offline())
    }

    /// Whether more segments are in use than the maximum allows.
    pub(in crate::engine) fn is_above_maximum(&self) -> bool {
        self.segments_in_use() > self.segments_max()
    }

    /// Under the space lock: a process that grows the file has counted with the old maximum before, or counts with the
    /// new one.
    pub(in crate::engine) fn store_maximum(&self, slot: u32, bytes: u64) -> Result<(), WriteError> {
        self.acquire_global(slot, at::SPACE_LOCK)?;
        // What cannot be reached cannot be counted either.
        let reached = self.reach_file();
        if reached.is_ok() {
            self.mem.store(at::MAX_BYTES, bytes, Ordering::Release);
            self.bring_online();
        }
        self.release_global(at::SPACE_LOCK);
        Ok(reached?)
    }

    /// With the space lock: as many segments can be had again as the maximum allows, as holes.
    fn bring_online(&self) {
        let (total, max) = (self.segments(), self.segments_max());
        let mut offline = self.mem.load(at::OFFLINE, Ordering::Relaxed);
        for segment in 0..total {
            if offline == 0 || total.saturating_sub(offline) >= max {
                break;
            }
            if self.state(segment) == Word::new(State::Offline) {
                self.set_state(segment, Word::new(State::Hole));
                offline -= 1;
                self.mem.store(at::OFFLINE, offline, Ordering::Release);
                self.note_hole(segment);
            }
        }
    }

    /// Takes holes and free segments out of use, the last in the file first, while there are more in use than the
    /// maximum allows. `just` was freed just now.
    #[cold]
    pub(in crate::engine) fn trim(&self, slot: u32, just: Option<u64>) {
        let total = self.segments();
        let just = just.filter(|segment| *segment >= self.segments_max());
        for segment in just.into_iter().chain((0..total).rev()).filter(|segment| self.is_vacant(*segment)) {
            if !self.is_above_maximum() || self.vacant() <= KEPT_FREE {
                return;
            }
            let is_free = || self.free_segments() > KEPT_FREE && self.take_vacant(segment, State::Free, slot);
            if self.take_vacant(segment, State::Hole, slot) || is_free() {
                // No other process has it: before its memory is another's it would have to be free again.
                self.mem.unback(self.segment_offset(segment), self.segment_bytes());
                if !self.take_offline(slot, segment) {
                    self.leave_hole(segment);
                    return;
                }
            }
        }
    }

    /// Takes a claimed segment out of use. `false`: the store has no more than it may, or another process has the lock;
    /// the next that frees a segment checks again.
    fn take_offline(&self, slot: u32, segment: u64) -> bool {
        let lock = LockWord(self.mem.load(at::SPACE_LOCK, Ordering::Relaxed));
        if !lock.is_free() || self.mem.compare_exchange(at::SPACE_LOCK, lock.0, lock.held_by(slot).0).is_err() {
            return false;
        }
        // Another one may have taken the last that was too many.
        let over = self.is_above_maximum() || fault::is(Fault::OverBelieved);
        if over {
            self.set_state(segment, Word::new(State::Offline));
            self.mem.store(at::OFFLINE, self.offline() + 1, Ordering::Release);
        }
        self.release_global(at::SPACE_LOCK);
        over
    }

    /// The holder of the space lock died, perhaps between a state and the count, or between a larger maximum and what
    /// it brings.
    pub(in crate::engine) fn repair_maximum(&self) {
        if fault::is(Fault::OfflineUncounted) {
            return;
        }
        let offline = (0..self.segments()).filter(|segment| self.state(*segment).state == State::Offline).count();
        self.mem.store(at::OFFLINE, offline as u64, Ordering::Release);
        self.bring_online();
    }
}
