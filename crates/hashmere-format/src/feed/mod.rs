//! The change feed: a region that keeps what happened to the keys of its store. `docs/internals/feed.md` has the
//! protocol.
//!
//! A ring of words, one for each position; a table with one word for each chunk; the chunks, which hold the entries.

mod entry;

pub use entry::{bit, decode, ChangeHead, Decoded, EntryHead, ENTRY_HEAD};

/// Name of the region.
pub const NAME: &[u8] = b"feed";
/// Bytes of the smallest feed, and of the largest.
pub const BYTES: (u64, u64) = (1 << 20, 32 << 30);
/// Bytes of the smallest chunk and of the largest, as powers of two.
const CHUNK_SHIFT: (u32, u32) = (10, 16);
/// Chunks that a feed has at least, unless they would be too small.
const CHUNKS_MIN_SHIFT: u32 = 10;
/// The ring has one word for this many bytes of the feed, as a power of two.
const RING_SHARE: u32 = 6;

/// Words of the region's header, as byte offsets.
pub mod at {
    /// [`Geometry`](super::Geometry).
    pub const GEOMETRY: u64 = 0;
    /// Number of this feed: when it was made, in milliseconds since 2020, above the number of the one before.
    pub const NUMBER: u64 = 8;
    /// 1: it is being switched off.
    pub const ENDED: u64 = 16;
    /// Position of the next entry, or a little less.
    pub const TAIL: u64 = 64;
    /// Positions below this may be overwritten.
    pub const FLOOR: u64 = 128;
    /// Chunk that is looked at next (a hint).
    pub const HAND: u64 = 192;
    /// The ring.
    pub const RING: u64 = 256;
}

/// Sizes of the parts; fixed when a feed is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// log2 of the words of the ring.
    pub ring_shift: u32,
    /// log2 of the bytes of a chunk.
    pub chunk_shift: u32,
    /// How many chunks there are.
    pub chunks: u64,
    /// Entries have values.
    pub values: bool,
}

impl Geometry {
    /// What fits into this many bytes, which are within [`BYTES`].
    pub fn within(bytes: u64, values: bool) -> Geometry {
        let shift = 63 - bytes.max(BYTES.0).min(BYTES.1).leading_zeros();
        let ring_shift = shift - RING_SHARE;
        let chunk_shift = (shift - CHUNKS_MIN_SHIFT).clamp(CHUNK_SHIFT.0, CHUNK_SHIFT.1);
        let rest = bytes.max(BYTES.0).min(BYTES.1) - at::RING - (8 << ring_shift);
        let chunks = rest / ((1 << chunk_shift) + 8);
        Geometry { ring_shift, chunk_shift, chunks, values }
    }

    /// As one word, which is not zero.
    pub fn pack(self) -> u64 {
        u64::from(self.ring_shift) | u64::from(self.chunk_shift) << 8 | self.chunks << 16 | u64::from(self.values) << 48
    }

    /// From that word; `None` if no feed can be like that.
    #[inline(always)]
    pub fn unpack(word: u64) -> Option<Geometry> {
        let geometry = Geometry {
            ring_shift: (word & 0xff) as u32,
            chunk_shift: (word >> 8 & 0xff) as u32,
            chunks: word >> 16 & 0xffff_ffff,
            values: word >> 48 & 1 == 1,
        };
        let fits = geometry.ring_shift <= 32 && geometry.chunk_shift <= CHUNK_SHIFT.1 && geometry.chunks != 0;
        (fits && geometry.chunk_shift >= CHUNK_SHIFT.0 && word >> 49 == 0).then_some(geometry)
    }

    /// Bytes of a feed like this.
    #[inline(always)]
    pub fn bytes(self) -> u64 {
        self.chunk_at(0) + (self.chunks << self.chunk_shift)
    }

    /// Bytes of all chunks.
    pub fn chunk_bytes(self) -> u64 {
        self.chunks << self.chunk_shift
    }

    /// Bytes of the longest entry.
    #[inline(always)]
    pub fn entry_max(self) -> u64 {
        (self.chunk_bytes() / 8).min(u64::from(u32::MAX))
    }

    /// Where the word of a position is.
    #[inline(always)]
    pub fn ring_at(self, position: u64) -> u64 {
        at::RING + 8 * (position & ((1 << self.ring_shift) - 1))
    }

