//! Turning the feed of a store on and off.
//!
//! What must agree - the region, the header's word, the bit that writers see - changes under the region lock. A process
//! that is killed in between leaves something that the next one completes: a region that the header does not name is
//! named, one that has ended is dropped.

use crate::engine::log::region::Spot;
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::feed::{self, FeedWord, Geometry, BYTES, NAME};
use hashmere_format::header::at;
use hashmere_format::region::kind;
use hashmere_format::snapshot::Snapshot;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Times that another process may be faster.
const ATTEMPTS: u32 = 100;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Makes a feed of about this many bytes, unless there is one. Every change that is committed after this has
    /// returned has an entry.
    pub fn enable_feed(&self, writer: &mut Writer, bytes: u64, values: bool) -> Result<(), WriteError> {
        self.refuse_if_poisoned()?;
        if !(BYTES.0..=BYTES.1).contains(&bytes) {
            return Err(WriteError::InvalidState("a feed has 1 MiB to 32 GiB"));
        }
        self.make_feed(writer, Geometry::within(bytes, values))
    }

    /// The same with these sizes.
    pub(in crate::engine) fn make_feed(&self, writer: &mut Writer, geometry: Geometry) -> Result<(), WriteError> {
        for _ in 0..ATTEMPTS {
            if let Some(region) = self.open_region(kind::FEED, NAME)? {
                let on = self.switch_on(writer, region.spot);
                self.close_region(region);
                if on? {
                    return self.wait_for_writers(writer.slot);
                }
                // Another process was killed while it switched it off.
                self.disable_feed(writer)?;
                continue;
            }
            let number = self.next_feed_number();
            let made = self.create_region(writer, (kind::FEED, NAME), geometry.bytes(), |spot| {
                self.mem.zero(spot.data, geometry.chunk_at(0));
                self.mem.store(spot.data + feed::at::GEOMETRY, geometry.pack(), Ordering::Relaxed);
                self.mem.store(spot.data + feed::at::NUMBER, number, Ordering::Relaxed);
            })?;
            if let Some(region) = made {
                self.close_region(region);
            }
        }
        Err(WriteError::InvalidState("the feed is switched on and off all the time"))
    }

    /// Above that of every feed that the store had.
    fn next_feed_number(&self) -> u64 {
        let last = FeedWord(self.mem.load(at::FEED, Ordering::Acquire)).number();
        FeedWord::number_at(self.host.now_ms()).max(last + 1)
    }

    /// `false`: it has ended.
    fn switch_on(&self, writer: &Writer, spot: Spot) -> Result<bool, WriteError> {
        self.with_region_lock(writer, || {
            let has_ended = self.mem.load(spot.data + feed::at::ENDED, Ordering::Acquire) != 0;
            if has_ended || self.is_dropped(spot) {
                return false;
            }
            let number = self.mem.load(spot.data + feed::at::NUMBER, Ordering::Relaxed);
            // SYNC(feed): its header and its empty ring are seen by every client that sees the word.
            self.mem.store(at::FEED, FeedWord::new(spot.segment, number).0, Ordering::Release);
            self.turn_feed(true);
            true
        })
    }

    /// Ends the feed. `false`: there is none.
    pub fn disable_feed(&self, writer: &mut Writer) -> Result<bool, WriteError> {
        self.refuse_if_poisoned()?;
        let Some(region) = self.open_region(kind::FEED, NAME)? else { return Ok(false) };
        let spot = region.spot;
        let off = self.with_region_lock(writer, || {
            self.mem.store(spot.data + feed::at::ENDED, 1, Ordering::Release);
            self.turn_feed(false);
            let word = FeedWord(self.mem.load(at::FEED, Ordering::Relaxed));
            // SYNC(floor): the readers' last look. The region's bytes are used again only after it is dropped.
            self.mem.store(at::FEED, word.off().0, Ordering::SeqCst);
        });
        self.close_region(region);
        off?;
        writer.feed = Default::default();
        // Those who saw the bit may still write there.
        if !fault::is(Fault::FeedUnawaited) {
            self.wait_for_writers(writer.slot)?;
        }
        self.drop_region(writer, kind::FEED, NAME)
    }

    /// Sets or takes off the bit that writers see.
    fn turn_feed(&self, on: bool) {
        let mut seen = self.snapshot();
        // SYNC(snapshot): who becomes active after this exchange sees it; for the others the caller waits.
        while let Err(now) = self.mem.compare_exchange(at::SNAPSHOT, seen.0, seen.with_feed(on).0) {
            seen = Snapshot(now);
        }
        self.mem.fence(Ordering::SeqCst);
    }
}
