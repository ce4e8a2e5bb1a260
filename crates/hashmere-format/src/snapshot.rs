//! The snapshot word of the header: whether a backup of the store is being made, by whom, and which records are its;
//! and whether changes are kept in a feed.
//!
//! ```text
//!  63                          22 21    20      19      18     17      16    15             0
//! +------------------------------+-----+-------+-------+------+-------+------+----------------+
//! | floor: versions up to it     |feed |thinned| dirty | mark | watch | held | owner: client  |
//! | were there before            |     |       |       |      |       |      | slot + 1, or 0 |
//! +------------------------------+-----+-------+-------+------+-------+------+----------------+
//! ```
//! The floor never goes back, also between backups: no version up to it is given to a record again while it is above
//! what the record's bucket has seen.

use crate::record::{VERSION_MASK, VERSION_SHIFT};

const OWNER: u64 = 0xffff;
/// A segment that holds a kept record is not reused.
const HELD: u64 = 1 << 16;
/// A writer that gives a version above the floor clears this bit.
const WATCH: u64 = 1 << 17;
/// Versions are given above the floor, and records up to it are marked as kept before they are superseded.
const MARK: u64 = 1 << 18;
/// There may be marks of a backup that did not end in order.
const DIRTY: u64 = 1 << 19;
/// A cache reused a segment with kept records, because it was full.
const THINNED: u64 = 1 << 20;
/// Every change has an entry in the feed. Here, because every write looks at this word.
const FEED: u64 = 1 << 21;

/// The word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(pub u64);

impl Snapshot {
    /// Without an owner, with a floor, and perhaps with marks that are left.
    pub fn idle(floor: u64, dirty: bool) -> Snapshot {
        Snapshot(floor << VERSION_SHIFT | if dirty { DIRTY } else { 0 })
    }
    /// The backup has ended, and marks of it are left or not.
    pub fn ended(self, dirty: bool) -> Snapshot {
        Snapshot(Snapshot::idle(self.floor(), dirty).0 | self.0 & FEED)
    }
    /// `slot` begins: segments with kept records are held back, nothing else yet.
    pub fn held_by(self, slot: u32) -> Snapshot {
        Snapshot(self.0 & (VERSION_MASK | DIRTY | FEED) | HELD | u64::from(slot + 1))
    }
    /// Changes have entries in the feed, or not.
    pub fn with_feed(self, on: bool) -> Snapshot {
        Snapshot(self.0 & !FEED | if on { FEED } else { 0 })
    }
    /// Whether changes have entries in the feed.
    #[inline(always)]
    pub fn has_feed(self) -> bool {
        self.0 & FEED != 0
    }
    /// The floor is set, and a writer that gives a version above it clears the bit.
    pub fn watching(self, floor: u64) -> Snapshot {
        Snapshot(self.plain().0 & !VERSION_MASK | floor << VERSION_SHIFT | WATCH)
    }
    /// From now on every write is after the snapshot.
    pub fn marking(self) -> Snapshot {
        Snapshot(self.plain().0 | MARK)
    }
    /// Segments are held back, and writes are as always.
    pub fn plain(self) -> Snapshot {
        Snapshot(self.0 & !(WATCH | MARK))
    }
    /// No marks are left behind.
    pub fn clean(self) -> Snapshot {
        Snapshot(self.0 & !DIRTY)
    }
    /// Kept records were given up.
    pub fn thinned(self) -> Snapshot {
        Snapshot(self.0 | THINNED)
    }
    /// Client slot of the owner.
    pub fn owner(self) -> Option<u32> {
        ((self.0 & OWNER) as u32).checked_sub(1)
    }
    /// The largest version that a record from before the snapshot can have.
    #[inline(always)]
    pub fn floor(self) -> u64 {
        self.0 >> VERSION_SHIFT
    }
    /// Whether segments with kept records are held back.
    #[inline(always)]
    pub fn is_held(self) -> bool {
        self.0 & HELD != 0
    }
    /// Whether a write has to look closer.
    #[inline(always)]
    pub fn concerns_writers(self) -> bool {
        self.0 & (WATCH | MARK | FEED) != 0
    }
    /// Whether it has to because of a backup.
    #[inline(always)]
    pub fn concerns_backup(self) -> bool {
        self.0 & (WATCH | MARK) != 0
    }
    /// Whether the floor is being tried.
    pub fn is_watching(self) -> bool {
        self.0 & WATCH != 0
    }
    /// Whether the snapshot is in force for writers.
    pub fn is_marking(self) -> bool {
        self.0 & MARK != 0
    }
    /// Whether there may be old marks.
    pub fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }
    /// Whether kept records were given up.
    pub fn is_thinned(self) -> bool {
        self.0 & THINNED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_follow_each_other_and_keep_the_rest() {
        let idle = Snapshot::idle(9, true);
        assert!(idle.owner().is_none() && !idle.is_held() && idle.is_dirty() && idle.floor() == 9);
        let held = idle.held_by(1023);
        assert!(held.owner() == Some(1023) && held.is_held() && held.is_dirty() && !held.concerns_writers());
        let watching = held.clean().watching(77);
        assert!(watching.is_watching() && watching.floor() == 77 && !watching.is_dirty() && watching.is_held());
        let marking = watching.marking();
        assert!(marking.is_marking() && !marking.is_watching() && marking.concerns_writers());
        let last = marking.thinned().plain();
        assert!(last.is_thinned() && last.is_held() && !last.concerns_writers() && last.owner() == Some(1023));
        assert_eq!(Snapshot::idle(last.floor(), false).0, 77 << VERSION_SHIFT);
        let fed = idle.with_feed(true).held_by(5).clean().watching(8).marking().thinned();
        assert!(fed.has_feed() && fed.concerns_writers() && fed.concerns_backup());
        assert!(fed.plain().has_feed() && fed.plain().concerns_writers() && !fed.plain().concerns_backup());
        assert_eq!(fed.ended(true).with_feed(false), Snapshot::idle(8, true));
    }
}
