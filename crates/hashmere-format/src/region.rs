//! Regions: rows of segments that a named object has for itself, for as long as it wants.
//!
//! There is no catalogue beside the segment table: a region exists while the entry of its first segment is in state
//! [`Region`](crate::segment::State::Region), and its name is at its start.

/// Words at the start of a region, as byte offsets in it.
pub mod at {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: u64 = 0;
    /// What the region is, as a number of [`kind`](super::kind).
    pub const KIND: u64 = 8;
    /// Bytes behind [`DATA`](super::DATA) that were asked for.
    pub const BYTES: u64 = 16;
    /// Length of the name.
    pub const NAME_LEN: u64 = 24;
    /// Wall clock at creation, milliseconds.
    pub const CREATED: u64 = 32;
    /// 1 once it was dropped: a process that still has it open finds out.
    pub const DROPPED: u64 = 40;
    /// The name.
    pub const NAME: u64 = 64;
}

/// Kinds of regions. One name may be given once for each kind.
pub mod kind {
    /// A pool of elements with its queues.
    pub const POOL: u64 = 1;
    /// A shared log.
    pub const LOG: u64 = 2;
    /// The change feed.
    pub const FEED: u64 = 3;
    /// Up to where this store is a copy of another one.
    pub const REPLICA: u64 = 4;
    /// A set of shared atomics.
    pub const ATOMICS: u64 = 5;
}

/// `"MEREGION"` as a little-endian word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"MEREGION");
/// Longest name.
pub const NAME_MAX: usize = 128;
/// Where the bytes of the owner begin.
pub const DATA: u64 = 256;

const _: () = assert!(at::NAME + NAME_MAX as u64 <= DATA);
