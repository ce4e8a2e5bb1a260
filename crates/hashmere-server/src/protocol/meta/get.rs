//! `mg`: reading with flags, creating on a miss, and choosing the client that computes a value again.

use super::parse::Request;
use super::reply::{finish, item_flag, reply_flags};
use crate::commands::marks::{EMPTY, STALE, WON};
use crate::commands::touch;
use crate::protocol::text::reply::failure;
use crate::protocol::{exptime, number};
use crate::server::now_ms;
use crate::turn::Turn;
use crate::watch::requests;
use hashmere::{Attributes, Metadata, ReadError, Uid, Version, WriteError};
use hashmere_engine::{Framed, StoreHandle};

/// Attempts to create or to win before the item is answered as it is: each failure means that another client was first.
const ATTEMPTS: u32 = 16;

/// What a reply shows beside the item.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    /// The expiry before the request changed it, and the flag that changed it.
    before: Option<(u8, Option<u64>)>,
    /// This client is to compute the value.
    won: bool,
}

/// Performs `mg`.
pub fn run(turn: &mut Turn<'_>, request: &Request<'_>) {
    let flags = &request.flags;
    let done = if flags.ttl.is_some() || flags.vivify.is_some() {
        read_and_write(turn, request)
    } else {
        read(turn, request, Shown::default()).map_err(WriteError::from)
    };
    let found = match done {
        Ok(found) => found,
        Err(error) => {
            turn.out.line(&failure(&error));
            return;
        }
    };
    turn.counters.cmd_get.add(1);
    requests::fetched(turn, request.key.bytes(), found.is_some());
    if let Some(uid) = found {
        turn.counters.get_hits.add(1);
        // The reply showed what was before.
        if !flags.has(b'u') {
            turn.note(uid, true);
        }
        return;
    }
    turn.counters.get_misses.add(1);
    turn.missed(request.key.bytes());
    if !request.is_quiet() {
        turn.out.text("EN");
        finish(request, &mut turn.out.bytes, |_, _| {});
    }
}

/// Replies with the item; `None` if there is none. If it has to be computed again and no client does yet, tries to win
/// that.
fn read(turn: &mut Turn<'_>, request: &Request<'_>, shown: Shown) -> Result<Option<Uid>, ReadError> {
    let key = request.key.bytes();
    let start = turn.out.bytes.len();
    let mut shown = shown;
    let mut uid = None;
    for attempt in 0..ATTEMPTS {
        let wanting = |meta: &Metadata| !shown.won && attempt + 1 < ATTEMPTS && is_wanting(request, meta, shown.before);
        let meta = match read_once(turn, request, shown)? {
            None => return Ok(None),
            Some(Ok(meta)) => meta,
            Some(Err(view)) => {
                if !wanting(&view.metadata()) {
                    reply_head(turn, request, &view.metadata(), shown, true);
                    uid = Some(view.metadata().uid);
                    turn.out.push_view(view);
                    turn.out.text("\r\n");
                    return Ok(uid);
                }
                view.metadata()
            }
        };
        uid = Some(meta.uid);
        if !wanting(&meta) {
            break;
        }
        turn.out.bytes.truncate(start);
        if win(turn, key) {
            shown.won = true;
        }
    }
    Ok(uid)
}

/// Reads an item into a reply, or returns a view of it if it is long.
fn read_once(
    turn: &mut Turn<'_>,
    request: &Request<'_>,
    shown: Shown,
) -> Result<Option<Result<Metadata, hashmere::View>>, ReadError> {
    let key = request.key.bytes();
    let store = &turn.server.store;
    let wanted = request.flags.has(b'v');
    if !wanted || request.flags.compare.is_some() {
        let Some(meta) = store.metadata(key)? else { return Ok(None) };
        // A client that has this version needs no value.
        if !wanted || request.flags.compare == Some(turn.cas(meta.version)) {
            reply_head(turn, request, &meta, shown, false);
            return Ok(Some(Ok(meta)));
        }
    }
    let mut bytes = std::mem::take(&mut turn.out.bytes);
    let framed =
        store.shared().get_framed(key, &mut bytes, |meta, out| write_head(turn, request, meta, (shown, true), out));
    turn.out.bytes = bytes;
    Ok(match framed? {
        Framed::Absent => None,
        Framed::Copied(meta) => {
            turn.out.text("\r\n");
            Some(Ok(meta))
        }
        Framed::Long(view) => Some(Err(view)),
    })
}

fn reply_head(turn: &mut Turn<'_>, request: &Request<'_>, meta: &Metadata, shown: Shown, with_value: bool) {
    let mut bytes = std::mem::take(&mut turn.out.bytes);
    write_head(turn, request, meta, (shown, with_value), &mut bytes);
    turn.out.bytes = bytes;
}

