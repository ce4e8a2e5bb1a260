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

/// Where the feed is, and the sizes of its parts.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Place {
    /// The header's word that led here.
    word: FeedWord,
    /// Offset of its region's bytes.
    base: u64,
    geometry: Geometry,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// The feed that is on. `None` also if what the header says of it cannot be.
    #[inline(always)]
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
