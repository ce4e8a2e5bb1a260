//! From what the file has to what a consumer gets.

use crate::event::{Change, Operation, TransactionPart, Value};
use crate::token::Token;
use hashmere::Pair;
use hashmere_engine::Version;
use hashmere_format::feed::{self, Decoded, EntryHead};

/// A change of an entry: `(position, index, of how many)`.
pub(crate) fn change_of(
    head: &EntryHead,
    change: Decoded,
    supplied_hash: Option<u64>,
    value: Value,
    (id, index, len): (u64, u32, u32),
    token: Token,
) -> Change {
    let operation = match change.head.operation {
        feed::Operation::Set => Operation::Set,
        feed::Operation::Delete => Operation::Delete,
        feed::Operation::Touch => Operation::Touch,
        feed::Operation::Evict => Operation::Evict,
        feed::Operation::Expire => Operation::Expire,
    };
    Change {
        operation,
        key: change.key,
        supplied_hash,
        version: Version(change.head.version),
        value,
        value_len: change.head.value_len,
        flags: change.head.flags as u32,
        marks: (change.head.flags >> 32) as u32,
        expires_at_ms: change.head.expires,
        origin: head.origin,
        ts_ms: head.ts_ms,
        transaction: (len > 1).then_some(TransactionPart { id, index, len }),
        token,
    }
}

/// A key of a first copy.
pub(crate) fn read_of(pair: Pair, with_value: bool, ts_ms: u64, token: Token) -> Change {
    Change {
        operation: Operation::Read,
        key: pair.key,
        supplied_hash: pair.supplied_hash,
        version: pair.metadata.version,
        value_len: pair.metadata.value_len as u32,
        value: if with_value { Value::Bytes(pair.value) } else { Value::NotKept },
        flags: pair.metadata.flags,
        marks: pair.metadata.marks,
        expires_at_ms: pair.metadata.expires_at_ms,
        origin: 0,
        ts_ms,
        transaction: None,
        token,
    }
}
