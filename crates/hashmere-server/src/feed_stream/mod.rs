//! `feed`: a connection that gets the store's changes, as fast as its socket takes them.
//!
//! The feed is read when the lines before were sent, so a stream holds no more than [`LINES`] and one event, however
//! slow its client is. `docs/internals/protocol.md` describes the lines.

pub mod command;
mod sleepers;
mod source;

use crate::outbox::Outbox;
use crate::server::now_ms;
use command::Wanted;
pub use sleepers::{Kind, Seat, Streams};
use source::Source;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of lines that are written before they are sent.
const LINES: usize = 64 << 10;
/// At least this often the client hears that the stream lives.
const BEAT: Duration = Duration::from_secs(1);
/// Seconds after which a stream is closed whose client has said nothing.
pub const SILENCE: u64 = 60;

/// One connection's stream.
#[derive(Debug)]
pub struct FeedStream {
    source: Source,
    seat: Seat,
    /// The number that the client said last, and the digits of the one that it is about to say.
    said: u64,
    number: u64,
    /// When the last beat was written; `None`: one is due.
    beat_at: Option<Instant>,
    /// The client has been told that it is at the end.
    is_at_end: bool,
    /// The feed is over.
    is_over: bool,
}

/// Why there is no stream.
#[derive(Debug)]
pub enum NoStream {
    /// There are too many already.
    TooMany,
    /// The store says no, and this is why.
    Refused(String),
}

impl FeedStream {
    /// A stream to a connection of this event loop.
    pub fn open(streams: &Arc<Streams>, worker: usize, wanted: &Wanted) -> Result<FeedStream, NoStream> {
        let source = Source::open(streams.store(), wanted).map_err(NoStream::Refused)?;
        let seat = streams.enter(Kind::Feed, worker).ok_or(NoStream::TooMany)?;
        Ok(FeedStream { source, seat, said: 0, number: 0, beat_at: None, is_at_end: false, is_over: false })
    }

    /// The client said this: lines with a number, each of which is answered by a beat. In pieces, as it comes.
    pub fn hear(&mut self, input: &[u8]) {
        for byte in input {
            match byte {
                b'0'..=b'9' => self.number = self.number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')),
                b'\n' => {
                    self.said = std::mem::take(&mut self.number);
                    self.beat_at = None;
                }
                _ => {}
            }
        }
    }

    /// Writes what there is, some of it; `false`: nothing now. Its event loop is woken when there is more.
    pub fn take(&mut self, out: &mut Outbox) -> bool {
        if self.is_over || self.seat.streams().is_stopping() {
            return false;
        }
        let before = out.len();
        let is_at_end = loop {
            if out.len() >= before + LINES {
                break false;
            }
            match self.source.write_next(&mut out.bytes) {
                Ok(true) => {
                    out.bytes.extend_from_slice(b"\r\n");
                    self.is_at_end = false;
                    self.seat.streams().count_event();
                }
                Ok(false) => break true,
                Err(error) => {
                    self.is_over = true;
                    out.line(&format!("SERVER_ERROR {error}"));
                    return true;
                }
            }
        };
        if is_at_end && !self.is_at_end || self.beat_at.is_none_or(|at| at.elapsed() >= BEAT) {
            self.is_at_end = is_at_end;
            self.beat_at = Some(Instant::now());
            let (token, end) = self.source.place();
            out.line(&format!("BEAT {token} {end} {} {}", now_ms(), self.said));
        }
        if is_at_end {
            // One that is held looks again with its next beat.
            self.source.wakes_at().into_iter().for_each(|place| self.seat.sleep(place));
        }
        out.len() > before
    }
}
