//! Replies of one line, for the text and the meta commands.

use super::step::Step;
use crate::protocol::{number, TOO_LARGE};
use crate::turn::Turn;
use hashmere::{Metadata, WriteError};

/// Replies to a line that needs nothing else.
pub fn done(turn: &mut Turn<'_>, reply: &str) -> Step {
    turn.out.line(reply);
    Step::Done
}

/// Replies, unless the client asked for no reply.
pub fn line_unless(turn: &mut Turn<'_>, noreply: bool, reply: &str) {
    if !noreply {
        turn.out.line(reply);
    }
}

/// Why the store refused.
pub fn failure(error: &WriteError) -> String {
    match error {
        error if error.is_no_room() => "SERVER_ERROR out of memory storing object".into(),
        WriteError::TooLarge { .. } => TOO_LARGE.into(),
        other => format!("SERVER_ERROR {other}"),
    }
}

/// The line before a value.
#[inline]
pub fn value_line(key: &[u8], meta: &Metadata, cas: Option<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    number::write(u64::from(meta.flags), out);
    out.push(b' ');
    number::write(meta.value_len, out);
    if let Some(cas) = cas {
        out.push(b' ');
        number::write(cas, out);
    }
    out.extend_from_slice(b"\r\n");
}
