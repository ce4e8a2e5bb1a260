//! What watchers receive about requests. Nothing here is done unless a connection watches.

use super::{DELETIONS, FETCHERS, MUTATIONS};
use crate::commands::Outcome;
use crate::protocol::{exptime, Verb};
use crate::server::now_ms;
use crate::turn::Turn;
use hashmere::Attributes;
use std::io::Write;

/// A key was read.
#[inline]
pub fn fetched(turn: &Turn<'_>, key: &[u8], found: bool) {
    if turn.server.watchers.wants(FETCHERS) {
        write_fetched(turn, key, found);
    }
}

#[cold]
fn write_fetched(turn: &Turn<'_>, key: &[u8], found: bool) {
    let size = if found { size_of(turn, key).0 } else { 0 };
    turn.server.watchers.send(FETCHERS, Some(turn.worker), |line| {
        line.extend_from_slice(b"item_get");
        super::key(key, line);
        let (status, class) = if found { ("found", 1) } else { ("not_found", 0) };
        // Writing to a vector does not fail.
        let _ = write!(line, " status={status} clsid={class} cfd={} size={size}", turn.connection);
    });
}

/// A storing command was performed.
#[inline]
pub fn stored(turn: &Turn<'_>, verb: Verb, key: &[u8], len: usize, attributes: Attributes, outcome: &Outcome) {
    if turn.server.watchers.wants(MUTATIONS) {
        write_stored(turn, verb, key, len, attributes, outcome);
    }
}

#[cold]
fn write_stored(turn: &Turn<'_>, verb: Verb, key: &[u8], len: usize, attributes: Attributes, outcome: &Outcome) {
    let (status, class) = match outcome {
        Outcome::Stored(..) => ("stored", 1),
        Outcome::StoredStale(_) => ("stored_stale", 1),
        Outcome::NotStored => ("not_stored", 1),
        Outcome::Exists => ("exists", 1),
        Outcome::NotFound => ("not_found", 1),
        Outcome::TooLarge => ("too_large", 0),
        Outcome::Failed(error) if error.is_no_room() => ("no_memory", 0),
        Outcome::Failed(_) => ("error", 0),
    };
    let (cmd, extends) = match verb {
        Verb::Set => ("set", false),
        Verb::Add => ("add", false),
        Verb::Replace => ("replace", false),
        Verb::Append => ("append", true),
        Verb::Prepend => ("prepend", true),
        Verb::Cas(_) => ("cas", false),
        Verb::Lease(_) => ("lease-set", false),
    };
    let mut size = if class == 0 { 0 } else { len as u64 };
    let now = now_ms();
    let mut expires = exptime::deadline(attributes.ttl, now);
    if extends && status == "stored" {
        (size, expires) = size_of(turn, key);
    }
    let ttl = exptime::remaining(expires, now).unwrap_or(0);
    turn.server.watchers.send(MUTATIONS, Some(turn.worker), |line| {
        line.extend_from_slice(b"item_store");
        super::key(key, line);
        let connection = turn.connection;
        let _ = write!(line, " status={status} cmd={cmd} ttl={ttl} clsid={class} cfd={connection} size={size}");
    });
}

/// The size of a value that is about to be deleted, if deletions have a watcher.
#[inline]
pub fn size_if_watched(turn: &Turn<'_>, key: &[u8]) -> Option<u64> {
    turn.server.watchers.wants(DELETIONS).then(|| size_of(turn, key).0)
}

/// A key was deleted that had this size.
pub fn deleted(turn: &Turn<'_>, key: &[u8], cmd: &str, size: Option<u64>) {
    let Some(size) = size else { return };
    turn.server.watchers.send(DELETIONS, Some(turn.worker), |line| {
        line.extend_from_slice(b"deleted");
        super::key(key, line);
        let _ = write!(line, " cmd={cmd} clsid=1 size={size}");
    });
}

/// Length and expiry of a value, as they are now.
fn size_of(turn: &Turn<'_>, key: &[u8]) -> (u64, Option<u64>) {
    let meta = turn.server.store.metadata(key).ok().flatten();
    meta.map_or((0, None), |meta| (meta.value_len, meta.expires_at_ms))
}
