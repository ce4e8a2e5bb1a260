//! One connection: its incomplete request, and its unsent replies.
//!
//! Input is read into a buffer of the event loop and consumed there; only an incomplete request is kept, and an idle
//! connection keeps nothing. Output is sent at once; what the socket does not take is kept, and nothing more is read
//! before it was sent. So a connection holds at most
//!
//! - one unfinished request: a line of at most [`LINE_MAX`](crate::protocol::LINE_MAX), or a value within the item
//!   limit; of these all connections together hold no more than `Config::input_max`;
//! - [`OUTPUT_MAX`](crate::protocol::OUTPUT_MAX) of replies and the one value that went beyond it.

use super::send::{send, Sent};
use super::stream::Stream;
use crate::outbox::Outbox;
use crate::peers::{Peer, State};
use crate::protocol::Next;
use crate::server::Server;
use crate::session::Session;
use crate::stats::counters::Counters;
use crate::turn::Turn;
use mio::{Registry, Token};
use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Bytes that a connection may send before others get their turn.
const TURN: usize = 256 << 10;
/// Times that a connection may fill its output before others get their turn.
const ROUNDS: u32 = 8;
/// Input that every connection may hold without being charged for it.
const FREE_INPUT: usize = 16 << 10;
/// Seconds without a byte taken after which a client of a protocol that says so is given up.
const STUCK_SECONDS: u64 = 60;

/// What the event loop does with a connection next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Wait for its socket.
    Wait,
    /// Give it another turn after the others: it has more to do.
    Again,
    /// Close it.
    Close,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    /// The socket.
    pub stream: Stream,
    /// What `stats conns` shows of it.
    pub peer: Arc<Peer>,
    /// Whether it is in the queue of the event loop.
    pub queued: bool,
    session: Session,
    /// An incomplete request.
    input: Vec<u8>,
    /// The whole length of that request, as far as it is known.
    wanted: usize,
    /// Unsent replies.
    output: Outbox,
    /// The socket may have more.
    readable: bool,
    /// The session has more to do with the input that it has.
    busy: bool,
    /// The peer has closed its side: an end of input is behind the bytes to read.
    end_ahead: bool,
    /// The end of input was read.
    ended: bool,
    /// To be closed when the output is gone.
    closing: bool,
    /// The socket failed.
    broken: bool,
    /// Its socket is registered for write readiness.
    polls_write: bool,
    /// Bytes charged to the server's account of input.
    charged: usize,
    /// The second at which its client took replies last.
    taken: u64,
}

impl Connection {
    /// A new connection.
    pub fn new(stream: Stream, peer: Arc<Peer>, session: Session) -> Connection {
        Connection {
            stream,
            peer,
            queued: false,
            session,
            input: Vec::new(),
            wanted: 0,
            output: Outbox::default(),
            readable: false,
            busy: false,
            end_ahead: false,
            ended: false,
            closing: false,
            broken: false,
            polls_write: false,
            charged: 0,
            taken: 0,
        }
    }

    /// Registers for write readiness while there are unsent replies, and not otherwise.
    pub fn update_interest(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        // The ring tells when it has sent.
        let unsent = (!self.output.is_empty() || self.stream.is_holding()) && !self.stream.is_sending();
        if unsent != self.polls_write {
            self.stream.set_write_interest(registry, token, unsent)?;
            self.polls_write = unsent;
        }
        Ok(())
    }

    /// Its socket has something to read.
    pub fn note_readable(&mut self) {
        self.readable = true;
    }

    /// The end of its input has arrived: no further event follows.
    pub fn note_end_ahead(&mut self) {
        self.end_ahead = true;
    }

    /// Its socket failed.
    pub fn note_broken(&mut self) {
        self.broken = true;
    }

    /// Whether there is something for a turn once a reply was sent.
    pub fn wants_turn(&self) -> bool {
        self.broken || self.busy || self.closing || self.readable || self.ended || !self.output.is_empty()
    }

    /// Whether it is idle: no request is in progress and no reply unsent.
    pub fn is_idle(&self) -> bool {
        !self.stream.is_sending()
            && !self.stream.has_unread()
            && self.output.is_empty()
            && self.input.is_empty()
            && self.session.is_idle()
            && !self.stream.is_holding()
    }

