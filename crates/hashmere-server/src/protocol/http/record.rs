//! One key: reading, storing, creating, deleting.

use super::conditions::{self, Demand};
use super::head::{Head, Method};
use super::reply::{entity_tag, header, Answer, Refusal, BYTES};
use crate::commands::{delete, lease, marks, set, Outcome};
use crate::protocol::{number, Verb};
use crate::server::now_ms;
use crate::turn::Turn;
use crate::watch::requests;
use hashmere::{Attributes, CasOutcome, Change, Expected, Metadata, Ttl, Version, View, WriteError};
use hashmere_engine::{Framed, StoreHandle};
use std::time::Duration;

/// Longest time to live, in seconds: what is above it never expires.
const TTL_MAX: u64 = 1 << 37;

/// Performs a request for a key.
pub fn run(turn: &mut Turn<'_>, head: &Head<'_>, key: &[u8], body: &[u8], answer: &Answer<'_>) -> Result<(), Refusal> {
    match head.method {
        Method::Get if !conditions::has_any(&head.fields) => get(turn, key, answer),
        Method::Get | Method::Head => get_if(turn, head, key, answer),
        Method::Delete => remove(turn, head, key, answer),
        _ => store(turn, head, key, body, answer),
    }
}

fn absent() -> Refusal {
    Refusal::new(404, "no such key")
}

fn failed(error: &WriteError) -> Refusal {
    let status = match error {
        WriteError::Busy { .. } | WriteError::Conflict { .. } | WriteError::TooManyClients { .. } => 503,
        WriteError::TooLarge { .. } | WriteError::TooManyKeys { .. } => 413,
        WriteError::ReadOnly => 403,
        WriteError::NotANumber
        | WriteError::Overflow
        | WriteError::InvalidState(_)
        | WriteError::WrongLength { .. } => 409,
        error if error.is_no_room() => 507,
        _ => 500,
    };
    Refusal::new(status, error.to_string())
}

/// The refusal of a change that the store refused.
pub fn refusal_of(turn: &Turn<'_>, error: &WriteError) -> Refusal {
    if error.is_no_room() {
        turn.counters.no_memory.add(1);
    }
    failed(error)
}

/// Headers of a key that is there.
#[inline]
fn attributes(turn_cas: bool, meta: &Metadata, out: &mut Vec<u8>) {
    if turn_cas {
        entity_tag(out, meta.version.0);
    }
    if meta.flags != 0 {
        out.extend_from_slice(b"X-Hashmere-Flags: ");
        number::write(u64::from(meta.flags), out);
        out.extend_from_slice(b"\r\n");
    }
    if let Some(at) = meta.expires_at_ms {
        let left = at.saturating_sub(now_ms());
        header(out, "X-Hashmere-TTL", format!("{}.{:03}", left / 1000, left % 1000).as_bytes());
    }
}

/// A plain read: a short value is copied once, from the file into the outbox.
#[inline]
fn get(turn: &mut Turn<'_>, key: &[u8], answer: &Answer<'_>) -> Result<(), Refusal> {
    let store = &turn.server.store;
    let cas = turn.server.config.cas;
    let start = turn.out.bytes.len();
    let frame = |meta: &Metadata, out: &mut Vec<u8>| {
        answer.start(out, 200);
        attributes(cas, meta, out);
        answer.finish(out, BYTES, meta.value_len);
    };
    let found = match store.shared().get_framed(key, &mut turn.out.bytes, frame) {
        // The placeholder of a lease is no value.
        Ok(Framed::Copied(meta)) if marks::is_hidden(meta.marks) => {
            turn.out.bytes.truncate(start);
            None
        }
        Ok(Framed::Copied(meta)) => Some(meta.uid),
        Ok(Framed::Long(view)) => {
            let meta = view.metadata();
            frame(&meta, &mut turn.out.bytes);
            turn.out.push_view(view);
            Some(meta.uid)
        }
        Ok(Framed::Absent) => None,
        Err(error) => {
            turn.server.report_unreadable(&error);
            turn.out.bytes.truncate(start);
            return Err(Refusal::new(500, error.to_string()));
        }
    };
    note_read(turn, key, found.is_some());
    match found {
        Some(uid) => {
            turn.note(uid, true);
            Ok(())
        }
        None => Err(absent()),
    }
}

