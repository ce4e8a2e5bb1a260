//! Walking over all keys: dumps, listings, deleting by prefix. A walk goes on where it stopped when its output was
//! taken.

use crate::access_times::Seen;
use crate::commands::delete;
use crate::protocol::{percent, KEY_MAX, OUTPUT_MAX};
use crate::turn::Turn;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine as _;
use hashmere::{Cursor, Filter, Pair};
use std::io::Write;

/// Places of the index that are looked at before other connections get their turn: below a millisecond.
const STRIDE: usize = 2048;

/// What is written of each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `lru_crawler metadump`.
    Metadump,
    /// `lru_crawler mgdump`: lines that can be sent back as requests.
    Mgdump,
    /// `stats cachedump`.
    Cachedump,
    /// `hashmere keys`.
    Keys,
    /// `hashmere delete`: nothing, and the key is deleted.
    Delete,
}

/// Whether a key can be written in a line of text as it is.
fn is_plain(key: &[u8]) -> bool {
    let breaks = |byte: &u8| matches!(byte, b' ' | b'\r' | b'\n' | 0);
    !key.is_empty() && key.len() <= KEY_MAX && !key.iter().any(breaks)
}

/// The request for a key, if there can be one: local processes store keys that are longer than a request can name.
fn mg_line(key: &[u8], out: &mut Vec<u8>) {
    const BASE64_MAX: usize = KEY_MAX / 4 * 3;
    let mut text = [0; KEY_MAX];
    let (token, binary) = match is_plain(key) {
        true => (key, &b""[..]),
        false if key.is_empty() || key.len() > BASE64_MAX => return,
        // There is room for it.
        false => (BASE64.encode_slice(key, &mut text).map_or(&b""[..], |len| &text[..len]), &b" b"[..]),
    };
    for part in [b"mg ", token, binary, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// A walk.
#[derive(Clone, Debug)]
pub struct Dump {
    shape: Shape,
    filter: Filter,
    cursor: Cursor,
    left: u64,
    deleted: u64,
}

impl Dump {
    /// A walk over the keys with a prefix, up to a number of them.
    pub fn new(shape: Shape, prefix: &[u8], limit: u64) -> Dump {
        let filter = Filter::all().prefix(prefix).keys_only();
        Dump { shape, filter, cursor: Cursor::START, left: limit, deleted: 0 }
    }

    /// Walks a stretch; `true` when the walk is over and its end was written.
    pub fn walk(&mut self, turn: &mut Turn<'_>) -> bool {
        let mut scan = turn.server.store.scan(self.cursor, self.filter.clone());
        let mut places = STRIDE;
        while self.left > 0 && turn.out.len() < OUTPUT_MAX {
            match scan.next_within(&mut places) {
                // It shows keys as they are: those that would break its lines are left out.
                Some(Ok(pair)) if self.shape == Shape::Cachedump && !is_plain(&pair.key) => {}
                Some(Ok(pair)) => {
                    self.left -= 1;
                    self.show(turn, &pair);
                }
                Some(Err(error)) => {
                    turn.server.report_unreadable(&error);
                    turn.out.line("SERVER_ERROR the store cannot be read");
                    return true;
                }
                // The stretch is over, or the scan is.
                None => break,
            }
        }
        match scan.cursor().filter(|_| self.left > 0) {
            Some(cursor) => {
                self.cursor = cursor;
                false
            }
            None => {
                self.end(turn);
                true
            }
        }
    }

    fn show(&mut self, turn: &mut Turn<'_>, pair: &Pair) {
        let meta = &pair.metadata;
        let expiry = meta.expires_at_ms.map(|at| at / 1000);
        let out = &mut turn.out.bytes;
        match self.shape {
            Shape::Metadump => {
                out.extend_from_slice(b"key=");
                percent::write(&pair.key, out);
                let Seen { fetched, last } = turn.server.access.lookup(meta.uid);
                let expiry = expiry.map_or("-1".into(), |at| at.to_string());
                // Writing to a vector does not fail.
                let _ = writeln!(
                    out,
                    " exp={expiry} la={last} cas={} fetch={} cls=1 size={} flags={} ",
                    meta.version.0,
                    if fetched { "yes" } else { "no" },
                    meta.value_len,
                    meta.flags
                );
            }
            Shape::Mgdump => mg_line(&pair.key, out),
            Shape::Cachedump => {
                out.extend_from_slice(b"ITEM ");
                out.extend_from_slice(&pair.key);
                let _ = write!(out, " [{} b; {} s]\r\n", meta.value_len, expiry.unwrap_or(0));
            }
            Shape::Keys => {
                out.extend_from_slice(b"KEY ");
                percent::write(&pair.key, out);
                out.extend_from_slice(b"\r\n");
            }
            Shape::Delete => self.deleted += u64::from(delete::delete(turn, &pair.key).unwrap_or(false)),
        }
    }

    fn end(&self, turn: &mut Turn<'_>) {
        match self.shape {
            Shape::Mgdump => turn.out.line("EN"),
            Shape::Delete => turn.out.line(&format!("DELETED {}", self.deleted)),
            _ => turn.out.line("END"),
        }
    }
}