    /// Whether it receives what was not asked for by its last request: the lines of `watch`.
    pub fn is_subscribed(&self) -> bool {
        self.session.is_subscribed()
    }

    /// Whether its client has taken longer than its protocol allows.
    pub fn is_late(&self, now: u64) -> bool {
        if self.output.is_empty() && !self.stream.is_sending() {
            return self.session.is_late(now, self.peer.active.load(Ordering::Relaxed));
        }
        self.session.closes_stuck() && now.saturating_sub(self.taken) > STUCK_SECONDS
    }

    /// Tells its client, if there is room for that, before it is closed.
    pub fn refuse_late(&mut self, out: &mut Outbox, counters: &Counters) {
        if self.output.is_empty() {
            self.session.refuse_late(out);
            // It is closed in any case.
            let _ = send(&mut self.stream, out, counters);
        }
        *out = Outbox::default();
    }

    /// Whether its socket failed.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Reads, performs and replies as far as its socket and its share of the time allow.
    /// Input is read into `buffer`; `input` was read ahead.
    pub fn turn(&mut self, turn: &mut Turn<'_>, buffer: &mut [u8], input: &[u8]) -> Fate {
        if self.broken {
            return Fate::Close;
        }
        let fate = self.begin(turn, input).and_then(|()| self.advance(turn, buffer));
        fate.unwrap_or_else(|_| {
            self.broken = true;
            Fate::Close
        })
    }

    /// Whether what comes now can be passed to its turn as it is.
    pub fn takes_ahead(&self) -> bool {
        let is_waiting = !self.readable && self.output.is_empty() && self.input.is_empty();
        let has_turn = self.queued || self.busy || self.closing || self.broken;
        is_waiting && !has_turn && !self.stream.is_sending() && !self.stream.has_unread()
    }

