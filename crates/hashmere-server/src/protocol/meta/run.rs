//! The meta commands: what they share, and `mn` and `me`.

use super::text::Step;
use super::{exptime, Context};
use crate::access::Seen;
use crate::protocol::classic::{declared_len, BAD_FORMAT};
use crate::protocol::meta::{self, Flags, Key};
use crate::protocol::words::Words;
use crate::protocol::KEY_MAX;
use crate::server::now_ms;
use hashmere::Metadata;

/// Mark: the value is to be computed again, and may be used meanwhile.
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
    /// Whether a reply that all went well is left out, and that `mg` found nothing.
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
        let mut words = Words::new(rest);
        match letter {
            b'n' | b's' | b'g' | b'd' | b'a' | b'e' => self.counters.cmd_meta.add(1),
            _ => return None,
        }
        if letter == b'n' {
            self.out.text("MN\r\n");
            return Some(Step::Done);
        }
        let Some(word) = words.next().filter(|_| meta::are_flags(words)) else { return Some(self.done(BAD_FORMAT)) };
        match letter {
            b's' => return Some(self.meta_set(word, words, block)),
            b'e' => {
                self.meta_debug(word, words);
                return Some(Step::Done);
            }
            _ => {}
        }
        match read(word, words, meta::FLAGS_MAX) {
            // It has one answer for most mistakes.
            Err(reply) if letter == b'a' && ![meta::BAD_VERSION, meta::LONG_OPAQUE].contains(&reply) => {
                self.out.line("CLIENT_ERROR invalid or duplicate flag");
            }
            Err(reply) => self.out.line(reply),
            Ok(request) => match letter {
                b'g' => self.meta_get(&request),
                b'd' => self.meta_delete(&request),
                _ => self.meta_count(&request),
            },
        }
        Some(Step::Done)
    }

    fn meta_set(&mut self, word: &[u8], mut words: Words<'_>, block: &[u8]) -> Step {
        let Some(len) = words.next().and_then(declared_len) else { return self.done(BAD_FORMAT) };
        match read(word, words, meta::FLAGS_MAX - 1) {
            Err(reply) => {
                self.out.line(reply);
                Step::Swallow(len + 2)
            }
            Ok(request) => self.meta_put(&request, len, block),
        }
    }

    /// `me`: what is known about a key.
    fn meta_debug(&mut self, word: &[u8], mut words: Words<'_>) {
        if word.len() > KEY_MAX {
            return self.out.line(BAD_FORMAT);
        }
        let found =
            Key::read(word, words.any(|flag| flag[0] == b'b')).map(|key| self.server.store.metadata(key.bytes()));
        match found {
            Some(Ok(Some(meta))) => {
                let Seen { fetched, last } = self.server.access.look(meta.uid);
                let left = exptime::remaining(meta.expires_at_ms, now_ms());
                let expiry = left.map_or("-1".to_string(), |left| left.to_string());
                let line = format!(
                    " exp={expiry} la={} cas={} fetch={} cls=1 size={}\r\n",
                    self.now.saturating_sub(last),
                    meta.version.0,
                    if fetched { "yes" } else { "no" },
                    meta.value_len
                );
                self.out.text("ME ");
                self.out.bytes.extend_from_slice(word);
                self.out.text(&line);
            }
            Some(Err(error)) => {
                self.unreadable(&error);
                self.out.text("EN\r\n");
            }
            _ => self.out.text("EN\r\n"),
        }
    }

    /// The flags of a reply that tell something about an item.
    pub fn item_flag(&self, letter: u8, meta: &Metadata, out: &mut Vec<u8>) {
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

fn read<'a>(word: &'a [u8], words: Words<'a>, most: usize) -> Result<Request<'a>, &'static str> {
    if word.len() > KEY_MAX {
        return Err(BAD_FORMAT);
    }
    let flags = Flags::read(word, words, most)?;
    let key = Key::read(word, flags.has(b'b')).ok_or(meta::BAD_KEY)?;
    Ok(Request { word, key, words, flags })
}
