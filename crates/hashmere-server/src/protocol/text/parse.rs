//! The classic text protocol: one line into one request.

use crate::protocol::tokens::Tokens;
use crate::protocol::{number, Verb, BAD_EXPTIME, BAD_FORMAT, KEY_MAX, LEN_MAX};

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

/// What a retrieval asks of each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The value: `get` and its kin.
    Value,
    /// The value, or the lease of computing it: `lease-get`.
    Lease,
    /// Neither, but what is known about it: `metaget`.
    Metadata,
}

/// A retrieval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retrieve<'a> {
    /// What is asked.
    pub kind: Kind,
    /// Whether versions are wanted.
    pub cas: bool,
    /// The expiry that each key gets.
    pub touch: Option<i64>,
    /// The rest of the line: keys, all of them short enough.
    pub keys: &'a [u8],
}

/// A retrieval in progress: its keys are the input up to the end of the line.
#[derive(Clone, Copy, Debug)]
pub struct Retrieval {
    /// What is asked of each key.
    pub kind: Kind,
    /// Whether versions are wanted.
    pub cas: bool,
    /// The expiry that each key gets.
    pub touch: Option<i64>,
}

impl From<Retrieve<'_>> for Retrieval {
    fn from(request: Retrieve<'_>) -> Retrieval {
        Retrieval { kind: request.kind, cas: request.cas, touch: request.touch }
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `get`, `gets`, `gat`, `gats`, `lease-get`, `metaget`.
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
        tokens: Tokens<'a>,
    },
}

/// A line that is not a valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reply, without its line ending; `None` if the line asks for none.
    pub reply: Option<&'static str>,
    /// Bytes of the value that is behind it all the same, and is to be ignored.
    pub value: Option<u64>,
}

fn refuse<T>(reply: &'static str) -> Result<T, Refusal> {
    Err(Refusal { reply: Some(reply), value: None })
}

/// The same, unless the line ends with `noreply`.
fn refuse_unless<T>(noreply: bool, reply: &'static str) -> Result<T, Refusal> {
    Err(Refusal { reply: (!noreply).then_some(reply), value: None })
}

/// Reads a line without its line ending.
///
/// # Errors
/// The reply that the line gets, and what is to be ignored behind it.
#[inline]
pub fn parse(line: &[u8]) -> Result<Request<'_>, Refusal> {
    // The command is the beginning of the line: a space before it makes it none.
    let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let tokens = Tokens::new(rest);
    match name {
        b"get" => retrieve(tokens, Kind::Value, false, false),
        b"gets" => retrieve(tokens, Kind::Value, true, false),
        b"gat" => retrieve(tokens, Kind::Value, false, true),
        b"gats" => retrieve(tokens, Kind::Value, true, true),
        b"set" => put(tokens, Verb::Set),
        b"add" => put(tokens, Verb::Add),
        b"replace" => put(tokens, Verb::Replace),
        b"append" => put(tokens, Verb::Append),
        b"prepend" => put(tokens, Verb::Prepend),
        b"cas" => put(tokens, Verb::Cas(0)),
        b"incr" => count(tokens, true),
        b"decr" => count(tokens, false),
        b"touch" => touch(tokens),
        b"delete" => delete(tokens),
        b"lease-get" => retrieve(tokens, Kind::Lease, false, false),
        b"lease-set" => lease_set(tokens),
        b"metaget" => retrieve(tokens, Kind::Metadata, false, false),
        _ => Ok(Request::Other { name, tokens }),
    }
}

/// Whether a line that is no command is one of an HTTP request: the first, which its last word says, or the header that
/// every request has, for a method may be called like a command. A browser can be made to send one to any address, with
/// a body full of commands behind it.
pub fn is_http(line: &[u8]) -> bool {
    let mut tokens = Tokens::new(line);
    let Some(first) = tokens.next() else { return false };
    first.eq_ignore_ascii_case(b"host:") || tokens.last().is_some_and(|last| last.starts_with(b"HTTP/"))
}

/// The number of bytes that a line declares for its value.
#[inline]
pub fn declared_len(token: &[u8]) -> Option<u64> {
    number::digits(token).filter(|len| *len <= LEN_MAX)
}