    /// Reads into `buffer` before its turn, if it is idle and its socket may have input. Returns how many bytes are to
    /// be passed to its turn.
    pub fn read_ahead(&mut self, buffer: &mut [u8], counters: &Counters) -> usize {
        let waits = self.readable && self.output.is_empty() && self.input.is_empty();
        if !waits
            || self.queued
            || self.busy
            || self.closing
            || self.stream.is_sending()
            || !self.stream.short_reads_are_final()
        {
            return 0;
        }
        match self.stream.read(buffer) {
            Ok(bytes) => {
                self.note_read(bytes, buffer.len(), counters);
                return bytes;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.broken = true,
        }
        0
    }

    fn begin(&mut self, turn: &mut Turn<'_>, input: &[u8]) -> io::Result<()> {
        if input.is_empty() {
            return Ok(());
        }
        self.consume(turn, input);
        self.send_new(turn)
    }

    fn advance(&mut self, turn: &mut Turn<'_>, buffer: &mut [u8]) -> io::Result<Fate> {
        let (mut received, mut rounds) = (0, 0);
        loop {
            if self.session.is_overrun() {
                return Ok(Fate::Close);
            }
            if self.stream.is_sending() || self.send_kept(turn)? == Sent::Part {
                return Ok(Fate::Wait);
            }
            if self.closing {
                return Ok(Fate::Close);
            }
            if received >= TURN || rounds >= ROUNDS {
                turn.counters.yields.add(1);
                return Ok(Fate::Again);
            }
            rounds += 1;
            if self.busy {
                self.busy = false;
                let input = std::mem::take(&mut self.input);
                self.consume(turn, &input);
            } else if self.session.take_pushed(turn) {
                // They are sent below.
                self.closing = self.session.is_over();
            } else if !self.readable {
                return Ok(if self.ended { Fate::Close } else { Fate::Wait });
            } else {
                match self.receive(turn, buffer) {
                    Ok(bytes) => received += bytes,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            self.send_new(turn)?;
        }
    }

    /// Reads once, and performs the requests.
    fn receive(&mut self, turn: &mut Turn<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        if self.input.is_empty() {
            let read = self.stream.read(buffer);
            if let Ok(bytes) = read {
                self.note_read(bytes, buffer.len(), turn.counters);
                self.consume(turn, &buffer[..bytes]);
            }
            return read;
        }
        // The rest of a request is read behind its beginning: a long value is copied once, from the socket.
        let have = self.input.len();
        let room = self.wanted.saturating_sub(have).clamp(4096, TURN);
        if !self.charge(turn, have + room) {
            self.wanted = 0;
            self.input = Vec::new();
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.input.resize(have + room, 0);
        let read = self.stream.read(&mut self.input[have..]);
        self.input.truncate(have + *read.as_ref().unwrap_or(&0));
        if let Ok(bytes) = read {
            self.note_read(bytes, room, turn.counters);
            if self.input.len() >= self.wanted {
                let input = std::mem::take(&mut self.input);
                self.consume(turn, &input);
            }
        }
        read
    }

    /// This many bytes were read, of a number that was asked for.
    pub fn note_read(&mut self, bytes: usize, asked: usize, counters: &Counters) {
        counters.bytes_read.add(bytes as u64);
        if bytes == 0 {
            self.ended = true;
            self.readable = false;
        } else if bytes < asked && !self.end_ahead && self.stream.short_reads_are_final() {
            // Later input makes a new event.
            self.readable = false;
        }
    }

    /// Passes input to the session, and keeps an incomplete request.
    fn consume(&mut self, turn: &mut Turn<'_>, input: &[u8]) {
        self.peer.active.store(turn.now, Ordering::Relaxed);
        self.peer.set_state(State::Parse);
        let (consumed, next) = self.session.feed(turn, input);
        self.peer.set_state(self.session.state(next));
        self.wanted = 0;
        match next {
            Next::Input(wanted) => self.wanted = wanted,
            Next::Output => self.busy = true,
            Next::Close => {
                self.closing = true;
                self.release(turn.server);
                return;
            }
        }
        let rest = &input[consumed..];
        if rest.is_empty() {
            self.release(turn.server);
            return;
        }
        if !self.charge(turn, self.wanted.max(rest.len())) {
            // Instead of holding more than allowed; the client learns why.
            self.session.refuse_large(turn.out);
            self.closing = true;
            return;
        }
        self.input = Vec::with_capacity(self.wanted.max(rest.len()));
        self.input.extend_from_slice(rest);
    }

    /// Charges this connection for holding this many bytes of input; `false` if the limit of the server does not allow
    /// it.
    fn charge(&mut self, turn: &Turn<'_>, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(FREE_INPUT);
        if wanted <= self.charged {
            return true;
        }
        let more = wanted - self.charged;
        let before = turn.server.input.fetch_add(more, Ordering::Relaxed);
        if before + more > turn.server.config.input_max {
            turn.server.input.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.charged = wanted;
        true
    }

    /// Gives the charge back.
    pub fn release(&mut self, server: &Server) {
        if self.charged > 0 {
            server.input.fetch_sub(self.charged, Ordering::Relaxed);
            self.charged = 0;
        }
    }

    /// Sends the new replies; keeps what the socket does not take.
    fn send_new(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        if turn.out.is_empty() {
            return Ok(());
        }
        match send(&mut self.stream, turn.out, turn.counters) {
            Ok(Sent::All) => self.taken = turn.now,
            // Bytes that the TLS stream holds are not in the outbox any more.
            Ok(Sent::Part) => {
                self.peer.set_state(State::Write);
                self.taken = turn.now;
                std::mem::swap(&mut self.output, turn.out);
            }
            Err(error) => {
                *turn.out = Outbox::default();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Sends the replies that were kept.
    fn send_kept(&mut self, turn: &Turn<'_>) -> io::Result<Sent> {
        if self.output.is_empty() && !self.stream.is_holding() {
            return Ok(Sent::All);
        }
        let before = self.output.len();
        let sent = send(&mut self.stream, &mut self.output, turn.counters)?;
        if self.output.len() < before {
            self.taken = turn.now;
        }
        if sent == Sent::All {
            self.output = Outbox::default();
            self.peer.set_state(self.session.state(Next::Input(self.wanted)));
        }
        Ok(sent)
    }
}
