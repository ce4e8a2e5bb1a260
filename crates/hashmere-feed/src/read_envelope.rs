//! An event from its line of JSON: for a restore from a feed directory, and for consumers of a sink that want the same
//! event back. Names that are not known are passed over, so that a later version may add some.

use crate::envelope::CONNECTOR;
use crate::event::{Change, Event, Operation, ResetReason, TransactionPart, Value};
use crate::token::Token;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine;
use hashmere_engine::Version;
use serde_json::Value as Json;
use std::fmt;

/// A line that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadEnvelope(String);

impl fmt::Display for BadEnvelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an event of a feed: {}", self.0)
    }
}

impl std::error::Error for BadEnvelope {}

fn bad(text: impl Into<String>) -> BadEnvelope {
    BadEnvelope(text.into())
}

impl Event {
    /// The event that [`write_json`](Event::write_json) wrote.
    ///
    /// # Errors
    /// [`BadEnvelope`] says which field is missing or is not what it should be.
    pub fn from_json(line: &[u8]) -> Result<Event, BadEnvelope> {
        let json: Json = serde_json::from_slice(line).map_err(|error| bad(error.to_string()))?;
        match json.get("control") {
            Some(control) => read_control(control, &json),
            None => read_change(&json),
        }
    }
}

fn read_control(control: &Json, json: &Json) -> Result<Event, BadEnvelope> {
    match control.as_str() {
        Some("reset") => Ok(Event::Reset { reason: read_reason(text(json, "reason")?)? }),
        Some("synced") => Ok(Event::Synced { token: token(json)? }),
        _ => Err(bad(format!("unknown `control` {control}"))),
    }
}

fn read_reason(name: &str) -> Result<ResetReason, BadEnvelope> {
    let all = [ResetReason::Asked, ResetReason::Gone, ResetReason::OtherFeed, ResetReason::Gap];
    all.into_iter().find(|reason| reason.name() == name).ok_or_else(|| bad(format!("unknown `reason` {name}")))
}

fn read_change(json: &Json) -> Result<Event, BadEnvelope> {
    let source = json.get("source").ok_or_else(|| bad("no `source`"))?;
    if text(source, "connector")? != CONNECTOR {
        return Err(bad("it is of another connector"));
    }
    let (token, ts_ms) = (token(source)?, number(json, "ts_ms")?);
    let name = text(source, "operation")?;
    if name == "clear" {
        return Ok(Event::Clear { ts_ms, token });
    }
    let all =
        [Operation::Read, Operation::Set, Operation::Delete, Operation::Touch, Operation::Evict, Operation::Expire];
    let operation = all.into_iter().find(|operation| operation.name() == name);
    let operation = operation.ok_or_else(|| bad(format!("unknown `operation` {name}")))?;
    let place = if operation.removes() { "before" } else { "after" };
    let row = json.get(place).filter(|row| row.is_object()).ok_or_else(|| bad(format!("no row in `{place}`")))?;
    let key = bytes(row, "key")?.ok_or_else(|| bad("no `key`"))?;
    let mut change = Change::new(operation, key, Version(number(source, "version")?), token);
    change.supplied_hash = match row.get("supplied_hash") {
        None | Some(Json::Null) => None,
        Some(_) => {
            Some(text(row, "supplied_hash")?.parse().map_err(|_| bad("its `supplied_hash` is no number of 64 bits"))?)
        }
    };
    change.origin = number32(source, "origin")?;
    change.ts_ms = ts_ms;
    change.transaction = read_transaction(json)?;
    if !operation.removes() {
        change.value = read_value(row)?;
        change.value_len = number32(row, "value_len")?;
        change.flags = number32(row, "flags")?;
        change.expires_at_ms = match row.get("expires_at_ms") {
            None | Some(Json::Null) => None,
            Some(_) => Some(number(row, "expires_at_ms")?),
        };
    }
    Ok(if operation == Operation::Read { Event::Read(change) } else { Event::Change(change) })
}

fn read_value(row: &Json) -> Result<Value, BadEnvelope> {
    if let Some(why) = row.get("value_omitted").and_then(Json::as_str) {
        let known = [Value::NotKept, Value::Superseded];
        let found = known.into_iter().find(|value| value.omission() == Some(why));
        return found.ok_or_else(|| bad(format!("unknown `value_omitted` {why}")));
    }
    Ok(bytes(row, "value")?.map_or(Value::Absent, Value::Bytes))
}

fn read_transaction(json: &Json) -> Result<Option<TransactionPart>, BadEnvelope> {
    let Some(part) = json.get("transaction").filter(|part| !part.is_null()) else { return Ok(None) };
    let id = text(part, "id")?.parse().map_err(|_| bad("the `id` of its transaction is no number"))?;
    let index = number32(part, "total_order")?.checked_sub(1).ok_or_else(|| bad("`total_order` is 0"))?;
    Ok(Some(TransactionPart { id, index, len: number32(part, "event_count")? }))
}

fn text<'a>(json: &'a Json, name: &str) -> Result<&'a str, BadEnvelope> {
    json.get(name).and_then(Json::as_str).ok_or_else(|| bad(format!("no text `{name}`")))
}

