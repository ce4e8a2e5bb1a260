//! What a writer knows: its client slot, the segment that it appends to, what its last write left to be tidied.

use crate::types::Stored;
use hashmere_format::feed::{FeedWord, Geometry};

/// Whether and how a writer is cleaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) enum Cleaning {
    /// It is not.
    #[default]
    No,
    /// Between writes: it stops when there is no room to move to.
    Incremental,
    /// Because there is no room: it may use the reserve, whose lock it holds.
    Emergency,
}

/// The segment that a writer appends to, as the writer knows it; what must survive the writer is stored in its row.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct OpenSegment {
    pub(in crate::engine) number: u64,
    pub(in crate::engine) head: u64,
    /// Memory is there up to here.
    pub(in crate::engine) ready: u64,
    pub(in crate::engine) end: u64,
    pub(in crate::engine) expire_min: u64,
    pub(in crate::engine) expire_max: u64,
    pub(in crate::engine) expiring: u64,
    /// For what survives evictions, in a cache.
    pub(in crate::engine) protected: bool,
    /// Root generation when it was claimed, or earlier.
    pub(in crate::engine) first: u64,
    /// Root generation of the last commit into it.
    pub(in crate::engine) born: u64,
}

impl OpenSegment {
    /// Whether a record of this size fits behind the head.
    pub(in crate::engine) fn has_room(&self, bytes: u64) -> bool {
        self.head + bytes <= self.end
    }
}

/// Where the feed is, and the sizes of its parts: within what is mapped.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct FeedPlace {
    /// The header's word that led here; 0: none did.
    pub(in crate::engine) word: FeedWord,
    /// Offset of its region's bytes.
    pub(in crate::engine) base: u64,
    pub(in crate::engine) geometry: Geometry,
}

/// The chunks of the change feed that a writer fills, as the writer knows them; what must survive it is in their table.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct FeedCursor {
    /// The feed that they are of.
    pub(in crate::engine) place: FeedPlace,
    /// Where its next entry goes, and where its chunks end: offsets in the region.
    pub(in crate::engine) next: u64,
    pub(in crate::engine) end: u64,
    /// Its first chunk, and how many it has.
    pub(in crate::engine) first: u64,
    pub(in crate::engine) len: u64,
}

/// One writer context. Only the thread that has it writes its row.
#[derive(Default)]
pub struct Writer {
    /// Client slot.
    pub(in crate::engine) slot: u32,
    /// Offset of the row; 0 while the writer has no client slot.
    pub(in crate::engine) row: u64,
    /// The segment that it appends to.
    pub(in crate::engine) open: Option<OpenSegment>,
    /// Bytes that this writer made garbage since it last looked for something to clean.
    pub(in crate::engine) made_dead: u64,
    /// Whether it is cleaning: what it appends then must not start cleaning again.
    pub(in crate::engine) cleaning: Cleaning,
    /// What it appends now survived an eviction: it goes to protected segments.
    pub(in crate::engine) protects: bool,
    /// Whether others are asked to let it write first: it does not wait for itself.
    pub(in crate::engine) insists: bool,
    /// A large record that this writer's last write superseded: its segments can go as soon as the lock is released.
    pub(in crate::engine) dead_large: Option<u64>,
    /// The last write was refused because the index had to grow and found no room: cleaning or evicting may help, but
    /// only between writes, because what is moved goes where a draft is. Until then nothing is tidied either.
    pub(in crate::engine) index_full: bool,
    /// The hash of the key that the index had to grow for.
    pub(in crate::engine) full_at: u64,
    /// Room for a key.
    pub(in crate::engine) key: Vec<u8>,
    /// Memory is behind the client's place for the list of a transaction.
    pub(in crate::engine) has_list: bool,
    /// The root that its last operation used.
    pub(in crate::engine) root: u64,
    /// Where it writes entries of the change feed.
    pub(in crate::engine) feed: FeedCursor,
    /// What the last write stored.
    pub(crate) stored: Stored,
}

impl Writer {
    /// Whether what it does now can be left for later, record by record.
    pub(super) fn is_cleaning(&self) -> bool {
        self.cleaning != Cleaning::No
    }
}
