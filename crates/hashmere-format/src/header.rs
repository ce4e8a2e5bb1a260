//! The fixed area at the start of the file: the header page, the table of segment table chunks,
//! the first chunk, and the client table.
//!
//! All offsets are bytes from the start of the file; all words are little-endian 64-bit.

/// `"HASHMERE"` as a little-endian word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HASHMERE");
/// Version of the format that this crate writes.
pub const FORMAT: u64 = 1;
/// Bytes of the header page.
pub const PAGE: u64 = 4096;

/// Words of the header page, as byte offsets. Words below [`at::CHECKSUM`] never change after creation.
pub mod at {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: u64 = 0;
    /// [`FORMAT`](super::FORMAT).
    pub const FORMAT: u64 = 8;
    /// Features that a client may ignore.
    pub const COMPAT: u64 = 16;
    /// Features that a client must know to write.
    pub const RO_COMPAT: u64 = 24;
    /// Features that a client must know to open the file at all.
    pub const INCOMPAT: u64 = 32;
    /// [`layout_hash`](crate::layout::layout_hash): guards against a layout that changed without a new version.
    pub const LAYOUT: u64 = 40;
    /// [`HASH_ID`](crate::hash::HASH_ID).
    pub const HASH_ID: u64 = 48;
    /// Seed of the hash functions.
    pub const SEED: u64 = 56;
    /// Shape of the store, packed by [`Shape`](super::Shape).
    pub const SHAPE: u64 = 64;
    /// Fixed key length plus one, or zero; fixed value length plus one in the upper half.
    pub const FIXED: u64 = 72;
    /// Wall clock at creation, milliseconds.
    pub const CREATED: u64 = 80;
    /// UUID of the store, random (version 4 of RFC 9562): 16 bytes in the order in which a UUID is written. A copy, a
    /// backup too, is another store and has another one.
    pub const UUID: u64 = 88;
    /// [`checksum`](super::checksum) of the words before.
    pub const CHECKSUM: u64 = 104;

    /// The boot in which the store was last opened for writing (two words).
    pub const BOOT_LO: u64 = 128;
    /// Its upper half.
    pub const BOOT_HI: u64 = 136;
    /// Bytes that the file may reach; 0 is no limit.
    pub const MAX_BYTES: u64 = 144;
    /// [`flag`](super::flag)s: how the store was last left.
    pub const STATUS: u64 = 152;
    /// What distinguished the file from its copies when the store was last opened for writing; never zero then.
    pub const FILE: u64 = 160;
    /// How many looks for dead clients have begun.
    pub const SWEEPS: u64 = 168;

    /// Generation and segment of the index root, packed by [`RootWord`](super::RootWord). Read by every operation;
    /// its cache line is written only on clear, recycling, growth and by backups.
    pub const ROOT: u64 = 192;
    /// Recycle epoch: grows before any byte that a reader may still see is reused.
    pub const EPOCH: u64 = 200;
    /// Segments in the file.
    pub const SEGMENTS: u64 = 208;
    /// The backup under way, packed by [`Snapshot`](crate::snapshot::Snapshot). Read by every write.
    pub const SNAPSHOT: u64 = 216;
    /// Versions that writes asked for are not above this.
    pub const RAISED: u64 = 224;
    /// Where the change feed is, packed by [`FeedWord`](crate::feed::FeedWord).
    pub const FEED: u64 = 232;

