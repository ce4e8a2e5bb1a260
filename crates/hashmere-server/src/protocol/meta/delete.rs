//! `md`: deleting, and what comes instead of it.

use super::parse::Request;
use super::reply::finish;
use crate::commands::{marks, Outcome};
use crate::protocol::exptime;
use crate::protocol::text::reply::failure;
use crate::turn::Turn;
use crate::watch::requests;
use hashmere::{Attributes, CasOutcome, Change, Expected, Ttl, Version};
use hashmere_engine::StoreHandle;

/// Performs `md`.
pub fn run(turn: &mut Turn<'_>, request: &Request<'_>) {
    let flags = &request.flags;
    let size = requests::size_if_watched(turn, request.key.bytes());
    let outcome = if flags.has(b'I') || flags.has(b'x') { invalidate(turn, request) } else { remove(turn, request) };
    match outcome {
        Outcome::Stored(..) => {
            turn.counters.delete_hits.add(1);
            requests::deleted(turn, request.key.bytes(), "md", size);
        }
        Outcome::NotFound => {
            turn.counters.delete_misses.add(1);
            turn.missed(request.key.bytes());
        }
        _ => {}
    }
    let text = match outcome {
        Outcome::Stored(..) if request.is_quiet() => return,
        Outcome::Stored(..) => "HD",
        Outcome::Exists => "EX",
        Outcome::Failed(error) => return turn.out.line(&failure(&error)),
        _ => "NF",
    };
    turn.out.text(text);
    finish(request, &mut turn.out.bytes, |_, _| {});
}

fn remove(turn: &Turn<'_>, request: &Request<'_>) -> Outcome {
    let (store, key) = (&turn.server.store, request.key.bytes());
    let Some(version) = request.flags.compare else {
        return match store.delete(key) {
            Ok(true) => Outcome::gone(),
            Ok(false) => Outcome::NotFound,
            Err(error) => Outcome::Failed(error),
        };
    };
    match store.cas(key, Expected::Version(Version(version)), Change::Remove) {
        Ok(CasOutcome::Mismatch(_)) => Outcome::Exists,
        Ok(CasOutcome::Absent) => Outcome::NotFound,
        Ok(_) => Outcome::gone(),
        Err(error) => Outcome::Failed(error),
    }
}

/// `I` marks the item as stale, with a new version, and lets the next reader win; `x` leaves nothing of it: no value,
/// no flags, no expiry and no marks.
fn invalidate(turn: &Turn<'_>, request: &Request<'_>) -> Outcome {
    let (store, key, flags) = (&turn.server.store, request.key.bytes(), &request.flags);
    loop {
        let item = match store.get_item(key) {
            Ok(Some(item)) => item,
            Ok(None) => return Outcome::NotFound,
            Err(error) => return Outcome::Failed(error.into()),
        };
        if flags.compare.is_some_and(|version| version != item.metadata.version.0) {
            return Outcome::Exists;
        }
        let (value, client, kept) = match flags.has(b'x') {
            true => (&b""[..], 0, None),
            false => (&item.value[..], item.metadata.flags, item.metadata.expires_at_ms),
        };
        let ttl = flags.ttl.map_or(kept.map_or(Ttl::Never, Ttl::At), exptime::ttl);
        let before = item.metadata.marks;
        let marks = match flags.has(b'I') {
            true => marks::invalidated(before),
            // A placeholder of a lease does not become an empty value.
            false => before & if marks::is_hidden(before) { marks::EMPTY | marks::HIDDEN } else { 0 },
        };
        let attributes = Attributes { flags: client, ttl, min_version: flags.version };
        match store.shared().set_marked(key, value, attributes, marks, Some(&item.metadata)) {
            Ok(None) => {}
            Ok(Some(stored)) => return Outcome::Stored(stored, value.len() as u64),
            Err(error) => return Outcome::Failed(error),
        }
    }
}