fn retrieve(mut tokens: Tokens<'_>, kind: Kind, cas: bool, touch: bool) -> Result<Request<'_>, Refusal> {
    let exptime = if touch { tokens.next() } else { None };
    let keys = tokens.rest();
    if tokens.is_empty() {
        return refuse(BAD_FORMAT);
    }
    let exptime = match exptime.map(number::signed_digits) {
        Some(None) => return refuse(BAD_EXPTIME),
        Some(exptime) => exptime,
        None => None,
    };
    for token in tokens {
        if token.len() > KEY_MAX {
            return refuse(BAD_FORMAT);
        }
    }
    Ok(Request::Retrieve(Retrieve { kind, cas, touch: exptime, keys }))
}

/// Whether a line with these last tokens gets no reply. Only the very last one counts.
#[inline]
fn is_noreply(tokens: Tokens<'_>) -> bool {
    tokens.last() == Some(b"noreply")
}

#[inline]
fn put(mut tokens: Tokens<'_>, verb: Verb) -> Result<Request<'_>, Refusal> {
    let (Some(name), Some(flags), Some(exptime), Some(len)) =
        (tokens.next(), tokens.next(), tokens.next(), tokens.next())
    else {
        return refuse(BAD_FORMAT);
    };
    let Some(len) = declared_len(len) else { return refuse(BAD_FORMAT) };
    let noreply = is_noreply(tokens);
    // From here on it is known how much is behind the line, whatever else is wrong with it.
    let bad = Err(Refusal { reply: (!noreply).then_some(BAD_FORMAT), value: Some(len) });
    let mut verb = verb;
    if let Verb::Cas(_) = verb {
        let Some(version) = tokens.next().and_then(number::digits) else { return bad };
        verb = Verb::Cas(version);
    }
    let (Some(flags), Some(exptime)) = (number::unsigned32(flags), number::signed(exptime)) else { return bad };
    if name.len() > KEY_MAX {
        return bad;
    }
    Ok(Request::Put(Put { verb, key: name, flags, exptime, len, noreply }))
}

/// A `set` whose second word is a token.
fn lease_set(mut tokens: Tokens<'_>) -> Result<Request<'_>, Refusal> {
    let (Some(key), Some(token), Some(flags), Some(exptime), Some(len)) =
        (tokens.next(), tokens.next(), tokens.next(), tokens.next(), tokens.next())
    else {
        return refuse(BAD_FORMAT);
    };
    let Some(len) = declared_len(len) else { return refuse(BAD_FORMAT) };
    let noreply = is_noreply(tokens);
    let numbers = (number::digits(token), number::unsigned32(flags), number::signed(exptime));
    let (Some(token), Some(flags), Some(exptime), ..=KEY_MAX) = (numbers.0, numbers.1, numbers.2, key.len()) else {
        return Err(Refusal { reply: (!noreply).then_some(BAD_FORMAT), value: Some(len) });
    };
    Ok(Request::Put(Put { verb: Verb::Lease(token), key, flags, exptime, len, noreply }))
}

fn count(mut tokens: Tokens<'_>, up: bool) -> Result<Request<'_>, Refusal> {
    let key = tokens.next();
    let noreply = is_noreply(tokens);
    let (Some(key), Some(by)) = (key, tokens.next()) else { return refuse(BAD_FORMAT) };
    if key.len() > KEY_MAX {
        return refuse_unless(noreply, BAD_FORMAT);
    }
    match number::digits(by) {
        Some(by) => Ok(Request::Count { key, by, up, noreply }),
        None => refuse_unless(noreply, "CLIENT_ERROR invalid numeric delta argument"),
    }
}

fn touch(mut tokens: Tokens<'_>) -> Result<Request<'_>, Refusal> {
    let key = tokens.next();
    let noreply = is_noreply(tokens);
    let (Some(key), Some(exptime)) = (key, tokens.next()) else { return refuse(BAD_FORMAT) };
    if key.len() > KEY_MAX {
        return refuse_unless(noreply, BAD_FORMAT);
    }
    match number::signed_digits(exptime) {
        Some(exptime) => Ok(Request::Touch { key, exptime, noreply }),
        None => refuse_unless(noreply, BAD_EXPTIME),
    }
}

/// Old clients send a time behind the key, which means nothing.
fn delete(mut tokens: Tokens<'_>) -> Result<Request<'_>, Refusal> {
    let noreply = is_noreply(tokens);
    let Some(key) = tokens.next() else { return refuse(BAD_FORMAT) };
    if key.len() > KEY_MAX {
        return refuse_unless(noreply, BAD_FORMAT);
    }
    Ok(Request::Delete { key, noreply })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> Option<&'static str> {
        parse(line.as_bytes()).unwrap_err().reply
    }

    #[test]
    fn storing_lines() {
        let Ok(Request::Put(put)) = parse(b"set k 7 -1 3 noreply") else { panic!("no put") };
        assert_eq!(put, Put { verb: Verb::Set, key: b"k", flags: 7, exptime: -1, len: 3, noreply: true });
        let Ok(Request::Put(put)) = parse(b"cas k 0 0 3 99 more") else { panic!("no put") };
        assert_eq!((put.verb, put.noreply), (Verb::Cas(99), false));
        assert!(parse(format!("set {} 0 0 1", "k".repeat(250)).as_bytes()).is_ok());
        let Ok(Request::Put(put)) = parse(b"lease-set k 18446744073709551615 7 -1 3 noreply") else { panic!("no put") };
        assert_eq!((put.verb, put.flags, put.exptime), (Verb::Lease(u64::MAX), 7, -1));
        assert_eq!((put.key, put.len, put.noreply), (&b"k"[..], 3, true));
    }

    /// Whether what is behind a bad line is known, and whether the line is answered.
    #[test]
    fn bad_storing_lines() {
        let long = format!("set {} 0 0 1", "k".repeat(251));
        for (line, reply, value) in [
            ("set k 0 0", true, None),
            ("set k 0 0 noreply", true, None),
            ("set k 0 0 -1", true, None),
            ("set k 0 0 +1", true, None),
            ("set k 0 0 2147483645", true, None),
            ("set k 0 0 4294967297", true, None),
            ("set k 0 0 99999999999999999999", true, None),
            ("set k -1 0 1", true, Some(1)),
            ("set k 0 x 2147483644", true, Some(2_147_483_644)),
            ("set k 0 x 1 noreply", false, Some(1)),
            ("cas k 0 0 1", true, Some(1)),
            ("cas k 0 0 1 x", true, Some(1)),
            ("cas k 0 0 1 +1", true, Some(1)),
            ("cas k 0 0 1 noreply", false, Some(1)),
            (&long, true, Some(1)),
            (&long.replace("set", "lease-set").replace(" 0 0", " 9 0 0"), true, Some(1)),
            ("lease-set k 0 0 1", true, None),
            ("lease-set k 9 0 0 +1", true, None),
            ("lease-set k 9 0 0 -1 noreply", true, None),
            ("lease-set k -1 0 0 1", true, Some(1)),
            ("lease-set k +1 0 0 1", true, Some(1)),
            ("lease-set k 18446744073709551616 0 0 1", true, Some(1)),
            ("lease-set k 9 4294967296 0 1 noreply", false, Some(1)),
            ("lease-set k 9 0 x 1", true, Some(1)),
        ] {
            let refusal = Refusal { reply: reply.then_some(BAD_FORMAT), value };
            assert_eq!(parse(line.as_bytes()), Err(refusal), "{line}");
        }
    }

    #[test]
    fn retrievals() {
        let Ok(Request::Retrieve(get)) = parse(b"gats 10 a b ") else { panic!("no retrieval") };
        assert_eq!((get.cas, get.touch, get.keys), (true, Some(10), &b" a b "[..]));
        let kind = |line| match parse(line) {
            Ok(Request::Retrieve(get)) => Some((get.kind, get.cas, get.touch, get.keys)),
            _ => None,
        };
        assert_eq!(kind(b"lease-get a b"), Some((Kind::Lease, false, None, &b" a b"[..])));
        assert_eq!(kind(b"metaget a"), Some((Kind::Metadata, false, None, &b" a"[..])));
        for line in ["get", "get ", "gat", "gat 10", "gat x", "lease-get", "metaget "] {
            assert_eq!(error(line), Some(BAD_FORMAT), "{line}");
        }
        assert_eq!((error("gat x k"), error("gat +1 k")), (Some(BAD_EXPTIME), Some(BAD_EXPTIME)));
        assert_eq!(error(&format!("get a {}", "k".repeat(251))), Some(BAD_FORMAT));
    }

    #[test]
    fn the_rest() {
        assert_eq!(parse(b"incr k 5 x noreply"), Ok(Request::Count { key: b"k", by: 5, up: true, noreply: true }));
        assert_eq!(error("decr k x"), Some("CLIENT_ERROR invalid numeric delta argument"));
        assert_eq!((error("incr k noreply"), error("touch k noreply")), (None, None));
        assert_eq!(parse(b"delete k 5"), Ok(Request::Delete { key: b"k", noreply: false }));
        assert_eq!(
            (error("touch k"), error("delete"), error("incr k")),
            (Some(BAD_FORMAT), Some(BAD_FORMAT), Some(BAD_FORMAT))
        );
        assert!(matches!(parse(b"stats items"), Ok(Request::Other { name: b"stats", .. })));
        assert!(matches!(parse(b" get k"), Ok(Request::Other { name: b"", .. })));
    }

    #[test]
    fn lines_of_http() {
        for line in ["GET / HTTP/1.1", "POST /x HTTP/1.0 ", " patch  /  HTTP/2", "Host: x", "host: "] {
            assert!(is_http(line.as_bytes()), "{line}");
        }
        for line in ["HTTP/1.1", "GET /", "GET / HTTP/1.1 x", "GET /HTTP/1.1x http/1.1", "", "host x", "x host:"] {
            assert!(!is_http(line.as_bytes()), "{line}");
        }
    }
}
