//! Leases: which client computes a missing or stale value, and whether what it stores is still wanted. The state is in
//! the marks of the record; `docs/internals/protocol.md` has the transitions.

use super::{marks, Outcome};
use crate::server::now_ms;
use crate::turn::Turn;
use hashmere::{Attributes, CasOutcome, Change, Expected, Item, Metadata, Ttl, Version, WriteError};
use hashmere_engine::StoreHandle;
use std::time::Duration;

/// How often a key may change between a look at it and the write before a request gives up.
const ATTEMPTS: u32 = 16;
/// A placeholder without a value lives for this many lease times, at least a minute.
const PLACEHOLDER_LEASES: u64 = 6;
const PLACEHOLDER_SECONDS: u64 = 60;
/// No token is 0 or 1, which mean a value and a lease of another client.
const LEAST_TOKEN: Version = Version(2);

/// What a client gets for a key whose value is to be computed.
#[derive(Debug)]
pub enum Grant {
    /// It has the lease. The stale value, if there is one.
    Token(u64, Option<Item>),
    /// Another client has it, or the key was changed: it is to be looked at again.
    Another,
}

/// Whether a lease can be granted for an item like this.
pub fn is_free(turn: &Turn<'_>, meta: &Metadata) -> bool {
    let lasting = marks::is_leased(meta.marks, now_ms() / 1000, turn.server.config.lease_time);
    !marks::is_fresh(meta.marks) && !lasting
}

fn placeholder_ttl(turn: &Turn<'_>) -> Ttl {
    let seconds = (PLACEHOLDER_LEASES * turn.server.config.lease_time).max(PLACEHOLDER_SECONDS);
    Ttl::After(Duration::from_secs(seconds))
}

/// Gives a client the lease of a key that is absent or free. Of several clients, in any process, one gets it.
pub fn grant(turn: &Turn<'_>, key: &[u8]) -> Result<Grant, WriteError> {
    let (store, now) = (&turn.server.store, now_ms() / 1000);
    let Some(item) = store.get_item(key)? else {
        let attributes = Attributes { flags: 0, ttl: placeholder_ttl(turn), min_version: LEAST_TOKEN };
        let taken = marks::granted(marks::EMPTY | marks::HIDDEN, now);
        let stored = store.shared().set_marked(key, b"", attributes, taken, None)?;
        return Ok(stored.map_or(Grant::Another, |stored| Grant::Token(stored.version.0, None)));
    };
    let before = item.metadata.marks;
    if !is_free(turn, &item.metadata) {
        return Ok(Grant::Another);
    }
    let ttl = match before & marks::EMPTY {
        0 => item.metadata.expires_at_ms.map_or(Ttl::Never, Ttl::At),
        _ => placeholder_ttl(turn),
    };
    let taken = marks::granted(before, now);
    // Who won by the meta protocol has the lease time from now on.
    if !store.shared().remark_with_ttl(key, &item, taken, ttl)? || marks::is_won_untimed(before) {
        return Ok(Grant::Another);
    }
    let token = marks::token(&Metadata { marks: taken, ..item.metadata });
    Ok(token.map_or(Grant::Another, |token| Grant::Token(token, Some(item))))
}

/// Stores what a client computed: as the value with the token of the lease, as stale with another if there is nothing
/// better, not at all over a fresh value or nothing.
pub fn set(turn: &Turn<'_>, key: &[u8], value: &[u8], attributes: Attributes, token: u64) -> Outcome {
    let store = &turn.server.store;
    for _ in 0..ATTEMPTS {
        let seen = match store.metadata(key) {
            Ok(Some(seen)) if !marks::is_fresh(seen.marks) => seen,
            Ok(_) => return Outcome::NotStored,
            Err(error) => return Outcome::Failed(error.into()),
        };
        let holds = marks::token(&seen) == Some(token);
        let stored = match holds {
            true => store.shared().set_marked(key, value, attributes, 0, Some(&seen)),
            false => set_stale(turn, key, value, attributes, &seen),
        };
        match stored {
            Ok(None) => {}
            Ok(Some(stored)) if holds => return Outcome::Stored(stored, value.len() as u64),
            Ok(Some(stored)) => return Outcome::StoredStale(stored),
            Err(error) => return Outcome::Failed(error),
        }
    }
    Outcome::NotStored
}

/// Stores a value that is stale already, in the place of one that is seen; expiry and lease stay.
pub fn set_stale(
    turn: &Turn<'_>,
    key: &[u8],
    value: &[u8],
    attributes: Attributes,
    seen: &Metadata,
) -> Result<Option<hashmere::Stored>, WriteError> {
    let ttl = seen.expires_at_ms.map_or(Ttl::Never, Ttl::At);
    // The version that it will have, unless a backup raises it: then the lease has a token that no client was given.
    let steps = attributes.min_version.0.saturating_sub(seen.version.0).max(1);
    let marks = marks::replaced_by_stale(seen.marks, steps);
    turn.server.store.shared().set_marked(key, value, Attributes { ttl, ..attributes }, marks, Some(seen))
}

/// What `add` finds to be present: stores over it if it is a placeholder of a lease.
pub fn add_over(turn: &Turn<'_>, key: &[u8], value: &[u8], attributes: Attributes) -> Outcome {
    let store = &turn.server.store;
    for _ in 0..ATTEMPTS {
        let stored = match store.metadata(key) {
            Ok(Some(seen)) if marks::is_hidden(seen.marks) => {
                store.shared().set_marked(key, value, attributes, 0, Some(&seen))
            }
            Ok(Some(_)) => return Outcome::NotStored,
            Ok(None) => store.add(key, value, attributes),
            Err(error) => return Outcome::Failed(error.into()),
        };
        match stored {
            Ok(None) => {}
            Ok(Some(stored)) => return Outcome::Stored(stored, value.len() as u64),
            Err(error) => return Outcome::Failed(error),
        }
    }
    Outcome::NotStored
}

/// `replace`, which a placeholder is nothing to replace for.
pub fn replace(turn: &Turn<'_>, key: &[u8], value: &[u8], attributes: Attributes) -> Outcome {
    let store = &turn.server.store;
    for _ in 0..ATTEMPTS {
        let seen = match store.metadata(key) {
            Ok(Some(seen)) if !marks::is_hidden(seen.marks) => seen.version,
            Ok(_) => return Outcome::NotStored,
            Err(error) => return Outcome::Failed(error.into()),
        };
        match store.cas(key, Expected::Version(seen), Change::SetWith(value, attributes)) {
            Ok(CasOutcome::Stored(stored)) => return Outcome::Stored(stored, value.len() as u64),
            Ok(_) => {}
            Err(error) => return Outcome::Failed(error),
        }
    }
    // It changes all the time, so it is there.
    Outcome::of(store.replace(key, value, attributes), value)
}

/// Whether there is nothing under a key but the placeholder of a lease.
pub fn is_placeholder(turn: &Turn<'_>, key: &[u8]) -> bool {
    matches!(turn.server.store.metadata(key), Ok(Some(meta)) if marks::is_hidden(meta.marks))
}
