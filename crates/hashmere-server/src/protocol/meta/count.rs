//! `ma`: counting with flags.

use super::parse::Request;
use super::reply::{finish, flag};
use crate::commands::count::{self, Count, Counted, Outcome};
use crate::protocol::text::reply::failure;
use crate::protocol::{exptime, number, NOT_A_NUMBER};
use crate::server::now_ms;
use crate::turn::Turn;

/// Performs `ma`.
pub fn run(turn: &mut Turn<'_>, request: &Request<'_>) {
    let flags = &request.flags;
    let up = match flags.mode {
        None | Some(b'I' | b'+') => true,
        Some(b'D' | b'-') => false,
        Some(_) => return turn.out.line("CLIENT_ERROR invalid mode for ma M token"),
    };
    let count = Count {
        by: flags.delta,
        up,
        create: flags.vivify.map(|exptime| (flags.initial, exptime::ttl(flags.last_exptime.unwrap_or(exptime)))),
        only: flags.compare,
        ttl: flags.ttl.map(exptime::ttl),
        version: flags.version,
    };
    match count::count(turn, request.key.bytes(), count) {
        Outcome::Done(counted) => reply_counted(turn, request, &counted),
        Outcome::NotFound => reply_uncounted(turn, request, "NF"),
        Outcome::Exists => reply_uncounted(turn, request, "EX"),
        Outcome::NotANumber => {
            turn.out.line(NOT_A_NUMBER);
        }
        Outcome::Failed(error) => turn.out.line(&failure(&error)),
    }
}

fn reply_uncounted(turn: &mut Turn<'_>, request: &Request<'_>, text: &str) {
    turn.out.text(text);
    finish(request, &mut turn.out.bytes, |_, _| {});
}

fn reply_counted(turn: &mut Turn<'_>, request: &Request<'_>, counted: &Counted) {
    let flags = &request.flags;
    if request.is_quiet() {
        return;
    }
    let now = now_ms();
    let deadline = |exptime: Option<i64>| exptime.and_then(|exptime| exptime::deadline(exptime::ttl(exptime), now));
    let mut digits = Vec::with_capacity(20);
    number::write(counted.number, &mut digits);
    let version = turn.cas(counted.version);
    let out = &mut turn.out.bytes;
    if flags.has(b'v') {
        out.extend_from_slice(b"VA ");
        number::write(digits.len() as u64, out);
    } else {
        out.extend_from_slice(b"HD");
    }
    // A time shows from the flag on that gives it.
    let mut shown = if counted.created { None } else { counted.expires_at_ms };
    finish(request, out, |letter, out| match letter {
        b'c' => flag(b'c', version, out),
        b'N' if counted.created => shown = deadline(flags.vivify),
        b'T' => shown = deadline(flags.ttl),
        b't' => match exptime::remaining(shown, now) {
            Some(left) => flag(b't', left, out),
            None => out.extend_from_slice(b" t-1"),
        },
        _ => {}
    });
    if flags.has(b'v') {
        out.extend_from_slice(&digits);
        out.extend_from_slice(b"\r\n");
    }
}
