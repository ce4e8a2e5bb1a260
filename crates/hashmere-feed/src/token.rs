//! A consumer's place in a feed, as text that it keeps where its data are.

use crate::digits::number;
use std::fmt;
use std::str::FromStr;

/// What a token has in place of a cursor when all keys are read and *synced* has not come yet.
pub(crate) const ALL_READ: u64 = u64::MAX;

/// Where a consumer resumes. Its text has no spaces and at most 160 bytes:
/// `hm1-UUID-FEED-GENERATION-POSITION`, during a first copy with `-CURSOR` behind it; numbers are decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// UUID of the store, as two words of the header.
    pub(crate) store: [u64; 2],
    /// Number of the feed.
    pub(crate) feed: u64,
    /// Generation of the root that the consumer has come to.
    pub(crate) generation: u64,
    /// Position of the next entry.
    pub(crate) position: u64,
    /// During a first copy: where its scan goes on.
    pub(crate) cursor: Option<u64>,
}

impl Token {
    /// Position of the next entry: it grows by one with each change that is no part of a transaction, and with each
    /// transaction.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether the first copy is still under way.
    pub fn is_copying(&self) -> bool {
        self.cursor.is_some()
    }

    /// The same place before the end of a first copy: who resumes there gets *synced* again.
    pub fn before_synced(self) -> Token {
        Token { cursor: Some(ALL_READ), ..self }
    }

    /// Whether it is of the same feed as another one, and not before it.
    pub fn is_as_far_as(&self, other: &Token) -> bool {
        (self.store, self.feed) == (other.store, other.feed)
            && self.position >= other.position
            && self.generation >= other.generation
    }

    /// The first word of the store's UUID, which names it in stamps.
    pub fn site(&self) -> u64 {
        self.store[0]
    }

    /// UUID of the store, as it is written.
    pub fn store_uuid(&self) -> String {
        let mut text = Vec::with_capacity(36);
        self.write_uuid(true, &mut text);
        String::from_utf8(text).unwrap_or_default()
    }

    /// Appends the text of the token: the same as `Display`, for what writes one with every event.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"hm1-");
        self.write_uuid(false, out);
        for value in [Some(self.feed), Some(self.generation), Some(self.position), self.cursor].into_iter().flatten() {
            out.push(b'-');
            number(value, out);
        }
    }

    pub(crate) fn write_uuid(&self, hyphens: bool, out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let bytes = self.store.into_iter().flat_map(u64::to_le_bytes);
        for (at, byte) in bytes.enumerate() {
            if hyphens && [4, 6, 8, 10].contains(&at) {
                out.push(b'-');
            }
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(96);
        self.write(&mut text);
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// A text that is no token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadToken(pub(crate) String);

impl fmt::Display for BadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no token of a feed; give one as an event had it, or `start` or `now`", self.0)
    }
}

impl std::error::Error for BadToken {}

impl FromStr for Token {
    type Err = BadToken;

    fn from_str(text: &str) -> Result<Token, BadToken> {
        parse(text).ok_or_else(|| BadToken(text.chars().take(200).collect()))
    }
}

fn parse(text: &str) -> Option<Token> {
    let mut parts = text.strip_prefix("hm1-")?.split('-');
    let uuid = parts.next().filter(|uuid| uuid.len() == 32 && uuid.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let word = |at: usize| u64::from_str_radix(uuid.get(at..at + 16)?, 16).ok().map(u64::swap_bytes);
    let store = [word(0)?, word(16)?];
    let mut number = || -> Option<u64> {
        let digits = parts.next()?;
        (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(digits)?.parse().ok()
    };
    let (feed, generation, position) = (number()?, number()?, number()?);
    let cursor = match parts.next() {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => Some(digits.parse().ok()?),
        Some(_) => return None,
        None => None,
    };
    parts.next().is_none().then_some(Token { store, feed, generation, position, cursor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_text_and_back() {
        let store = [0x0706_0504_0302_0100, u64::MAX];
        for cursor in [None, Some(0), Some(u64::MAX)] {
            let token = Token { store, feed: 1_795_000_000_000, generation: 3, position: 77, cursor };
            let text = token.to_string();
            assert!(text.starts_with("hm1-0001020304050607ffffffffffffffff-1795000000000-3-77"), "{text}");
            assert_eq!(text.parse(), Ok(token));
            assert!(text.len() <= 160);
        }
        let good = Token { store, feed: 1, generation: 2, position: 3, cursor: None }.to_string();
        for bad in
            ["", "now", "hm1-", "hm1-00-1-2-3", &good[..good.len() - 2], &format!("{good}-"), &format!("{good}-1-2")]
        {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
        assert!(good.replace("-3", "-+3").parse::<Token>().is_err());
        assert!(good.replace("-3", "-99999999999999999999").parse::<Token>().is_err());
    }
}
