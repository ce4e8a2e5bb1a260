//! Replies: status line, headers, and refusals as text.

use super::date::Date;
use crate::protocol::number;
use std::borrow::Cow;

/// With every reply: a browser takes it for what it says it is, and shows it to its own origin only.
const ALWAYS: &[u8] = b"X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n\
Content-Security-Policy: ";
/// What is no page does nothing in a browser.
const DATA: &[u8] = b"default-src 'none'; sandbox\r\nCache-Control: no-cache\r\n";
/// A page of the dashboard has its own files, and its own server to ask.
const PAGE: &[u8] = b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n\
X-Frame-Options: DENY\r\nCache-Control: no-cache\r\n";

/// Plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";
/// JSON.
pub const JSON: &str = "application/json";
/// Bytes.
pub const BYTES: &str = "application/octet-stream";

/// Why a request is not performed.
#[derive(Debug)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// For the reader.
    pub text: Cow<'static, str>,
    /// A header that belongs to it, with its line ending.
    pub header: Cow<'static, str>,
}

impl Refusal {
    /// One without a header.
    pub fn new(status: u16, text: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal { status, text: text.into(), header: Cow::Borrowed("") }
    }

    /// Whether what follows it cannot be told apart from its body.
    pub fn closes(&self) -> bool {
        matches!(self.status, 400 | 408 | 411 | 413 | 414 | 431 | 501 | 505)
    }
}

/// What the replies to one request have in common.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The time.
    pub date: &'a Date,
    /// The connection ends behind it.
    pub closes: bool,
    /// Only the head is sent.
    pub is_head: bool,
}

impl Answer<'_> {
    /// Status line and the headers of every reply that is no page.
    #[inline]
    pub fn start(&self, out: &mut Vec<u8>, status: u16) {
        self.start_with(out, status, DATA);
    }

    /// The same for a file of the dashboard.
    pub fn start_page(&self, out: &mut Vec<u8>) {
        self.start_with(out, 200, PAGE);
    }

    #[inline]
    fn start_with(&self, out: &mut Vec<u8>, status: u16, policy: &[u8]) {
        out.extend_from_slice(line(status).as_bytes());
        out.extend_from_slice(self.date.line());
        if self.closes {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(ALWAYS);
        out.extend_from_slice(policy);
    }

    /// The last headers.
    #[inline]
    pub fn finish(&self, out: &mut Vec<u8>, kind: &str, length: u64) {
        header(out, "Content-Type", kind.as_bytes());
        out.extend_from_slice(b"Content-Length: ");
        number::write(length, out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// A whole reply.
    pub fn whole(&self, out: &mut Vec<u8>, status: u16, kind: &str, body: &[u8]) {
        self.start(out, status);
        self.finish(out, kind, body.len() as u64);
        self.body(out, body);
    }

    /// The body, if it is wanted.
    pub fn body(&self, out: &mut Vec<u8>, body: &[u8]) {
        if !self.is_head {
            out.extend_from_slice(body);
        }
    }

    /// A refusal.
    pub fn refuse(&self, out: &mut Vec<u8>, refusal: &Refusal) {
        self.start(out, refusal.status);
        out.extend_from_slice(refusal.header.as_bytes());
        let text = format!("{}\n", refusal.text);
        self.finish(out, TEXT, text.len() as u64);
        self.body(out, text.as_bytes());
    }
}

/// Appends a header.
#[inline]
pub fn header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends the entity tag of a version.
#[inline]
pub fn entity_tag(out: &mut Vec<u8>, version: u64) {
    out.extend_from_slice(b"ETag: \"");
    number::write(version, out);
    out.extend_from_slice(b"\"\r\n");
}

macro_rules! lines {
    ($($status:literal $text:literal,)+) => {
        /// The status line.
        #[inline]
        fn line(status: u16) -> &'static str {
            match status {
                $($status => concat!("HTTP/1.1 ", $status, " ", $text, "\r\n"),)+
                _ => "HTTP/1.1 500 Internal Server Error\r\n",
            }
        }
    };
}

lines! {
    200 "OK",
    201 "Created",
    204 "No Content",
    206 "Partial Content",
    304 "Not Modified",
    400 "Bad Request",
    401 "Unauthorized",
    403 "Forbidden",
    404 "Not Found",
    405 "Method Not Allowed",
    408 "Request Timeout",
    409 "Conflict",
    411 "Length Required",
    412 "Precondition Failed",
    413 "Content Too Large",
    414 "URI Too Long",
    415 "Unsupported Media Type",
    416 "Range Not Satisfiable",
    417 "Expectation Failed",
    421 "Misdirected Request",
    431 "Request Header Fields Too Large",
    501 "Not Implemented",
    503 "Service Unavailable",
    505 "HTTP Version Not Supported",
    507 "Insufficient Storage",
}