    /// Lock of growth (an owner word, see [`crate::leaf::LockWord`]).
    pub const SPACE_LOCK: u64 = 256;
    /// Where the next victim is looked for.
    pub const CLEAN_HAND: u64 = 264;
    /// Where the next free segment is looked for.
    pub const FREE_HAND: u64 = 272;
    /// How many segments are free (a hint).
    pub const FREE_COUNT: u64 = 280;
    /// One more than the highest client slot ever used.
    pub const CLIENTS_HIGH: u64 = 288;
    /// Earliest expiry of any record that was stored (a hint; `u64::MAX` when none).
    pub const NEXT_EXPIRY: u64 = 296;
    /// Where the next segment to evict is looked for.
    pub const EVICT_HAND: u64 = 304;
    /// Segments that are offline; changes under the lock of growth.
    pub const OFFLINE: u64 = 312;
    /// Lock of the index of the root (growth of the directory, allocation of leaves).
    pub const INDEX_LOCK: u64 = 320;
    /// Lock of the cleaner that may use the reserve.
    pub const RESERVE_LOCK: u64 = 384;
    /// Since when the file system refuses memory to the store, wall clock in milliseconds; 0: it does not (a hint).
    pub const NO_SPACE: u64 = 392;
    /// No segment below this one is a hole (a hint; `u64::MAX`: there is none).
    pub const HOLE_HAND: u64 = 400;
    /// Where the next protected segment to evict is looked for.
    pub const PROTECTED_HAND: u64 = 408;
    /// A protected segment with room, plus one (a hint; 0: none is known).
    pub const PROTECTED_PARTIAL: u64 = 416;
    /// Share of a cache's segments that are not protected, in 1024ths, above which one of those is evicted next (a
    /// hint; what is below the least share counts as that).
    pub const PROBATION: u64 = 424;
    /// Lock of a process that names a region, drops one, or changes what several processes agree on in one.
    pub const REGION_LOCK: u64 = 448;

    /// Ring of recently freed segments, each plus one (a hint).
    pub const FREE_RING: u64 = 512;
    /// Words of the ring.
    pub const FREE_RING_LEN: u64 = 32;

    /// Durable stores: number of the next sync, which is the stamp of what dies now.
    pub const SYNC_NEXT: u64 = 768;
    /// Durable stores: number of the last sync that is on the medium for certain.
    pub const SYNC_DONE: u64 = 776;
    /// Durable stores: segments that wait for a sync (a hint).
    pub const WAITING: u64 = 784;
    /// Durable stores: wall clock of the last sync, milliseconds (a hint).
    pub const SYNC_TIME: u64 = 792;
    /// Durable stores: lock of the process that syncs.
    pub const SYNC_LOCK: u64 = 832;
    /// Durable stores: the two [`SyncPoint`](crate::sync::SyncPoint)s, each in a sector of its own.
    pub const SYNC_POINTS: [u64; 2] = [1024, 1536];

    /// One bit for each group of keys that has a waiter; the last one: a process waits for several keys.
    pub const WAITED: u64 = 2048;
    /// [`WAIT_GROUPS`](super::WAIT_GROUPS) words to sleep on, one for each bit: how often something in the group
    /// changed.
    pub const EVENTS: u64 = 2112;

    /// Whether clients sample what they do, packed by [`Sampling`](crate::sample::Sampling).
    pub const SAMPLING: u64 = 2624;
    /// Samples a second that a client aims at, of each kind that has a trigger.
    pub const SAMPLE_RATE: u64 = 2632;

    /// Pointers to the chunks of the segment table.
    pub const CHUNKS: u64 = 4096;
    /// The ring of samples: see [`sample`](crate::sample).
    pub const SAMPLES: u64 = 20 << 10;
    /// First chunk of the segment table.
    pub const CHUNK_0: u64 = 64 << 10;
    /// The client table.
    pub const CLIENTS: u64 = 320 << 10;
    /// Numbers of transactions begin above this: a rebuild met members of others.
    pub const TRANSACTIONS: u64 = 840;
    /// The lists of the clients' transactions: see [`cell`](crate::cell).
    pub const CELLS: u64 = 832 << 10;
    /// Where segment 0 starts.
    pub const DATA: u64 = 1 << 20;
}

/// Groups that keys are put into by their hash, so that a writer wakes few who wait for another key.
pub const WAIT_GROUPS: u64 = 64;

/// Bits of the feature words.
pub mod feature {
    /// Incompat: the store is durable. Records carry checksums, deaths are stamped, segments wait for a sync.
    pub const DURABLE: u64 = 1;
}

