//! The classic text protocol: one line into one request.

use super::number;
use super::words::Words;
use super::KEY_MAX;

/// `ERROR`: no such command, or too few words.
pub const ERROR: &str = "ERROR";
/// Words that are no numbers, lengths below zero, keys that are too long.
pub const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
/// A value that is not followed by a line ending.
pub const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk";
/// Above the limit for items.
pub const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";

/// What a storing command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Whatever is there.
    Set,
    /// If it is absent.
    Add,
    /// If it is there.
    Replace,
    /// Behind what is there.
    Append,
    /// In front of what is there.
    Prepend,
    /// If it has this version.
    Cas(u64),
}

/// A storing command, without its data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put<'a> {
    /// What to do.
    pub verb: Verb,
    /// The key.
    pub key: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// Expiry as the client writes it.
    pub exptime: i64,
    /// Bytes of the value.
    pub len: u64,
    /// Whether to keep silent.
    pub noreply: bool,
}

/// A retrieval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retrieve<'a> {
    /// Whether versions are wanted.
    pub cas: bool,
    /// The expiry that each key gets.
    pub touch: Option<i64>,
    /// The rest of the line: keys, all of them short enough.
    pub keys: &'a [u8],
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `get`, `gets`, `gat`, `gats`.
    Retrieve(Retrieve<'a>),
    /// `set` and its kin; a data block follows.
    Put(Put<'a>),
    /// `incr` and `decr`.
    Count {
        /// The key.
        key: &'a [u8],
        /// How far.
        by: u64,
        /// Upwards.
        up: bool,
        /// Whether to keep silent.
        noreply: bool,
    },
    /// `touch`.
    Touch {
        /// The key.
        key: &'a [u8],
        /// Expiry as the client writes it.
        exptime: i64,
        /// Whether to keep silent.
        noreply: bool,
    },
    /// `delete`.
    Delete {
        /// The key.
        key: &'a [u8],
        /// Whether to keep silent.
        noreply: bool,
    },
    /// Any other command, by its first word.
    Other {
        /// The command.
        name: &'a [u8],
        /// What follows it.
        words: Words<'a>,
    },
}

/// A line that is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reply, without its line ending.
    pub reply: &'static str,
}

fn refuse<T>(reply: &'static str) -> Result<T, Refusal> {
    Err(Refusal { reply })
}

/// Reads a line without its line ending.
///
/// # Errors
/// The reply that the line gets.
#[inline]
pub fn parse(line: &[u8]) -> Result<Request<'_>, Refusal> {
    let mut words = Words::new(line);
    let Some(name) = words.next() else { return refuse(ERROR) };
    match name {
        b"get" => retrieve(words, false, false),
        b"gets" => retrieve(words, true, false),
        b"gat" => retrieve(words, false, true),
        b"gats" => retrieve(words, true, true),
        b"set" => put(words, Verb::Set),
        b"add" => put(words, Verb::Add),
        b"replace" => put(words, Verb::Replace),
        b"append" => put(words, Verb::Append),
        b"prepend" => put(words, Verb::Prepend),
        b"cas" => put(words, Verb::Cas(0)),
        b"incr" => count(words, true),
        b"decr" => count(words, false),
        b"touch" => touch(words),
        b"delete" => delete(words),
        _ => Ok(Request::Other { name, words }),
    }
}

fn key(word: &[u8]) -> Result<&[u8], Refusal> {
    if word.len() > KEY_MAX {
        return refuse(BAD_FORMAT);
    }
    Ok(word)
}