    /// The lap in which a position is, as ring words have it.
    #[inline(always)]
    pub fn lap(self, position: u64) -> u64 {
        ((position >> self.ring_shift) + 1) & LAP_MAX
    }

    /// Where the table's word of a chunk is.
    #[inline(always)]
    pub fn table_at(self, chunk: u64) -> u64 {
        at::RING + (8 << self.ring_shift) + 8 * chunk
    }

    /// Where a chunk begins.
    #[inline(always)]
    pub fn chunk_at(self, chunk: u64) -> u64 {
        self.table_at(self.chunks) + (chunk << self.chunk_shift)
    }
}

const ENTRY_BITS: u32 = 33;
const LAP_MAX: u64 = (1 << (64 - ENTRY_BITS)) - 1;

/// A word of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingWord(pub u64);

impl RingWord {
    /// The word for an entry at this offset of the region, a multiple of 8; 0 is a gap.
    #[inline(always)]
    pub fn new(entry: u64, lap: u64) -> RingWord {
        RingWord((lap << ENTRY_BITS) | (entry / 8))
    }
    /// Offset of the entry in the region; 0: a gap.
    #[inline(always)]
    pub fn entry(self) -> u64 {
        (self.0 & ((1 << ENTRY_BITS) - 1)) * 8
    }
    /// The lap in which it was stored; 0: none.
    #[inline(always)]
    pub fn lap(self) -> u64 {
        self.0 >> ENTRY_BITS
    }
    /// Whether it is of the lap before this one.
    #[inline(always)]
    pub fn is_before(self, lap: u64) -> bool {
        self.lap() == lap.wrapping_sub(1) & LAP_MAX
    }
}

const POSITION_BITS: u32 = 53;
/// The largest position.
pub const POSITION_MAX: u64 = (1 << POSITION_BITS) - 1;

/// A word of the chunk table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkWord(pub u64);

impl ChunkWord {
    /// A client writes into it.
    pub fn owned(slot: u32) -> ChunkWord {
        ChunkWord(u64::from(slot + 1) << POSITION_BITS)
    }
    /// It is full or was given up: its entries have positions below this.
    pub fn ended(below: u64) -> ChunkWord {
        ChunkWord(below & POSITION_MAX)
    }
    /// Client slot of the owner.
    pub fn owner(self) -> Option<u32> {
        ((self.0 >> POSITION_BITS) as u32).checked_sub(1)
    }
    /// The positions of its entries are below this; 0: there are none.
    pub fn below(self) -> u64 {
        self.0 & POSITION_MAX
    }
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Operation {
    /// It got a value.
    Set = 1,
    /// It was deleted.
    Delete = 2,
    /// Expiry, flags or marks changed; value and version stayed.
    Touch = 3,
    /// It was evicted by a cache.
    Evict = 4,
    /// It had expired and was removed.
    Expire = 5,
}

impl Operation {
    /// From its number.
    pub fn from_number(number: u64) -> Option<Operation> {
        Some(match number {
            1 => Operation::Set,
            2 => Operation::Delete,
            3 => Operation::Touch,
            4 => Operation::Evict,
            5 => Operation::Expire,
            _ => return None,
        })
    }
    /// Whether the key is gone afterwards.
    pub fn removes(self) -> bool {
        matches!(self, Operation::Delete | Operation::Evict | Operation::Expire)
    }
}

/// The word of a client record that says what a write is about to do: an operation, and the record that it changes
/// where that is not in the intent of its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedIntent(pub u64);

impl FeedIntent {
    /// Nothing is under way.
    pub const NONE: FeedIntent = FeedIntent(0);
    /// A commit whose intent says the rest.
    #[inline(always)]
    pub fn commit(operation: Operation) -> FeedIntent {
        FeedIntent(operation as u64)
    }
    /// A record that changes in place.
    #[inline(always)]
    pub fn in_place(operation: Operation, record: u64) -> FeedIntent {
        FeedIntent(operation as u64 | record << 8)
    }
    /// The operation.
    pub fn operation(self) -> Option<Operation> {
        Operation::from_number(self.0 & 0xff)
    }
    /// The record; 0: the intent of the commit says it.
    pub fn record(self) -> u64 {
        self.0 >> 8
    }
}

/// The word of the header that says where the feed is: its region's segment, and the feed's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedWord(pub u64);

impl FeedWord {
    const NUMBER_BITS: u32 = 40;
    const NUMBER_MAX: u64 = (1 << Self::NUMBER_BITS) - 1;
    const ON: u64 = 1 << Self::NUMBER_BITS;
    const SEGMENT_SHIFT: u32 = Self::NUMBER_BITS + 1;
    /// 2020-01-01, in milliseconds since 1970: the numbers last until 2054, and count on from there.
    const EPOCH: u64 = 1_577_836_800_000;