/// Bits of the status word.
pub mod flag {
    /// The last user closed the store in order, after its data reached the medium.
    pub const CLEAN: u64 = 1;
    /// The last user to close removes the file.
    pub const REMOVE_ON_LAST_CLOSE: u64 = 2;
    /// The file was removed; a process that opens it by a race must open the name again.
    pub const REMOVED: u64 = 4;
    /// Durable stores: a flush failed, so what is on the medium is unknown. Nothing may be written any more.
    pub const POISONED: u64 = 8;
}

/// Bounds of the shape.
pub mod limit {
    /// Smallest segment, as a power of two.
    pub const SEGMENT_SHIFT_MIN: u32 = 12;
    /// Largest segment.
    pub const SEGMENT_SHIFT_MAX: u32 = 26;
    /// Segment unless told otherwise: 256 KiB.
    pub const SEGMENT_SHIFT: u32 = 18;
    /// Smallest leaf: 256 bytes, four lines.
    pub const LEAF_SHIFT_MIN: u32 = 8;
    /// Largest leaf, and the default: 32 KiB, 512 lines.
    pub const LEAF_SHIFT_MAX: u32 = 15;
    /// Most segments of a file: 2^23.
    pub const SEGMENTS: u64 = 1 << 23;
    /// Bytes that a slot can address: 2 TiB.
    pub const ADDRESS: u64 = 1 << 41;
    /// Most clients at a time.
    pub const CLIENTS: u32 = 1024;
    /// Most bytes of key and value together: 4 GiB less one.
    pub const PAYLOAD: u64 = u32::MAX as u64;
}

/// The shape word: what is fixed at creation and changes how offsets are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// log2 of the bytes of a segment.
    pub segment_shift: u32,
    /// log2 of the bytes of a leaf.
    pub leaf_shift: u32,
    /// Cache mode: leaves carry visited marks, and a full store evicts.
    pub cache: bool,
}

impl Shape {
    /// Packs the shape into its word.
    pub fn pack(self) -> u64 {
        u64::from(self.segment_shift) | u64::from(self.leaf_shift) << 8 | u64::from(self.cache) << 16
    }

    /// Unpacks the word; `None` if no store can have this shape.
    pub fn unpack(word: u64) -> Option<Shape> {
        let shape = Shape {
            segment_shift: (word & 0xff) as u32,
            leaf_shift: (word >> 8 & 0xff) as u32,
            cache: word >> 16 & 1 == 1,
        };
        let fits = (limit::SEGMENT_SHIFT_MIN..=limit::SEGMENT_SHIFT_MAX).contains(&shape.segment_shift)
            && (limit::LEAF_SHIFT_MIN..=limit::LEAF_SHIFT_MAX).contains(&shape.leaf_shift)
            && shape.leaf_shift + 3 <= shape.segment_shift
            && word >> 17 == 0;
        fits.then_some(shape)
    }
}

/// The root word: which segment holds the index, and how often the store was cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootWord {
    /// Generation: 1 at creation, one more at each clear.
    pub generation: u64,
    /// The segment of the root block.
    pub segment: u64,
}

impl RootWord {
    /// Packs the word.
    pub fn pack(self) -> u64 {
        self.generation << 24 | self.segment
    }
    /// Unpacks the word.
    #[inline(always)]
    pub fn unpack(word: u64) -> RootWord {
        RootWord { generation: word >> 24, segment: word & 0xff_ffff }
    }
}

/// A checksum of the immutable header words (FNV-1a over words; it guards against damage, not malice).
pub fn checksum(words: &[u64]) -> u64 {
    words.iter().fold(0xcbf2_9ce4_8422_2325, |sum, w| (sum ^ w).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        let shape = Shape { segment_shift: 18, leaf_shift: 15, cache: true };
        assert_eq!(Shape::unpack(shape.pack()), Some(shape));
        assert_eq!(Shape::unpack(0), None);
        assert_eq!(Shape::unpack(shape.pack() | 1 << 40), None);
        let root = RootWord { generation: 77, segment: 0x12_3456 };
        assert_eq!(RootWord::unpack(root.pack()), root);
    }
}
