//! The meta commands: which one a line is, and `mn` and `me`.

use super::parse::{are_flags, Key, Request, BAD_VERSION, FLAGS_MAX, LONG_OPAQUE};
use super::{count, delete, get, set};
use crate::access_times::Seen;
use crate::protocol::text::parse::declared_len;
use crate::protocol::text::reply::done;
use crate::protocol::text::step::Step;
use crate::protocol::tokens::Tokens;
use crate::protocol::{exptime, BAD_FORMAT, KEY_MAX};
use crate::server::now_ms;
use crate::turn::Turn;

/// Performs a meta command. `None`: there is none of this letter.
pub fn run(turn: &mut Turn<'_>, letter: u8, rest: &[u8], block: &[u8]) -> Option<Step> {
    let mut tokens = Tokens::new(rest);
    match letter {
        b'n' | b's' | b'g' | b'd' | b'a' | b'e' => turn.counters.cmd_meta.add(1),
        _ => return None,
    }
    if letter == b'n' {
        turn.out.text("MN\r\n");
        return Some(Step::Done);
    }
    let Some(token) = tokens.next().filter(|_| are_flags(tokens)) else { return Some(done(turn, BAD_FORMAT)) };
    match letter {
        b's' => return Some(read_set(turn, token, tokens, block)),
        b'e' => {
            debug(turn, token, tokens);
            return Some(Step::Done);
        }
        _ => {}
    }
    match Request::read(token, tokens, FLAGS_MAX) {
        // It has one answer for most mistakes.
        Err(reply) if letter == b'a' && ![BAD_VERSION, LONG_OPAQUE].contains(&reply) => {
            turn.out.line("CLIENT_ERROR invalid or duplicate flag");
        }
        Err(reply) => turn.out.line(reply),
        Ok(request) => match letter {
            b'g' => get::run(turn, &request),
            b'd' => delete::run(turn, &request),
            _ => count::run(turn, &request),
        },
    }
    Some(Step::Done)
}

fn read_set(turn: &mut Turn<'_>, token: &[u8], mut tokens: Tokens<'_>, block: &[u8]) -> Step {
    let Some(len) = tokens.next().and_then(declared_len) else { return done(turn, BAD_FORMAT) };
    match Request::read(token, tokens, FLAGS_MAX - 1) {
        Err(reply) => {
            turn.out.line(reply);
            Step::Skip(len + 2)
        }
        Ok(request) => set::run(turn, &request, len, block),
    }
}

/// `me`: what is known about a key.
fn debug(turn: &mut Turn<'_>, token: &[u8], mut tokens: Tokens<'_>) {
    if token.len() > KEY_MAX {
        return turn.out.line(BAD_FORMAT);
    }
    let found = Key::read(token, tokens.any(|flag| flag[0] == b'b')).map(|key| turn.server.store.metadata(key.bytes()));
    match found {
        Some(Ok(Some(meta))) => {
            let Seen { fetched, last } = turn.server.access.lookup(meta.uid);
            let left = exptime::remaining(meta.expires_at_ms, now_ms());
            let expiry = left.map_or("-1".to_string(), |left| left.to_string());
            let line = format!(
                " exp={expiry} la={} cas={} fetch={} cls=1 size={}\r\n",
                turn.now.saturating_sub(last),
                meta.version.0,
                if fetched { "yes" } else { "no" },
                meta.value_len
            );
            turn.out.text("ME ");
            turn.out.bytes.extend_from_slice(token);
            turn.out.text(&line);
        }
        Some(Err(error)) => {
            turn.server.report_unreadable(&error);
            turn.out.text("EN\r\n");
        }
        _ => turn.out.text("EN\r\n"),
    }
}