#[inline]
fn note_read(turn: &Turn<'_>, key: &[u8], found: bool) {
    requests::fetched(turn, key, found);
    turn.server.detail.fetched(key, found);
    turn.counters.cmd_get.add(1);
    if found {
        turn.counters.get_hits.add(1);
    } else {
        turn.counters.get_misses.add(1);
        turn.missed(key);
    }
}

/// A read with conditions, of a part, or of the head.
fn get_if(turn: &mut Turn<'_>, head: &Head<'_>, key: &[u8], answer: &Answer<'_>) -> Result<(), Refusal> {
    let view = turn.server.store.view(key).map_err(|error| {
        turn.server.report_unreadable(&error);
        Refusal::new(500, error.to_string())
    })?;
    let view = view.filter(|view| !marks::is_hidden(view.metadata().marks));
    note_read(turn, key, view.is_some());
    let Some(view) = view else {
        return Err(if head.fields.if_match.is_some() { not_met() } else { absent() });
    };
    let meta = view.metadata();
    turn.note(meta.uid, true);
    let cas = turn.server.config.cas;
    match conditions::of_read(&head.fields, meta.version.0) {
        Some(304) => {
            let out = &mut turn.out.bytes;
            answer.start(out, 304);
            attributes(cas, &meta, out);
            out.extend_from_slice(b"\r\n");
            return Ok(());
        }
        Some(_) => return Err(not_met()),
        None => {}
    }
    let len = meta.value_len;
    // A range is one of a body, which a HEAD has not.
    let range = if answer.is_head { Ok(None) } else { conditions::range(&head.fields, meta.version.0, len) };
    let Ok(range) = range else {
        let header = format!("Content-Range: bytes */{len}\r\n").into();
        return Err(Refusal { header, ..Refusal::new(416, format!("the value has {len} bytes")) });
    };
    let out = &mut turn.out.bytes;
    answer.start(out, if range.is_some() { 206 } else { 200 });
    attributes(cas, &meta, out);
    header(out, "Accept-Ranges", b"bytes");
    let part = range.clone().unwrap_or(0..len);
    if range.is_some() {
        header(out, "Content-Range", format!("bytes {}-{}/{len}", part.start, part.end - 1).as_bytes());
    }
    answer.finish(out, BYTES, part.end - part.start);
    if !answer.is_head {
        push(turn, view, part.start as usize..part.end as usize);
    }
    Ok(())
}

/// Appends a part of a value: a short one as a copy, for a view is a pin.
fn push(turn: &mut Turn<'_>, view: View, part: std::ops::Range<usize>) {
    const COPY_MAX: usize = 32 << 10;
    if part.len() <= COPY_MAX {
        turn.out.bytes.extend_from_slice(view.get(part).unwrap_or_default());
    } else {
        turn.out.push_part(view, part);
    }
}

fn not_met() -> Refusal {
    Refusal::new(412, "the condition does not hold")
}

/// Seconds with up to three decimals.
pub fn parse_ttl(text: &[u8]) -> Result<Ttl, Refusal> {
    let bad = || Refusal::new(400, "a time to live is in seconds, with up to three decimals");
    let (whole, part) = match memchr::memchr(b'.', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &b"0"[..]),
    };
    let seconds = number::digits(whole).ok_or_else(bad)?;
    let decimals = number::digits(part).filter(|_| part.len() <= 3).ok_or_else(bad)?;
    if seconds >= TTL_MAX {
        return Ok(Ttl::Never);
    }
    let millis = decimals * 10u64.pow(3 - part.len() as u32);
    Ok(Ttl::After(Duration::from_millis(seconds * 1000 + millis)))
}

