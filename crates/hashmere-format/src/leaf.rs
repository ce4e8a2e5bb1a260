//! Index leaves: buckets of one cache line, seven slots and a lock word each.
//!
//! ```text
//! line 0          header                        line k   slot 0 | slot 1 | ... | slot 6 | lock word
//! lines 1..=v     visited marks (cache mode)             0        8                48       56
//! lines v+1..     buckets
//! ```

use crate::hash::{TAG_BITS, TAG_MASK};

/// Bytes of a line.
pub const LINE: u64 = 64;
/// Slots of a bucket.
pub const SLOTS: u64 = 7;
/// Offset of the lock word in its bucket.
pub const LOCK_WORD: u64 = 56;

/// Words of the leaf header, as byte offsets in line 0.
pub mod at {
    /// Depth, tree and prefix, packed by [`Identity`](super::Identity).
    pub const IDENTITY: u64 = 0;
    /// Offset of the leaf that a split is moving to, once every lock is held and its copy is complete; 0 none.
    pub const SPLIT: u64 = 8;
    /// Next leaf of the list of spare leaves.
    pub const NEXT: u64 = 16;
}

/// Which hashes a leaf holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// How many low bits of the hash the leaf's keys share.
    pub depth: u32,
    /// 0, or 1 for the overflow tree.
    pub tree: u32,
    /// Those bits.
    pub prefix: u32,
}

impl Identity {
    /// Packs the identity; never zero.
    pub fn pack(self) -> u64 {
        u64::from(self.depth) | u64::from(self.tree) << 8 | 1 << 16 | u64::from(self.prefix) << 32
    }
    /// Unpacks the word; `None` if it is no leaf's.
    #[inline]
    pub fn unpack(word: u64) -> Option<Identity> {
        let id = Identity { depth: (word & 0xff) as u32, tree: (word >> 8 & 0xff) as u32, prefix: (word >> 32) as u32 };
        (word >> 16 & 0xffff == 1 && id.tree < 2 && id.depth <= crate::root::DEPTH_MAX).then_some(id)
    }
}

/// First bucket line of a leaf with `lines` lines.
pub fn first_bucket(lines: u64, cache: bool) -> u64 {
    if cache {
        1 + lines.div_ceil(LINE)
    } else {
        1
    }
}

/// A slot: the low bits of the hash, and the offset of the record. Zero is an empty slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u64);

impl Slot {
    /// The empty slot.
    pub const EMPTY: Slot = Slot(0);
    /// A slot for a record at byte `offset` (a multiple of 8, below 2 TiB).
    #[inline(always)]
    pub fn new(hash: u64, offset: u64) -> Slot {
        Slot(offset >> 3 << TAG_BITS | hash & TAG_MASK)
    }
    /// Byte offset of the record.
    #[inline(always)]
    pub fn offset(self) -> u64 {
        self.0 >> TAG_BITS << 3
    }
    /// The low bits of the hash.
    #[inline(always)]
    pub fn tag(self) -> u64 {
        self.0 & TAG_MASK
    }
    /// Whether nothing is there.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The lock word of a bucket: who writes here, and the version of the last write.
///
/// ```text
///  63                          22 21    18 17       16       15             0
/// +------------------------------+--------+--------+--------+----------------+
/// | version of the last write    | unused | over-  | waiters| owner: client  |
/// | to a key with this bucket    |        | flow   |        | slot + 1, or 0 |
/// +------------------------------+--------+--------+--------+----------------+
/// ```
/// Waiters sleep on the low half. Other locks of the file use the same word without version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockWord(pub u64);

impl LockWord {
    /// Set by a process that is about to sleep until the owner releases the lock.
    pub const WAITERS: u64 = 1 << 16;
    /// Some key of this bucket is in the overflow tree.
    pub const OVERFLOW: u64 = 1 << 17;
    /// An update that was beaten again and again asks the next writers to let it go first (a hint). Any release takes
    /// it off.
    pub const YIELD: u64 = 1 << 18;
    /// One version step.
    pub const STEP: u64 = 1 << crate::record::VERSION_SHIFT;
    const OWNER: u64 = 0xffff;

    /// Client slot of the owner.
    #[inline(always)]
    pub fn owner(self) -> Option<u32> {
        ((self.0 & Self::OWNER) as u32).checked_sub(1)
    }
    /// Whether it is free.
    #[inline(always)]
    pub fn is_free(self) -> bool {
        self.0 & Self::OWNER == 0
    }
    /// Whether no client holds it and no update asks to go first.
    #[inline(always)]
    pub fn is_open(self) -> bool {
        self.0 & (Self::OWNER | Self::YIELD) == 0
    }
    /// Whether an update asks to go first.
    #[inline(always)]
    pub fn asks_to_yield(self) -> bool {
        self.0 & Self::YIELD != 0
    }
    /// Held by `slot`.
    #[inline(always)]
    pub fn held_by(self, slot: u32) -> LockWord {
        LockWord(self.0 & !Self::OWNER | u64::from(slot + 1))
    }
    /// Free, with no waiters noted and no request to yield.
    #[inline(always)]
    pub fn released(self) -> LockWord {
        LockWord(self.0 & !(Self::OWNER | Self::WAITERS | Self::YIELD))
    }
    /// The version of the last write.
    #[inline(always)]
    pub fn version(self) -> u64 {
        self.0 >> crate::record::VERSION_SHIFT
    }
    /// Whether a process sleeps on it.
    #[inline(always)]
    pub fn has_waiters(self) -> bool {
        self.0 & Self::WAITERS != 0
    }
    /// Whether a key of this bucket may be in the overflow tree.
    #[inline(always)]
    pub fn has_overflow(self) -> bool {
        self.0 & Self::OVERFLOW != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_what_they_were_given() {
        let top = crate::header::limit::ADDRESS - 8;
        for offset in [8, 1 << 20, top] {
            let s = Slot::new(u64::MAX, offset);
            assert_eq!((s.offset(), s.tag()), (offset, TAG_MASK));
        }
        assert!(Slot::EMPTY.is_empty());
    }

    #[test]
    fn lock_words_keep_their_version() {
        let m = LockWord(7 << 22 | LockWord::OVERFLOW);
        let h = m.held_by(0);
        assert_eq!((h.owner(), h.version(), h.has_overflow()), (Some(0), 7, true));
        assert_eq!(LockWord(h.0 | LockWord::WAITERS).released(), m);
        assert!(m.is_free() && !h.is_free() && m.is_open() && !h.is_open());
        let asked = LockWord(m.0 | LockWord::YIELD);
        assert!(asked.is_free() && !asked.is_open() && asked.asks_to_yield());
        assert_eq!(asked.released(), m);
        let id = Identity { depth: 20, tree: 1, prefix: 0xf_ffff };
        assert_eq!(Identity::unpack(id.pack()), Some(id));
        assert_eq!(Identity::unpack(0), None);
    }
}
