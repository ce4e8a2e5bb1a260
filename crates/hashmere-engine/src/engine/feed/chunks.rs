//! Room for entries: chunks of the feed, each of which one writer fills.

use crate::engine::client::writer_state::FeedCursor;
use crate::engine::feed::Place;
use crate::engine::Engine;
use crate::fault::{self, Fault};
use hashmere_format::feed::{self, ChunkWord, FeedWord};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Chunks that are looked at before a writer goes without an entry: all of them twice, but never more than this.
const LOOKS_MAX: u64 = 1 << 16;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Room for an entry, which nothing refers to until it is published. `None`: there is no chunk to be had.
    #[inline(always)]
    pub(super) fn feed_room(&self, place: &Place, slot: u32, cursor: &mut FeedCursor, bytes: u64) -> Option<u64> {
        if cursor.place.word != place.word || cursor.next + bytes > cursor.end {
            self.claim_chunks(place, slot, cursor, bytes)?;
        }
        let entry = cursor.next;
        cursor.next += bytes;
        Some(entry)
    }

    #[cold]
    #[inline(never)]
    fn claim_chunks(&self, place: &Place, slot: u32, cursor: &mut FeedCursor, bytes: u64) -> Option<()> {
        self.end_chunks(place, cursor);
        let geometry = place.geometry;
        let len = bytes.div_ceil(1 << geometry.chunk_shift);
        let tail = self.feed_tail(place);
        let floor = self.mem.load(place.base + feed::at::FLOOR, Ordering::Relaxed).min(tail);
        let oldest = floor.max(tail.saturating_sub(1 << geometry.ring_shift));
        // In the first round not what a slow writer has just given up: everything older would be lost with it.
        let due = oldest + (tail - oldest) / 2;
        let rounds = [due, u64::MAX];
        let mut at = self.mem.load(place.base + feed::at::HAND, Ordering::Relaxed) % geometry.chunks;
        for below in rounds {
            for _ in 0..geometry.chunks.min(LOOKS_MAX) {
                if at + len > geometry.chunks {
                    at = 0;
                }
                match self.try_claim_chunks(place, slot, at, len, below) {
                    Ok(highest) => {
                        *cursor = FeedCursor {
                            place: *place,
                            next: geometry.chunk_at(at),
                            end: geometry.chunk_at(at + len),
                            first: at,
                            len,
                        };
                        self.mem.store(place.base + feed::at::HAND, at + len, Ordering::Relaxed);
                        self.raise_floor(place, highest);
                        return Some(());
                    }
                    Err(taken) => at = taken + 1,
                }
            }
        }
        None
    }

    /// Takes chunks side by side whose entries are all below this position. `Ok`: below which one they are; `Err`: the
    /// one that cannot be had.
    fn try_claim_chunks(&self, place: &Place, slot: u32, first: u64, len: u64, below: u64) -> Result<u64, u64> {
        let mut highest = 0;
        for chunk in first..first + len {
            let at = place.base + place.geometry.table_at(chunk);
            let word = ChunkWord(self.mem.load(at, Ordering::Relaxed));
            let free = word.owner().is_none() || fault::is(Fault::ChunkShared);
            let claimed = free
                && word.below() <= below
                && self.mem.compare_exchange(at, word.0, ChunkWord::owned(slot).0).is_ok();
            if !claimed {
                // Those before it stay readable, so they are given back as they can have been at most.
                self.give_up(place, first, chunk - first, highest);
                return Err(chunk);
            }
            highest = highest.max(word.below());
        }
        Ok(highest)
    }

    /// Before a byte of a chunk is written again: positions up to its last are not to be read any more.
    fn raise_floor(&self, place: &Place, below: u64) {
        if fault::is(Fault::FloorUnraised) {
            return;
        }
        self.raise(place.base + feed::at::FLOOR, below);
        // SYNC(floor): a reader that copies a word of the next entry sees the floor behind its copy.
        self.mem.fence(Ordering::Release);
    }

    /// Gives chunks up whose entries are below this position.
    fn give_up(&self, place: &Place, first: u64, len: u64, below: u64) {
        for chunk in first..first + len {
            let at = place.base + place.geometry.table_at(chunk);
            // Release: what was written there comes before what the next owner writes.
            self.mem.store(at, ChunkWord::ended(below).0, Ordering::Release);
        }
    }

    /// Gives up what a writer fills. The tail is above every position that it published.
    fn end_chunks(&self, place: &Place, cursor: &mut FeedCursor) {
        let old = std::mem::take(cursor);
        if old.place.word == place.word {
            self.give_up(place, old.first, old.len, self.feed_tail(place));
        }
    }

    /// The same when the writer ends.
    pub(in crate::engine) fn retire_feed(&self, cursor: &mut FeedCursor) {
        if let Some(place) = self.feed_place().filter(|_| cursor.place.word != FeedWord::default()) {
            self.end_chunks(&place, cursor);
        }
    }

    /// Gives up what a crashed client filled. It may have published after the tail that is stored.
    pub(in crate::engine) fn recover_chunks(&self, slot: u32) {
        let Some(place) = self.feed_place() else { return };
        let end = self.feed_end(&place);
        for chunk in 0..place.geometry.chunks {
            let at = place.base + place.geometry.table_at(chunk);
            if ChunkWord(self.mem.load(at, Ordering::Relaxed)).owner() == Some(slot) {
                self.give_up(&place, chunk, 1, end);
            }
        }
    }
}