fn store(turn: &mut Turn<'_>, head: &Head<'_>, key: &[u8], body: &[u8], answer: &Answer<'_>) -> Result<(), Refusal> {
    let ttl = head.fields.ttl.map_or(Ok(Ttl::Never), parse_ttl)?;
    let flags = match head.fields.flags {
        None => 0,
        Some(text) => number::digits(text)
            .and_then(|flags| u32::try_from(flags).ok())
            .ok_or_else(|| Refusal::new(400, "flags are a number below 2^32"))?,
    };
    let demand = conditions::demand(&head.fields)?;
    let (verb, refused) = match (head.method, demand) {
        (Method::Post, Demand::None | Demand::Absent) => {
            (Verb::Add, Refusal::new(409, "the key is there already; PUT replaces it"))
        }
        (Method::Post, _) => return Err(Refusal::new(400, "POST creates a key: it has no If-Match")),
        (_, Demand::None) => (Verb::Set, not_met()),
        (_, Demand::Absent) => (Verb::Add, not_met()),
        (_, Demand::Present) => (Verb::Replace, not_met()),
        (_, Demand::Version(version)) => (Verb::Cas(version), not_met()),
        (_, Demand::Impossible) => return Err(not_met()),
    };
    if !set::fits(turn, key, flags, body.len() as u64) {
        set::refuse_large(turn, verb, key, false);
        return Err(Refusal::new(413, "the item is larger than an item may be (-I)"));
    }
    let attributes = Attributes { flags, ttl, min_version: Version(0) };
    match set::set(turn, verb, key, body, attributes, None) {
        Outcome::Stored(stored, _) => {
            let cas = turn.server.config.cas;
            let out = &mut turn.out.bytes;
            // The placeholder of a lease, which is in the way of no add, is no value of before.
            let created = stored.created || verb == Verb::Add;
            answer.start(out, if created { 201 } else { 204 });
            if cas {
                entity_tag(out, stored.version.0);
            }
            // A 204 has no body, and no length either.
            out.extend_from_slice(if created { b"Content-Length: 0\r\n\r\n" } else { b"\r\n" });
            Ok(())
        }
        Outcome::Failed(error) => Err(failed(&error)),
        Outcome::TooLarge => Err(Refusal::new(413, "the item is larger than an item may be (-I)")),
        Outcome::NotStored | Outcome::Exists | Outcome::NotFound | Outcome::StoredStale(_) => Err(refused),
    }
}

fn remove(turn: &mut Turn<'_>, head: &Head<'_>, key: &[u8], answer: &Answer<'_>) -> Result<(), Refusal> {
    let deleted = match conditions::demand(&head.fields)? {
        Demand::Absent | Demand::Impossible => return Err(not_met()),
        Demand::Version(version) => remove_version(turn, key, version).map_err(|error| failed(&error))?,
        Demand::None | Demand::Present => delete::delete(turn, key).map_err(|error| failed(&error))?,
    };
    if deleted {
        answer.start(&mut turn.out.bytes, 204);
        turn.out.bytes.extend_from_slice(b"\r\n");
        return Ok(());
    }
    Err(if head.fields.if_match.is_some() { not_met() } else { absent() })
}

/// Deletes a key that has this version.
fn remove_version(turn: &Turn<'_>, key: &[u8], version: u64) -> Result<bool, WriteError> {
    // To a store version 0 is "absent"; no key has it.
    if version == 0 || lease::is_placeholder(turn, key) {
        return Ok(false);
    }
    let size = requests::size_if_watched(turn, key);
    let removed = turn.server.store.cas(key, Expected::Version(Version(version)), Change::Remove)?;
    match removed {
        CasOutcome::Removed => {
            turn.counters.delete_hits.add(1);
            requests::deleted(turn, key, "delete", size);
            Ok(true)
        }
        CasOutcome::Mismatch(_) => {
            turn.counters.cas_badval.add(1);
            Ok(false)
        }
        _ => {
            turn.counters.delete_misses.add(1);
            turn.missed(key);
            Ok(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_live_are_seconds() {
        let millis = |text: &str| match parse_ttl(text.as_bytes()) {
            Ok(Ttl::After(time)) => Some(time.as_millis() as u64),
            _ => None,
        };
        assert_eq!(
            (millis("60"), millis("0.5"), millis("1.25"), millis("2.007")),
            (Some(60_000), Some(500), Some(1250), Some(2007))
        );
        assert!(matches!(parse_ttl(b"99999999999999"), Ok(Ttl::Never)));
        for bad in ["", "-1", "1.", ".5", "1.2345", "1e3", "1 ", "never", "+1"] {
            assert!(parse_ttl(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
