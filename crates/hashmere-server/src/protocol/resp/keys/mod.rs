//! Commands on keys. Each is written once, against a transaction of the store: alone it is one transaction, and all
//! commands of `EXEC` together are one. A command may run several times before its transaction commits, so it has no
//! effects but through [`Keys`] and its reply; and it replies with an error before it writes anything.

pub mod change;
pub mod count;
pub mod expire;
pub mod many;
pub mod object;
pub mod options;
pub mod read;
pub mod rename;
pub mod set;

use super::parse::Args;
use super::reply::Reply;
use crate::commands::{marks, set as sizes};
use crate::server::Server;
use crate::turn::Turn;
use hashmere::{Attributes, Item, Ttl, WriteError};
use hashmere_engine::FileTransaction;
use std::borrow::Cow;

/// Options that do not go together, or are none.
pub const SYNTAX: &str = "ERR syntax error";
/// An argument that is no number.
pub const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
/// A value above the item limit.
pub const TOO_LARGE: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
/// A key that has to be there.
pub const NO_SUCH_KEY: &str = "ERR no such key";
/// The latest time: the store has 48 bits for it.
const LATEST: i64 = (1 << 48) - 1;

/// Why a command is refused.
#[derive(Debug)]
pub enum Fail {
    /// It is answered with this.
    Say(Cow<'static, str>),
    /// The store refused, or what was read has changed: the transaction is given up.
    Store(WriteError),
}

impl From<WriteError> for Fail {
    fn from(error: WriteError) -> Fail {
        Fail::Store(error)
    }
}

impl From<&'static str> for Fail {
    fn from(text: &'static str) -> Fail {
        Fail::Say(text.into())
    }
}

/// What a command on keys is.
pub type Perform = fn(&mut Keys<'_, '_>, Args<'_>, &mut Reply<'_>) -> Result<(), Fail>;

/// The keys as a transaction sees them.
pub struct Keys<'k, 'e> {
    transaction: &'k mut FileTransaction<'e>,
    server: &'k Server,
    /// Milliseconds since 1970.
    pub now: i64,
    /// Keys that were found, and that were not.
    pub hits: u64,
    /// The latter.
    pub misses: u64,
    /// Values that were written.
    pub stored: u64,
}

impl<'k, 'e> Keys<'k, 'e> {
    /// The keys of a transaction at this time.
    pub fn new(transaction: &'k mut FileTransaction<'e>, server: &'k Server, now: i64) -> Keys<'k, 'e> {
        Keys { transaction, server, now, hits: 0, misses: 0, stored: 0 }
    }

    /// What is stored under a key.
    pub fn item(&mut self, key: &[u8]) -> Result<Option<Item>, Fail> {
        let item = self.transaction.item(key)?;
        Ok(item.filter(|item| !marks::is_hidden(item.metadata.marks)))
    }

    /// The same, counted as a read.
    pub fn read(&mut self, key: &[u8]) -> Result<Option<Item>, Fail> {
        let item = self.item(key)?;
        match item {
            Some(_) => self.hits += 1,
            None => self.misses += 1,
        }
        Ok(item)
    }

    /// Stores a value.
    pub fn put(&mut self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<(), Fail> {
        if value.len() as u64 > self.value_max(key) {
            return Err(TOO_LARGE.into());
        }
        match self.transaction.set(key, value, attributes) {
            Err(error @ WriteError::TooLarge { .. }) => Err(Fail::Say(format!("ERR {error}").into())),
            done => {
                self.stored += 1;
                Ok(done?)
            }
        }
    }

    /// Stores another value under a key that was read, with the flags and the expiry that it has.
    pub fn change(&mut self, key: &[u8], item: Option<&Item>, value: &[u8]) -> Result<(), Fail> {
        self.put(key, value, item.map_or(Attributes::NONE, attributes_of))
    }

    /// The longest value of a key.
    pub fn value_max(&self, key: &[u8]) -> u64 {
        sizes::value_max(&self.server.config, key)
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Fail> {
        Ok(self.transaction.delete(key)?)
    }

    /// Removes a key if it is there. The placeholder of a lease goes too, and was no key.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Fail> {
        let Some(item) = self.transaction.item(key)? else { return Ok(false) };
        self.delete(key)?;
        Ok(!marks::is_hidden(item.metadata.marks))
    }

    /// Gives a key that was read another expiry.
    pub fn expire(&mut self, key: &[u8], ttl: Ttl) -> Result<(), Fail> {
        self.transaction.touch(key, ttl)?;
        Ok(())
    }

    /// What is known of the accesses over sockets.
    pub fn server(&self) -> &Server {
        self.server
    }
}

/// Flags and expiry of an item.
pub fn attributes_of(item: &Item) -> Attributes {
    let ttl = item.metadata.expires_at_ms.map_or(Ttl::Never, Ttl::At);
    Attributes { flags: item.metadata.flags, ttl, ..Attributes::NONE }
}

/// An expiry at this time. Zero is none, so what is before 1970 is a millisecond behind it.
pub fn ttl_at(at: i64) -> Ttl {
    Ttl::At(at.clamp(1, LATEST) as u64)
}

/// A number that a client sent.
pub fn integer(text: &[u8]) -> Result<i64, Fail> {
    super::number::integer(text).ok_or(Fail::Say(NOT_AN_INTEGER.into()))
}

/// Performs one command in a transaction of its own, and replies.
pub fn alone(turn: &mut Turn<'_>, perform: Perform, args: Args<'_>, resp3: bool) {
    let out = &mut turn.out.bytes;
    let (start, now) = (out.len(), crate::server::now_ms() as i64);
    let done = hashmere_engine::StoreHandle::shared(&turn.server.store).transaction(|transaction| {
        out.truncate(start);
        let mut keys = Keys::new(transaction, turn.server, now);
        let mut reply = Reply { out, resp3 };
        one(&mut keys, perform, args, &mut reply)?;
        Ok::<_, WriteError>((keys.hits, keys.misses, keys.stored))
    });
    match done {
        Ok(counted) => count_up(turn, counted),
        Err(error) => {
            turn.out.bytes.truncate(start);
            Reply { out: &mut turn.out.bytes, resp3 }.error(&refusal(&error));
        }
    }
}

/// Performs one command and writes its reply.
///
/// # Errors
/// The transaction is to be given up, or run again.
pub fn one(keys: &mut Keys<'_, '_>, perform: Perform, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), WriteError> {
    let start = reply.out.len();
    match perform(keys, args, reply) {
        Ok(()) => Ok(()),
        Err(Fail::Say(text)) => {
            reply.out.truncate(start);
            reply.error(&text);
            Ok(())
        }
        Err(Fail::Store(error)) => Err(error),
    }
}

/// Adds what a transaction counted.
pub fn count_up(turn: &Turn<'_>, (hits, misses, stored): (u64, u64, u64)) {
    turn.counters.cmd_get.add(hits + misses);
    turn.counters.get_hits.add(hits);
    turn.counters.get_misses.add(misses);
    turn.counters.cmd_set.add(stored);
    turn.counters.stored.add(stored);
}

/// The error of a client when the store refuses.
pub fn refusal(error: &WriteError) -> String {
    match error {
        error if error.is_no_room() => "OOM command not allowed when used memory > 'maxmemory'.".into(),
        WriteError::ReadOnly => "READONLY You can't write against a read only replica.".into(),
        WriteError::Conflict { .. } => format!("TRYAGAIN {error}"),
        WriteError::TooManyKeys { limit } => {
            format!("ERR more keys than the {limit} that change at one moment; send several commands")
        }
        error => format!("ERR {error}"),
    }
}
