//! Requests: arrays of bulk strings, and inline commands. Knows no socket, clock or store.
//!
//! Arguments are ranges of the input. The parser keeps its place between two reads: what it has seen of a request that
//! is not complete it does not look at again.

use super::inline;
use super::number::integer;
use std::ops::Range;

/// Longest inline request, and longest line of a length.
pub const LINE_MAX: usize = 64 << 10;
/// Most arguments of a request.
pub const ARGUMENTS_MAX: i64 = 1 << 20;
/// Longest bulk string that is skipped, and not taken for an error of the protocol.
pub const BULK_MAX: i64 = 512 << 20;
/// Most arguments, and longest of them, before a client has authenticated.
pub const LOCKED_ARGUMENTS_MAX: i64 = 10;
/// Longest of them.
pub const LOCKED_BULK_MAX: i64 = 16 << 10;
/// Arguments whose places are kept for the next request.
const KEEP: usize = 1024;

/// The arguments of a request, its name first.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    ranges: &'a [Range<usize>],
}

impl<'a> Args<'a> {
    /// Arguments at these places.
    pub fn new(bytes: &'a [u8], ranges: &'a [Range<usize>]) -> Args<'a> {
        Args { bytes, ranges }
    }

    /// How many, with the name.
    #[inline]
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// One of them; empty if there is none.
    #[inline]
    pub fn at(&self, index: usize) -> &'a [u8] {
        self.ranges.get(index).and_then(|range| self.bytes.get(range.clone())).unwrap_or_default()
    }

    /// Those from here on.
    pub fn from(&self, first: usize) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let bytes = self.bytes;
        let ranges = self.ranges.get(first..).unwrap_or_default();
        ranges.iter().map(move |range| bytes.get(range.clone()).unwrap_or_default())
    }

    /// Whether this one is a word, in any case.
    pub fn is(&self, index: usize, word: &str) -> bool {
        self.at(index).eq_ignore_ascii_case(word.as_bytes())
    }
}

/// What the input holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A request; its arguments are [`Parser::args`], and the parser goes on after [`Parser::finish`].
    Request,
    /// Nothing to answer in this many bytes: an empty line, a part of a request that is skipped.
    Nothing(usize),
    /// The end of a request that was skipped, for an argument of it is too long.
    TooLarge(usize),
    /// More input is needed: this many bytes from the start of the request, as far as that is known.
    Incomplete(usize),
    /// What follows cannot be understood: the connection is to be closed.
    Error(String),
}

/// What a client may send now.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// It has not authenticated.
    pub locked: bool,
    /// Longest argument that is kept.
    pub bulk_max: u64,
}

/// The place within a request.
#[derive(Debug, Default)]
pub struct Parser {
    ranges: Vec<Range<usize>>,
    /// What an inline request says without quotes: the ranges are of these bytes.
    inline: Option<Vec<u8>>,
    /// Where it goes on, from the start of the request.
    at: usize,
    /// Arguments to come; `None`: between two requests.
    left: Option<usize>,
    /// Length of the argument whose bytes come next.
    bulk: Option<usize>,
    /// All arguments are there.
    ready: bool,
    /// The request is skipped, and nothing of it kept: bytes to skip before its next argument.
    refused: Option<u64>,
}

impl Parser {
    /// Whether it is between two requests.
    pub fn is_idle(&self) -> bool {
        self.left.is_none() && !self.ready
    }

    /// Whether it skips a request.
    pub fn is_skipping(&self) -> bool {
        self.refused.is_some()
    }

    /// The arguments of a complete request.
    #[inline]
    pub fn args<'a>(&'a self, input: &'a [u8]) -> Args<'a> {
        Args::new(self.inline.as_deref().unwrap_or(input), &self.ranges)
    }

    /// Goes on behind a complete request; returns its length.
    #[inline]
    pub fn finish(&mut self) -> usize {
        let length = self.at;
        self.reset();
        length
    }

    #[inline]
    fn reset(&mut self) {
        self.ranges.clear();
        if self.ranges.capacity() > KEEP {
            self.ranges = Vec::new();
        }
        self.inline = None;
        (self.at, self.left, self.bulk, self.ready, self.refused) = (0, None, None, false, None);
    }

    /// Parses what is there of a request. The input is what was given before, less what was consumed, and more.
    #[inline]
    pub fn parse(&mut self, input: &[u8], bounds: Bounds) -> Parsed {
        if self.ready {
            return Parsed::Request;
        }
        if self.left.is_none() {
            match input.first() {
                None => return Parsed::Incomplete(0),
                Some(b'*') => match self.count(input, bounds) {
                    Ok(()) => {}
                    Err(other) => return other,
                },
                Some(_) => return self.line(input),
            }
        }
        if self.refused.is_some() {
            return self.skip(input, bounds);
        }
        self.bulks(input, bounds)
    }

