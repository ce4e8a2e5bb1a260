//! The meta protocol: a command of two letters, a key, and flags of one letter each with or without an argument.

use super::classic::BAD_FORMAT;
use super::number;
use super::words::Words;
use super::KEY_MAX;
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
pub fn are_flags(mut words: Words<'_>) -> bool {
    words.all(|word| word[0].is_ascii_digit() || (b'A'..=b'z').contains(&word[0]))
}

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
    /// Reads the flags behind a key. The first that is unknown or there twice is reported, else the last whose argument is none (or
    /// that says that the key is base 64, if it is not), else one that is too long, or a version that is too large.
    ///
    /// # Errors
    /// The reply that the line gets.
    pub fn read(key: &[u8], words: Words<'_>, most: usize) -> Result<Flags, &'static str> {
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
        if words.len() > most {
            return Err(TOO_MANY);
        }
        let (mut bad, mut opaque) = (None, 0);
        for word in words {
            let (letter, argument) = (word[0], &word[1..]);
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

    fn read(text: &[u8]) -> Result<Flags, &'static str> {
        Flags::read(b"azE=", Words::new(text), FLAGS_MAX)
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
        let keyed = |text: &[u8]| Flags::read(b"no", Words::new(text), FLAGS_MAX);
        assert_eq!((keyed(b"Tx b"), keyed(b"b Tx"), keyed(b"b z")), (Err(BAD_KEY), Err(BAD_TOKEN), Err(INVALID_FLAG)));
        assert_eq!((read(&b" v".repeat(19)), read(&b" v".repeat(18))), (Err(TOO_MANY), Err(DUPLICATE_FLAG)));
        assert!(are_flags(Words::new(b"v 1 [")) && !are_flags(Words::new(b"v !")) && !are_flags(Words::new(&[200])));
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
