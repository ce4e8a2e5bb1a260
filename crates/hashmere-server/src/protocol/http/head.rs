//! Request line and headers, and how long the body is. What can be read in two ways is refused: a proxy in front might
//! read it in the other.

use super::reply::Refusal;
use httparse::{Header, Status};
use memchr::memchr_iter;

/// Longest request line with headers.
pub const HEAD_MAX: usize = 32 << 10;
/// Most headers.
pub const HEADERS_MAX: usize = 64;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Read.
    Get,
    /// Read all but the body.
    Head,
    /// Store.
    Put,
    /// Create, or perform.
    Post,
    /// Delete.
    Delete,
    /// One that no resource has.
    Options,
}

impl Method {
    /// Whether it only reads.
    pub fn is_read(self) -> bool {
        matches!(self, Method::Get | Method::Head)
    }
}

/// The body behind a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// None is declared.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// A request without its body.
#[derive(Debug)]
pub struct Head<'a> {
    /// What is to be done.
    pub method: Method,
    /// The target up to the question mark, as it was sent.
    pub path: &'a [u8],
    /// What is behind the question mark.
    pub query: &'a [u8],
    /// Whether the connection may go on behind it.
    pub keeps_alive: bool,
    /// HTTP/1.0.
    pub is_old: bool,
    /// The body.
    pub body: Body,
    /// The client waits for `100 Continue`.
    pub expects: bool,
    /// The headers that this server reads.
    pub fields: Fields<'a>,
}

macro_rules! fields {
    ($($name:ident: $text:literal,)+) => {
        /// The headers that this server reads; each may be there once.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Fields<'a> {
            $(#[doc = concat!("`", $text, "`.")] pub $name: Option<&'a [u8]>,)+
        }

        impl<'a> Fields<'a> {
            fn take(&mut self, name: &str, value: &'a [u8]) -> Result<(), Refusal> {
                let place = match name.len() {
                    $(len if len == $text.len() && name.eq_ignore_ascii_case($text) => &mut self.$name,)+
                    _ => return Ok(()),
                };
                match place.replace(value.trim_ascii()) {
                    None => Ok(()),
                    Some(_) => Err(Refusal::new(400, format!("the header {name} is there twice"))),
                }
            }
        }
    };
}

fields! {
    host: "host",
    connection: "connection",
    content_length: "content-length",
    transfer_encoding: "transfer-encoding",
    expect: "expect",
    authorization: "authorization",
    origin: "origin",
    fetch_site: "sec-fetch-site",
    content_type: "content-type",
    accept: "accept",
    range: "range",
    if_match: "if-match",
    if_none_match: "if-none-match",
    if_range: "if-range",
    last_event_id: "last-event-id",
    ttl: "x-hashmere-ttl",
    flags: "x-hashmere-flags",
}

/// Where the head ends; `None`: not within this input. `scanned` is how far it was looked at before.
pub fn end_of_head(input: &[u8], scanned: &mut usize) -> Result<Option<usize>, Refusal> {
    let seen = &input[..input.len().min(HEAD_MAX)];
    for at in memchr_iter(b'\n', &seen[*scanned..]).map(|at| at + *scanned) {
        if at == 0 || seen[at - 1] != b'\r' {
            return Err(Refusal::new(400, "a line ends with CR LF"));
        }
        if seen[..=at].ends_with(b"\r\n\r\n") {
            return Ok(Some(at + 1));
        }
    }
    *scanned = seen.len();
    if seen.len() < HEAD_MAX {
        return Ok(None);
    }
    let is_line = memchr::memchr(b'\n', seen).is_none();
    Err(if is_line {
        Refusal::new(414, "the target is too long")
    } else {
        Refusal::new(431, "the headers are too long")
    })
}

