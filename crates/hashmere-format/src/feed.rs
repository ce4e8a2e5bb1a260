//! The change feed: a region that keeps what happened to the keys of its store. `docs/internals/feed.md` has the
//! protocol.
//!
//! A ring of words, one for each position; a table with one word for each chunk; the chunks, which hold the entries.

use crate::record::{VERSION_MAX, VERSION_SHIFT};

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
    /// Number of this feed: when it was made, in milliseconds, above the number of the one before.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        RingWord(lap << ENTRY_BITS | entry / 8)
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

/// Bits of a change.
pub mod bit {
    /// It has an expiry.
    pub const EXPIRES: u64 = 1;
    /// It has flags.
    pub const FLAGS: u64 = 2;
    /// Its value is there.
    pub const VALUE: u64 = 4;
    /// The value would be there, but is too long.
    pub const OMITTED: u64 = 8;
    /// The key was given with a hash.
    pub const HASHED: u64 = 16;
}

const OPERATION_BITS: u32 = 6;
const BITS: u64 = (1 << (VERSION_SHIFT - OPERATION_BITS)) - 1;

/// Bytes of the head of an entry.
pub const ENTRY_HEAD: u64 = 24;

/// The head of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHead {
    /// Words of the whole entry.
    pub words: u64,
    /// How many changes it has.
    pub changes: u64,
    /// Wall clock, milliseconds.
    pub ts_ms: u64,
    /// Low half of the root's generation.
    pub generation: u32,
    /// What the process that wrote it called itself; 0: nothing.
    pub origin: u32,
}

impl EntryHead {
    /// The three words.
    #[inline(always)]
    pub fn pack(self) -> [u64; 3] {
        [
            self.words | self.changes << 32,
            self.ts_ms & ((1 << 48) - 1),
            u64::from(self.generation) | u64::from(self.origin) << 32,
        ]
    }
    /// From the three words.
    pub fn unpack(words: [u64; 3]) -> EntryHead {
        EntryHead {
            words: words[0] & 0xffff_ffff,
            changes: words[0] >> 32 & 0xffff,
            ts_ms: words[1] & ((1 << 48) - 1),
            generation: words[2] as u32,
            origin: (words[2] >> 32) as u32,
        }
    }
}

/// The head of a change: what is known without key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeHead {
    /// The operation.
    pub operation: Operation,
    /// The version that the change gave the key.
    pub version: u64,
    /// Bytes of the key.
    pub key_len: u32,
    /// Bytes of the value that the key has afterwards, whether it is there or not.
    pub value_len: u32,
    /// Wall clock of the expiry.
    pub expires: Option<u64>,
    /// Flags and marks.
    pub flags: u64,
    /// [`bit`]s that are not implied by the other fields.
    pub bits: u64,
}

impl ChangeHead {
    fn all_bits(&self) -> u64 {
        let expires = if self.expires.is_some() { bit::EXPIRES } else { 0 };
        let flags = if self.flags != 0 { bit::FLAGS } else { 0 };
        self.bits & !(bit::EXPIRES | bit::FLAGS) | expires | flags
    }

    /// Words of the head.
    #[inline(always)]
    pub fn words(&self) -> u64 {
        2 + u64::from(self.expires.is_some()) + u64::from(self.flags != 0)
    }

    /// Bytes of key and value as they are stored, without padding.
    #[inline(always)]
    pub fn payload(&self) -> u64 {
        let value = if self.bits & bit::VALUE != 0 { u64::from(self.value_len) } else { 0 };
        u64::from(self.key_len) + value
    }

