//! What a consumer gets.

use crate::token::Token;
use hashmere_engine::Version;

/// One step of a feed, in the order in which a consumer gets them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// What the consumer has is not what the store had at its place, or it has nothing yet: every key follows as a
    /// [`Read`](Event::Read), then [`Synced`](Event::Synced). What is not among them is gone.
    Reset {
        /// Why.
        reason: ResetReason,
    },
    /// A key of the first copy, as it was at some moment of it.
    Read(Change),
    /// The first copy is complete. What follows happened since it began.
    Synced {
        /// Where to resume.
        token: Token,
    },
    /// A change.
    Change(Change),
    /// Every key was removed at once.
    Clear {
        /// When it was noticed, in milliseconds since 1970.
        ts_ms: u64,
        /// Where to resume.
        token: Token,
    },
}

impl Event {
    /// Where a consumer that has dealt with this event resumes; `None`: behind the event before.
    pub fn token(&self) -> Option<&Token> {
        match self {
            Event::Reset { .. } => None,
            Event::Read(change) | Event::Change(change) => Some(&change.token),
            Event::Synced { token } | Event::Clear { token, .. } => Some(token),
        }
    }
}

/// Why a consumer begins with a copy of every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetReason {
    /// It asked for one.
    Asked,
    /// The changes at its place are not kept any more.
    Gone,
    /// Its token is of another store, or of a feed of before: a copy, a store that was made again, a power cut.
    OtherFeed,
    /// A change was too long for the feed, or more threads wrote than it has chunks.
    Gap,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Nothing: it is there, in a first copy.
    Read,
    /// It got a value.
    Set,
    /// It was deleted.
    Delete,
    /// Expiry or flags changed; value and version stayed.
    Touch,
    /// It was evicted by a cache.
    Evict,
    /// It had expired and was removed.
    Expire,
}

impl Operation {
    /// Whether the key is gone afterwards.
    pub fn removes(self) -> bool {
        matches!(self, Operation::Delete | Operation::Evict | Operation::Expire)
    }

    /// In lower case, as every language and protocol writes it.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Set => "set",
            Operation::Delete => "delete",
            Operation::Touch => "touch",
            Operation::Evict => "evict",
            Operation::Expire => "expire",
        }
    }
}

/// The value of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// The key has none: it is gone.
    Absent,
    /// These bytes.
    Bytes(Vec<u8>),
    /// The feed does not keep values, or the consumer did not ask for them.
    NotKept,
    /// It was too long for the feed, and the key has been changed since: a later event has its value.
    Superseded,
}

impl Value {
    /// The bytes, if they are there.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// A transaction that a change is part of. Its changes follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionPart {
    /// The same for all of them: the transaction's position.
    pub id: u64,
    /// Which of them this is, from 0.
    pub index: u32,
    /// How many there are.
    pub len: u32,
}

/// A change of one key, or the state of one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// What happened.
    pub operation: Operation,
    /// The key.
    pub key: Vec<u8>,
    /// The hash that the caller supplied with the key; `None`: the key's own.
    pub supplied_hash: Option<u64>,
    /// The version that the key has now; of a removal, one above every one that it had.
    pub version: Version,
    /// The value that it has now.
    pub value: Value,
    /// Bytes of that value, whether it is here or not.
    pub value_len: u32,
    /// The caller's flags.
    pub flags: u32,
    /// What front ends and replicators noted of the value. It is not in the envelope.
    pub marks: u32,
    /// Wall clock of its expiry, in milliseconds since 1970; `None`: never.
    pub expires_at_ms: Option<u64>,
    /// What the handle that made the change was opened as ([`origin`](hashmere_engine::Options::origin)); 0: nothing.
    pub origin: u32,
    /// When it happened, in milliseconds since 1970, as exact as the kernel's coarse clock (4 ms); of a read, when it
    /// was read.
    pub ts_ms: u64,
    /// The transaction that it is part of.
    pub transaction: Option<TransactionPart>,
    /// Where to resume behind it. Within a transaction: at its beginning, so that it comes whole again.
    pub token: Token,
}

impl Change {
    /// A change without a value, attributes and transaction; its fields are public.
    pub fn new(operation: Operation, key: Vec<u8>, version: Version, token: Token) -> Change {
        Change {
            operation,
            key,
            supplied_hash: None,
            version,
            value: Value::Absent,
            value_len: 0,
            flags: 0,
            marks: 0,
            expires_at_ms: None,
            origin: 0,
            ts_ms: 0,
            transaction: None,
            token,
        }
    }
}
