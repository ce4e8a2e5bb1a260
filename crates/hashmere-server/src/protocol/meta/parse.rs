//! The meta protocol: a command of two letters, a key, and flags of one letter each with or without an argument.

use crate::protocol::tokens::Tokens;
use crate::protocol::{number, BAD_FORMAT, KEY_MAX};
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine as _;
use hashmere::Version;

/// A flag that is none.
pub const INVALID_FLAG: &str = "CLIENT_ERROR invalid flag";
/// A flag twice.
pub const DUPLICATE_FLAG: &str = "CLIENT_ERROR duplicate flag";
/// More flags than there are.
pub const TOO_MANY: &str = "CLIENT_ERROR options flags are too long";
/// A key that is not base 64 although it should be.
pub const BAD_KEY: &str = "CLIENT_ERROR error decoding key";
/// An argument that is no number.
pub const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";
/// The argument of `D` is no number.
pub const BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta value";
/// The argument of `J` is no number.
pub const BAD_INITIAL: &str = "CLIENT_ERROR invalid numeric initial value";
/// What is to be copied into the reply is longer than [`OPAQUE_MAX`].
pub const LONG_OPAQUE: &str = "CLIENT_ERROR opaque token too long";

/// A version of the client's choice that leaves too few for those who come after it.
pub const BAD_VERSION: &str = "CLIENT_ERROR the version in E may be at most 2199023255552 (2^41)";

/// The flags. Every command takes all of them, and leaves out of account what means nothing to it.
const KNOWN: &[u8] = b"bcCDEfFhIJklLMNOPqRstTuvx";
/// Flags of one line; `ms` has a length in the place of one.
pub const FLAGS_MAX: usize = 18;
/// Longest argument of `O`.
pub const OPAQUE_MAX: usize = 31;

/// Whether a line of flags can be one at all: each begins with a digit, a letter, or one of the signs between them.
pub fn are_flags(mut tokens: Tokens<'_>) -> bool {
    tokens.all(|token| token[0].is_ascii_digit() || (b'A'..=b'z').contains(&token[0]))
}

/// A key, decoded if need be.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    bytes: [u8; KEY_MAX],
    len: usize,
}

impl Key {
    /// A key as the line has it: plain, or in base 64. `None`: it is empty, too long or malformed.
    pub fn read(token: &[u8], base64: bool) -> Option<Key> {
        let mut key = Key { bytes: [0; KEY_MAX], len: 0 };
        if base64 {
            // Decoding asks for room by the length of the text, which is a little more than it takes.
            let mut room = [0; KEY_MAX + 6];
            let len = BASE64.decode_slice(token, &mut room).ok().filter(|len| *len <= KEY_MAX)?;
            key.bytes[..len].copy_from_slice(&room[..len]);
            key.len = len;
        } else {
            key.bytes.get_mut(..token.len())?.copy_from_slice(token);
            key.len = token.len();
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
    /// The last of these two in the request: what `mg` and `ma` give to what they create.
    pub last_exptime: Option<i64>,
    /// `R`: recache below this remaining time.
    pub recache: Option<i64>,
    /// `D`: how far to count.
    pub delta: u64,
    /// `J`: what a created counter starts at.
    pub initial: u64,
    /// `M`: the mode; zero if the flag has none.
    pub mode: Option<u8>,
}

impl Flags {
    /// Reads the flags behind a key. The first that is unknown or there twice is reported, else the last whose argument
    /// is none (or that says that the key is base 64, if it is not), else one that is too long, or a version that is
    /// too large.
    ///
    /// # Errors
    /// The reply that the line gets.
    pub fn read(key: &[u8], tokens: Tokens<'_>, most: usize) -> Result<Flags, &'static str> {
        let mut flags = Flags {
            seen: 0,
            compare: None,
            version: Version(0),
            client: 0,
            ttl: None,
            vivify: None,
            last_exptime: None,
            recache: None,
            delta: 1,
            initial: 0,
            mode: None,
        };
        if tokens.len() > most {
            return Err(TOO_MANY);
        }
        let (mut bad, mut opaque) = (None, 0);
        for token in tokens {
            let (letter, argument) = (token[0], &token[1..]);
            if flags.has(letter) {
                return Err(DUPLICATE_FLAG);
            }
            if !KNOWN.contains(&letter) {
                return Err(INVALID_FLAG);
            }
            flags.seen |= 1 << letter;
            if letter == b'O' {
                opaque = argument.len();
            } else if letter == b'b' && Key::read(key, true).is_none() {
                bad = Some(BAD_KEY);
            } else if let Err(reply) = flags.take(letter, argument) {
                // The flags of the item have no words of their own for it.
                bad = reply.or(bad).or(Some(BAD_FORMAT));
            }
        }
        if let Some(reply) = bad {
            return Err(reply);
        }
        if opaque > OPAQUE_MAX {
            return Err(LONG_OPAQUE);
        }
        if flags.version > Version::MIN_VERSION_MAX {
            return Err(BAD_VERSION);
        }
        Ok(flags)
    }

    fn take(&mut self, letter: u8, argument: &[u8]) -> Result<(), Option<&'static str>> {
        let number = number::digits(argument);
        let time = number::signed_digits(argument);
        let bad = Err(Some(BAD_TOKEN));
        match (letter, number, time) {
            (b'C', None, _) | (b'E', None, _) | (b'T' | b'N' | b'R', _, None) => return bad,
            (b'D', None, _) => return Err(Some(BAD_DELTA)),
            (b'J', None, _) => return Err(Some(BAD_INITIAL)),
            (b'C', ..) => self.compare = number,
            (b'E', Some(number), _) => self.version = Version(number),
            (b'F', ..) => self.client = number.and_then(|flags| u32::try_from(flags).ok()).ok_or(None)?,
            (b'T', ..) => (self.ttl, self.last_exptime) = (time, time),
            (b'N', ..) => (self.vivify, self.last_exptime) = (time, time),
            (b'R', ..) => self.recache = time,
            (b'D', Some(number), _) => self.delta = number,
            (b'J', Some(number), _) => self.initial = number,
            (b'M', ..) => self.mode = Some(argument.first().copied().unwrap_or(0)),
            _ => {}
        }
        Ok(())
    }

    /// Whether a flag is there.
    #[inline]
    pub fn has(&self, letter: u8) -> bool {
        letter < 128 && self.seen >> letter & 1 != 0
    }
}

/// A meta request: key and flags, read.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The key as the line has it.
    pub token: &'a [u8],
    /// The key.
    pub key: Key,
    /// The flags, in order.
    pub tokens: Tokens<'a>,
    /// The flags, read.
    pub flags: Flags,
}

impl<'a> Request<'a> {
    /// Whether a reply that all went well is left out, and that `mg` found nothing.
    pub fn is_quiet(&self) -> bool {
        self.flags.has(b'q')
    }

