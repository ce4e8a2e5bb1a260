//! `ms`: storing with flags.

use super::parse::Request;
use super::reply::{finish, flag};
use crate::commands::lease;
use crate::commands::set::{fits, refuse_large};
use crate::commands::{self, Outcome};
use crate::protocol::text::reply::failure;
use crate::protocol::text::step::Step;
use crate::protocol::{exptime, Verb, BAD_CHUNK, TOO_LARGE};
use crate::turn::Turn;
use hashmere::{Attributes, Ttl, Version, WriteError};

/// Performs `ms` with a value of `len` bytes.
pub fn run(turn: &mut Turn<'_>, request: &Request<'_>, len: u64, block: &[u8]) -> Step {
    let key = request.key.bytes();
    let flags = &request.flags;
    let verb = match flags.mode {
        None | Some(b'S') => flags.compare.map_or(Verb::Set, Verb::Cas),
        Some(b'E') => Verb::Add,
        Some(b'R') => flags.compare.map_or(Verb::Replace, Verb::Cas),
        Some(b'A') => Verb::Append,
        Some(b'P') => Verb::Prepend,
        Some(_) => {
            turn.out.line("CLIENT_ERROR invalid mode for ms M token");
            return Step::Skip(len + 2);
        }
    };
    if !fits(turn, key, flags.client, len) {
        // Of whatever mode.
        refuse_large(turn, verb, key, true);
        turn.out.line(TOO_LARGE);
        return Step::Skip(len + 2);
    }
    let size = len as usize;
    let Some(block) = block.get(..size + 2) else { return Step::Wants(size + 2) };
    let Some(value) = block.strip_suffix(b"\r\n") else {
        turn.out.line(BAD_CHUNK);
        return Step::DoneWith(size + 2);
    };
    let attributes =
        Attributes { flags: flags.client, ttl: flags.ttl.map_or(Ttl::Never, exptime::ttl), min_version: flags.version };
    let mut outcome = commands::set::set(turn, verb, key, value, attributes, flags.compare);
    match (&outcome, verb) {
        (Outcome::Exists, Verb::Cas(version)) if flags.has(b'I') => {
            outcome = set_stale(turn, key, value, attributes, version);
        }
        (Outcome::NotStored, Verb::Append | Verb::Prepend) if flags.vivify.is_some() => {
            let created = Attributes { ttl: flags.vivify.map_or(Ttl::Never, exptime::ttl), ..attributes };
            outcome = set_or_extend(turn, verb, key, value, created);
        }
        _ => {}
    }
    reply_set(turn, request, &outcome, len);
    Step::DoneWith(size + 2)
}

/// `len`: of the value that came.
fn reply_set(turn: &mut Turn<'_>, request: &Request<'_>, outcome: &Outcome, len: u64) {
    let (mut version, mut len) = (Version(0), len);
    let text = match outcome {
        Outcome::Stored(stored, whole) => {
            (version, len) = (stored.version, *whole);
            if request.is_quiet() {
                return;
            }
            "HD"
        }
        // No meta command has a token.
        Outcome::NotStored | Outcome::StoredStale(_) => "NS",
        Outcome::Exists => "EX",
        Outcome::NotFound => "NF",
        Outcome::TooLarge => return turn.out.line(TOO_LARGE),
        Outcome::Failed(error) => return turn.out.line(&failure(error)),
    };
    turn.out.text(text);
    let shown = turn.cas(version);
    finish(request, &mut turn.out.bytes, |letter, out| match letter {
        b'c' => flag(b'c', shown, out),
        b's' => flag(b's', len, out),
        _ => {}
    });
}

/// A value that a client computed from an older version: stored as stale, with the expiry of before, until the winner
/// stores the next.
fn set_stale(turn: &Turn<'_>, key: &[u8], value: &[u8], attributes: Attributes, version: u64) -> Outcome {
    loop {
        let seen = match turn.server.store.metadata(key) {
            Ok(Some(seen)) if version < seen.version.0 => seen,
            Ok(Some(_)) => return Outcome::Exists,
            Ok(None) => return Outcome::NotFound,
            Err(error) => return Outcome::Failed(error.into()),
        };
        match lease::set_stale(turn, key, value, attributes, &seen) {
            Ok(None) => {}
            Ok(Some(stored)) => {
                turn.note(stored.uid, false);
                return Outcome::Stored(stored, value.len() as u64);
            }
            Err(error) => return Outcome::Failed(error),
        }
    }
}

/// Creates the value to be extended, or extends it if another client has created it.
fn set_or_extend(turn: &Turn<'_>, verb: Verb, key: &[u8], value: &[u8], attributes: Attributes) -> Outcome {
    for _ in 0..16 {
        let created = commands::set::set(turn, Verb::Add, key, value, attributes, None);
        if !matches!(created, Outcome::NotStored) {
            return created;
        }
        let extended = commands::set::set(turn, verb, key, value, attributes, None);
        if !matches!(extended, Outcome::NotStored) {
            return extended;
        }
    }
    Outcome::Failed(WriteError::InvalidState("the key comes and goes all the time"))
}
