//! One connection's conversation: passes its input to the protocol that it speaks. It knows no socket.
//!
//! A protocol is a state that consumes input and fills an [`Outbox`]; each has the same few calls, and this is their
//! only caller.

use crate::config::Protocol;
use crate::outbox::Outbox;
use crate::peers::State;
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
    Memcached(Memcached),
    Resp(Box<Resp>),
}

impl Session {
    /// A new conversation.
    pub fn new(server: &Server, protocol: Protocol) -> Session {
        let speaks = match protocol {
            Protocol::Memcached | Protocol::Text | Protocol::Binary => {
                Speaks::Memcached(Memcached::new(server, protocol))
            }
            Protocol::Resp => Speaks::Resp(Box::new(Resp::new(server))),
        };
        Session { speaks }
    }

    /// Whether it receives what it did not ask for by its last request, such as the lines of `watch`.
    pub fn is_subscribed(&self) -> bool {
        match &self.speaks {
            Speaks::Memcached(memcached) => memcached.is_watching(),
            Speaks::Resp(resp) => resp.is_subscribed(),
        }
    }

    /// Moves that into the outbox; `false` if there is none.
    pub fn take_pushed(&self, out: &mut Outbox) -> bool {
        match &self.speaks {
            Speaks::Memcached(memcached) => memcached.take_lines(out),
            Speaks::Resp(resp) => resp.take_messages(out),
        }
    }

    /// Whether it is to be closed at once, for it does not take what it is subscribed to.
    pub fn is_overrun(&self) -> bool {
        match &self.speaks {
            // Lines for which there is no room are left out.
            Speaks::Memcached(_) => false,
            Speaks::Resp(resp) => resp.is_overrun(),
        }
    }

    /// What `stats conns` shows of it, given what it needs next.
    pub fn state(&self, next: Next) -> State {
        match &self.speaks {
            Speaks::Memcached(memcached) => memcached.state(next),
            Speaks::Resp(resp) => resp.state(next),
        }
    }

    /// Whether no request is in progress: a stopping server may close it.
    pub fn is_idle(&self) -> bool {
        match &self.speaks {
            Speaks::Memcached(memcached) => memcached.is_idle(),
            Speaks::Resp(resp) => resp.is_idle(),
        }
    }

    /// Says that a request is larger than what connections may hold together; the connection is closed then.
    pub fn refuse_large(&self, out: &mut Outbox) {
        match &self.speaks {
            Speaks::Memcached(_) => out.line("SERVER_ERROR out of memory reading request"),
            Speaks::Resp(_) => out.line("-ERR out of memory reading request (-o input_max)"),
        }
    }

    /// Consumes input. Returns how many bytes were consumed, and what is needed to continue; the rest is to be given
    /// again, with more input behind it.
    pub fn feed(&mut self, turn: &mut Turn<'_>, input: &[u8]) -> (usize, Next) {
        match &mut self.speaks {
            Speaks::Memcached(memcached) => memcached.feed(turn, input),
            Speaks::Resp(resp) => resp.feed(turn, input),
        }
    }
}
