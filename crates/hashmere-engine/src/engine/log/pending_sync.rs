//! Segments of durable stores that are freed and wait for a sync before they are used again.

use crate::engine::Engine;
use hashmere_format::header::at;
use hashmere_format::segment;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// From this many segments that wait for a sync on, and at half of the file, a write syncs before the file grows.
const WAITING_MOST: u64 = 256;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Whether a segment that is pending free has the sync behind it that it waits for.
    pub(in crate::engine) fn is_synced(&self, segment: u64) -> bool {
        !self.layout.is_durable()
            || self.field(segment, segment::at::AWAITS) <= self.mem.load(at::SYNC_DONE, Ordering::Acquire)
    }

    /// Whether so much waits for a sync that the file should not grow before one.
    pub(in crate::engine) fn is_much_waiting(&self) -> bool {
        let waiting = self.mem.load(at::WAITING, Ordering::Relaxed);
        self.layout.is_durable() && waiting >= WAITING_MOST && waiting >= self.segments() / 2
    }
}