fn number(json: &Json, name: &str) -> Result<u64, BadEnvelope> {
    json.get(name).and_then(Json::as_u64).ok_or_else(|| bad(format!("no number `{name}`")))
}

fn number32(json: &Json, name: &str) -> Result<u32, BadEnvelope> {
    u32::try_from(number(json, name)?).map_err(|_| bad(format!("`{name}` is too large")))
}

fn token(json: &Json) -> Result<Token, BadEnvelope> {
    text(json, "token")?.parse().map_err(|error: crate::BadToken| bad(error.to_string()))
}

/// Bytes under either name.
fn bytes(json: &Json, name: &str) -> Result<Option<Vec<u8>>, BadEnvelope> {
    if let Some(text) = json.get(name).and_then(Json::as_str) {
        return Ok(Some(text.as_bytes().to_vec()));
    }
    let name = format!("{name}_base64");
    let Some(text) = json.get(&name).and_then(Json::as_str) else { return Ok(None) };
    BASE64.decode(text).map(Some).map_err(|_| bad(format!("`{name}` is not base64")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(position: u64) -> Token {
        format!("hm1-0001020304050607ffffffffffffffff-1795000000000-3-{position}").parse().unwrap()
    }

    fn written(event: &Event) -> String {
        let mut out = Vec::new();
        event.write_json(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn change(operation: Operation) -> Change {
        let mut change = Change::new(operation, b"user:7".to_vec(), Version(9), token(77));
        change.ts_ms = 1_795_000_000_123;
        if !operation.removes() {
            change.value = Value::Bytes(b"Ada".to_vec());
            (change.value_len, change.flags) = (3, 5);
        }
        change
    }

    #[test]
    fn a_set_in_full() {
        let expected = "{\"op\":\"u\",\"ts_ms\":1795000000123,\"before\":null,\"after\":{\"key\":\"user:7\",\
            \"value\":\"Ada\",\"value_len\":3,\"flags\":5,\"expires_at_ms\":null},\"source\":{\"connector\":\
            \"hashmere\",\"store\":\"00010203-0405-0607-ffff-ffffffffffff\",\"token\":\
            \"hm1-0001020304050607ffffffffffffffff-1795000000000-3-77\",\"operation\":\"set\",\
            \"ts_ms\":1795000000123,\"snapshot\":\"false\",\"version\":9,\"origin\":0},\"transaction\":null}";
        assert_eq!(written(&Event::Change(change(Operation::Set))), expected);
    }

    #[test]
    fn every_event_comes_back() {
        let mut all = vec![
            Event::Read(change(Operation::Read)),
            Event::Clear { ts_ms: 4, token: token(78) },
            Event::Synced { token: token(u64::MAX) },
        ];
        for reason in [ResetReason::Asked, ResetReason::Gone, ResetReason::OtherFeed, ResetReason::Gap] {
            all.push(Event::Reset { reason });
        }
        for operation in [Operation::Set, Operation::Delete, Operation::Touch, Operation::Evict, Operation::Expire] {
            let mut one = change(operation);
            all.push(Event::Change(one.clone()));
            one.key = (0..=255).collect();
            (one.supplied_hash, one.origin) = (Some(u64::MAX), u32::MAX);
            one.version = Version((1 << 42) - 1);
            one.transaction = Some(TransactionPart { id: 77, index: 1, len: 3 });
            if !operation.removes() {
                (one.flags, one.expires_at_ms) = (u32::MAX, Some((1 << 48) - 1));
                for value in [
                    Value::Bytes(Vec::new()),
                    Value::Bytes((0..=255).rev().collect()),
                    Value::Bytes((0..=127).collect()),
                    Value::Bytes("é\u{85}€\u{10ffff}\"\\\r\n\t\u{0}".into()),
                    Value::NotKept,
                    Value::Superseded,
                ] {
                    one.value = value;
                    all.push(Event::Change(one.clone()));
                }
            }
            all.push(Event::Change(one));
        }
        for event in all {
            let line = written(&event);
            assert!(!line.contains('\n') && serde_json::from_str::<Json>(&line).is_ok(), "{line}");
            assert_eq!(Event::from_json(line.as_bytes()).as_ref(), Ok(&event), "{line}");
        }
    }

    #[test]
    fn what_is_no_event_says_why() {
        let good = written(&Event::Change(change(Operation::Set)));
        for (from, to, why) in [
            ("\"connector\":\"hashmere\"", "\"connector\":\"mysql\"", "another connector"),
            ("hm1-", "hm2-", "no token"),
            ("\"operation\":\"set\"", "\"operation\":\"swap\"", "swap"),
            ("\"after\":{", "\"afterwards\":{", "`after`"),
            ("\"key\":\"user:7\"", "\"key_base64\":\"*\"", "base64"),
            ("\"flags\":5", "\"flags\":4294967296", "too large"),
            ("\"version\":9", "\"version\":-9", "`version`"),
            ("{\"op\"", "\"op\"", "event"),
        ] {
            let line = good.replace(from, to);
            assert!(line != good);
            let error = Event::from_json(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(Event::from_json(b"{\"control\":\"other\"}").unwrap_err().to_string().contains("other"));
    }
}