impl<'a> Head<'a> {
    /// Reads a head that is whole.
    pub fn parse<'h>(input: &'a [u8], headers: &'h mut [Header<'a>; HEADERS_MAX]) -> Result<Head<'a>, Refusal> {
        let mut request = httparse::Request::new(headers);
        match request.parse(input) {
            Ok(Status::Complete(len)) if len == input.len() => {}
            Ok(_) => return Err(Refusal::new(400, "this is not a request of HTTP")),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Refusal::new(431, format!("there are more than {HEADERS_MAX} headers")))
            }
            Err(httparse::Error::Version) => return Err(Refusal::new(505, "HTTP/1.1 and 1.0 are spoken here")),
            Err(error) => return Err(Refusal::new(400, format!("this is not a request of HTTP: {error}"))),
        }
        let method = match request.method.unwrap_or_default() {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "PUT" => Method::Put,
            "POST" => Method::Post,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            _ => return Err(Refusal::new(501, "no resource has this method")),
        };
        let mut fields = Fields::default();
        for header in request.headers.iter() {
            fields.take(header.name, header.value)?;
        }
        let is_old = request.version == Some(0);
        let target = request.path.unwrap_or_default().as_bytes();
        if target.first() != Some(&b'/') {
            return Err(Refusal::new(400, "the target is a path that begins with a slash"));
        }
        let (path, query) = match memchr::memchr(b'?', target) {
            Some(at) => (&target[..at], &target[at + 1..]),
            None => (target, &b""[..]),
        };
        let closes = fields.connection.is_some_and(|value| has_token(value, b"close"));
        let expects = match fields.expect {
            None => false,
            Some(value) if value.eq_ignore_ascii_case(b"100-continue") => !is_old,
            Some(_) => return Err(Refusal::new(417, "only 100-continue can be expected")),
        };
        let body = framing(&fields, is_old)?;
        Ok(Head { method, path, query, keeps_alive: !is_old && !closes, is_old, body, expects, fields })
    }

    /// The value of this name in the query, decoded.
    pub fn query_value(&self, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let parts = self.query.split(|byte| *byte == b'&');
        for part in parts {
            let (left, right) = match memchr::memchr(b'=', part) {
                Some(at) => (&part[..at], &part[at + 1..]),
                None => (part, &b""[..]),
            };
            if left == name.as_bytes() {
                return Ok(Some(decode(right)?));
            }
        }
        Ok(None)
    }

    /// The same as a number.
    pub fn query_number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.query_value(name)? else { return Ok(None) };
        match super::number_of(&value) {
            Some(number) => Ok(Some(number)),
            None => Err(Refusal::new(400, format!("`{name}` is a number"))),
        }
    }
}

fn framing(fields: &Fields<'_>, is_old: bool) -> Result<Body, Refusal> {
    match (fields.content_length, fields.transfer_encoding) {
        (None, None) => Ok(Body::None),
        (Some(_), Some(_)) => Err(Refusal::new(400, "a body has a length or chunks, not both")),
        (Some(text), None) => match super::number_of(text) {
            Some(length) => Ok(Body::Length(length)),
            None => Err(Refusal::new(400, "Content-Length is a number")),
        },
        (None, Some(_)) if is_old => Err(Refusal::new(400, "HTTP/1.0 has no chunks")),
        (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Body::Chunked),
        (None, Some(_)) => Err(Refusal::new(501, "the only transfer coding is chunked")),
    }
}

/// Whether a list of tokens has this one.
fn has_token(list: &[u8], token: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

/// Bytes without their percent signs.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|digit| char::from(*digit).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => out.push((high << 4 | low) as u8),
            _ => return Err(Refusal::new(400, "a percent sign is followed by two hexadecimal digits")),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(headers: &str) -> Result<Body, u16> {
        let text = format!("PUT / HTTP/1.1\r\n{headers}\r\n");
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        Head::parse(text.as_bytes(), &mut headers).map(|head| head.body).map_err(|refusal| refusal.status)
    }

    #[test]
    fn a_body_has_one_length() {
        assert_eq!(body(""), Ok(Body::None));
        assert_eq!(body("content-length: 12\r\n"), Ok(Body::Length(12)));
        assert_eq!(body("Transfer-Encoding: Chunked\r\n"), Ok(Body::Chunked));
        for bad in [
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "Content-Length: 1, 1\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: -1\r\n",
            "Content-Length: 0x1\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length:\r\n",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length : 1\r\n",
            "X: 1\r\n Content-Length: 1\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ] {
            assert_eq!(body(bad), Err(400), "{bad}");
        }
        for bad in ["gzip", "gzip, chunked", "chunked, chunked", "identity", "xchunked", "\"chunked\""] {
            assert_eq!(body(&format!("Transfer-Encoding: {bad}\r\n")), Err(501), "{bad}");
        }
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(decode(b"a%20b%00%ff+%2F").unwrap(), b"a b\0\xff+/");
        assert!(["%", "%1", "%zz", "%+1", "a%2"].iter().all(|bad| decode(bad.as_bytes()).is_err()));
    }

    #[test]
    fn the_end_of_a_head_is_found_however_it_is_cut() {
        let text = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nrest";
        for cut in 1..text.len() {
            let mut scanned = 0;
            let first = end_of_head(&text[..cut], &mut scanned).unwrap();
            let end = first.or_else(|| end_of_head(text, &mut scanned).unwrap());
            assert_eq!(end, Some(text.len() - 4), "{cut}");
        }
        assert_eq!(end_of_head(b"GET /\n", &mut 0).map_err(|refusal| refusal.status), Err(400));
        assert_eq!(end_of_head(&[b'a'; HEAD_MAX], &mut 0).map_err(|refusal| refusal.status), Err(414));
    }
}
