//! `lease-get` and `metaget`, which mcrouter sends. `lease-set` is a `set` with a token: see `parse.rs`.

use super::reply::value_line;
use crate::commands::lease::{self, Grant};
use crate::commands::marks;
use crate::protocol::number;
use crate::turn::Turn;
use crate::watch::requests;
use hashmere::{Metadata, ReadError, Uid, View};
use hashmere_engine::{Framed, StoreHandle};

/// Looks at a key that others change before the answer is that another client computes it.
const ATTEMPTS: u32 = 16;
/// The token that says that another client has the lease.
const ANOTHER: u64 = 1;

/// What is under a key.
enum Found {
    /// It was answered: a value, or what another client computes.
    Answered(Metadata),
    /// The same, with a long value to follow.
    Long(View),
    /// This client may have the lease.
    Free,
}

/// Answers one key of `lease-get`: with the value, or with the lease of computing it, or with the token that says that
/// another client does. There is an answer for every key, whatever happens: mcrouter waits for one.
pub fn get(turn: &mut Turn<'_>, key: &[u8]) {
    turn.counters.cmd_get.add(1);
    let start = turn.out.bytes.len();
    for _ in 0..ATTEMPTS {
        match find(turn, key) {
            Ok(Found::Answered(meta)) => return answered(turn, key, &meta),
            Ok(Found::Long(view)) => {
                let meta = view.metadata();
                head(key, &meta, ANOTHER, &mut turn.out.bytes);
                turn.out.push_view(view);
                return answered(turn, key, &meta);
            }
            // What was read of it is not the answer.
            Ok(Found::Free) => turn.out.bytes.truncate(start),
            Err(error) => {
                turn.server.report_unreadable(&error);
                break;
            }
        }
        match lease::grant(turn, key) {
            Ok(Grant::Token(token, item)) => {
                let meta = item.as_ref().map_or_else(Metadata::default, |item| item.metadata);
                lvalue_line(key, &meta, token, &mut turn.out.bytes);
                turn.out.bytes.extend_from_slice(item.as_ref().map_or(&[][..], |item| &item.value));
                turn.out.text("\r\n");
                turn.counters.lease_grants.add(1);
                return missed(turn, key);
            }
            Ok(Grant::Another) => {}
            Err(error) => {
                turn.server.log(0, || format!("cannot grant a lease: {error}"));
                break;
            }
        }
    }
    turn.out.bytes.truncate(start);
    lvalue_line(key, &Metadata::default(), ANOTHER, &mut turn.out.bytes);
    turn.out.text("\r\n");
    turn.counters.lease_waits.add(1);
    missed(turn, key);
}

/// Looks at a key, and writes the answer unless the lease may be free.
fn find(turn: &mut Turn<'_>, key: &[u8]) -> Result<Found, ReadError> {
    let store = &turn.server.store;
    let framed = store.shared().get_framed(key, &mut turn.out.bytes, |meta, out| head(key, meta, ANOTHER, out))?;
    Ok(match framed {
        Framed::Absent => Found::Free,
        Framed::Copied(meta) if lease::is_free(turn, &meta) => Found::Free,
        Framed::Long(view) if lease::is_free(turn, &view.metadata()) => Found::Free,
        Framed::Copied(meta) => Found::Answered(meta),
        Framed::Long(view) => Found::Long(view),
    })
}

/// After a value: the end of its block, and the counting.
fn answered(turn: &mut Turn<'_>, key: &[u8], meta: &Metadata) {
    turn.out.text("\r\n");
    if !marks::is_fresh(meta.marks) {
        turn.counters.lease_waits.add(1);
        return missed(turn, key);
    }
    turn.counters.get_hits.add(1);
    turn.note(meta.uid, true);
    requests::fetched(turn, key, true);
    turn.server.detail.fetched(key, true);
}

fn missed(turn: &Turn<'_>, key: &[u8]) {
    turn.counters.get_misses.add(1);
    requests::fetched(turn, key, false);
    turn.server.detail.fetched(key, false);
}

/// The line before a value: fresh, or to be computed by the client with this token.
fn head(key: &[u8], meta: &Metadata, token: u64, out: &mut Vec<u8>) {
    match marks::is_fresh(meta.marks) {
        true => value_line(key, meta, None, out),
        false => lvalue_line(key, meta, token, out),
    }
}

fn lvalue_line(key: &[u8], meta: &Metadata, token: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"LVALUE ");
    out.extend_from_slice(key);
    for number in [token, u64::from(meta.flags), meta.value_len] {
        out.push(b' ');
        number::write(number, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Answers one key of `metaget`, if it has a value.
pub fn metadata(turn: &mut Turn<'_>, key: &[u8]) {
    let meta = match turn.server.store.metadata(key) {
        Ok(Some(meta)) if !marks::is_hidden(meta.marks) => meta,
        Ok(_) => return,
        Err(error) => return turn.server.report_unreadable(&error),
    };
    let age = age(turn, meta.uid).map_or("unknown".to_string(), |age| age.to_string());
    // Zero is never; what has begun to be its last second shows the next.
    let exptime = meta.expires_at_ms.map_or(0, |at| at.div_ceil(1000));
    turn.out.text("META ");
    turn.out.bytes.extend_from_slice(key);
    turn.out.line(&format!(" age: {age}; exptime: {exptime}; from: unknown; is_transient: 0"));
}

/// Seconds since a value was stored, if its last access that was recorded is that.
fn age(turn: &Turn<'_>, uid: Uid) -> Option<u64> {
    let stored = turn.server.access.stored_at(uid)?;
    Some(turn.now.saturating_sub(stored))
}
