//! Every byte of a log: where things are in its region, and how each word is packed. `docs/internals/log.md` draws it.

use crate::error::LogError;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// `"MERELOGS"`, with the version of this layout added.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"MERELOGS") + 1;
/// Bytes of text that are on their way out at a time.
pub(crate) const STAGE: u64 = 128 << 10;
/// Longest payload of a line, if the rings are large enough. Written as JSON it still fits the stage.
pub(crate) const LINE_MAX: u64 = 16 << 10;

/// Words of the header.
pub(crate) mod at {
    pub(crate) const MAGIC: u64 = 0;
    pub(crate) const RINGS: u64 = 8;
    pub(crate) const RING_BYTES: u64 = 16;
    pub(crate) const HISTORY_BYTES: u64 = 24;
    pub(crate) const CLOCK: u64 = 32;
    pub(crate) const ANCHOR_TICKS: u64 = 40;
    pub(crate) const ANCHOR_NS: u64 = 48;
    // What every writer reads and is rarely written.
    pub(crate) const LEVEL: u64 = 128;
    pub(crate) const WAKE_FLAG: u64 = 136;
    pub(crate) const DRAINER: u64 = 144;
    pub(crate) const DRAINER_PID: u64 = 152;
    pub(crate) const THREADS: u64 = 256;
    // The drainer's.
    pub(crate) const MERGE: u64 = 384;
    pub(crate) const END: u64 = 392;
    pub(crate) const OLDEST: u64 = 400;
    pub(crate) const SENT: u64 = 408;
    pub(crate) const CHUNK: u64 = 416;
    pub(crate) const CHUNK_LEN: u64 = 424;
    pub(crate) const PROGRESS: u64 = 432;
    pub(crate) const SINK_DEVICE: u64 = 440;
    pub(crate) const SINK_INODE: u64 = 448;
    pub(crate) const LAST_NS: u64 = 456;
    pub(crate) const LINES: u64 = 464;
    pub(crate) const LOST: u64 = 472;
    pub(crate) const NEXT_LINES: u64 = 480;
    pub(crate) const NEXT_LOST: u64 = 488;
    /// What the drainer sleeps on.
    pub(crate) const EVENT: u64 = 512;
    pub(crate) const FOLLOWERS: u64 = 640;
    /// What followers sleep on.
    pub(crate) const NEWS: u64 = 648;
    pub(crate) const SIZE: u64 = 1024;
}

/// Words of a row.
pub(crate) mod row {
    // Its writer's.
    pub(crate) const TAIL: u64 = 0;
    pub(crate) const LOW: u64 = 8;
    /// Number of the next line, kept here whenever one was dropped and when the writer leaves.
    pub(crate) const TRIED: u64 = 16;
    pub(crate) const WAITING: u64 = 24;
    // The drainer's.
    pub(crate) const HEAD: u64 = 128;
    /// Number of the line that is to come next from this ring.
    pub(crate) const LAST: u64 = 136;
    pub(crate) const NEXT_HEAD: u64 = 144;
    pub(crate) const NEXT_LAST: u64 = 152;
    /// What a writer sleeps on that found the ring full.
    pub(crate) const EVENT: u64 = 160;
    // Of the thread that claims it.
    pub(crate) const OWNER: u64 = 256;
    /// Lines that were cut off by death (low 16 bits), and the position of the last of them plus one.
    pub(crate) const HALVES: u64 = 264;
    /// Thread and process that claimed it last.
    pub(crate) const WHO: u64 = 272;
    /// Those who had it before, as long as lines of theirs may be missed: [`super::past`].
    pub(crate) const PAST: u64 = 280;
    pub(crate) const SIZE: u64 = 384;
}

/// Words of an entry of a row's past, and how many there are.
pub(crate) mod past {
    /// [`KNOWN`], and the number behind the last line of that owner.
    pub(crate) const UNTIL: u64 = 0;
    pub(crate) const KNOWN: u64 = 1 << 32;
    /// Thread and process; 0: several.
    pub(crate) const WHO: u64 = 8;
    pub(crate) const SIZE: u64 = 16;
    pub(crate) const ENTRIES: u64 = 6;
}

/// Words of a name.
pub(crate) mod name {
    pub(crate) const WHO: u64 = 0;
    pub(crate) const TEXT: u64 = 16;
    pub(crate) const TEXT_MAX: usize = 16;
    pub(crate) const SIZE: u64 = 32;
}

/// Words of a line, in a ring and in the history.
pub(crate) mod line {
    pub(crate) const HEAD: u64 = 0;
    pub(crate) const STAMP: u64 = 8;
    pub(crate) const WHO: u64 = 16;
    /// In a ring.
    pub(crate) const PAYLOAD: u64 = 24;
    /// In the history.
    pub(crate) const NAME: u64 = 24;
    pub(crate) const LOST: u64 = 40;
    pub(crate) const MERGED_PAYLOAD: u64 = 48;
}

