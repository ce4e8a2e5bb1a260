//! One segment that stays free, with memory behind it, for the cleaner.

use crate::engine::log::segments::{Memory, Need};
use crate::engine::Engine;
use hashmere_format::header::{at, limit};
use hashmere_format::segment::State;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::{AtomicU64, Ordering};

/// From this many segments on a free one with memory behind it is kept for the cleaner, so that it can work where the
/// file system has no room. In a smaller store that would be much beside what it holds.
const SPARE_FROM: u64 = 8;

/// A segment that this process knows to be free.
#[derive(Debug, Default)]
pub(super) struct Spare {
    /// The segment and its generation; 0: none is known.
    known: AtomicU64,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Makes sure that one segment is free, and so has memory behind it, if that can be had.
    pub(in crate::engine) fn keep_spare(&self, slot: u32) {
        let total = self.segments();
        let known = self.log.spare.known.load(Ordering::Relaxed);
        if total < SPARE_FROM || known != 0 && self.spare_word(known & (limit::SEGMENTS - 1)) == known {
            return;
        }
        let ring = (0..at::FREE_RING_LEN).filter_map(|i| {
            let hint = self.mem.load(at::FREE_RING + 8 * i, Ordering::Relaxed);
            hint.checked_sub(1).filter(|segment| *segment < total)
        });
        let spare = ring.chain(0..total).map(|segment| self.spare_word(segment)).find(|word| *word != 0);
        if let Some(word) = spare {
            self.log.spare.known.store(word, Ordering::Relaxed);
        } else if let Ok(Some(segment)) = self.claim(slot, Need::Reserve, self.segment_bytes(), &mut None) {
            self.free(segment, 1, slot, Memory::All);
            self.log.spare.known.store(self.spare_word(segment), Ordering::Relaxed);
        }
    }

    /// A free segment and its generation in one word: while that is the same, no client has had it. 0 if it is not
    /// free.
    fn spare_word(&self, segment: u64) -> u64 {
        if segment >= self.segments() || self.state(segment).state != State::Free {
            return 0;
        }
        self.generation(segment).wrapping_add(1) << limit::SEGMENTS.trailing_zeros() | segment
    }
}
