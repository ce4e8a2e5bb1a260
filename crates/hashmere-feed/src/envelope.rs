//! An event as one line of JSON, in the envelope of Debezium: what `hashmere feed` prints, what sinks carry, what a
//! feed directory holds. [`Event::from_json`] reads it back (`read_envelope.rs`).
//!
//! ```text
//! {"op":"u","ts_ms":..,"before":null,"after":{ROW},"source":{..},"transaction":null}
//! {"control":"reset","reason":"asked"}
//! {"control":"synced","token":"hm1-.."}
//! ```
//!
//! | operation | op | before | after |
//! |---|---|---|---|
//! | read | `r` | null | row |
//! | set, touch | `u` | null | row |
//! | delete, evict, expire | `d` | row with the key alone | null |
//! | clear | `t` | null | null |
//!
//! `u` is also what creates a key: the feed has no image of before, so it does not know.
//!
//! Bytes that are not UTF-8 are in base64 under another name: `key_base64`, `value_base64`. The line is built by hand,
//! not by a serializer: it is made for every event, and that would take twice as long.

use crate::digits::number;
use crate::event::{Change, Event, Operation, ResetReason, Value};
use crate::token::Token;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine;

/// What `source.connector` says.
pub(crate) const CONNECTOR: &str = "hashmere";

impl Event {
    /// Appends the event as a line of JSON, without the newline.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Event::Reset { reason } => {
                out.extend_from_slice(b"{\"control\":\"reset\",\"reason\":\"");
                out.extend_from_slice(reason.name().as_bytes());
                out.extend_from_slice(b"\"}");
            }
            Event::Synced { token } => {
                out.extend_from_slice(b"{\"control\":\"synced\",\"token\":\"");
                token.write(out);
                out.extend_from_slice(b"\"}");
            }
            Event::Read(change) | Event::Change(change) => write_change(change, out),
            Event::Clear { ts_ms, token } => {
                out.extend_from_slice(b"{\"op\":\"t\",\"ts_ms\":");
                number(*ts_ms, out);
                out.extend_from_slice(b",\"before\":null,\"after\":null,\"source\":{");
                write_source(token, "clear", *ts_ms, out);
                out.extend_from_slice(b",\"snapshot\":\"false\"},\"transaction\":null}");
            }
        }
    }
}

impl ResetReason {
    /// As the envelope writes it.
    pub fn name(self) -> &'static str {
        match self {
            ResetReason::Asked => "asked",
            ResetReason::Gone => "gone",
            ResetReason::OtherFeed => "other_feed",
            ResetReason::Gap => "gap",
        }
    }
}

impl Value {
    /// Why there are no bytes, as the envelope writes it.
    pub(crate) fn omission(&self) -> Option<&'static str> {
        match self {
            Value::NotKept => Some("not_kept"),
            Value::Superseded => Some("superseded"),
            Value::Absent | Value::Bytes(_) => None,
        }
    }
}

fn write_change(change: &Change, out: &mut Vec<u8>) {
    let op: &[u8] = match change.operation {
        Operation::Read => b"r",
        Operation::Set | Operation::Touch => b"u",
        Operation::Delete | Operation::Evict | Operation::Expire => b"d",
    };
    out.extend_from_slice(b"{\"op\":\"");
    out.extend_from_slice(op);
    out.extend_from_slice(b"\",\"ts_ms\":");
    number(change.ts_ms, out);
    if change.operation.removes() {
        out.extend_from_slice(b",\"before\":{");
        write_key(change, out);
        out.extend_from_slice(b"},\"after\":null");
    } else {
        out.extend_from_slice(b",\"before\":null,\"after\":{");
        write_row(change, out);
        out.push(b'}');
    }
    out.extend_from_slice(b",\"source\":{");
    write_source(&change.token, change.operation.name(), change.ts_ms, out);
    out.extend_from_slice(b",\"snapshot\":\"");
    out.extend_from_slice(if change.operation == Operation::Read { b"true" } else { b"false" });
    out.extend_from_slice(b"\",\"version\":");
    number(change.version.0, out);
    out.extend_from_slice(b",\"origin\":");
    number(change.origin.into(), out);
    out.extend_from_slice(b"},\"transaction\":");
    match &change.transaction {
        None => out.extend_from_slice(b"null"),
        Some(part) => {
            out.extend_from_slice(b"{\"id\":\"");
            number(part.id, out);
            // Debezium counts from 1; one store has one collection of data.
            out.extend_from_slice(b"\",\"total_order\":");
            number(u64::from(part.index) + 1, out);
            out.extend_from_slice(b",\"data_collection_order\":");
            number(u64::from(part.index) + 1, out);
            out.extend_from_slice(b",\"event_count\":");
            number(part.len.into(), out);
            out.push(b'}');
        }
    }
    out.push(b'}');
}

fn write_key(change: &Change, out: &mut Vec<u8>) {
    bytes_field("key", &change.key, out);
    if let Some(hash) = change.supplied_hash {
        // As text: JSON's numbers are exact up to 2^53 in many languages.
        out.extend_from_slice(b",\"supplied_hash\":\"");
        number(hash, out);
        out.push(b'"');
    }
}

fn write_row(change: &Change, out: &mut Vec<u8>) {
    write_key(change, out);
    out.push(b',');
    match (&change.value, change.value.omission()) {
        (Value::Bytes(bytes), _) => bytes_field("value", bytes, out),
        (_, Some(why)) => {
            out.extend_from_slice(b"\"value\":null,\"value_omitted\":\"");
            out.extend_from_slice(why.as_bytes());
            out.push(b'"');
        }
        _ => out.extend_from_slice(b"\"value\":null"),
    }
    out.extend_from_slice(b",\"value_len\":");
    number(change.value_len.into(), out);
    out.extend_from_slice(b",\"flags\":");
    number(change.flags.into(), out);
    out.extend_from_slice(b",\"expires_at_ms\":");
    match change.expires_at_ms {
        Some(at) => number(at, out),
        None => out.extend_from_slice(b"null"),
    }
}

fn write_source(token: &Token, operation: &str, ts_ms: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"connector\":\"");
    out.extend_from_slice(CONNECTOR.as_bytes());
    out.extend_from_slice(b"\",\"store\":\"");
    token.write_uuid(true, out);
    out.extend_from_slice(b"\",\"token\":\"");
    token.write(out);
    out.extend_from_slice(b"\",\"operation\":\"");
    out.extend_from_slice(operation.as_bytes());
    out.extend_from_slice(b"\",\"ts_ms\":");
    number(ts_ms, out);
}

/// Appends `"name":"text"`, or `"name_base64":"..."` if the bytes are not UTF-8.
fn bytes_field(name: &str, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    if let Ok(text) = std::str::from_utf8(bytes) {
        out.extend_from_slice(b"\":\"");
        escape(text, out);
    } else {
        out.extend_from_slice(b"_base64\":\"");
        out.extend_from_slice(BASE64.encode(bytes).as_bytes());
    }
    out.push(b'"');
}

/// Appends the inside of a JSON string.
fn escape(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\') {
        out.extend_from_slice(&rest[..at]);
        let byte = rest[at];
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}
