//! The protocols of memcached on one connection: text and meta share their lines; a first byte of 0x80 means binary.

use super::binary::{self, HEADER, REQUEST};
use super::text::Text;
use super::{Gate, Next};
use crate::config::Protocol;
use crate::outbox::Outbox;
use crate::peers::State;
use crate::server::Server;
use crate::turn::Turn;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Unknown,
    Text,
    Binary,
}

/// What a connection of a memcached client keeps.
#[derive(Debug)]
pub struct Memcached {
    dialect: Dialect,
    gate: Gate,
    text: Text,
}

impl Memcached {
    /// A new conversation in this one of its protocols.
    pub fn new(server: &Server, protocol: Protocol) -> Memcached {
        let dialect = match protocol {
            Protocol::Text => Dialect::Text,
            Protocol::Binary => Dialect::Binary,
            _ => Dialect::Unknown,
        };
        let gate = Gate { locked: server.config.accounts.is_some(), skip: 0 };
        Memcached { dialect, gate, text: Text::default() }
    }

    /// Whether it receives the lines of `watch` or of `feed`; then its input is ignored.
    pub fn is_watching(&self) -> bool {
        self.text.is_watching()
    }

    /// What `stats conns` shows of it, given what it needs next.
    pub fn state(&self, next: Next) -> State {
        // An incomplete binary header is no value yet.
        let least = if self.dialect == Dialect::Binary { HEADER } else { 0 };
        match next {
            _ if self.is_feeding() => State::Feed,
            _ if self.is_watching() => State::Watch,
            _ if self.gate.skip > 0 => State::Swallow,
            Next::Input(wanted) if wanted > least => State::Value,
            Next::Output => State::Write,
            _ => State::Read,
        }
    }

    /// Whether those lines are the store's changes (`feed`).
    pub fn is_feeding(&self) -> bool {
        self.text.is_feeding()
    }

    /// Moves pending lines of `watch` or of `feed` into the outbox; `false` if there are none.
    pub fn take_lines(&mut self, out: &mut Outbox) -> bool {
        self.text.take_lines(out)
    }

    /// Whether no request is in progress.
    pub fn is_idle(&self) -> bool {
        self.gate.skip == 0 && self.text.is_idle()
    }

    /// Consumes input; see [`Session::feed`](crate::Session::feed).
    pub fn feed(&mut self, turn: &mut Turn<'_>, input: &[u8]) -> (usize, Next) {
        if self.is_watching() {
            self.text.hear(input);
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
