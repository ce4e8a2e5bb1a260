//! The meta commands: what they share, and `mn` and `me`.

use super::text::Step;
use super::{exptime, Context};
use crate::access::Seen;
use crate::protocol::classic::{BAD_FORMAT, ERROR};
use crate::protocol::meta::{self, Flags, Key};
use crate::protocol::number;
use crate::protocol::uri;
use crate::protocol::words::Words;
use crate::protocol::KEY_MAX;
use crate::server::now_ms;
use hashmere::Meta;

/// Mark: the value is to be computed anew, and may be used meanwhile.
pub const STALE: u32 = 1;
/// Mark: somebody was told to compute it.
pub const WON: u32 = 2;

/// A meta request: key and flags, read.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The key as the line has it.
    pub word: &'a [u8],
    /// The key.
    pub key: Key,
    /// The flags, in order.
    pub words: Words<'a>,
    /// The flags, read.
    pub flags: Flags,
}

impl Request<'_> {
    /// Whether replies that say nothing new are left out.
    pub fn is_quiet(&self) -> bool {
        self.flags.has(b'q')
    }

    /// The key as replies show it, and whether that is base 64.
    pub fn shown_key(&self) -> (&[u8], bool) {
        (self.word, self.flags.has(b'b'))
    }

    /// Appends the flags of a reply, in the order of the request, and ends the line.
    pub fn finish(&self, out: &mut Vec<u8>, other: impl FnMut(u8, &mut Vec<u8>)) {
        meta::reply_flags(self.words, self.shown_key(), out, other);
        out.extend_from_slice(b"\r\n");
    }
}

impl Context<'_> {
    /// Performs a meta command. `None`: there is none of this letter.
    pub fn meta(&mut self, letter: u8, rest: &[u8], block: &[u8]) -> Option<Step> {
        self.counters.cmd_meta.add(1);
        let mut words = Words::new(rest);
        let allowed = match letter {
            b'n' => {
                self.out.text("MN\r\n");
                return Some(Step::Done);
            }
            b's' => return Some(self.meta_set(words, block)),
            b'g' => meta::GET,
            b'd' => meta::DELETE,
            b'a' => meta::COUNT,
            b'e' => meta::DEBUG,
            _ => return None,
        };
        let Some(word) = words.next() else {
            self.out.line(ERROR);
            return Some(Step::Done);
        };
        match read(word, words, allowed) {
            // These two do not tell one mistake from another.
            Err(reply) if reply != BAD_FORMAT && reply != meta::BAD_VERSION && matches!(letter, b'd' | b'a') => {
                self.out.line("CLIENT_ERROR invalid or duplicate flag");
            }
            Err(reply) => self.out.line(reply),
            Ok(request) => match letter {
                b'g' => self.meta_get(&request),
                b'd' => self.meta_delete(&request),
                b'a' => self.meta_count(&request),
                _ => self.meta_debug(&request),
            },
        }
        Some(Step::Done)
    }

    fn meta_set(&mut self, mut words: Words<'_>, block: &[u8]) -> Step {
        let Some(word) = words.next() else {
            self.out.line(ERROR);
            return Step::Done;
        };
        let Some(len) = words.next().filter(|_| word.len() <= KEY_MAX) else {
            self.out.line(BAD_FORMAT);
            return Step::Done;
        };
        // Clients of the first versions wrote the length as a flag.
        let digits = len.strip_prefix(b"S").unwrap_or(len);
        let Some(len) = number::unsigned(digits).filter(|len| *len < u64::MAX / 4) else {
            self.out.line(BAD_FORMAT);
            return Step::Done;
        };
        match read(word, words, meta::SET) {
            Err(reply) => {
                self.out.line(reply);
                Step::Swallow(len + 2)
            }
            Ok(request) => self.meta_put(&request, len, block),
        }
    }

    /// `me`: what is known about a key.
    fn meta_debug(&mut self, request: &Request<'_>) {
        let key = request.key.bytes();
        let now = now_ms();
        match self.server.store.meta(key) {
            Ok(Some(meta)) => {
                let Seen { fetched, last } = self.server.access.look(meta.uid);
                let out = &mut self.out.bytes;
                out.extend_from_slice(b"ME ");
                match request.flags.has(b'b') {
                    true => out.extend_from_slice(request.word),
                    false => uri::write(key, out),
                }
                let expiry =
                    exptime::remaining(meta.expires_at_ms, now).map_or("-1".to_string(), |left| left.to_string());
                let line = format!(
                    " exp={expiry} la={} cas={} fetch={} cls=1 size={}\r\n",
                    self.now.saturating_sub(last),
                    meta.version.0,
                    if fetched { "yes" } else { "no" },
                    meta.value_len
                );
                out.extend_from_slice(line.as_bytes());
            }
            Ok(None) => self.out.text("EN\r\n"),
            Err(error) => {
                self.unreadable(&error);
                self.out.text("EN\r\n");
            }
        }
    }

    /// The flags of a reply that tell something about an item.
    pub fn item_flag(&self, letter: u8, meta: &Meta, out: &mut Vec<u8>) {
        match letter {
            b'c' => meta::flag(b'c', self.cas(meta), out),
            b'f' => meta::flag(b'f', u64::from(meta.flags), out),
            b's' => meta::flag(b's', meta.value_len, out),
            b't' => match exptime::remaining(meta.expires_at_ms, now_ms()) {
                Some(left) => meta::flag(b't', left, out),
                None => out.extend_from_slice(b" t-1"),
            },
            b'h' => {
                meta::flag(b'h', u64::from(self.server.access.look(meta.uid).fetched), out);
            }
            b'l' => {
                let last = self.server.access.look(meta.uid).last;
                meta::flag(b'l', self.now.saturating_sub(last), out);
            }
            _ => {}
        }
    }
}

fn read<'a>(word: &'a [u8], words: Words<'a>, allowed: &[u8]) -> Result<Request<'a>, &'static str> {
    if word.len() > KEY_MAX {
        return Err(BAD_FORMAT);
    }
    let bad_token = if allowed == meta::SET { BAD_FORMAT } else { meta::BAD_TOKEN };
    let flags = Flags::read(words, allowed, bad_token)?;
    let key = Key::read(word, flags.has(b'b')).ok_or(meta::BAD_KEY)?;
    Ok(Request { word, key, words, flags })
}
