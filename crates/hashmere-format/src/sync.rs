//! Sync points: what the header of a durable store says about the last completed sync.
//!
//! Two slots in different sectors; a sync writes the one that does not hold the last. So at any moment one of them
//! is whole on the medium.

use crate::header::checksum;

/// Bytes of a slot.
pub const BYTES: u64 = 32;

/// The content of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncPoint {
    /// Number of the sync; 1 is the creation of the store.
    pub number: u64,
    /// Versions up to this one were cleared away.
    pub floor: u64,
    /// Wall clock, milliseconds.
    pub time: u64,
}

impl SyncPoint {
    /// The words of the slot.
    pub fn pack(self, seed: u64) -> [u64; 4] {
        let words = [self.number, self.floor, self.time];
        let [number, floor, time] = words;
        [number, floor, time, checksum(&[seed, number, floor, time])]
    }

    /// Reads a slot; `None` if it is not whole.
    pub fn unpack(words: [u64; 4], seed: u64) -> Option<SyncPoint> {
        let [number, floor, time, _] = words;
        let point = SyncPoint { number, floor, time };
        (number != 0 && point.pack(seed) == words).then_some(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_whole_or_nothing() {
        let point = SyncPoint { number: 3, floor: 5, time: 7 };
        let words = point.pack(1);
        assert_eq!(SyncPoint::unpack(words, 1), Some(point));
        assert_eq!(SyncPoint::unpack(words, 2), None);
        assert_eq!(SyncPoint::unpack([0; 4], 1), None);
        for i in 0..4 {
            let mut torn = words;
            torn[i] ^= 1 << 40;
            assert_eq!(SyncPoint::unpack(torn, 1), None);
        }
    }
}
