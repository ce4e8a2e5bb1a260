//! The change feed: what happened to the keys, in a region of the file, for consumers that follow it.
//!
//! [`report`] writes the entry of a change behind its commit and [`publish`] gives it a position; [`chunks`] is the
//! room that entries take. [`switch`] turns a feed on and off, [`follow`] is what a consumer reads, and [`repair`]
//! writes the entries of what crashed processes changed. `docs/internals/feed.md` has the protocol and its argument.

mod chunks;
mod follow;
mod publish;
pub(in crate::engine) mod repair;
pub(in crate::engine) mod report;
mod switch;

pub use follow::{FeedInfo, FeedStep};

use crate::engine::Engine;
use hashmere_format::feed::{self, FeedWord, Geometry};
use hashmere_format::header::at;
use hashmere_format::region;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

use crate::engine::client::writer_state::{FeedCursor, FeedPlace as Place};

impl<M: Mem, H: Host> Engine<M, H> {
    /// The feed that is on, for a writer that may have written to it before: then its bounds are known.
    #[inline(always)]
    fn feed_place_for(&self, cursor: &FeedCursor) -> Option<Place> {
        // SYNC(feed): as in `feed_place`.
        let word = FeedWord(self.mem.load(at::FEED, Ordering::Acquire));
        if cursor.place.word == word && word.is_on() {
            return Some(cursor.place);
        }
        self.feed_place()
    }

    /// The feed that is on. `None` also if what the header says of it cannot be.
    #[inline(never)]
    fn feed_place(&self) -> Option<Place> {
        // SYNC(feed): pairs with the store in `switch_on`: the header of the region and its empty ring are seen.
        let word = FeedWord(self.mem.load(at::FEED, Ordering::Acquire));
        if !word.is_on() {
            return None;
        }
        let base = self.segment_offset(word.segment()) + region::DATA;
        if !self.is_inside(base, feed::at::RING) {
            return None;
        }
        let geometry = Geometry::unpack(self.mem.load(base + feed::at::GEOMETRY, Ordering::Relaxed))?;
        self.is_inside(base, geometry.bytes()).then_some(Place { word, base, geometry })
    }
}