    /// The number of arguments.
    #[inline]
    fn count(&mut self, input: &[u8], bounds: Bounds) -> Result<(), Parsed> {
        let (text, behind) = line_of(input, 0, "Protocol error: too big mbulk count string")?;
        match integer(text.get(1..).unwrap_or_default()) {
            None => Err(error("Protocol error: invalid multibulk length")),
            Some(count) if count > ARGUMENTS_MAX => Err(error("Protocol error: invalid multibulk length")),
            Some(count) if bounds.locked && count > LOCKED_ARGUMENTS_MAX => {
                Err(error("Protocol error: unauthenticated multibulk length"))
            }
            Some(count) if count <= 0 => Err(Parsed::Nothing(behind)),
            Some(count) => {
                (self.left, self.at) = (Some(count as usize), behind);
                Ok(())
            }
        }
    }

    /// The length of the next argument, and where its bytes start.
    #[inline]
    fn length(&self, input: &[u8], bounds: Bounds) -> Result<(usize, usize), Parsed> {
        // A digit and the end of the line: most arguments are short.
        if let Some([b'$', digit @ b'0'..=b'9', b'\r', _]) = input.get(self.at..self.at + 4) {
            return Ok((usize::from(digit - b'0'), self.at + 4));
        }
        let (text, behind) = line_of(input, self.at, "Protocol error: too big bulk count string")?;
        let Some((b'$', digits)) = text.split_first() else {
            let got = input.get(self.at).copied().unwrap_or_default();
            let shown = char::from(if got == b'\r' || got == b'\n' { b' ' } else { got });
            return Err(Parsed::Error(format!("Protocol error: expected '$', got '{shown}'")));
        };
        match integer(digits) {
            Some(length) if bounds.locked && length > LOCKED_BULK_MAX => {
                Err(error("Protocol error: unauthenticated bulk length"))
            }
            Some(length @ 0..=BULK_MAX) => Ok((length as usize, behind)),
            _ => Err(error("Protocol error: invalid bulk length")),
        }
    }

    #[inline]
    fn bulks(&mut self, input: &[u8], bounds: Bounds) -> Parsed {
        let mut left = self.left.unwrap_or(0);
        while left > 0 {
            let length = match self.bulk {
                Some(length) => length,
                None => match self.length(input, bounds) {
                    Ok((length, start)) => {
                        self.at = start;
                        if length as u64 > bounds.bulk_max {
                            self.ranges = Vec::new();
                            (self.left, self.refused) = (Some(left - 1), Some(length as u64 + 2));
                            return self.skip(input, bounds);
                        }
                        length
                    }
                    Err(other) => {
                        self.left = Some(left);
                        return other;
                    }
                },
            };
            let end = self.at + length;
            if input.len() < end + 2 {
                (self.left, self.bulk) = (Some(left), Some(length));
                return Parsed::Incomplete(end + 2);
            }
            self.ranges.push(self.at..end);
            self.at = end + 2;
            self.bulk = None;
            left -= 1;
        }
        self.left = Some(0);
        self.ready = true;
        Parsed::Request
    }

    /// Passes over the rest of a request, all of which is consumed as it comes.
    fn skip(&mut self, input: &[u8], bounds: Bounds) -> Parsed {
        loop {
            let skip = self.refused.unwrap_or(0);
            let now = skip.min(input.len().saturating_sub(self.at) as u64);
            self.at += now as usize;
            self.refused = Some(skip - now);
            if skip > now {
                return Parsed::Nothing(std::mem::take(&mut self.at));
            }
            let left = self.left.unwrap_or(0);
            if left == 0 {
                let length = self.at;
                self.reset();
                return Parsed::TooLarge(length);
            }
            match self.length(input, bounds) {
                Ok((length, start)) => {
                    self.at = start;
                    (self.left, self.refused) = (Some(left - 1), Some(length as u64 + 2));
                }
                // The line of a length is waited for as a whole.
                Err(Parsed::Incomplete(_)) if self.at > 0 => return Parsed::Nothing(std::mem::take(&mut self.at)),
                Err(other) => return other,
            }
        }
    }

    /// An inline request.
    fn line(&mut self, input: &[u8]) -> Parsed {
        let Some(end) = memchr::memchr(b'\n', &input[..input.len().min(LINE_MAX + 1)]) else {
            return match input.len() > LINE_MAX {
                true => error("Protocol error: too big inline request"),
                false => Parsed::Incomplete(0),
            };
        };
        let text = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        let mut bytes = Vec::new();
        if inline::split(text, &mut bytes, &mut self.ranges).is_none() {
            return error("Protocol error: unbalanced quotes in request");
        }
        if self.ranges.is_empty() {
            return Parsed::Nothing(end + 1);
        }
        (self.inline, self.at, self.ready) = (Some(bytes), end + 1, true);
        Parsed::Request
    }
}

fn error(text: &str) -> Parsed {
    Parsed::Error(text.into())
}

