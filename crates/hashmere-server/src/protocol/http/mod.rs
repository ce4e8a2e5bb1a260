//! HTTP on one connection. `docs/internals/http.md` has the grammar, the limits and what is refused.

mod bulk;
mod changes;
mod chunked;
mod conditions;
mod date;
mod figures;
mod guard;
pub mod head;
mod json;
mod listing;
mod pages;
mod record;
mod reply;
mod route;
mod status;

use crate::outbox::Outbox;
use crate::peers::State;
use crate::protocol::{Next, OUTPUT_MAX};
use crate::server::now_ms;
use crate::turn::Turn;
use changes::Stream;
use chunked::{Chunks, Read};
use date::Date;
use head::{Body, Head, HEADERS_MAX};
use reply::{Answer, Refusal};
use route::Route;
use std::borrow::Cow;

use crate::protocol::number::digits as number_of;

/// Seconds for a head, from its first byte.
const HEAD_SECONDS: u64 = 10;
/// Bytes of a body for which a client has one second more.
const BODY_RATE: u64 = 64 << 10;
/// Seconds without a request after which a connection is closed.
const IDLE_SECONDS: u64 = 75;
/// A refused body is skipped up to this length; with a longer one the connection is closed.
const SKIP_MAX: u64 = 1 << 20;

/// What a connection of an HTTP client keeps.
#[derive(Debug)]
pub struct Http {
    date: Date,
    /// The second at which it had something to do last.
    active: u64,
    request: Progress,
    /// Bytes of a refused body that are still to be skipped.
    skip: u64,
    /// It receives the changes of the store.
    stream: Option<Box<Stream>>,
}

/// How far a request has come that is not whole.
#[derive(Debug, Default)]
struct Progress {
    /// The second at which it began.
    began: Option<u64>,
    /// Its head was looked at up to here.
    scanned: usize,
    /// `100 Continue` was sent.
    continued: bool,
    chunks: Chunks,
    /// Bytes of its body, as far as is known.
    body: u64,
}

/// The result of a request.
enum Step {
    /// It took this many bytes.
    Done(usize),
    /// It is not whole; its whole length, as far as is known.
    Wait(usize),
    /// The connection ends.
    Close,
}

/// The end of a request's head, and of its body.
enum Whole<'a> {
    /// The body, and the length of all.
    Yes(Cow<'a, [u8]>, usize),
    /// The length of all, as far as is known.
    No(usize),
}

impl Http {
    /// A new conversation.
    pub fn new() -> Http {
        Http { date: Date::at(0), active: now_ms() / 1000, request: Progress::default(), skip: 0, stream: None }
    }

    /// Whether it receives the changes of the store.
    pub fn is_subscribed(&self) -> bool {
        self.stream.is_some()
    }

    /// Moves changes into the outbox; `false` if there are none.
    pub fn take_changes(&mut self, turn: &mut Turn<'_>) -> bool {
        self.stream.as_mut().is_some_and(|stream| stream.take(turn))
    }

