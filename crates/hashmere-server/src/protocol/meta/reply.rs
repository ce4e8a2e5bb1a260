//! The flags of replies to meta commands.

use super::parse::Request;
use crate::protocol::tokens::Tokens;
use crate::protocol::{exptime, number};
use crate::server::now_ms;
use crate::turn::Turn;
use hashmere::Metadata;

/// Appends the flags that every reply copies from its request (`O`, `k`; a key in base 64 says so by a `b` behind it),
/// in the order of the request; others are for `other` to write.
pub fn reply_flags(
    tokens: Tokens<'_>,
    (key, base64): (&[u8], bool),
    out: &mut Vec<u8>,
    mut other: impl FnMut(u8, &mut Vec<u8>),
) {
    for token in tokens {
        match token[0] {
            b'O' => {
                out.push(b' ');
                out.extend_from_slice(token);
            }
            b'k' => {
                out.extend_from_slice(b" k");
                out.extend_from_slice(key);
                if base64 {
                    out.extend_from_slice(b" b");
                }
            }
            letter => other(letter, out),
        }
    }
}

/// Appends a flag with a number.
pub fn flag(letter: u8, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b' ', letter]);
    number::write(number, out);
}

/// Appends the flags of a reply, in the order of the request, and ends the line.
pub fn finish(request: &Request<'_>, out: &mut Vec<u8>, other: impl FnMut(u8, &mut Vec<u8>)) {
    reply_flags(request.tokens, request.shown_key(), out, other);
    out.extend_from_slice(b"\r\n");
}

/// The flags of a reply that tell something about an item.
pub fn item_flag(turn: &Turn<'_>, letter: u8, meta: &Metadata, out: &mut Vec<u8>) {
    match letter {
        b'c' => flag(b'c', turn.cas(meta.version), out),
        b'f' => flag(b'f', u64::from(meta.flags), out),
        b's' => flag(b's', meta.value_len, out),
        b't' => match exptime::remaining(meta.expires_at_ms, now_ms()) {
            Some(left) => flag(b't', left, out),
            None => out.extend_from_slice(b" t-1"),
        },
        b'h' => {
            flag(b'h', u64::from(turn.server.access.lookup(meta.uid).fetched), out);
        }
        b'l' => {
            let last = turn.server.access.lookup(meta.uid).last;
            flag(b'l', turn.now.saturating_sub(last), out);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_keep_the_order_of_the_request() {
        let mut out = Vec::new();
        let tokens = Tokens::new(b"c O9 k t");
        reply_flags(tokens, (b"key", false), &mut out, |letter, out| match letter {
            b'c' => flag(b'c', 5, out),
            b't' => out.extend_from_slice(b" t-1"),
            _ => {}
        });
        assert_eq!(out, b" c5 O9 kkey t-1");
    }
}
