//! Which protocol a connection speaks, where one socket serves all of them.
//!
//! The alphabets of the protocols do not overlap in the first byte of a connection:
//!
//! | first byte | protocol |
//! |---|---|
//! | 0x80 | memcached, binary |
//! | `a` to `z` | memcached, text and meta: all its commands are in lower case |
//! | `*` | Redis: requests are arrays |
//! | `A` to `Z` | HTTP: what browsers send begins with a method in upper case |
//! | others | none: the connection is closed |
//!
//! A web page can make a browser send a request to any port, and chooses much of it, but not how it begins: with a
//! method in upper case, or, where it expects TLS, with 0x16. Only a method of the page's own may be in lower case; a
//! browser sends it to another site after a preflight (in upper case), but freely to its own, which a name that is
//! pointed to this machine makes of this server. So the first line of text is waited for: if its last word says that
//! it is of HTTP, whatever its first is, the connection is closed. (memcached's parser does that for lines that are no
//! command, and `set /x HTTP/1.1` is one.) What is decided stays so: no request within a connection of HTTP is one of
//! another protocol.

use super::binary::REQUEST;
use super::text::parse::is_http;
use super::LINE_MAX;
use crate::config::Protocol;

/// What a client hears that speaks none of them.
pub const UNKNOWN: &str = "ERROR no protocol begins like this: memcached, RESP (arrays) and HTTP are spoken here";

/// What the beginning of a connection says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// Nothing yet.
    NotKnown,
    /// A protocol.
    Known(Protocol),
    /// It is none of them.
    None,
}

/// What this beginning of a connection, which has at least a byte, says.
pub fn spoken(input: &[u8]) -> Spoken {
    match input.first() {
        None => Spoken::NotKnown,
        Some(&REQUEST) => Spoken::Known(Protocol::Binary),
        Some(b'*') => Spoken::Known(Protocol::Resp),
        Some(b'A'..=b'Z') => Spoken::Known(Protocol::Http),
        Some(b'a'..=b'z') => match memchr::memchr(b'\n', input) {
            Some(end) if is_http(input[..end].trim_ascii_end()) => Spoken::None,
            Some(_) => Spoken::Known(Protocol::Text),
            // No line is longer.
            None if input.len() > LINE_MAX => Spoken::None,
            None => Spoken::NotKnown,
        },
        Some(_) => Spoken::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_place() {
        let of = |spoken: Spoken| (0..=255u8).filter(|byte| super::spoken(&[*byte, b'\n']) == spoken).count();
        assert_eq!(of(Spoken::Known(Protocol::Text)), 26);
        assert_eq!(of(Spoken::Known(Protocol::Http)), 26);
        assert_eq!((of(Spoken::Known(Protocol::Binary)), of(Spoken::Known(Protocol::Resp))), (1, 1));
        assert_eq!(of(Spoken::None), 256 - 26 - 26 - 1 - 1);
        // A client that expects TLS, and text that no command begins with.
        for none in [0x16, b' ', b'\r', b'\n', b'0', b'$', b'+', 0x81, 0] {
            assert_eq!(spoken(&[none]), Spoken::None, "{none:#x}");
        }
    }

    #[test]
    fn the_first_line_of_text_is_none_of_http() {
        assert_eq!(spoken(b""), Spoken::NotKnown);
        assert_eq!(spoken(b"get k"), Spoken::NotKnown);
        assert_eq!(spoken(b"get k\r\n"), Spoken::Known(Protocol::Text));
        for none in ["set /x HTTP/1.1\r\nHost: x\r\n", "get / HTTP/1.0\n", "mg /  HTTP/1.1 \r\n", "x HTTP/2\r\n"] {
            assert_eq!(spoken(none.as_bytes()), Spoken::None, "{none}");
        }
        let long = [b"get ".to_vec(), vec![b'k'; LINE_MAX]].concat();
        assert_eq!((spoken(&long[..LINE_MAX]), spoken(&long)), (Spoken::NotKnown, Spoken::None));
    }
}
