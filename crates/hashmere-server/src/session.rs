//! Requests performed on a store. A [`Session`] eats what a connection sent and puts the replies into an outbox; it knows
//! no socket.

#[path = "protocol/text/admin.rs"]
mod admin;
#[path = "protocol/binary/run.rs"]
mod binary;
#[path = "protocol/binary/sasl.rs"]
mod binary_auth;
#[path = "protocol/binary/write.rs"]
mod binary_store;
#[path = "protocol/text/write.rs"]
mod classic;
#[path = "commands/count.rs"]
mod count;
#[path = "protocol/text/dump.rs"]
mod dump;
#[path = "protocol/exptime.rs"]
mod exptime;
#[path = "watch/requests.rs"]
mod log;
#[path = "protocol/meta/run.rs"]
mod meta;
#[path = "protocol/meta/count.rs"]
mod meta_count;
#[path = "protocol/meta/delete.rs"]
mod meta_delete;
#[path = "protocol/meta/get.rs"]
mod meta_get;
#[path = "protocol/meta/set.rs"]
mod meta_set;
#[path = "commands/set.rs"]
mod put;
#[path = "protocol/text/get.rs"]
mod retrieve;
#[path = "protocol/text/run.rs"]
mod text;

use crate::config::Dialects;
use crate::outbox::Outbox;
use crate::peers::State;
use crate::protocol::binary::{HEADER, REQUEST};
use crate::server::Server;
use crate::stats::counters::Counters;
use crate::watch::Watcher;
use dump::Dump;
use hashmere::{Metadata, Uid};
use retrieve::Retrieval;
use std::sync::Arc;

/// A connection with more than this to send is not served until it took some of it.
pub const OUTPUT_MAX: usize = 256 << 10;
/// Longest line of a retrieval.
pub const LINE_MAX: usize = 1 << 20;
/// Longest other line.
const SHORT_LINE_MAX: usize = 2048;

/// What a session works with.
#[derive(Debug)]
pub struct Context<'a> {
    /// The server.
    pub server: &'a Server,
    /// Counters of this event loop.
    pub counters: &'a Counters,
    /// Where replies go.
    pub out: &'a mut Outbox,
    /// Seconds since 1970.
    pub now: u64,
    /// The event loop.
    pub worker: usize,
    /// The number of the connection.
    pub connection: u64,
}

impl Context<'_> {
    /// The version of an item as clients see it.
    #[inline]
    fn cas(&self, meta: &Metadata) -> u64 {
        if self.server.config.cas {
            meta.version.0
        } else {
            0
        }
    }

    /// A key was looked for and is not there: notes why, if that is known.
    #[inline]
    pub fn missed(&self, key: &[u8]) {
        // What has expired goes now, and counts once. A lock that is held by a stopped process leaves it for later.
        if self.server.store.delete_expired(key).unwrap_or(false) {
            self.counters.get_expired.add(1);
        } else if self.server.flushed.forget(key) {
            self.counters.get_flushed.add(1);
        }
    }

    /// Notes that a key was stored (`false`) or fetched.
    #[inline]
    fn note(&self, uid: Uid, fetched: bool) {
        self.server.access.note(uid, fetched, self.now);
    }
}

/// What a session needs to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More input. The request that has begun is this long in all, as far as is known; 0 if that is not known.
    Input(usize),
    /// Its output taken first.
    Output,
    /// Nothing: the connection is to be closed when the output was taken.
    Close,
}

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
    /// Whether requests are still to be refused.
    locked: bool,
    /// Bytes of refused data blocks that are still to come.
    swallow: u64,
    /// A retrieval that was interrupted; its keys are the next input.
    retrieval: Option<Retrieval>,
    /// A walk over the keys that was interrupted.
    dump: Option<Box<Dump>>,
    /// It says nothing more, but is told what happens.
    watcher: Option<Arc<Watcher>>,
}

impl Session {
    /// A new conversation.
    pub fn new(server: &Server) -> Session {
        let dialect = match server.config.dialects {
            Dialects::Auto => Dialect::Unknown,
            Dialects::Text => Dialect::Text,
            Dialects::Binary => Dialect::Binary,
        };
        let locked = server.config.accounts.is_some();
        Session { dialect, locked, swallow: 0, retrieval: None, dump: None, watcher: None }
    }

    /// Whether it is told what happens; then its input is ignored.
    pub fn is_watching(&self) -> bool {
        self.watcher.is_some()
    }

    /// What it is about, given what it needs next.
    pub fn state(&self, next: Next) -> State {
        // A binary header that is not whole is no value yet.
        let least = if self.dialect == Dialect::Binary { HEADER } else { 0 };
        match next {
            _ if self.is_watching() => State::Watch,
            _ if self.swallow > 0 => State::Swallow,
            Next::Input(wanted) if wanted > least => State::Value,
            Next::Output => State::Write,
            _ => State::Read,
        }
    }

    /// Takes the lines that wait for it; `false` if there are none.
    pub fn take_lines(&self, out: &mut Outbox) -> bool {
        self.watcher.as_ref().is_some_and(|watcher| watcher.take(out))
    }

    /// Whether it is in the middle of nothing: a stopping server may close it.
    pub fn is_idle(&self) -> bool {
        self.swallow == 0 && self.retrieval.is_none() && self.dump.is_none()
    }

    /// Eats input. Returns how much of it is done with, and what is needed to go on; what was not eaten comes again, with more
    /// behind it.
    pub fn feed(&mut self, cx: &mut Context<'_>, input: &[u8]) -> (usize, Next) {
        let mut eaten = 0;
        if self.is_watching() {
            return (input.len(), Next::Input(0));
        }
        if self.swallow > 0 {
            let now = self.swallow.min(input.len() as u64);
            self.swallow -= now;
            eaten = now as usize;
        }
        if self.dump.is_some() {
            let (more, next) = self.feed_text(cx, &input[eaten..]);
            return (eaten + more, next);
        }
        let Some(first) = input.get(eaten) else { return (eaten, Next::Input(0)) };
        if self.dialect == Dialect::Unknown {
            self.dialect = if *first == REQUEST { Dialect::Binary } else { Dialect::Text };
        }
        let (more, next) = match self.dialect {
            Dialect::Binary => self.feed_binary(cx, &input[eaten..]),
            _ => self.feed_text(cx, &input[eaten..]),
        };
        (eaten + more, next)
    }
}
