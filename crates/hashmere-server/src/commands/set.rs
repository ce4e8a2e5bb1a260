//! Storing, for all three protocols.

use super::{lease, marks, Outcome};
use crate::config::Config;
use crate::protocol::Verb;
use crate::turn::Turn;
use crate::watch::requests;
use hashmere::{Attributes, CasOutcome, Change, Expected, Update, Updated, Version};

/// What memcached keeps with an item beside key and value: counted against the item limit, so that the limit means the
/// same.
const ITEM_OVERHEAD: u64 = 59;

/// The longest value of a key, without flags.
pub fn value_max(config: &Config, key: &[u8]) -> u64 {
    config.item_max.saturating_sub(ITEM_OVERHEAD + key.len() as u64)
}

/// Whether an item may be this large.
pub fn fits(turn: &Turn<'_>, key: &[u8], flags: u32, len: u64) -> bool {
    let item = ITEM_OVERHEAD + key.len() as u64 + len + if flags == 0 { 0 } else { 4 };
    item <= turn.server.config.item_max
}

/// Stores a value. `only`: the version demanded, for what puts bytes in front or behind.
#[inline]
pub fn set(
    turn: &Turn<'_>,
    verb: Verb,
    key: &[u8],
    value: &[u8],
    attributes: Attributes,
    only: Option<u64>,
) -> Outcome {
    let store = &turn.server.store;
    let counters = turn.counters;
    counters.cmd_set.add(1);
    let outcome = match verb {
        Verb::Set => Outcome::of(store.set_with(key, value, attributes).map(Some), value),
        Verb::Add => match Outcome::of(store.add(key, value, attributes), value) {
            Outcome::NotStored => lease::add_over(turn, key, value, attributes),
            outcome => outcome,
        },
        Verb::Replace => lease::replace(turn, key, value, attributes),
        Verb::Lease(token) => lease::set(turn, key, value, attributes, token),
        Verb::Append => extend(turn, key, only, attributes.min_version, |old| [old, value].concat()),
        Verb::Prepend => extend(turn, key, only, attributes.min_version, |old| [value, old].concat()),
        // To a store version 0 is "absent"; to memcached it is one that no item has.
        Verb::Cas(0) => match store.metadata(key) {
            Ok(Some(meta)) if !marks::is_hidden(meta.marks) => Outcome::Exists,
            Ok(_) => Outcome::NotFound,
            Err(error) => Outcome::Failed(error.into()),
        },
        Verb::Cas(version) => {
            let expected = Expected::Version(Version(version));
            match store.cas(key, expected, Change::SetWith(value, attributes)) {
                Ok(CasOutcome::Stored(stored)) => Outcome::Stored(stored, value.len() as u64),
                Ok(CasOutcome::Mismatch(_)) if !lease::is_placeholder(turn, key) => Outcome::Exists,
                Ok(_) => Outcome::NotFound,
                Err(error) => Outcome::Failed(error),
            }
        }
    };
    match &outcome {
        Outcome::Stored(..) | Outcome::StoredStale(_) => drop(turn.server.flushed.forget(key)),
        Outcome::NotStored if verb != Verb::Add => turn.missed(key),
        Outcome::NotFound => turn.missed(key),
        _ => {}
    }
    count_outcome(turn, &outcome, matches!(verb, Verb::Cas(_)) || only.is_some());
    requests::stored(turn, verb, key, value.len(), attributes, &outcome);
    if let Outcome::Stored(stored, _) | Outcome::StoredStale(stored) = &outcome {
        turn.note(stored.uid, false);
    }
    outcome
}

fn count_outcome(turn: &Turn<'_>, outcome: &Outcome, versioned: bool) {
    let counters = turn.counters;
    match outcome {
        Outcome::Stored(..) => counters.stored.add(1),
        Outcome::StoredStale(_) => {
            counters.stored.add(1);
            counters.lease_stale.add(1);
        }
        Outcome::Exists => counters.cas_badval.add(1),
        Outcome::NotFound => counters.cas_misses.add(1),
        Outcome::Failed(error) if error.is_no_room() => counters.no_memory.add(1),
        _ => {}
    }
    if versioned && matches!(outcome, Outcome::Stored(..)) {
        counters.cas_hits.add(1);
    }
}

fn extend(turn: &Turn<'_>, key: &[u8], only: Option<u64>, least: Version, build: impl Fn(&[u8]) -> Vec<u8>) -> Outcome {
    let mut refused = Outcome::NotStored;
    let mut len = 0;
    let updated = turn.server.store.update_with(key, |item| {
        let Some(item) = item.filter(|item| !marks::is_hidden(item.metadata.marks)) else {
            refused = Outcome::NotStored;
            return Update::Keep;
        };
        if only.is_some_and(|version| version != item.metadata.version.0) {
            refused = Outcome::Exists;
            return Update::Keep;
        }
        let value = build(&item.value);
        len = value.len() as u64;
        if !fits(turn, key, item.metadata.flags, len) {
            refused = Outcome::TooLarge;
            return Update::Keep;
        }
        Update::SetMinVersion(value, least)
    });
    match updated {
        Ok(Updated::Stored(stored)) => Outcome::Stored(stored, len),
        Ok(_) => refused,
        Err(error) => Outcome::Failed(error),
    }
}

/// After a value that could not be taken. With `drops`, what it was to replace goes too: no reader must take the one
/// for the other.
pub fn refuse_large(turn: &Turn<'_>, verb: Verb, key: &[u8], drops: bool) {
    turn.counters.too_large.add(1);
    requests::stored(turn, verb, key, 0, Attributes::NONE, &Outcome::TooLarge);
    if drops {
        // The client gets the refusal of its value, whether or not this succeeds.
        let _ = turn.server.store.delete(key);
    }
}