/// What the drainer does, for writers to know whether to wake it.
pub(crate) mod wake_flag {
    pub(crate) const AWAKE: u64 = 0;
    pub(crate) const NAPS: u64 = 1;
    pub(crate) const SLEEPS: u64 = 2;
    pub(crate) const NO_DRAINER: u64 = 3;
}

/// In a tail: a line is being written.
pub(crate) const BUSY: u64 = 1;
/// What a position can be: below 2^62, a multiple of 8. What a word has beyond that is damage, and is not looked at.
pub(crate) const POSITION: u64 = (1 << 62) - 8;
/// In `MERGE` and `CHUNK`, whose positions are multiples of 8.
pub(crate) const COMMITTED: u64 = 1;

/// Clocks that stamps are of.
pub(crate) mod clock {
    pub(crate) const TICKS: u64 = 1;
    pub(crate) const MONOTONIC: u64 = 2;
}

/// Flags of a line.
pub(crate) mod flag {
    /// Not a line: goes up to the end of the ring.
    pub(crate) const FILLER: u64 = 1;
    /// The next line of this thread continues it.
    pub(crate) const MORE: u64 = 2;
    /// The payload has fields.
    pub(crate) const FIELDS: u64 = 4;
    /// It continues the line before.
    pub(crate) const CONTINUED: u64 = 8;
}

/// The level of a line that was not logged: it says how many lines were lost.
pub(crate) const NOTE: u64 = 0;

/// First word of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) payload: u64,
    pub(crate) level: u64,
    pub(crate) flags: u64,
    pub(crate) number: u32,
}

impl Head {
    #[inline(always)]
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.number) << 32 | self.flags << 28 | self.level << 24 | self.payload
    }

    #[inline(always)]
    pub(crate) fn unpack(word: u64) -> Head {
        Head { payload: word & 0xff_ffff, level: word >> 24 & 15, flags: word >> 28 & 15, number: (word >> 32) as u32 }
    }

    #[inline(always)]
    pub(crate) fn is_filler(self) -> bool {
        self.flags & flag::FILLER != 0
    }
}

/// Bytes of a ring: a power of two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

impl Span {
    /// The offset of a position of its endless sequence.
    #[inline(always)]
    pub(crate) fn at(self, position: u64) -> u64 {
        self.start + (position & (self.bytes - 1))
    }

    /// Bytes from a position to the end of the ring.
    #[inline(always)]
    pub(crate) fn rest(self, position: u64) -> u64 {
        self.bytes - (position & (self.bytes - 1))
    }
}

/// Sizes and places of a log, as offsets in its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) rings: u64,
    pub(crate) ring_bytes: u64,
    pub(crate) history_bytes: u64,
}

impl Geometry {
    /// Sizes are rounded up to powers of two, and the history to twice a ring. `None`: out of bounds.
    pub(crate) fn new(rings: u64, ring_bytes: u64, history_bytes: u64) -> Option<Geometry> {
        const MOST: u64 = 1 << 40;
        if !(1..=1024).contains(&rings) || !(1..=32 << 20).contains(&ring_bytes) || history_bytes > MOST {
            return None;
        }
        let ring_bytes = ring_bytes.next_power_of_two().max(4 << 10);
        let history_bytes = history_bytes.next_power_of_two().max(2 * ring_bytes).max(64 << 10);
        Some(Geometry { rings, ring_bytes, history_bytes })
    }

    /// Most bytes of a payload.
    #[inline(always)]
    pub(crate) fn line_max(&self) -> u64 {
        (self.ring_bytes / 4).min(LINE_MAX)
    }

    #[inline(always)]
    pub(crate) fn row(&self, ring: u64) -> u64 {
        at::SIZE + ring * row::SIZE
    }

    pub(crate) fn names(&self) -> u64 {
        4 * self.rings
    }

    /// The name of the thread of this number.
    pub(crate) fn name(&self, thread: u64) -> u64 {
        self.row(self.rings) + thread % self.names() * name::SIZE
    }

    pub(crate) fn stage(&self) -> u64 {
        (self.row(self.rings) + self.names() * name::SIZE).next_multiple_of(128)
    }

    pub(crate) fn history(&self) -> u64 {
        self.stage() + STAGE
    }

    pub(crate) fn ring(&self, ring: u64) -> u64 {
        self.history() + self.history_bytes + ring * self.ring_bytes
    }

    /// Bytes of the whole log.
    pub(crate) fn size(&self) -> u64 {
        self.ring(self.rings)
    }

