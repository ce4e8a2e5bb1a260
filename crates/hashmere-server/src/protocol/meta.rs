//! The meta protocol: a command of two letters, a key, and flags of one letter each with or without an argument.

use super::number;
use super::words::Words;
use super::KEY_MAX;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine as _;
use hashmere::Version;

/// A flag that the command does not know.
pub const INVALID_FLAG: &str = "CLIENT_ERROR invalid flag";
/// A flag twice.
pub const DUPLICATE_FLAG: &str = "CLIENT_ERROR duplicate flag";
/// A key that is not base 64 although it should be.
pub const BAD_KEY: &str = "CLIENT_ERROR error decoding key";
/// An argument that is no number.
pub const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";

/// A version of the client's choice that leaves too few for those who come after it.
pub const BAD_VERSION: &str = "CLIENT_ERROR the version in E may be at most 2199023255552 (2^41)";

/// Flags of `mg`.
pub const GET: &[u8] = b"bcCEfhklLNOPqRstTuv";
/// Flags of `ms`.
pub const SET: &[u8] = b"bcCEFIkLMNOPqsSTu";
/// Flags of `md`.
pub const DELETE: &[u8] = b"bCEIkLOPqTx";
/// Flags of `ma`.
pub const COUNT: &[u8] = b"bcCDEJkLMNOPqtTv";
/// Flags of `me`.
pub const DEBUG: &[u8] = b"bkOqu";

/// A key, decoded if need be.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    bytes: [u8; KEY_MAX],
    len: usize,
}

impl Key {
    /// A key as the line has it: plain, or in base 64. `None`: it is empty, too long or malformed.
    pub fn read(word: &[u8], base64: bool) -> Option<Key> {
        let mut key = Key { bytes: [0; KEY_MAX], len: 0 };
        if base64 {
            // Decoding asks for room by the length of the text, which is a little more than it takes.
            let mut room = [0; KEY_MAX + 6];
            let len = BASE64.decode_slice(word, &mut room).ok().filter(|len| *len <= KEY_MAX)?;
            key.bytes[..len].copy_from_slice(&room[..len]);
            key.len = len;
        } else {
            key.bytes.get_mut(..word.len())?.copy_from_slice(word);
            key.len = word.len();
        }
        (key.len > 0).then_some(key)
    }

    /// The key.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The flags of a line, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    seen: u128,
    /// `C`: the version expected.
    pub compare: Option<u64>,
    /// `E`: the version that the item gets, unless it has come further.
    pub version: Version,
    /// `F`: the client's flags.
    pub client: u32,
    /// `T`: a new expiry.
    pub ttl: Option<i64>,
    /// `N`: create on a miss, with this expiry.
    pub vivify: Option<i64>,
    /// `R`: recache below this remaining time.
    pub recache: Option<i64>,
    /// `D`: how far to count.
    pub delta: u64,
    /// `J`: what a created counter starts at.
    pub initial: u64,
    /// `M`: the mode.
    pub mode: Option<u8>,
    /// `S`: the length, in the place of a number of its own.
    pub size: Option<u64>,
}

