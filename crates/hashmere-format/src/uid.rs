//! UIDs and cursors: places in the index as plain numbers.
//!
//! A split keeps every entry at its line and slot, and a place is named by hash bits rather than by a leaf, so a UID
//! outlives growth.
//!
//! ```text
//! first tree     31            12 11      3 2    0       overflow tree  31          15 14      6 5    3 2   0
//!               +----------------+---------+------+                    +--------------+---------+------+-----+
//!               | 20 hash bits   | line    | slot |                    | 17 hash bits | line    | slot |  7  |
//!               +----------------+---------+------+                    +--------------+---------+------+-----+
//! ```

use crate::root::{DEPTH_MAX, DEPTH_MAX_1};

/// A place in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UidParts {
    /// 0, or 1 for the overflow tree.
    pub tree: u32,
    /// Low bits of the (tree's) hash: [`DEPTH_MAX`] or [`DEPTH_MAX_1`] of them.
    pub bits: u32,
    /// Line in the leaf.
    pub line: u32,
    /// Slot in the bucket.
    pub slot: u32,
}

impl UidParts {
    /// The UID of the place.
    #[inline]
    pub fn uid(self) -> u32 {
        if self.tree == 0 {
            self.slot | self.line << 3 | self.bits << 12
        } else {
            7 | self.slot << 3 | self.line << 6 | self.bits << 15
        }
    }
    /// The place that a UID names. The slot may be 7, which is no slot: such a UID names nothing.
    #[inline]
    pub fn from_uid(uid: u32) -> UidParts {
        if uid & 7 != 7 {
            UidParts { tree: 0, bits: uid >> 12, line: uid >> 3 & 511, slot: uid & 7 }
        } else {
            UidParts { tree: 1, bits: uid >> 15, line: uid >> 6 & 511, slot: uid >> 3 & 7 }
        }
    }
}

/// Hash bits that a tree's UIDs carry.
#[inline]
pub fn depth_max(tree: u32) -> u32 {
    if tree == 0 {
        DEPTH_MAX
    } else {
        DEPTH_MAX_1
    }
}

/// The position of a scan: within the hashes that share `depth` low bits with `origin` (in bit-reversed
/// order, see `docs/internals/concurrency.md`), the entries at places before (`line`, `slot`) were returned from all
/// leaves, and those at it from the leaves before `reached`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The tree under way; 2 when the scan is finished.
    pub tree: u32,
    /// Depth of the interval under way.
    pub depth: u32,
    /// Reversed hash bits of the next leaf to visit at this place; its upper `depth` bits name the interval.
    pub reached: u32,
    /// Line of the next entry.
    pub line: u32,
    /// Slot of the next entry.
    pub slot: u32,
}

impl Scan {
    /// The start.
    pub const START: Scan = Scan { tree: 0, depth: 0, reached: 0, line: 0, slot: 0 };

    /// Packs the position; the start packs to zero. (A depth is stored with its interval entered, so an entered
    /// interval of depth 0 differs from the start by its line.)
    pub fn pack(self) -> u64 {
        u64::from(self.slot)
            | u64::from(self.line) << 3
            | u64::from(self.reached) << 12
            | u64::from(self.depth) << 32
            | u64::from(self.tree) << 37
    }

    /// Unpacks the number; `None` if it is no position.
    pub fn unpack(word: u64) -> Option<Scan> {
        let scan = Scan {
            slot: (word & 7) as u32,
            line: (word >> 3 & 511) as u32,
            reached: (word >> 12 & 0xf_ffff) as u32,
            depth: (word >> 32 & 31) as u32,
            tree: (word >> 37) as u32,
        };
        (word >> 39 == 0 && scan.tree < 3 && scan.slot < 7 && (scan.tree == 2 || scan.depth <= depth_max(scan.tree)))
            .then_some(scan)
    }
}

/// Reverses the low `bits` bits of `value`.
#[inline]
pub fn reverse(value: u32, bits: u32) -> u32 {
    if bits == 0 {
        0
    } else {
        value.reverse_bits() >> (32 - bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_round_trip_and_do_not_meet() {
        for tree in 0..2 {
            for (line, slot) in [(0, 0), (511, 6), (1, 3)] {
                let bits = (1u32 << depth_max(tree)) - 1;
                for bits in [0, 1, bits] {
                    let p = UidParts { tree, bits, line, slot };
                    assert_eq!(UidParts::from_uid(p.uid()), p);
                }
            }
        }
    }

    #[test]
    fn cursors_round_trip() {
        assert_eq!(Scan::START.pack(), 0);
        let s = Scan { tree: 1, depth: 17, reached: 0x1_ffff, line: 511, slot: 6 };
        assert_eq!(Scan::unpack(s.pack()), Some(s));
        assert_eq!(Scan::unpack(u64::MAX), None);
        assert_eq!(reverse(1, 20), 1 << 19);
        assert_eq!(reverse(0, 0), 0);
    }
}
