//! Keys of a store as registers of the history checker: how a [`Call`] is done with the public API.
//!
//! Every fourth key is a counter, whose value is decimal text; the others hold [`payload`] values,
//! so that a torn value is noticed wherever it is read. The same call is done in different ways (get, view,
//! get into a buffer ...), chosen by `how`.

use crate::history::{Call, Reply, State};
use crate::payload;
use hashmere::{Attributes, CasOutcome, Change, Counter, Expected, Store, Update, Updated, Version, WriteError};

/// Whether the key with this number is a counter.
pub fn is_counter(key: u32) -> bool {
    key % 4 == 3
}

/// The bytes of the key with this number.
pub fn key_bytes(key: u32) -> Vec<u8> {
    payload::key(u64::from(key))
}

/// The bytes of a value of this key.
pub fn value_bytes(key: u32, value: u64) -> Vec<u8> {
    if is_counter(key) {
        value.to_string().into_bytes()
    } else {
        payload::encode(value)
    }
}

/// The number that the bytes of a value encode.
///
/// # Panics
/// If they are not a value that was ever written whole.
pub fn number(key: u32, value: &[u8]) -> u64 {
    let number = if is_counter(key) {
        std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or_else(|| format!("{value:?}"))
    } else {
        payload::decode(value)
    };
    number.unwrap_or_else(|problem| panic!("key {key}: {problem}"))
}

/// Does the call. The reply, and the version that it gave the key (zero: it tells none).
///
/// # Errors
/// What the store refused with.
///
/// # Panics
/// If a value is torn or a read fails.
pub fn perform(store: &Store, key: u32, call: Call, how: u64) -> Result<(Reply, u64), WriteError> {
    let name = key_bytes(key);
    let bytes = |value: u64| value_bytes(key, value);
    let yes_if = |version: Option<Version>| match version {
        Some(Version(version)) => (Reply::Yes, version),
        None => (Reply::No, 0),
    };
    let none = Attributes::NONE;
    Ok(match call {
        Call::Get => (Reply::Found(read(store, key, how)), 0),
        Call::Set(value) => (Reply::Yes, set(store, &name, &bytes(value), how)?),
        Call::Add(value) => yes_if(store.add(&name, &bytes(value), none)?.map(|stored| stored.version)),
        Call::Replace(value) => yes_if(store.replace(&name, &bytes(value), none)?.map(|stored| stored.version)),
        Call::Delete if how % 2 == 0 => (if store.delete(&name)? { Reply::Yes } else { Reply::No }, 0),
        Call::Delete => (if store.delete_many(&[&name])? == 1 { Reply::Yes } else { Reply::No }, 0),
        Call::Take => (Reply::Found(store.take(&name)?.map(|value| number(key, &value))), 0),
        Call::Cas { expected, new } => cas(store, key, expected, new)?,
        Call::Incr { by, initial } => incr(store, key, by, initial, how)?,
    })
}

fn read(store: &Store, key: u32, how: u64) -> State {
    let name = key_bytes(key);
    let found = match how % 5 {
        0 => store.get(&name).unwrap(),
        1 => {
            let mut buffer = Vec::new();
            store.get_into(&name, &mut buffer).unwrap().map(|_| buffer)
        }
        2 => store.get_item(&name).unwrap().map(|item| item.value),
        3 => store.get_many(&[&name]).unwrap().remove(0),
        _ => store.view(&name).unwrap().map(|view| view.to_vec()),
    };
    found.map(|value| number(key, &value))
}

fn set(store: &Store, name: &[u8], value: &[u8], how: u64) -> Result<u64, WriteError> {
    if how % 4 == 0 {
        let mut reservation = store.reserve(name, value.len() as u64, Attributes::NONE)?;
        reservation.copy_from_slice(value);
        return Ok(reservation.commit()?.version.0);
    }
    Ok(store.set(name, value)?.version.0)
}

fn cas(store: &Store, key: u32, expected: State, new: State) -> Result<(Reply, u64), WriteError> {
    let (old, new) = (expected.map(|value| value_bytes(key, value)), new.map(|value| value_bytes(key, value)));
    let expected = old.as_ref().map_or(Expected::Absent, |value| Expected::Value(value));
    let change = new.as_ref().map_or(Change::Remove, |value| Change::Set(value));
    Ok(match store.cas(&key_bytes(key), expected, change)? {
        CasOutcome::Stored(stored) => (Reply::Yes, stored.version.0),
        CasOutcome::Removed => (Reply::Yes, 0),
        CasOutcome::Mismatch(_) => (Reply::No, 0),
        CasOutcome::Absent => (Reply::NotFound, 0),
    })
}

/// An increment, either as such or through a visitor or by compare-and-set on the version, which must all be atomic.
fn incr(store: &Store, key: u32, by: u64, initial: Option<u64>, how: u64) -> Result<(Reply, u64), WriteError> {
    let name = key_bytes(key);
    match how % 4 {
        0 => {
            let mut after = None;
            let updated = store.update_with(&name, |item| {
                after = item.map(|item| number(key, &item.value).wrapping_add(by)).or(initial);
                after.map_or(Update::Keep, |value| Update::Set(value_bytes(key, value)))
            })?;
            let version = if let Updated::Stored(stored) = updated { stored.version.0 } else { 0 };
            Ok((Reply::Found(after), version))
        }
        1 => loop {
            let Some(item) = store.get_item(&name).unwrap() else {
                let attributes = Counter { initial, ..Counter::default() };
                return Ok((Reply::Found(store.incr(&name, by, attributes)?), 0));
            };
            let after = number(key, &item.value).wrapping_add(by);
            let (expected, value) = (Expected::Version(item.metadata.version), value_bytes(key, after));
            if let CasOutcome::Stored(stored) = store.cas(&name, expected, Change::Set(&value))? {
                return Ok((Reply::Found(Some(after)), stored.version.0));
            }
        },
        _ => {
            let attributes = Counter { initial, ..Counter::default() };
            Ok((Reply::Found(store.incr(&name, by, attributes)?), 0))
        }
    }
}
