//! One connection's conversation: chooses the protocol, and passes input to it. It knows no socket.

use crate::config::Dialects;
use crate::outbox::Outbox;
use crate::peers::State;
use crate::protocol::binary::{self, HEADER, REQUEST};
use crate::protocol::text::Text;
use crate::protocol::{Gate, Next};
use crate::server::Server;
use crate::turn::Turn;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Unknown,
    Text,
    Binary,
}

/// One connection's side of the conversation.
#[derive(Debug)]
pub struct Session {
    dialect: Dialect,
    gate: Gate,
    text: Text,
}

impl Session {
    /// A new conversation.
    pub fn new(server: &Server) -> Session {
        let dialect = match server.config.dialects {
            Dialects::Auto => Dialect::Unknown,
            Dialects::Text => Dialect::Text,
            Dialects::Binary => Dialect::Binary,
        };
        let gate = Gate { locked: server.config.accounts.is_some(), skip: 0 };
        Session { dialect, gate, text: Text::default() }
    }

    /// Whether it receives the lines of `watch`; then its input is ignored.
    pub fn is_watching(&self) -> bool {
        self.text.is_watching()
    }

    /// What `stats conns` shows of it, given what it needs next.
    pub fn state(&self, next: Next) -> State {
        // An incomplete binary header is no value yet.
        let least = if self.dialect == Dialect::Binary { HEADER } else { 0 };
        match next {
            _ if self.is_watching() => State::Watch,
            _ if self.gate.skip > 0 => State::Swallow,
            Next::Input(wanted) if wanted > least => State::Value,
            Next::Output => State::Write,
            _ => State::Read,
        }
    }

    /// Moves pending lines of `watch` into the outbox; `false` if there are none.
    pub fn take_lines(&self, out: &mut Outbox) -> bool {
        self.text.take_lines(out)
    }

    /// Whether no request is in progress: a stopping server may close it.
    pub fn is_idle(&self) -> bool {
        self.gate.skip == 0 && self.text.is_idle()
    }

    /// Consumes input. Returns how many bytes were consumed, and what is needed to continue; the rest is to be given
    /// again, with more input behind it.
    pub fn feed(&mut self, turn: &mut Turn<'_>, input: &[u8]) -> (usize, Next) {
        if self.is_watching() {
            return (input.len(), Next::Input(0));
        }
        let skipped = self.gate.skip_from(input);
        let input = &input[skipped..];
        if self.text.is_dumping() {
            let (more, next) = self.text.feed(&mut self.gate, turn, input);
            return (skipped + more, next);
        }
        let Some(first) = input.first() else { return (skipped, Next::Input(0)) };
        if self.dialect == Dialect::Unknown {
            self.dialect = if *first == REQUEST { Dialect::Binary } else { Dialect::Text };
        }
        let (more, next) = match self.dialect {
            Dialect::Binary => binary::feed(&mut self.gate, turn, input),
            _ => self.text.feed(&mut self.gate, turn, input),
        };
        (skipped + more, next)
    }
}
