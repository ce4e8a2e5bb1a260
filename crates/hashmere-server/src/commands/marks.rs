//! The marks of a record as the front end uses them: the stale and won marks of the meta protocol, and the lease of
//! `lease-get` beside them. They are in the file, so all servers of a store share them.

use hashmere::Metadata;
use hashmere_engine::APPLIED;

/// The value is to be computed again, and may be used until then.
pub const STALE: u32 = 1;
/// A client has won the right to compute it.
pub const WON: u32 = 1 << 1;
/// Nothing was stored yet: the record is the placeholder of a value that is being computed.
pub const EMPTY: u32 = 1 << 2;
/// The placeholder is one of `lease-get`: other commands than those of the meta protocol do not see it.
pub const HIDDEN: u32 = 1 << 3;
/// The second of the grant and the distance from the token are valid.
const TIMED: u32 = 1 << 4;
/// What the version is above the token: 12 bits.
const DISTANCE: u32 = 8;
/// The second of the last grant, modulo 4096: 12 bits.
const GRANTED: u32 = 20;
const TWELVE_BITS: u32 = 0xfff;

/// Whether other commands than those of the meta protocol answer as if there were no item.
#[inline]
pub fn is_hidden(marks: u32) -> bool {
    marks & HIDDEN != 0
}

/// Whether there is a value that no client has to compute.
pub fn is_fresh(marks: u32) -> bool {
    marks & (STALE | EMPTY) == 0
}

fn second(now: u64) -> u32 {
    (now & u64::from(TWELVE_BITS)) as u32
}

fn distance(marks: u32) -> u32 {
    marks >> DISTANCE & TWELVE_BITS
}

/// The marks with a lease that is granted at this second. A lease that was granted before keeps its token.
pub fn granted(marks: u32, now: u64) -> u32 {
    let kept = if marks & TIMED != 0 { distance(marks) } else { 0 };
    marks & (STALE | EMPTY | HIDDEN | APPLIED) | WON | TIMED | kept << DISTANCE | second(now) << GRANTED
}

/// Whether a client won by the meta protocol, which notes no time.
pub fn is_won_untimed(marks: u32) -> bool {
    marks & (WON | TIMED) == WON
}

/// Whether a lease of this many seconds is not over yet. A grant at the end of its second has the whole time.
pub fn is_leased(marks: u32, now: u64, seconds: u64) -> bool {
    let since = second(now).wrapping_sub(marks >> GRANTED) & TWELVE_BITS;
    marks & (WON | TIMED) == WON | TIMED && u64::from(since) <= seconds
}

/// The token of the lease, if there is one.
pub fn token(meta: &Metadata) -> Option<u64> {
    let leased = meta.marks & (WON | TIMED) == WON | TIMED;
    leased.then(|| meta.version.0.saturating_sub(u64::from(distance(meta.marks))))
}

/// The marks of a stale value that takes the place of this one at a version that is `steps` higher. Who has the lease
/// keeps it; if the token cannot be told from the new version any more, it is forgotten.
pub fn replaced_by_stale(marks: u32, steps: u64) -> u32 {
    let kept = STALE | marks & WON;
    let distance = u64::from(distance(marks)).saturating_add(steps);
    match marks & TIMED != 0 && distance <= u64::from(TWELVE_BITS) {
        true => kept | TIMED | (distance as u32) << DISTANCE | marks >> GRANTED << GRANTED,
        false => kept,
    }
}

/// The marks of a value that is to be computed again, by the next client that asks.
pub fn invalidated(marks: u32) -> u32 {
    STALE | marks & (EMPTY | HIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hashmere::Version;

    fn at(version: u64, marks: u32) -> Metadata {
        Metadata { version: Version(version), marks, ..Metadata::default() }
    }

    #[test]
    fn a_token_is_the_version_of_the_grant() {
        let marks = granted(EMPTY | HIDDEN, 1000);
        assert_eq!(token(&at(70, marks)), Some(70));
        let stale = replaced_by_stale(replaced_by_stale(marks, 1), 3);
        assert_eq!((token(&at(74, stale)), is_hidden(stale), is_fresh(stale)), (Some(70), false, false));
        // Granted again: the same token.
        assert_eq!(token(&at(74, granted(stale, 2000))), Some(70));
        assert_eq!((token(&at(74, WON | STALE)), token(&at(74, invalidated(stale)))), (None, None));
    }

    #[test]
    fn a_token_is_forgotten_when_its_distance_has_no_room() {
        let marks = granted(STALE, 9);
        let last = replaced_by_stale(marks, 4095);
        assert_eq!(token(&at(5000, last)), Some(905));
        for lost in [replaced_by_stale(last, 1), replaced_by_stale(marks, u64::MAX)] {
            assert_eq!((token(&at(5001, lost)), lost), (None, STALE | WON));
        }
    }

    #[test]
    fn a_lease_lasts_its_time() {
        for start in [0, 4090, u64::from(u32::MAX)] {
            let marks = granted(EMPTY, start);
            let leased = |after| is_leased(marks, start + after, 10);
            assert!((0..=10).all(leased) && !(11..4096).any(leased), "{start}");
        }
        // Who won by the meta protocol has no time, and the clock may be set back.
        assert!(!is_leased(WON | STALE, 5, 10) && is_won_untimed(WON | STALE));
        assert!(!is_leased(granted(EMPTY, 100), 99, 10) && !is_won_untimed(granted(EMPTY, 100)));
    }
}
