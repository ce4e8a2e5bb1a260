//! The client table: one row for every writer context of every process. Only its owner writes a row, except that
//! the process that holds the liveness lock of a dead owner's slot repairs and frees it.

/// Bytes of a row: eight cache lines.
pub const BYTES: u64 = 512;
/// Pins of a row.
pub const PINS: u64 = 24;

/// Words of a row, as byte offsets in it.
pub mod at {
    /// 1 while a client owns the row; the times it was claimed above bit 8.
    pub const STATE: u64 = 0;
    /// Process id, for messages.
    pub const PID: u64 = 8;
    /// Wall clock of the claim, milliseconds.
    pub const SINCE: u64 = 16;
    /// First 16 bytes of the process's name.
    pub const NAME: u64 = 24;

    /// The owner was alive when this many sweeps for dead clients had begun ([`SWEEPS`](crate::header::at::SWEEPS)): a
    /// hint.
    pub const ALIVE: u64 = 40;

    /// Offset of the list of the transaction under way; 0 none. See [`crate::cell`].
    pub const TRANSACTION: u64 = 48;
    /// Number and stage of the last transaction.
    pub const STATUS: u64 = 56;

    /// Root word that the operation under way uses; 0 between operations.
    pub const ACTIVE: u64 = 64;
    /// Offset of the bucket whose lock the owner holds or is about to take; 0 none.
    pub const LOCK: u64 = 72;
    /// The same for the bucket in the overflow tree.
    pub const LOCK_2: u64 = 80;
    /// Intent of a commit: offset of the slot word; 0 none.
    pub const INTENT: u64 = 88;
    /// Intent: the word that the slot is to hold.
    pub const INTENT_NEW: u64 = 96;
    /// Items this client added less those it removed, in the root generation [`COUNTED`] (two's complement).
    pub const ITEMS: u64 = 104;
    /// The same for bytes of live records.
    pub const LIVE: u64 = 112;
    /// Offset of the next append in the open segment.
    pub const HEAD: u64 = 120;

    /// Intent: what the slot held.
    pub const INTENT_OLD: u64 = 128;
    /// Intent: value of [`ITEMS`] after the commit.
    pub const INTENT_ITEMS: u64 = 136;
    /// Intent: value of [`LIVE`] after the commit.
    pub const INTENT_LIVE: u64 = 144;
    /// Root generation that [`ITEMS`] and [`LIVE`] count in.
    pub const COUNTED: u64 = 152;
    /// The open segment plus one; 0 none.
    pub const OPEN: u64 = 160;
    /// The leaf being split; 0 none.
    pub const SPLIT: u64 = 168;
    /// A leaf that was allocated and is not yet in the index; 0 none.
    pub const LEAF: u64 = 176;

    /// What the list of the transaction under way has room for.
    pub const LIST: u64 = 184;

    /// First statistic; see [`crate::row::Stat`].
    pub const STATS: u64 = 192;
    /// First trigger of a sample, between the statistics; see [`crate::row::Trigger`].
    pub const TRIGGERS: u64 = 224;
    /// What is to be reported in the change feed, packed by [`FeedIntent`](crate::feed::FeedIntent); 0 nothing.
    pub const FEED: u64 = 312;
    /// First pin: segment plus one in the low half, how many views hold it in the high half.
    pub const PINS: u64 = 320;
}

/// Statistics of a row: each a word at its [`at`](Stat::at), a hint that takes part in nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Stat {
    /// Reads that found their key.
    Hits = 0,
    /// Reads that did not.
    Misses = 1,
    /// Values stored.
    Sets = 2,
    /// Keys deleted.
    Deletes = 3,
    /// Times a lock was not free at once.
    LockWaits = 7,
    /// Dead clients repaired.
    Takeovers = 8,
    /// Leaves split.
    Splits = 9,
    /// Segments cleaned.
    Cleaned = 10,
    /// Records moved by the cleaner.
    Moved = 11,
    /// Records dropped to make room.
    Evicted = 12,
    /// Records dropped because they had expired.
    Expired = 13,
    /// Reads repeated because a segment was recycled during them.
    Retries = 14,
}

impl Stat {
    /// Where its word is in a row.
    #[inline(always)]
    pub const fn at(self) -> u64 {
        at::STATS + 8 * self as u64
    }
}

/// What says when a client samples next: each the two's complement of the count at which it does, so that counter and
/// trigger overflow together from then on. 0 never does. In the cache line of their counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Trigger {
    /// Of [`Stat::Hits`].
    Hit = 0,
    /// Of [`Stat::Misses`].
    Miss = 1,
    /// Of [`Stat::Sets`]; each delete adds 1 to it.
    Write = 2,
}

impl Trigger {
    /// All of them.
    pub const ALL: [Trigger; 3] = [Trigger::Hit, Trigger::Miss, Trigger::Write];
    /// The value that is due at the next operation, whatever the count.
    pub const NEXT: u64 = u64::MAX;

    /// Where its word is in a row.
    #[inline(always)]
    pub const fn at(self) -> u64 {
        at::TRIGGERS + 8 * self as u64
    }
}

const _: () = {
    assert!(Stat::Deletes.at() < at::TRIGGERS && Trigger::Write.at() < Stat::LockWaits.at());
    assert!(Trigger::Write.at() / 64 == at::STATS / 64);
    assert!(Stat::Retries.at() < at::FEED && at::FEED < at::PINS);
    assert!(at::PINS + 8 * PINS <= BYTES);
};

/// Offset of the row that has this word.
#[inline(always)]
pub fn offset_of(word: u64) -> u64 {
    word - (word - crate::header::at::CLIENTS) % BYTES
}

/// Offset of a row.
#[inline(always)]
pub fn offset(slot: u32) -> u64 {
    crate::header::at::CLIENTS + u64::from(slot) * BYTES
}