fn write_head(
    turn: &Turn<'_>,
    request: &Request<'_>,
    meta: &Metadata,
    (shown, with_value): (Shown, bool),
    out: &mut Vec<u8>,
) {
    if with_value {
        out.extend_from_slice(b"VA ");
        number::write(meta.value_len, out);
    } else {
        out.extend_from_slice(b"HD");
    }
    // A time that the request changes shows as it was until the flag that changes it was met.
    let mut shown_meta = *meta;
    let mut changing = 0;
    if let Some((flag, before)) = shown.before {
        changing = flag;
        shown_meta.expires_at_ms = before;
    }
    reply_flags(request.tokens, request.shown_key(), out, |letter, out| match letter {
        // What is created gets its time from either flag, in their order.
        b'T' | b'N' if letter == changing || changing == b'N' => {
            let exptime = if letter == b'T' { request.flags.ttl } else { request.flags.vivify };
            shown_meta.expires_at_ms = exptime.and_then(|time| exptime::deadline(exptime::ttl(time), now_ms()));
        }
        _ => item_flag(turn, letter, &shown_meta, out),
    });
    if meta.marks & WON != 0 && !shown.won {
        out.extend_from_slice(b" Z");
    }
    if meta.marks & STALE != 0 {
        out.extend_from_slice(b" X");
    }
    if shown.won {
        out.extend_from_slice(b" W");
    }
    out.extend_from_slice(b"\r\n");
}

/// Marks an item as being computed; of several clients, in any process, one succeeds.
fn win(turn: &Turn<'_>, key: &[u8]) -> bool {
    let store = &turn.server.store;
    let Ok(Some(item)) = store.get_item(key) else { return false };
    item.metadata.marks & WON == 0 && store.shared().remark(key, &item, item.metadata.marks | WON).unwrap_or(false)
}

/// The same for a request that changes the expiry, or creates what is missing.
fn read_and_write(turn: &mut Turn<'_>, request: &Request<'_>) -> Result<Option<Uid>, WriteError> {
    let key = request.key.bytes();
    let store = &turn.server.store;
    for _ in 0..ATTEMPTS {
        let Some(before) = store.metadata(key)? else {
            let Some(vivify) = request.flags.vivify else { return Ok(None) };
            turn.missed(key);
            let ttl = exptime::ttl(request.flags.last_exptime.unwrap_or(vivify));
            let attributes = Attributes { flags: 0, ttl, min_version: request.flags.version };
            let Some(stored) = store.shared().set_marked(key, b"", attributes, WON | EMPTY, None)? else { continue };
            reply_created(turn, request, stored.version, attributes);
            turn.counters.stored.add(1);
            turn.note(stored.uid, false);
            return Ok(Some(stored.uid));
        };
        let mut shown = Shown::default();
        if let Some(exptime) = request.flags.ttl {
            if !touch::touch(turn, key, exptime)? {
                continue;
            }
            shown.before = Some((b'T', before.expires_at_ms));
        }
        if let Some(uid) = read(turn, request, shown)? {
            return Ok(Some(uid));
        }
    }
    Ok(None)
}

fn reply_created(turn: &mut Turn<'_>, request: &Request<'_>, version: Version, attributes: Attributes) {
    let expires_at_ms = exptime::deadline(attributes.ttl, now_ms());
    let meta = Metadata { value_len: 0, flags: 0, marks: WON, version, expires_at_ms, uid: Uid(0) };
    let with_value = request.flags.has(b'v');
    reply_head(turn, request, &meta, Shown { before: Some((b'N', None)), won: true }, with_value);
    if with_value {
        turn.out.text("\r\n");
    }
}

/// Whether a client should compute this item again, and none has won that. `before`: its expiry before the request
/// changed it.
fn is_wanting(request: &Request<'_>, meta: &Metadata, before: Option<(u8, Option<u64>)>) -> bool {
    if meta.marks & WON != 0 {
        return false;
    }
    // Flags count in their order: a time left is looked at before or after it is changed.
    let first = request.tokens.into_iter().find(|token| matches!(token[0], b'R' | b'T'));
    let expiry = match (before, first) {
        (Some((_, before)), Some([b'R', ..])) => before,
        _ => meta.expires_at_ms,
    };
    let soon = request.flags.recache.is_some_and(|least| {
        exptime::remaining(expiry, now_ms()).is_some_and(|left| i128::from(left) < i128::from(least))
    });
    meta.marks & STALE != 0 || soon
}
