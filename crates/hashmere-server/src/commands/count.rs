//! Counting, for all three protocols.

use super::marks;
use crate::protocol::number;
use crate::turn::Turn;
use hashmere::{Attributes, Ttl, Update, Updated, Version, WriteError};

/// What to count.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// How far.
    pub by: u64,
    /// Upwards; wraps at 2^64. Downwards stops at zero.
    pub up: bool,
    /// What a missing key is created with.
    pub create: Option<(u64, Ttl)>,
    /// The version demanded.
    pub only: Option<u64>,
    /// A new expiry; else it stays.
    pub ttl: Option<Ttl>,
    /// The version that it gets at least.
    pub version: Version,
}

/// A counter that was counted.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// The number now.
    pub number: u64,
    /// Its version now.
    pub version: Version,
    /// Whether it was created.
    pub created: bool,
    /// When it was to expire before this request, in milliseconds since 1970.
    pub expires_at_ms: Option<u64>,
}

/// The result.
#[derive(Debug)]
pub enum Outcome {
    /// It was counted.
    Done(Counted),
    /// It is not there.
    NotFound,
    /// It has another version.
    Exists,
    /// It is no number.
    NotANumber,
    /// The store refused.
    Failed(WriteError),
}

/// The number that a value begins with: spaces may be before it, and behind it too, as counting down leaves them.
fn number_of(value: &[u8]) -> Option<u64> {
    let text = value.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    number::unsigned(&text[..end])
}

/// The text of a number, at least as long as the value that it replaces.
fn text_of(number: u64, width: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(width.max(20));
    number::write(number, &mut text);
    if text.len() < width {
        text.resize(width, b' ');
    }
    text
}

/// Counts. A counter keeps its length when the number becomes shorter, as in memcached.
pub fn count(turn: &Turn<'_>, key: &[u8], count: Count) -> Outcome {
    let outcome = apply(turn, key, count);
    let (hits, misses) = match count.up {
        true => (&turn.counters.incr_hits, &turn.counters.incr_misses),
        false => (&turn.counters.decr_hits, &turn.counters.decr_misses),
    };
    match &outcome {
        Outcome::Done(counted) if !counted.created => hits.add(1),
        Outcome::Done(_) => misses.add(1),
        Outcome::NotFound => {
            misses.add(1);
            turn.missed(key);
        }
        Outcome::Exists => turn.counters.cas_badval.add(1),
        _ => {}
    }
    outcome
}

fn apply(turn: &Turn<'_>, key: &[u8], count: Count) -> Outcome {
    let mut refused = Outcome::NotFound;
    let mut longer = false;
    let mut counted = Counted { number: 0, version: Version(0), created: false, expires_at_ms: None };
    let updated = turn.server.store.update_with(key, |item| {
        let Some(item) = item.filter(|item| !marks::is_hidden(item.metadata.marks)) else {
            refused = Outcome::NotFound;
            let Some((initial, ttl)) = count.create else { return Update::Keep };
            counted.number = initial;
            counted.created = true;
            return Update::SetWith(text_of(initial, 0), Attributes { flags: 0, ttl, min_version: count.version });
        };
        // In memcached's order: an empty value has no number whatever its version.
        if !item.value.is_empty() && count.only.is_some_and(|version| version != item.metadata.version.0) {
            refused = Outcome::Exists;
            return Update::Keep;
        }
        let Some(old) = number_of(&item.value) else {
            refused = Outcome::NotANumber;
            return Update::Keep;
        };
        counted.number = if count.up { old.wrapping_add(count.by) } else { old.saturating_sub(count.by) };
        counted.created = false;
        counted.expires_at_ms = item.metadata.expires_at_ms;
        let text = text_of(counted.number, item.value.len());
        longer = text.len() > item.value.len();
        match count.ttl {
            None => Update::SetMinVersion(text, count.version),
            Some(ttl) => {
                let flags = item.metadata.flags;
                Update::SetWith(text, Attributes { flags, ttl, min_version: count.version })
            }
        }
    });
    match updated {
        Ok(Updated::Stored(stored)) => {
            // Within its length a counter is counted in place, which is no access; else it is stored again.
            if counted.created || longer {
                turn.note(stored.uid, false);
            }
            Outcome::Done(Counted { version: stored.version, ..counted })
        }
        Ok(_) => refused,
        Err(error) => Outcome::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_values() {
        assert_eq!((number_of(b"12"), number_of(b"9  "), number_of(b"")), (Some(12), Some(9), None));
        assert_eq!((number_of(b" 9"), number_of(b"9 x"), number_of(b"9x")), (Some(9), Some(9), None));
        assert_eq!((number_of(b"x"), number_of(b"   "), number_of(b"18446744073709551616")), (None, None, None));
        assert_eq!((text_of(9, 3), text_of(100, 2)), (b"9  ".to_vec(), b"100".to_vec()));
    }
}
