//! One connection's conversation: passes its input to the protocol that it speaks. It knows no socket.
//!
//! A protocol is a state that consumes input and fills an [`Outbox`]; each has the same few calls, and this is their
//! only caller. Where one socket serves all of them, how a connection begins decides, once.

use crate::config::Protocol;
use crate::feed_stream::SILENCE;
use crate::outbox::Outbox;
use crate::peers::State;
use crate::protocol::first_byte::{self, Spoken};
use crate::protocol::http::Http;
use crate::protocol::memcached::Memcached;
use crate::protocol::resp::Resp;
use crate::protocol::Next;
use crate::server::Server;
use crate::turn::Turn;

/// One connection's side of the conversation.
#[derive(Debug)]
pub struct Session {
    speaks: Speaks,
}

#[derive(Debug)]
enum Speaks {
    /// What its beginning will tell.
    Unknown,
    Memcached(Memcached),
    Http(Http),
    Resp(Box<Resp>),
}

impl Speaks {
    fn of(server: &Server, protocol: Protocol) -> Speaks {
        match protocol {
            Protocol::Memcached | Protocol::Text | Protocol::Binary => {
                Speaks::Memcached(Memcached::new(server, protocol))
            }
            Protocol::Http => Speaks::Http(Http::new()),
            Protocol::Resp => Speaks::Resp(Box::new(Resp::new(server))),
            Protocol::All => Speaks::Unknown,
        }
    }
}

impl Session {
    /// A new conversation.
    pub fn new(server: &Server, protocol: Protocol) -> Session {
        Session { speaks: Speaks::of(server, protocol) }
    }

    /// Whether it receives what it did not ask for by its last request, such as the lines of `watch`.
    pub fn is_subscribed(&self) -> bool {
        match &self.speaks {
            Speaks::Unknown => false,
            Speaks::Memcached(memcached) => memcached.is_watching(),
            Speaks::Http(http) => http.is_subscribed(),
            Speaks::Resp(resp) => resp.is_subscribed(),
        }
    }

    /// Moves that into the outbox; `false` if there is none.
    pub fn take_pushed(&mut self, turn: &mut Turn<'_>) -> bool {
        match &mut self.speaks {
            Speaks::Unknown => false,
            Speaks::Memcached(memcached) => memcached.take_lines(turn.out),
            Speaks::Http(http) => http.take_changes(turn),
            Speaks::Resp(resp) => resp.take_messages(turn.out),
        }
    }

    /// Whether what it received has ended, and the connection with it.
    pub fn is_over(&self) -> bool {
        match &self.speaks {
            Speaks::Unknown | Speaks::Memcached(_) | Speaks::Resp(_) => false,
            Speaks::Http(http) => http.is_over(),
        }
    }

    /// Whether it is to be closed at once, for it does not take what it is subscribed to.
    pub fn is_overrun(&self) -> bool {
        match &self.speaks {
            // Lines for which there is no room are left out, and changes are read as the socket takes them.
            Speaks::Unknown | Speaks::Memcached(_) | Speaks::Http(_) => false,
            Speaks::Resp(resp) => resp.is_overrun(),
        }
    }

    /// Whether the client has taken longer than its protocol allows, at this second; it was heard last at `heard`.
    pub fn is_late(&self, now: u64, heard: u64) -> bool {
        match &self.speaks {
            Speaks::Memcached(memcached) => memcached.is_feeding() && now.saturating_sub(heard) > SILENCE,
            Speaks::Http(http) => http.is_late(now),
            Speaks::Unknown | Speaks::Resp(_) => false,
        }
    }

    /// Whether a client that takes nothing of its replies is closed.
    pub fn closes_stuck(&self) -> bool {
        match &self.speaks {
            Speaks::Memcached(memcached) => memcached.is_feeding(),
            Speaks::Http(_) => true,
            Speaks::Unknown | Speaks::Resp(_) => false,
        }
    }

    /// Says that it is late; the connection is closed then.
    pub fn refuse_late(&self, out: &mut Outbox) {
        match &self.speaks {
            Speaks::Unknown | Speaks::Memcached(_) | Speaks::Resp(_) => {}
            Speaks::Http(http) => http.refuse_late(out),
        }
    }

    /// What `stats conns` shows of it, given what it needs next.
    pub fn state(&self, next: Next) -> State {
        match &self.speaks {
            Speaks::Unknown => State::Read,
            Speaks::Memcached(memcached) => memcached.state(next),
            Speaks::Http(http) => http.state(next),
            Speaks::Resp(resp) => resp.state(next),
        }
    }

    /// Whether no request is in progress: a stopping server may close it.
    pub fn is_idle(&self) -> bool {
        match &self.speaks {
            Speaks::Unknown => true,
            Speaks::Memcached(memcached) => memcached.is_idle(),
            Speaks::Http(http) => http.is_idle(),
            Speaks::Resp(resp) => resp.is_idle(),
        }
    }

    /// Says that a request is larger than what connections may hold together; the connection is closed then.
    pub fn refuse_large(&self, out: &mut Outbox) {
        match &self.speaks {
            Speaks::Unknown | Speaks::Memcached(_) => out.line("SERVER_ERROR out of memory reading request"),
            Speaks::Http(http) => http.refuse_large(out),
            Speaks::Resp(_) => out.line("-ERR out of memory reading request (-o input_max)"),
        }
    }

    /// Consumes input. Returns how many bytes were consumed, and what is needed to continue; the rest is to be given
    /// again, with more input behind it.
    pub fn feed(&mut self, turn: &mut Turn<'_>, input: &[u8]) -> (usize, Next) {
        if let Speaks::Unknown = self.speaks {
            match first_byte::spoken(input) {
                Spoken::NotKnown => return (0, Next::Input(0)),
                Spoken::Known(protocol) => self.speaks = Speaks::of(turn.server, protocol),
                Spoken::None => {
                    turn.out.line(first_byte::UNKNOWN);
                    return (input.len(), Next::Close);
                }
            }
        }
        match &mut self.speaks {
            Speaks::Unknown => (0, Next::Input(0)),
            Speaks::Memcached(memcached) => memcached.feed(turn, input),
            Speaks::Http(http) => http.feed(turn, input),
            Speaks::Resp(resp) => resp.feed(turn, input),
        }
    }
}
