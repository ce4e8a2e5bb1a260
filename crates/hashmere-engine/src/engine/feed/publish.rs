//! Giving an entry its position: one compare-exchange of a word of the ring.

use crate::engine::feed::Place;
use crate::engine::Engine;
use crate::fault::{self, Fault};
use hashmere_format::feed::{self, RingWord, POSITION_MAX};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Attempts in which nothing of the ring fits together before it is taken for damaged.
const ODD_MAX: u32 = 1000;
/// Attempts that other writers won: each of them got a position.
const LOST_MAX: u32 = 1 << 20;
/// What no entry is: a position without one.
pub(super) const GAP: u64 = 0;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Publishes an entry at the next position. In a damaged feed it may get none.
    #[inline(always)]
    pub(super) fn publish_entry(&self, place: &Place, entry: u64) {
        let (mut odd, mut lost) = (0, 0);
        while odd < ODD_MAX && lost < LOST_MAX {
            let tail = self.feed_tail(place);
            let at = place.base + place.geometry.ring_at(tail);
            let lap = place.geometry.lap(tail);
            let seen = RingWord(self.mem.load(at, Ordering::Acquire));
            if seen.lap() == lap {
                // Taken, by a writer that has not moved the tail yet, and may never do so.
                self.pass_tail(place, tail);
                // Where it cannot be moved it is damaged.
                odd += u32::from(self.feed_tail(place) == tail);
                lost += 1;
                continue;
            }
            if !seen.is_before(lap) {
                // The tail is of long ago.
                odd += 1;
                continue;
            }
            // SYNC(entry): a reader that sees the word sees the entry.
            if self.mem.compare_exchange(at, seen.0, RingWord::new(entry, lap).0).is_ok() {
                self.pass_tail(place, tail);
                return;
            }
            lost += 1;
        }
    }

    #[inline(always)]
    fn pass_tail(&self, place: &Place, tail: u64) {
        if fault::is(Fault::TailUnmoved) {
            return;
        }
        // Lost to another one that did the same.
        let _ = self.mem.compare_exchange(place.base + feed::at::TAIL, tail, tail + 1);
    }

    #[inline(always)]
    pub(super) fn feed_tail(&self, place: &Place) -> u64 {
        self.mem.load(place.base + feed::at::TAIL, Ordering::Acquire) & POSITION_MAX
    }

    /// The first position that has no entry yet.
    pub(super) fn feed_end(&self, place: &Place) -> u64 {
        let mut end = self.feed_tail(place);
        // A writer that crashed between the two may have left the tail behind; more than that is damage.
        for _ in 0..1 << place.geometry.ring_shift {
            let word = RingWord(self.mem.load(place.base + place.geometry.ring_at(end), Ordering::Acquire));
            if word.lap() != place.geometry.lap(end) {
                break;
            }
            end += 1;
        }
        end
    }
}