    /// Whether what it receives has ended.
    pub fn is_over(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_over())
    }

    /// What `stats conns` shows of it, given what it needs next.
    pub fn state(&self, next: Next) -> State {
        match next {
            _ if self.is_subscribed() => State::Watch,
            _ if self.skip > 0 => State::Swallow,
            Next::Input(wanted) if wanted > 0 => State::Value,
            Next::Output => State::Write,
            _ => State::Read,
        }
    }

    /// Whether no request is in progress.
    pub fn is_idle(&self) -> bool {
        self.skip == 0 && self.request.began.is_none()
    }

    /// Whether the client has taken too long at this second: with a request, or without one.
    pub fn is_late(&self, now: u64) -> bool {
        match self.request.began {
            _ if self.is_subscribed() => false,
            Some(began) => now.saturating_sub(began) > HEAD_SECONDS + self.request.body / BODY_RATE,
            None => now.saturating_sub(self.active) > IDLE_SECONDS,
        }
    }

    /// Says that a request took too long, if one is in progress; the connection is closed then.
    pub fn refuse_late(&self, out: &mut Outbox) {
        if self.request.began.is_some() {
            self.refuse_and_close(out, &Refusal::new(408, "the request took too long"));
        }
    }

    /// Says that a request is larger than what connections may hold together; the connection is closed then.
    pub fn refuse_large(&self, out: &mut Outbox) {
        self.refuse_and_close(out, &Refusal::new(503, "too many unfinished requests at this moment"));
    }

    fn refuse_and_close(&self, out: &mut Outbox, refusal: &Refusal) {
        Answer { date: &self.date, closes: true, is_head: false }.refuse(&mut out.bytes, refusal);
    }

    /// Consumes input; see [`Session::feed`](crate::Session::feed).
    pub fn feed(&mut self, turn: &mut Turn<'_>, input: &[u8]) -> (usize, Next) {
        if self.is_subscribed() {
            return (input.len(), Next::Input(0));
        }
        self.date.set(turn.now);
        self.active = turn.now;
        let mut at = 0;
        loop {
            let skipped = self.skip.min((input.len() - at) as u64);
            self.skip -= skipped;
            at += skipped as usize;
            if skipped > 0 && self.skip == 0 {
                self.request = Progress::default();
            }
            let rest = &input[at..];
            if rest.is_empty() {
                return (at, Next::Input(0));
            }
            if turn.out.len() >= OUTPUT_MAX {
                return (at, Next::Output);
            }
            match self.perform(turn, rest) {
                Step::Done(consumed) => {
                    self.request = Progress::default();
                    at += consumed;
                    if self.skip > 0 {
                        self.request = Progress { began: Some(turn.now), body: self.skip, ..Progress::default() };
                    }
                    if self.is_subscribed() {
                        return (input.len(), Next::Input(0));
                    }
                }
                Step::Wait(wanted) => {
                    self.request.began.get_or_insert(turn.now);
                    return (at, Next::Input(wanted));
                }
                Step::Close => return (input.len(), Next::Close),
            }
        }
    }

    fn perform(&mut self, turn: &mut Turn<'_>, input: &[u8]) -> Step {
        // Some clients send an empty line behind a body.
        if input.starts_with(b"\r\n") {
            return Step::Done(2);
        }
        let end = match head::end_of_head(input, &mut self.request.scanned) {
            Ok(Some(end)) => end,
            Ok(None) => return Step::Wait(0),
            Err(refusal) => return self.end(turn, &refusal),
        };
        turn.counters.http_requests.add(1);
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        match Head::parse(&input[..end], &mut headers) {
            Ok(head) => self.perform_head(turn, &head, input, end),
            Err(refusal) => self.end(turn, &refusal),
        }
    }

    fn end(&self, turn: &mut Turn<'_>, refusal: &Refusal) -> Step {
        turn.counters.http_refused.add(1);
        self.refuse_and_close(turn.out, refusal);
        Step::Close
    }

    fn perform_head(&mut self, turn: &mut Turn<'_>, head: &Head<'_>, input: &[u8], end: usize) -> Step {
        let is_head = head.method == head::Method::Head;
        let route = match route::admit(turn, head) {
            Ok(route) => route,
            Err(refusal) => return self.refuse_early(turn, head, &refusal, input, end),
        };
        let (body, whole) = match self.body(turn, head, input, end) {
            Ok(Whole::Yes(body, whole)) => (body, whole),
            Ok(Whole::No(wanted)) => {
                if head.expects && !self.request.continued && input.len() == end {
                    self.request.continued = true;
                    turn.out.text("HTTP/1.1 100 Continue\r\n\r\n");
                }
                return Step::Wait(wanted);
            }
            Err(refusal) => return self.end(turn, &refusal),
        };
        let answer = Answer { date: &self.date, closes: !head.keeps_alive, is_head };
        let done = match route {
            Route::Changes if !is_head => {
                Stream::open(turn, head, &answer).map(|stream| self.stream = Some(Box::new(stream)))
            }
            route => route.run(turn, head, &body, &answer),
        };
        match done {
            Ok(()) if self.is_subscribed() || head.keeps_alive => Step::Done(whole),
            Ok(()) => Step::Close,
            Err(refusal) => self.refuse(turn, head, &refusal, true, whole),
        }
    }

    /// Refuses a request before its body was read. The body is skipped, unless the client may not send it, or it is not
    /// known where it ends.
    fn refuse_early(
        &mut self,
        turn: &mut Turn<'_>,
        head: &Head<'_>,
        refusal: &Refusal,
        input: &[u8],
        end: usize,
    ) -> Step {
        let length = match head.body {
            Body::None => Some(0),
            Body::Length(length) if length <= SKIP_MAX && !head.expects => Some(length),
            Body::Length(_) | Body::Chunked => None,
        };
        let here = length.unwrap_or(0).min((input.len() - end) as u64);
        let step = self.refuse(turn, head, refusal, length.is_some(), end + here as usize);
        if matches!(step, Step::Done(_)) {
            self.skip = length.unwrap_or(0) - here;
        }
        step
    }

    /// Refuses a request; `consumed` bytes are dealt with. The connection ends if it is not to go on.
    fn refuse(&self, turn: &mut Turn<'_>, head: &Head<'_>, refusal: &Refusal, goes_on: bool, consumed: usize) -> Step {
        turn.counters.http_refused.add(1);
        let closes = !head.keeps_alive || refusal.closes() || !goes_on;
        let answer = Answer { date: &self.date, closes, is_head: head.method == head::Method::Head };
        answer.refuse(&mut turn.out.bytes, refusal);
        if closes {
            Step::Close
        } else {
            Step::Done(consumed)
        }
    }

    /// The body, if it is whole.
    fn body<'a>(
        &mut self,
        turn: &Turn<'_>,
        head: &Head<'_>,
        input: &'a [u8],
        end: usize,
    ) -> Result<Whole<'a>, Refusal> {
        let most = turn.server.config.item_max;
        let behind = &input[end..];
        match head.body {
            Body::None => Ok(Whole::Yes(Cow::Borrowed(&[]), end)),
            Body::Length(length) if length > most => {
                Err(Refusal::new(413, format!("the body is longer than the {most} bytes of an item (-I)")))
            }
            Body::Length(length) => {
                self.request.body = length;
                match behind.get(..length as usize) {
                    Some(body) => Ok(Whole::Yes(Cow::Borrowed(body), end + length as usize)),
                    None => Ok(Whole::No(end + length as usize)),
                }
            }
            Body::Chunked => match self.request.chunks.read(behind, most)? {
                Read::End(len) => Ok(Whole::Yes(Cow::Owned(self.request.chunks.join(behind)?), end + len)),
                Read::More(wanted) => {
                    self.request.body = behind.len().max(wanted) as u64;
                    Ok(Whole::No(if wanted == 0 { 0 } else { end + wanted }))
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_are_silent_or_slow_are_late() {
        let mut http = Http::new();
        // It may have said nothing at all.
        let start = http.active;
        assert!(!http.is_late(start + IDLE_SECONDS) && http.is_late(start + IDLE_SECONDS + 1));
        http.request.began = Some(start);
        assert!(!http.is_late(start + HEAD_SECONDS) && http.is_late(start + HEAD_SECONDS + 1));
        http.request.body = 5 * BODY_RATE;
        assert!(!http.is_late(start + HEAD_SECONDS + 5) && http.is_late(start + HEAD_SECONDS + 6));
        // The clock may be set back.
        assert!(!http.is_late(start - 1000));
    }
}
