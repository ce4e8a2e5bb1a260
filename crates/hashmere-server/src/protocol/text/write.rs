//! Commands that change one key: `set` and its variants, `incr`, `decr`, `touch`, `delete`.

use super::parse::{Put, Request};
use super::reply::{failure, line_unless};
use super::step::Step;
use crate::commands;
use crate::commands::count::{Count, Outcome as Counted};
use crate::commands::Outcome;
use crate::protocol::{exptime, number, Verb, BAD_CHUNK, NOT_A_NUMBER, TOO_LARGE};
use crate::turn::Turn;
use hashmere::{Attributes, Version};

/// Performs a request other than a retrieval.
#[inline]
pub fn run(turn: &mut Turn<'_>, request: Request<'_>, block: &[u8]) -> Step {
    match request {
        Request::Put(put) => return set(turn, &put, block),
        Request::Count { key, by, up, noreply } => count(turn, key, (by, up), noreply),
        Request::Touch { key, exptime, noreply } => touch(turn, key, exptime, noreply),
        Request::Delete { key, noreply } => delete(turn, key, noreply),
        Request::Retrieve(_) | Request::Other { .. } => {}
    }
    Step::Done
}

#[inline]
fn set(turn: &mut Turn<'_>, put: &Put<'_>, block: &[u8]) -> Step {
    if !commands::set::fits(turn, put.key, put.flags, put.len) {
        turn.server.detail.stored(put.key);
        commands::set::refuse_large(turn, put.verb, put.key, put.verb == Verb::Set);
        line_unless(turn, put.noreply, TOO_LARGE);
        return Step::Skip(put.len + 2);
    }
    let len = put.len as usize;
    let Some(block) = block.get(..len + 2) else { return Step::Wants(len + 2) };
    turn.server.detail.stored(put.key);
    let Some(value) = block.strip_suffix(b"\r\n") else {
        line_unless(turn, put.noreply, BAD_CHUNK);
        return Step::DoneWith(len + 2);
    };
    let attributes = Attributes { flags: put.flags, ttl: exptime::ttl(put.exptime), ..Attributes::NONE };
    let outcome = commands::set::set(turn, put.verb, put.key, value, attributes, None);
    match outcome {
        Outcome::Stored(..) => line_unless(turn, put.noreply, "STORED"),
        Outcome::StoredStale(_) => line_unless(turn, put.noreply, "STALE_STORED"),
        Outcome::NotStored => line_unless(turn, put.noreply, "NOT_STORED"),
        Outcome::Exists => line_unless(turn, put.noreply, "EXISTS"),
        Outcome::NotFound => line_unless(turn, put.noreply, "NOT_FOUND"),
        Outcome::TooLarge => line_unless(turn, put.noreply, TOO_LARGE),
        Outcome::Failed(error) => turn.out.line(&failure(&error)),
    }
    Step::DoneWith(len + 2)
}

fn count(turn: &mut Turn<'_>, key: &[u8], (by, up): (u64, bool), noreply: bool) {
    match commands::count::count(turn, key, Count { by, up, create: None, only: None, ttl: None, version: Version(0) })
    {
        Counted::Done(counted) if !noreply => {
            number::write(counted.number, &mut turn.out.bytes);
            turn.out.text("\r\n");
        }
        Counted::Done(_) => {}
        Counted::NotFound | Counted::Exists => line_unless(turn, noreply, "NOT_FOUND"),
        Counted::NotANumber => {
            line_unless(turn, noreply, NOT_A_NUMBER);
        }
        Counted::Failed(error) => turn.out.line(&failure(&error)),
    }
}

fn touch(turn: &mut Turn<'_>, key: &[u8], exptime: i64, noreply: bool) {
    match commands::touch::touch(turn, key, exptime) {
        Ok(true) => {
            commands::touch::note_key(turn, key, true);
            line_unless(turn, noreply, "TOUCHED");
        }
        Ok(false) => line_unless(turn, noreply, "NOT_FOUND"),
        Err(error) => turn.out.line(&failure(&error)),
    }
}

fn delete(turn: &mut Turn<'_>, key: &[u8], noreply: bool) {
    turn.server.detail.deleted(key);
    match commands::delete::delete(turn, key) {
        Ok(true) => line_unless(turn, noreply, "DELETED"),
        Ok(false) => line_unless(turn, noreply, "NOT_FOUND"),
        Err(error) => turn.out.line(&failure(&error)),
    }
}