    /// The key as replies show it, and whether that is base 64.
    pub fn shown_key(&self) -> (&'a [u8], bool) {
        (self.token, self.flags.has(b'b'))
    }

    /// Reads key and flags: at most `most` of these.
    ///
    /// # Errors
    /// The reply that the line gets.
    pub fn read(token: &'a [u8], tokens: Tokens<'a>, most: usize) -> Result<Request<'a>, &'static str> {
        if token.len() > KEY_MAX {
            return Err(BAD_FORMAT);
        }
        let flags = Flags::read(token, tokens, most)?;
        let key = Key::read(token, flags.has(b'b')).ok_or(BAD_KEY)?;
        Ok(Request { token, key, tokens, flags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Flags, &'static str> {
        Flags::read(b"azE=", Tokens::new(text), FLAGS_MAX)
    }

    #[test]
    fn flags_and_their_arguments() {
        let flags = read(b"v c T30 N-1 C99 Oabc").unwrap();
        assert_eq!((flags.ttl, flags.vivify, flags.compare), (Some(30), Some(-1), Some(99)));
        assert!(flags.has(b'v') && flags.has(b'O') && !flags.has(b't'));
        assert_eq!((read(b"M").unwrap().mode, read(b"MEx").unwrap().mode), (Some(0), Some(b'E')));
        let version = |text: &[u8]| read(text).map(|flags| flags.version);
        assert_eq!((version(b"E2199023255552"), version(b"I")), (Ok(Version(1 << 41)), Ok(Version(0))));
        assert_eq!(version(b"E2199023255553"), Err(BAD_VERSION));
        assert!(read(&[b"O".as_slice(), &[b'x'; OPAQUE_MAX]].concat()).is_ok());
    }

    #[test]
    fn bad_flags() {
        let long = [b"O".as_slice(), &[b'x'; OPAQUE_MAX + 1]].concat();
        let cases: [(&[u8], &str); 19] = [
            (b"v v !", DUPLICATE_FLAG),
            (b"z v v", INVALID_FLAG),
            (b"S5", INVALID_FLAG),
            (b"Tx z", INVALID_FLAG),
            (&[200], INVALID_FLAG),
            (b"Tx", BAD_TOKEN),
            (b"T+1", BAD_TOKEN),
            (b"E", BAD_TOKEN),
            (b"E-1", BAD_TOKEN),
            (b"Dx", BAD_DELTA),
            (b"D+1", BAD_DELTA),
            (b"Jx", BAD_INITIAL),
            (b"Tx Jx", BAD_INITIAL),
            (b"Fx", BAD_FORMAT),
            (b"F4294967296", BAD_FORMAT),
            (b"Fx Tx", BAD_TOKEN),
            (b"Tx Fx", BAD_TOKEN),
            (&long, LONG_OPAQUE),
            (&[&long[..], b" Tx"].concat(), BAD_TOKEN),
        ];
        for (text, reply) in cases {
            assert_eq!(read(text), Err(reply), "{}", text.escape_ascii());
        }
        let keyed = |text: &[u8]| Flags::read(b"no", Tokens::new(text), FLAGS_MAX);
        assert_eq!((keyed(b"Tx b"), keyed(b"b Tx"), keyed(b"b z")), (Err(BAD_KEY), Err(BAD_TOKEN), Err(INVALID_FLAG)));
        assert_eq!((read(&b" v".repeat(19)), read(&b" v".repeat(18))), (Err(TOO_MANY), Err(DUPLICATE_FLAG)));
        assert!(are_flags(Tokens::new(b"v 1 [")) && !are_flags(Tokens::new(b"v !")) && !are_flags(Tokens::new(&[200])));
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
}