impl Flags {
    /// Reads flags. The first that is unknown or there twice is reported, else that some argument is no number, else a version
    /// that is too large.
    ///
    /// # Errors
    /// The reply that the line gets.
    pub fn read(words: Words<'_>, allowed: &[u8], bad_token: &'static str) -> Result<Flags, &'static str> {
        let mut flags = Flags {
            seen: 0,
            compare: None,
            version: Version(0),
            client: 0,
            ttl: None,
            vivify: None,
            recache: None,
            delta: 1,
            initial: 0,
            mode: None,
            size: None,
        };
        let mut bad = false;
        for word in words {
            let (letter, argument) = (word[0], &word[1..]);
            if flags.has(letter) {
                return Err(DUPLICATE_FLAG);
            }
            if !allowed.contains(&letter) {
                return Err(INVALID_FLAG);
            }
            flags.seen |= 1 << letter;
            bad |= flags.take(letter, argument).is_none();
        }
        if bad {
            return Err(bad_token);
        }
        if flags.version > Version::ASKED_MAX {
            return Err(BAD_VERSION);
        }
        Ok(flags)
    }

    fn take(&mut self, letter: u8, argument: &[u8]) -> Option<()> {
        match letter {
            b'C' => self.compare = Some(number::unsigned(argument)?),
            b'E' => self.version = Version(number::unsigned(argument)?),
            b'F' => self.client = number::unsigned32(argument)?,
            b'T' => self.ttl = Some(number::signed(argument)?),
            b'N' => self.vivify = Some(number::signed(argument)?),
            b'R' => self.recache = Some(number::signed(argument)?),
            b'D' => self.delta = number::unsigned(argument)?,
            b'J' => self.initial = number::unsigned(argument)?,
            b'M' => self.mode = Some(*argument.first()?),
            b'S' => self.size = Some(number::unsigned(argument)?),
            _ => {}
        }
        Some(())
    }

    /// Whether a flag is there.
    #[inline]
    pub fn has(&self, letter: u8) -> bool {
        letter < 128 && self.seen >> letter & 1 != 0
    }
}

/// Appends the flags that every reply copies from its request (`O`, `k`; a key in base 64 says so by a `b` behind it), in the order
/// of the request; others are for `other` to write.
pub fn reply_flags(
    words: Words<'_>,
    (key, base64): (&[u8], bool),
    out: &mut Vec<u8>,
    mut other: impl FnMut(u8, &mut Vec<u8>),
) {
    for word in words {
        match word[0] {
            b'O' => {
                out.push(b' ');
                out.extend_from_slice(word);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_their_arguments() {
        let flags = Flags::read(Words::new(b"v c T30 N-1 C99 Oabc"), GET, BAD_TOKEN).unwrap();
        assert_eq!((flags.ttl, flags.vivify, flags.compare), (Some(30), Some(-1), Some(99)));
        assert!(flags.has(b'v') && flags.has(b'O') && !flags.has(b't'));
        let error = |text: &[u8]| Flags::read(Words::new(text), GET, BAD_TOKEN);
        assert_eq!(error(b"v v !"), Err(DUPLICATE_FLAG));
        assert_eq!((error(b"!"), error(&[200])), (Err(INVALID_FLAG), Err(INVALID_FLAG)));
        let version = |text: &[u8]| Flags::read(Words::new(text), SET, BAD_TOKEN).map(|flags| flags.version);
        assert_eq!((version(b"E2199023255552"), version(b"I")), (Ok(Version(1 << 41)), Ok(Version(0))));
        assert_eq!(
            (version(b"E2199023255553"), version(b"E-1"), version(b"E")),
            (Err(BAD_VERSION), Err(BAD_TOKEN), Err(BAD_TOKEN))
        );
        assert_eq!((error(b"Tx"), error(b"Tx !")), (Err(BAD_TOKEN), Err(INVALID_FLAG)));
    }

    #[test]
    fn keys_plain_and_in_base_64() {
        assert_eq!(Key::read(b"Zm9v", true).unwrap().bytes(), b"foo");
        assert_eq!(Key::read(b"Zm8=", true).unwrap().bytes(), b"fo");
        assert!(Key::read(b"Zm8", true).is_none());
        assert!(Key::read(b"Zm9!", true).is_none());
        assert!(Key::read(&[b'A'; 400], true).is_none());
        assert_eq!(Key::read(&[b'k'; 250], false).unwrap().bytes().len(), 250);
        assert!(Key::read(&[b'k'; 251], false).is_none());
        let longest = BASE64.encode([7u8; 250]);
        assert_eq!(Key::read(longest.as_bytes(), true).unwrap().bytes(), [7u8; 250]);
    }

    #[test]
    fn replies_keep_the_order_of_the_request() {
        let mut out = Vec::new();
        let words = Words::new(b"c O9 k t");
        reply_flags(words, (b"key", false), &mut out, |letter, out| match letter {
            b'c' => flag(b'c', 5, out),
            b't' => out.extend_from_slice(b" t-1"),
            _ => {}
        });
        assert_eq!(out, b" c5 O9 kkey t-1");
    }
}
