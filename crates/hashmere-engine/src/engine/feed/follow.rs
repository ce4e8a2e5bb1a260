//! What a consumer reads: entries by position, and waiting for the next one.

use crate::engine::client::wait::SEVERAL;
use crate::engine::feed::Place;
use crate::engine::Engine;
use crate::error::ReadError;
use crate::fault::{self, Fault};
use hashmere_format::feed::{self, RingWord};
use hashmere_format::header::{at, RootWord};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// No sleep is longer: a wake-up can be lost (`client/wait.rs`).
const NAP: Duration = Duration::from_millis(128);
/// A process that cannot ask to be woken looks again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The feed of a store, at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedInfo {
    /// Tells it from others that the store had.
    pub number: u64,
    /// Position of the next entry.
    pub position: u64,
    /// The first position that is still kept.
    pub oldest: u64,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Whether it keeps values.
    pub values: bool,
}

/// What is at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStep {
    /// An entry.
    Entry,
    /// A position without one: something could not be kept.
    Gap,
    /// Nothing yet.
    End,
    /// What is not kept any more.
    Gone,
    /// The feed is another one, or off.
    Off,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// The feed that is on; `None`: there is none.
    pub fn feed_info(&self) -> Option<FeedInfo> {
        let place = self.feed_place()?;
        let position = self.feed_end(&place);
        let floor = self.mem.load(place.base + feed::at::FLOOR, Ordering::Acquire);
        Some(FeedInfo {
            number: place.word.number(),
            position,
            oldest: floor.max(position.saturating_sub(1 << place.geometry.ring_shift)).min(position),
            bytes: place.geometry.bytes(),
            values: place.geometry.values,
        })
    }

    /// Copies the entry at a position of this feed.
    pub fn read_feed(&self, number: u64, position: u64, words: &mut Vec<u64>) -> Result<FeedStep, ReadError> {
        words.clear();
        // What this process has no addresses for is not taken for a feed that is off.
        let Some(place) = self.in_reach(|| self.feed_place())? else { return Ok(FeedStep::Off) };
        if place.word.number() != number {
            return Ok(FeedStep::Off);
        }
        let at = place.base + place.geometry.ring_at(position);
        let lap = place.geometry.lap(position);
        // SYNC(entry): the entry is seen as it was published.
        let word = RingWord(self.mem.load(at, Ordering::Acquire));
        if word.lap() != lap {
            return Ok(if word.is_before(lap) { self.end_or_gone(&place, position) } else { FeedStep::Gone });
        }
        if word.entry() != 0 && !self.copy_entry(&place, word.entry(), words)? {
            // Not what its writer published; unless it is gone, below.
            words.clear();
        }
        // SYNC(floor): if a word was of a later entry, the floor says so.
        self.mem.fence(Ordering::Acquire);
        let floor = self.mem.load(place.base + feed::at::FLOOR, Ordering::Relaxed);
        let same = self.mem.load(at, Ordering::Relaxed) == word.0;
        if (floor > position || !same) && !fault::is(Fault::EntryBelieved) {
            words.clear();
            return Ok(FeedStep::Gone);
        }
        if self.mem.load(at::FEED, Ordering::Acquire) != place.word.0 {
            words.clear();
            return Ok(FeedStep::Off);
        }
        Ok(if words.is_empty() { FeedStep::Gap } else { FeedStep::Entry })
    }

    /// At a position that no entry of its lap has: one behind the end will have one, others are gone.
    fn end_or_gone(&self, place: &Place, position: u64) -> FeedStep {
        let floor = self.mem.load(place.base + feed::at::FLOOR, Ordering::Acquire);
        if floor > position {
            FeedStep::Gone
        } else {
            FeedStep::End
        }
    }

    fn copy_entry(&self, place: &Place, entry: u64, words: &mut Vec<u64>) -> Result<bool, ReadError> {
        let end = place.geometry.bytes();
        if entry < place.geometry.chunk_at(0) || entry + 8 * 3 > end {
            return Ok(false);
        }
        let at = place.base + entry;
        let len = self.mem.load(at, Ordering::Relaxed) & 0xffff_ffff;
        if 8 * len > place.geometry.entry_max().min(end - entry) {
            return Ok(false);
        }
        words.try_reserve(len as usize).map_err(|_| ReadError::OutOfMemory { bytes: 8 * len })?;
        words.extend((0..len).map(|index| self.mem.load(at + 8 * index, Ordering::Relaxed)));
        Ok(true)
    }

    /// How often the store has been cleared, plus one.
    pub fn root_generation(&self) -> u64 {
        RootWord::unpack(self.root()).generation
    }

    /// The hash that a caller supplied, from what an entry has of it.
    pub fn as_supplied(&self, spread: u64) -> u64 {
        self.layout.hasher.as_supplied(spread)
    }

    /// UUID of the store, as the header has it.
    pub fn uuid(&self) -> [u64; 2] {
        [at::UUID, at::UUID + 8].map(|word| self.mem.load(word, Ordering::Relaxed))
    }

    /// Sleeps until something may have happened behind this position, or the store may have been cleared since this
    /// generation; at most for `timeout`, and never longer than a fraction of a second.
    pub fn wait_for_feed(&self, number: u64, position: u64, generation: u64, timeout: Duration) {
        let event = at::EVENTS + 8 * SEVERAL;
        let seen = self.mem.load(event, Ordering::Acquire) as u32;
        if self.access.read_only {
            return self.mem.wait(event, seen, timeout.min(LOOK_AGAIN));
        }
        // SYNC(waited): pairs with the look in `changed`: the writer wakes us, or we see its entry below.
        self.mem.fetch_or(at::WAITED, u64::MAX, Ordering::SeqCst);
        self.mem.fence(Ordering::SeqCst);
        if self.has_no_news(number, position, generation) {
            self.mem.wait(event, seen, timeout.min(NAP));
        }
    }

    /// Wakes those who follow, though nothing has happened.
    pub fn wake_followers(&self) {
        let event = at::EVENTS + 8 * SEVERAL;
        self.mem.fetch_add(event, 1, Ordering::AcqRel);
        self.mem.wake(event);
    }

    /// Whether a consumer of this feed that is at this position and generation has nothing to do.
    pub fn has_no_news(&self, number: u64, position: u64, generation: u64) -> bool {
        self.is_at_end(number, position) && self.root_generation() == generation
    }

    fn is_at_end(&self, number: u64, position: u64) -> bool {
        self.feed_place().filter(|place| place.word.number() == number).is_some_and(|place| {
            let word = RingWord(self.mem.load(place.base + place.geometry.ring_at(position), Ordering::Acquire));
            word.is_before(place.geometry.lap(position))
        })
    }
}