fn retrieve(mut words: Words<'_>, cas: bool, touch: bool) -> Result<Request<'_>, Refusal> {
    let mut exptime = None;
    if touch {
        let Some(word) = words.next() else { return refuse(ERROR) };
        let Some(number) = number::signed(word) else { return refuse("CLIENT_ERROR invalid exptime argument") };
        exptime = Some(number);
    }
    let keys = words.rest();
    // Touching no key is allowed, and answered with an end.
    if !touch && words.is_empty() {
        return refuse(ERROR);
    }
    for word in words {
        key(word)?;
    }
    Ok(Request::Retrieve(Retrieve { cas, touch: exptime, keys }))
}

fn is_noreply(word: Option<&[u8]>) -> bool {
    word == Some(b"noreply")
}

#[inline]
fn put(mut words: Words<'_>, verb: Verb) -> Result<Request<'_>, Refusal> {
    let (Some(name), Some(flags), Some(exptime), Some(len)) = (words.next(), words.next(), words.next(), words.next())
    else {
        return refuse(ERROR);
    };
    let mut verb = verb;
    let mut version = Some(0);
    if let Verb::Cas(_) = verb {
        let Some(word) = words.next() else { return refuse(ERROR) };
        version = number::unsigned(word);
        verb = Verb::Cas(version.unwrap_or(0));
    }
    let last = words.next();
    // One word too many is taken for a misspelt `noreply`; two are no command.
    if !words.is_empty() {
        return refuse(ERROR);
    }
    let name = key(name)?;
    let (Some(flags), Some(exptime), Some(len), Some(_)) =
        (number::unsigned32(flags), number::signed(exptime), number::signed(len), version)
    else {
        return refuse(BAD_FORMAT);
    };
    let Ok(len) = u64::try_from(len) else { return refuse(BAD_FORMAT) };
    // Nothing near this is accepted anyway, and sums with it must not wrap.
    let len = len.min(u64::MAX / 4);
    Ok(Request::Put(Put { verb, key: name, flags, exptime, len, noreply: is_noreply(last) }))
}

fn count(mut words: Words<'_>, up: bool) -> Result<Request<'_>, Refusal> {
    let (Some(name), Some(by)) = (words.next(), words.next()) else { return refuse(ERROR) };
    let noreply = is_noreply(words.next());
    if !words.is_empty() {
        return refuse(ERROR);
    }
    let name = key(name)?;
    let Some(by) = number::unsigned(by) else { return refuse("CLIENT_ERROR invalid numeric delta argument") };
    Ok(Request::Count { key: name, by, up, noreply })
}

fn touch(mut words: Words<'_>) -> Result<Request<'_>, Refusal> {
    let (Some(name), Some(exptime)) = (words.next(), words.next()) else { return refuse(ERROR) };
    let noreply = is_noreply(words.next());
    if !words.is_empty() {
        return refuse(ERROR);
    }
    let name = key(name)?;
    let Some(exptime) = number::signed(exptime) else { return refuse("CLIENT_ERROR invalid exptime argument") };
    Ok(Request::Touch { key: name, exptime, noreply })
}

fn delete(mut words: Words<'_>) -> Result<Request<'_>, Refusal> {
    const USAGE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
    let Some(name) = words.next() else { return refuse(ERROR) };
    let (second, third) = (words.next(), words.next());
    if !words.is_empty() {
        return refuse(ERROR);
    }
    // Old clients send a time of zero, which meant "at once".
    let noreply = match (second, third) {
        (None, None) | (Some(b"0"), None) => false,
        (Some(b"noreply"), None) | (Some(b"0"), Some(b"noreply")) => true,
        _ => return refuse(USAGE),
    };
    Ok(Request::Delete { key: key(name)?, noreply })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> &'static str {
        parse(line.as_bytes()).unwrap_err().reply
    }

    #[test]
    fn storing_lines() {
        let Ok(Request::Put(put)) = parse(b"set k 7 -1 3 noreply") else { panic!("no put") };
        assert_eq!(put, Put { verb: Verb::Set, key: b"k", flags: 7, exptime: -1, len: 3, noreply: true });
        let Ok(Request::Put(put)) = parse(b"cas k 0 0 3 99") else { panic!("no put") };
        assert_eq!((put.verb, put.noreply), (Verb::Cas(99), false));
        assert_eq!(error("set k 0 0"), ERROR);
        assert_eq!(error("set k 0 0 -1"), BAD_FORMAT);
        assert_eq!(error("set k -1 0 1"), BAD_FORMAT);
        assert_eq!(error("set k 0 x 1"), BAD_FORMAT);
        assert_eq!(error("cas k 0 0 1 x"), BAD_FORMAT);
        assert_eq!(error(&format!("set {} 0 0 1", "k".repeat(251))), BAD_FORMAT);
        assert!(parse(format!("set {} 0 0 1", "k".repeat(250)).as_bytes()).is_ok());
    }

    #[test]
    fn retrievals() {
        let Ok(Request::Retrieve(get)) = parse(b"gats 10 a b ") else { panic!("no retrieval") };
        assert_eq!((get.cas, get.touch, get.keys), (true, Some(10), &b" a b "[..]));
        assert_eq!((error("get"), error("get "), error("gat")), (ERROR, ERROR, ERROR));
        assert!(parse(b"gat 10").is_ok());
        assert_eq!(error("gat x k"), "CLIENT_ERROR invalid exptime argument");
        assert_eq!(error(&format!("get a {}", "k".repeat(251))), BAD_FORMAT);
    }

    #[test]
    fn the_rest() {
        assert_eq!(parse(b"incr k 5 noreply"), Ok(Request::Count { key: b"k", by: 5, up: true, noreply: true }));
        assert_eq!(error("decr k x"), "CLIENT_ERROR invalid numeric delta argument");
        assert_eq!(parse(b"delete k 0"), Ok(Request::Delete { key: b"k", noreply: false }));
        assert!(error("delete k 5").contains("Usage"));
        assert_eq!((error("touch k"), error("")), (ERROR, ERROR));
        assert!(matches!(parse(b"stats items"), Ok(Request::Other { name: b"stats", .. })));
    }
}