/// A line from here on, and where the next one starts. Its end is a CR and one byte more, which is not looked at.
fn line_of<'a>(input: &'a [u8], at: usize, too_long: &str) -> Result<(&'a [u8], usize), Parsed> {
    let rest = input.get(at..).unwrap_or_default();
    match memchr::memchr(b'\r', &rest[..rest.len().min(LINE_MAX + 1)]) {
        None if rest.len() > LINE_MAX => Err(error(too_long)),
        None => Err(Parsed::Incomplete(0)),
        Some(end) if end + 2 > rest.len() => Err(Parsed::Incomplete(0)),
        Some(end) => Ok((&rest[..end], at + end + 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { locked: false, bulk_max: 100 };

    fn requests(input: &[u8], bounds: Bounds, step: usize) -> Vec<String> {
        let (mut parser, mut found) = (Parser::default(), Vec::new());
        let (mut start, mut end) = (0, step.min(input.len()));
        loop {
            match parser.parse(&input[start..end], bounds) {
                Parsed::Request => {
                    let args = parser.args(&input[start..end]);
                    found.push(args.from(0).map(|arg| arg.escape_ascii().to_string()).collect::<Vec<_>>().join("|"));
                    start += parser.finish();
                }
                Parsed::Nothing(length) => {
                    start += length;
                    if length == 0 || start == end {
                        if end == input.len() {
                            return found;
                        }
                        end = (end + step).min(input.len());
                    }
                }
                Parsed::TooLarge(length) => {
                    found.push("too large".into());
                    start += length;
                }
                Parsed::Incomplete(_) if end == input.len() => return found,
                Parsed::Incomplete(_) => end = (end + step).min(input.len()),
                Parsed::Error(text) => {
                    found.push(text);
                    return found;
                }
            }
        }
    }

    #[test]
    fn requests_of_all_shapes() {
        let long =
            [b"*3\r\n$3\r\nSET\r\n$101\r\n".to_vec(), vec![b'x'; 101], b"\r\n$1\r\ny\r\n*1\r\n$1\r\nz\r\n".to_vec()]
                .concat();
        let cases: [(&[u8], &[&str]); 14] = [
            (b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n", &["GET|k", "PING"]),
            (b"*1\r\n$0\r\n\r\n", &[""]),
            (b"*0\r\n*-1\r\n*1\r\n$1\r\nx\r\n", &["x"]),
            (b"ping\r\n\r\n\n  set a \"b c\" 'd'\r\n", &["ping", "set|a|b c|d"]),
            (b"set \"a\r\n", &["Protocol error: unbalanced quotes in request"]),
            (b"*x\r\n", &["Protocol error: invalid multibulk length"]),
            (b"*1048577\r\n", &["Protocol error: invalid multibulk length"]),
            (b"*01\r\n", &["Protocol error: invalid multibulk length"]),
            (b"*1\r\n$x\r\n", &["Protocol error: invalid bulk length"]),
            (b"*1\r\n$-1\r\n", &["Protocol error: invalid bulk length"]),
            (b"*1\r\n$536870913\r\n", &["Protocol error: invalid bulk length"]),
            (b"*1\r\n:1\r\n", &["Protocol error: expected '$', got ':'"]),
            (b"*2\r\n$10\r\n0123456789\r\n$2\r\n\r\n\r\n", &["0123456789|\\r\\n"]),
            (&long, &["too large", "z"]),
        ];
        for (input, expected) in cases {
            for step in [1, 2, 3, 7, 1000] {
                assert_eq!(requests(input, BOUNDS, step), expected, "{} by {step}", input.escape_ascii());
            }
        }
    }

    #[test]
    fn long_lines_end() {
        for start in [&b"x"[..], b"*", b"*1\r\n$"] {
            let input = [start, &vec![b'1'; LINE_MAX + 2]].concat();
            let found = requests(&input, BOUNDS, 1000);
            assert!(found.len() == 1 && found[0].starts_with("Protocol error: too big"), "{found:?}");
        }
    }

    #[test]
    fn little_is_taken_before_authentication() {
        let locked = Bounds { locked: true, ..BOUNDS };
        assert_eq!(requests(b"*11\r\n", locked, 9), ["Protocol error: unauthenticated multibulk length"]);
        assert_eq!(requests(b"*1\r\n$16385\r\n", locked, 9), ["Protocol error: unauthenticated bulk length"]);
        assert_eq!(requests(b"*1\r\n$1\r\nx\r\n", locked, 9), ["x"]);
    }

    #[test]
    fn what_comes_in_pieces_is_not_looked_at_again() {
        let mut parser = Parser::default();
        let input = b"*2\r\n$3\r\nGET\r\n$20\r\n";
        assert_eq!(parser.parse(input, BOUNDS), Parsed::Incomplete(input.len() + 22));
        assert_eq!((parser.at, parser.left, parser.is_idle()), (input.len(), Some(1), false));
    }
}