    /// A feed in the region that begins in this segment.
    pub fn new(segment: u64, number: u64) -> FeedWord {
        FeedWord(segment << Self::SEGMENT_SHIFT | Self::ON | number & Self::NUMBER_MAX)
    }
    /// There is none any more; the number stays.
    pub fn off(self) -> FeedWord {
        FeedWord(self.0 & Self::NUMBER_MAX)
    }
    /// Whether there is one.
    #[inline(always)]
    pub fn is_on(self) -> bool {
        self.0 & Self::ON != 0
    }
    /// The number for a feed that is made at this time, in milliseconds since 1970.
    pub fn number_at(ms: u64) -> u64 {
        ms.saturating_sub(Self::EPOCH).min(Self::NUMBER_MAX)
    }
    /// The segment.
    #[inline(always)]
    pub fn segment(self) -> u64 {
        self.0 >> Self::SEGMENT_SHIFT
    }
    /// The number of the feed, or of the last one.
    #[inline(always)]
    pub fn number(self) -> u64 {
        self.0 & Self::NUMBER_MAX
    }
}

const _: () = {
    assert!(crate::header::limit::SEGMENTS <= 1 << (64 - FeedWord::SEGMENT_SHIFT));
    assert!(BYTES.1 / 8 <= 1 << ENTRY_BITS);
    assert!(crate::header::limit::CLIENTS < 1 << (64 - POSITION_BITS));
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometry_fits_its_bytes() {
        for bytes in [BYTES.0, BYTES.0 + 1, (3 << 20) + 17, 64 << 20, 1 << 30, BYTES.1] {
            let geometry = Geometry::within(bytes, bytes % 2 == 0);
            assert!(geometry.bytes() <= bytes, "{bytes}: {geometry:?}");
            assert!(geometry.bytes() > bytes - bytes / 4, "{bytes}: {geometry:?}");
            assert!(geometry.chunks >= 512, "{bytes}: {geometry:?}");
            assert_eq!(Geometry::unpack(geometry.pack()), Some(geometry));
            assert!(geometry.ring_at(u64::MAX) < geometry.table_at(0));
            assert_eq!(geometry.chunk_at(0), geometry.table_at(geometry.chunks));
        }
        for word in [0, u64::MAX, 33 | 10 << 8 | 1 << 16, 14 | 9 << 8 | 1 << 16, 14 | 10 << 8] {
            assert_eq!(Geometry::unpack(word), None, "{word:x}");
        }
    }

    #[test]
    fn words_of_the_ring_tell_laps_apart() {
        let geometry = Geometry::within(1 << 20, false);
        let ring = 1 << geometry.ring_shift;
        assert!(RingWord(0).is_before(geometry.lap(0)) && RingWord(0).is_before(geometry.lap(ring - 1)));
        assert!(!RingWord(0).is_before(geometry.lap(ring)));
        let word = RingWord::new(0x1_0000_0008, geometry.lap(3 * ring));
        assert_eq!((word.entry(), word.lap()), (0x1_0000_0008, 4));
        assert!(word.is_before(geometry.lap(4 * ring)) && !word.is_before(word.lap()));
        let last = RingWord::new(8, LAP_MAX);
        assert!(last.is_before(0) && last.entry() == 8);
    }

    #[test]
    fn words_round_trip() {
        assert_eq!(Operation::from_number(0), None);
        assert_eq!(Operation::from_number(6), None);
        assert_eq!(ChunkWord::owned(1023).owner(), Some(1023));
        assert_eq!((ChunkWord::ended(77).owner(), ChunkWord::ended(77).below()), (None, 77));
        let number = FeedWord::number_at(1_795_000_000_000);
        let word = FeedWord::new((1 << 23) - 1, number);
        assert_eq!((word.segment(), word.number(), word.is_on()), ((1 << 23) - 1, 217_163_200_000, true));
        assert_eq!((word.off().number(), word.off().is_on()), (number, false));
        let intent = FeedIntent::in_place(Operation::Set, 1 << 40);
        assert_eq!((intent.operation(), intent.record()), (Some(Operation::Set), 1 << 40));
    }
}
