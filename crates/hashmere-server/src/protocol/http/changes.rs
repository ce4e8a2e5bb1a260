//! The changes of the store as server-sent events.

use super::head::Head;
use super::reply::{header, Answer, Refusal};
use crate::feed_stream::{Kind, Seat};
use crate::turn::Turn;
use hashmere_feed::{Feed, FeedError, FeedOptions, FeedStart, Token};
use std::time::Duration;

/// Bytes of events that a client has not taken.
const PENDING_MAX: usize = 64 << 10;
/// Seconds after which a comment is sent instead.
const HEARTBEAT: u64 = 15;

/// One client that follows the changes.
#[derive(Debug)]
pub struct Stream {
    feed: Feed,
    /// The second at which something was sent last.
    sent: u64,
    /// The feed was switched off.
    is_over: bool,
    seat: Seat,
}

impl Stream {
    /// Follows the changes, and writes the head of the reply.
    pub fn open(turn: &mut Turn<'_>, head: &Head<'_>, answer: &Answer<'_>) -> Result<Stream, Refusal> {
        let from = match head.fields.last_event_id {
            Some(id) if !id.is_empty() => id.to_vec(),
            _ => head.query_value("from")?.unwrap_or_else(|| b"now".to_vec()),
        };
        let start = match from.as_slice() {
            b"now" => FeedStart::Now,
            b"start" => FeedStart::Start,
            token => {
                let token = String::from_utf8_lossy(token).parse::<Token>();
                FeedStart::At(token.map_err(|error| Refusal::new(400, error.to_string()))?)
            }
        };
        let values = match head.query_value("values")?.as_deref() {
            None | Some(b"0" | b"false") => false,
            Some(b"" | b"1" | b"true") => true,
            Some(_) => return Err(Refusal::new(400, "`values` is 1, or 0")),
        };
        let options = FeedOptions::new().prefix(head.query_value("prefix")?.unwrap_or_default()).values(values);
        let seat =
            turn.server.streams.enter(Kind::Http, turn.worker).ok_or_else(|| {
                Refusal::new(503, format!("there are {} streams of changes already", Kind::Http.most()))
            })?;
        let feed = Feed::open(&turn.server.store, start, options).map_err(|error| match error {
            FeedError::Off => Refusal::new(404, "the store keeps no changes; create it with --feed SIZE"),
            error => Refusal::new(500, error.to_string()),
        })?;
        // It ends with the connection.
        let out = &mut turn.out.bytes;
        Answer { closes: true, ..*answer }.start(out, 200);
        header(out, "Content-Type", b"text/event-stream");
        out.extend_from_slice(b"\r\n: the changes of a Hashmere store\n\n");
        Ok(Stream { feed, sent: turn.now, is_over: false, seat })
    }

    /// Whether there is nothing more to come.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Moves events into the outbox; `false` if there are none.
    pub fn take(&mut self, turn: &mut Turn<'_>) -> bool {
        let out = &mut turn.out.bytes;
        let start = out.len();
        while out.len() - start < PENDING_MAX && !self.is_over {
            match self.feed.next_within(Duration::ZERO) {
                Ok(Some(event)) => {
                    if let Some(token) = event.token() {
                        out.extend_from_slice(b"id: ");
                        token.write(out);
                        out.push(b'\n');
                    }
                    // One line: in JSON a line ending is escaped.
                    out.extend_from_slice(b"data: ");
                    event.write_json(out);
                    out.extend_from_slice(b"\n\n");
                }
                Ok(None) => {
                    self.seat.sleep(self.feed.place());
                    break;
                }
                Err(FeedError::Off) => {
                    out.extend_from_slice(b"event: off\ndata: {}\n\n");
                    self.is_over = true;
                }
                // It tries again with the next turn: nothing is passed over.
                Err(error) => {
                    turn.server.log(1, || format!("a stream of changes: {error}"));
                    break;
                }
            }
        }
        if out.len() == start && turn.now.saturating_sub(self.sent) >= HEARTBEAT {
            out.extend_from_slice(b":\n\n");
        }
        if out.len() > start {
            self.sent = turn.now;
        }
        out.len() > start
    }
}