    /// Writes an empty log at `base`, whatever is there. The clock and its anchor: what it is, ticks and nanoseconds
    /// now.
    pub(crate) fn format<M: Mem>(&self, mem: &M, base: u64, clock: (u64, u64, u64), level: u64) {
        mem.zero(base, self.stage());
        let put = |at: u64, value: u64| mem.store(base + at, value, Ordering::Relaxed);
        put(at::MAGIC, MAGIC);
        put(at::RINGS, self.rings);
        put(at::RING_BYTES, self.ring_bytes);
        put(at::HISTORY_BYTES, self.history_bytes);
        put(at::CLOCK, clock.0);
        put(at::ANCHOR_TICKS, clock.1);
        put(at::ANCHOR_NS, clock.2);
        put(at::LEVEL, level);
        put(at::WAKE_FLAG, wake_flag::NO_DRAINER);
    }

    /// Believes the header of a log of `len` bytes if everything in it lies within.
    pub(crate) fn read<M: Mem>(mem: &M, base: u64, len: u64) -> Result<Geometry, LogError> {
        let get = |at: u64| mem.load(base + at, Ordering::Acquire);
        let damaged = || LogError::damaged("the header of a log is damaged", base);
        if len < at::SIZE || get(at::MAGIC) != MAGIC || !(clock::TICKS..=clock::MONOTONIC).contains(&get(at::CLOCK)) {
            return Err(damaged());
        }
        let sizes = (get(at::RINGS), get(at::RING_BYTES), get(at::HISTORY_BYTES));
        match Geometry::new(sizes.0, sizes.1, sizes.2) {
            Some(geometry) if sizes == (geometry.rings, geometry.ring_bytes, geometry.history_bytes) => {
                Some(geometry).filter(|geometry| geometry.size() <= len).ok_or_else(damaged)
            }
            _ => Err(damaged()),
        }
    }
}

/// A log in memory.
#[derive(Debug)]
pub(crate) struct LogCore<'a, M> {
    pub(crate) mem: &'a M,
    pub(crate) base: u64,
    pub(crate) geometry: &'a Geometry,
}

impl<M> Clone for LogCore<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for LogCore<'_, M> {}

impl<'a, M: Mem> LogCore<'a, M> {
    #[inline(always)]
    pub(crate) fn get(&self, at: u64) -> u64 {
        self.mem.load(self.base + at, Ordering::Acquire)
    }

    /// A word that holds a position.
    #[inline(always)]
    pub(crate) fn position(&self, at: u64) -> u64 {
        self.get(at) & POSITION
    }

    /// Refuses a history whose words cannot all be right. No search in it goes on for longer than it is long, then.
    pub(crate) fn check_history(&self) -> Result<(), LogError> {
        let words @ [oldest, sent, end] = [at::OLDEST, at::SENT, at::END].map(|at| self.get(at));
        let is_ordered = oldest <= sent && sent <= end && end - oldest <= self.geometry.history_bytes;
        if !is_ordered || words.iter().any(|word| word & !POSITION != 0) {
            return Err(LogError::damaged("the history of a log contradicts itself", self.base));
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn put(&self, at: u64, value: u64) {
        self.mem.store(self.base + at, value, Ordering::Release);
    }

    /// Offset of a row in memory.
    #[inline(always)]
    pub(crate) fn row(&self, ring: u64) -> u64 {
        self.base + self.geometry.row(ring)
    }

    pub(crate) fn ring(&self, ring: u64) -> Span {
        Span { start: self.base + self.geometry.ring(ring), bytes: self.geometry.ring_bytes }
    }

    pub(crate) fn history(&self) -> Span {
        Span { start: self.base + self.geometry.history(), bytes: self.geometry.history_bytes }
    }

    /// Wakes the drainer, whatever it does.
    pub(crate) fn wake_drainer(&self) {
        self.mem.fetch_add(self.base + at::EVENT, 1, Ordering::AcqRel);
        self.mem.wake(self.base + at::EVENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_round_trip() {
        for (payload, level, flags, number) in [(0, 0, 0, 0), (0xff_ffff, 15, 15, u32::MAX), (17, 3, 4, 9)] {
            let head = Head { payload, level, flags, number };
            assert_eq!(Head::unpack(head.pack()), head);
        }
    }

    #[test]
    fn nothing_overlaps() {
        for (rings, bytes, history) in [(1, 1, 0), (3, 5000, 1 << 20), (1024, 32 << 20, 1)] {
            let g = Geometry::new(rings, bytes, history).unwrap();
            assert!(g.ring_bytes.is_power_of_two() && g.ring_bytes >= bytes && g.history_bytes >= 2 * g.ring_bytes);
            assert!(g.name(g.names() - 1) + name::SIZE <= g.stage());
            assert!(g.stage() % 128 == 0 && g.history() == g.stage() + STAGE);
            assert_eq!(g.ring(rings), g.size());
            const { assert!(row::PAST + past::ENTRIES * past::SIZE <= row::SIZE) };
            assert!(line::MERGED_PAYLOAD + g.line_max() <= g.history_bytes / 4);
        }
        assert!(Geometry::new(0, 1, 1).is_none() && Geometry::new(1, 1 << 30, 1).is_none());
    }
}
