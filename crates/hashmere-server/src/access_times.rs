//! When keys were last requested over a socket, for the flags `h` and `l` of the meta protocol, `me` and the dumps.
//!
//! The store does not keep this: readers do not write. Recording costs a cache miss for every request, so it begins
//! with the first request for such a time, or at the start if the options say so. The table has room for about a
//! million keys, found by their UID, which no two keys share. A full row replaces the key that was idle longest.

use hashmere::Uid;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;

/// Keys of one row: a cache line.
const ROW: usize = 8;
/// Rows.
const ROWS: usize = 1 << 17;
/// The key was fetched since it was stored.
const FETCHED: u64 = 1 << 31;
/// Seconds since the server started, plus one: an unused place is zero.
const SECONDS: u64 = FETCHED - 1;

/// The table: 8 MiB, once it is there.
#[derive(Debug)]
pub struct AccessTimes {
    on: AtomicBool,
    places: OnceLock<Box<[AtomicU64]>>,
    /// The second at which the server started.
    start: u64,
}

/// What is known about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Whether it was fetched since it was stored.
    pub fetched: bool,
    /// The second of its last access.
    pub last: u64,
}

impl AccessTimes {
    /// Nothing is noted yet; the server starts at this second.
    pub fn new(start: u64) -> AccessTimes {
        AccessTimes { on: AtomicBool::new(false), places: OnceLock::new(), start }
    }

    /// Begins to note accesses.
    pub fn begin(&self) {
        self.places.get_or_init(|| (0..ROW * ROWS).map(|_| AtomicU64::new(0)).collect());
        self.on.store(true, Ordering::Relaxed);
    }

    /// Notes that a key was stored (`false`) or fetched at this second.
    #[inline]
    pub fn note(&self, uid: Uid, fetched: bool, second: u64) {
        if self.on.load(Ordering::Relaxed) {
            self.write(uid, fetched, second);
        }
    }

    fn write(&self, uid: Uid, fetched: bool, second: u64) {
        let since = (second.saturating_sub(self.start) + 1).min(SECONDS);
        let word = u64::from(uid.0) << 32 | if fetched { FETCHED } else { 0 } | since;
        let row = self.row(uid);
        let (mut idlest, mut least) = (None, u64::MAX);
        for place in row {
            let old = place.load(Ordering::Relaxed);
            if old & SECONDS == 0 || old >> 32 == u64::from(uid.0) {
                // Most accesses fall into the second of the one before.
                if old != word {
                    place.store(word, Ordering::Relaxed);
                }
                return;
            }
            if old & SECONDS < least {
                (idlest, least) = (Some(place), old & SECONDS);
            }
        }
        if let Some(place) = idlest {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// What is known about a key. One without an access since recording began counts as stored when the server started.
    pub fn lookup(&self, uid: Uid) -> Seen {
        if !self.on.load(Ordering::Relaxed) {
            self.begin();
        }
        let word = self.row(uid).iter().map(|place| place.load(Ordering::Relaxed));
        match word.into_iter().find(|word| word & SECONDS != 0 && word >> 32 == u64::from(uid.0)) {
            Some(word) => Seen { fetched: word & FETCHED != 0, last: self.start + (word & SECONDS) - 1 },
            None => Seen { fetched: false, last: self.start },
        }
    }

    /// When a key was stored, if that is its last access that was recorded.
    pub fn stored_at(&self, uid: Uid) -> Option<u64> {
        if !self.on.load(Ordering::Relaxed) {
            return None;
        }
        let word = self.row(uid).iter().map(|place| place.load(Ordering::Relaxed));
        let word = word.into_iter().find(|word| word & SECONDS != 0 && word >> 32 == u64::from(uid.0))?;
        (word & FETCHED == 0).then(|| self.start + (word & SECONDS) - 1)
    }

    #[inline]
    fn row(&self, uid: Uid) -> &[AtomicU64] {
        // The bits of a UID that differ between keys are at both ends: a multiplication mixes them into the upper half.
        let mixed = u64::from(uid.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 47;
        let start = mixed as usize % ROWS * ROW;
        self.places.get().map_or(&[], |places| &places[start..start + ROW])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_noted_from_the_first_request_for_one() {
        let access = AccessTimes::new(1000);
        let seen = |fetched, last| Seen { fetched, last };
        access.note(Uid(7), true, 1005);
        assert_eq!(access.lookup(Uid(7)), seen(false, 1000));
        access.note(Uid(7), false, 1007);
        assert_eq!(access.lookup(Uid(7)), seen(false, 1007));
        access.note(Uid(7), true, 1009);
        assert_eq!((access.lookup(Uid(7)), access.lookup(Uid(0))), (seen(true, 1009), seen(false, 1000)));
        access.note(Uid(8), false, 1011);
        assert_eq!(
            (access.stored_at(Uid(8)), access.stored_at(Uid(7)), access.stored_at(Uid(9))),
            (Some(1011), None, None)
        );
        // The clock was set back.
        access.note(Uid(0), true, 900);
        assert_eq!(access.lookup(Uid(0)), seen(true, 1000));
    }

    #[test]
    fn a_full_row_replaces_the_key_that_was_idle_longest() {
        let access = AccessTimes::new(0);
        access.begin();
        let row = |uid: u32| access.row(Uid(uid)).as_ptr();
        let same: Vec<Uid> = (1..).filter(|uid| row(*uid) == row(1)).take(ROW + 1).map(Uid).collect();
        same.iter().zip(10..).for_each(|(uid, second)| access.note(*uid, true, second));
        assert_eq!(access.lookup(same[0]), Seen { fetched: false, last: 0 });
        assert!((1..=ROW).all(|i| access.lookup(same[i]) == Seen { fetched: true, last: 10 + i as u64 }));
    }
}