    /// Bytes of the whole change.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        8 * self.words() + self.payload().next_multiple_of(8)
    }

    /// Stores the head word by word: `store(index, word)`.
    #[inline(always)]
    pub fn write(&self, mut store: impl FnMut(u64, u64)) {
        store(
            0,
            (self.version & VERSION_MAX) << VERSION_SHIFT | self.all_bits() << OPERATION_BITS | self.operation as u64,
        );
        store(1, u64::from(self.key_len) | u64::from(self.value_len) << 32);
        let mut next = 2;
        if let Some(expires) = self.expires {
            store(next, expires);
            next += 1;
        }
        if self.flags != 0 {
            store(next, self.flags);
        }
    }

    /// Reads a head: `load(index)` is `None` behind the end. `None`: there is none.
    pub fn read(mut load: impl FnMut(u64) -> Option<u64>) -> Option<ChangeHead> {
        let first = load(0)?;
        let lengths = load(1)?;
        let bits = first >> OPERATION_BITS & BITS;
        let mut next = 2;
        let mut optional = |has: bool| -> Option<Option<u64>> {
            if !has {
                return Some(None);
            }
            next += 1;
            load(next - 1).map(Some)
        };
        let expires = optional(bits & bit::EXPIRES != 0)?;
        let flags = optional(bits & bit::FLAGS != 0)?.unwrap_or(0);
        Some(ChangeHead {
            operation: Operation::from_number(first & ((1 << OPERATION_BITS) - 1))?,
            version: first >> VERSION_SHIFT,
            key_len: lengths as u32,
            value_len: (lengths >> 32) as u32,
            expires,
            // A head with the bit and without flags would be shorter when it is written again.
            flags,
            bits: bits & !(bit::EXPIRES | bit::FLAGS),
        })
    }
}

/// The word of the header that says where the feed is: its region's segment, and the feed's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedWord(pub u64);

impl FeedWord {
    const NUMBER_BITS: u32 = 41;
    /// Largest number: milliseconds since 1970 until the year 2039, and from then on one more each time.
    pub const NUMBER_MAX: u64 = (1 << Self::NUMBER_BITS) - 1;

    /// A feed in the region that begins in this segment.
    pub fn new(segment: u64, number: u64) -> FeedWord {
        FeedWord(segment << Self::NUMBER_BITS | number & Self::NUMBER_MAX)
    }
    /// The segment.
    #[inline(always)]
    pub fn segment(self) -> u64 {
        self.0 >> Self::NUMBER_BITS
    }
    /// The number, which is not zero where there is a feed.
    #[inline(always)]
    pub fn number(self) -> u64 {
        self.0 & Self::NUMBER_MAX
    }
}

const _: () = {
    assert!(crate::header::limit::SEGMENTS <= 1 << (64 - FeedWord::NUMBER_BITS));
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
    fn heads_round_trip() {
        let entry = EntryHead { words: 7, changes: 1024, ts_ms: 1 << 47, generation: 9, origin: u32::MAX };
        assert_eq!(EntryHead::unpack(entry.pack()), entry);
        for expires in [None, Some(5)] {
            for flags in [0, 7 | 9 << 32] {
                for bits in [0, bit::VALUE, bit::OMITTED | bit::HASHED] {
                    let head = ChangeHead {
                        operation: Operation::Touch,
                        version: VERSION_MAX,
                        key_len: 3,
                        value_len: 6,
                        expires,
                        flags,
                        bits,
                    };
                    let mut words = vec![0; head.words() as usize];
                    head.write(|index, word| words[index as usize] = word);
                    assert_eq!(ChangeHead::read(|index| words.get(index as usize).copied()), Some(head));
                    for short in 0..words.len() {
                        assert_eq!(ChangeHead::read(|index| words[..short].get(index as usize).copied()), None);
                    }
                    assert_eq!(head.bytes(), 8 * head.words() + if bits & bit::VALUE != 0 { 16 } else { 8 });
                }
            }
        }
        assert_eq!(Operation::from_number(0), None);
        assert_eq!(Operation::from_number(6), None);
        assert_eq!(ChunkWord::owned(1023).owner(), Some(1023));
        assert_eq!((ChunkWord::ended(77).owner(), ChunkWord::ended(77).below()), (None, 77));
        let word = FeedWord::new((1 << 23) - 1, 1_795_000_000_000);
        assert_eq!((word.segment(), word.number()), ((1 << 23) - 1, 1_795_000_000_000));
        let intent = FeedIntent::in_place(Operation::Set, 1 << 40);
        assert_eq!((intent.operation(), intent.record()), (Some(Operation::Set), 1 << 40));
    }
}
