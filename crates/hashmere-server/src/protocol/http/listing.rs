//! The keys of the store as JSON, some at a time.

use super::guard;
use super::head::Head;
use super::json::{put_bytes, Object};
use super::reply::{Answer, Refusal, JSON};
use crate::commands::marks;
use crate::protocol::OUTPUT_MAX;
use crate::turn::Turn;
use hashmere::{Cursor, Filter};
use serde_json::{json, Value};

/// Most keys of one reply.
pub const KEYS_MAX: usize = 1000;
/// Keys if the request does not say.
const KEYS: u64 = 100;
/// Places of the index that are looked at for one reply, whether there are keys in them or not.
const PLACES: usize = 1 << 14;

/// Lists keys, from a cursor on.
pub fn run(turn: &mut Turn<'_>, head: &Head<'_>, answer: &Answer<'_>) -> Result<(), Refusal> {
    guard::check_names(turn.server)?;
    let prefix = head.query_value("prefix")?.unwrap_or_default();
    let from = head.query_number("cursor")?.unwrap_or(0);
    let most = head.query_number("limit")?.unwrap_or(KEYS).clamp(1, KEYS_MAX as u64) as usize;
    let filter = Filter::all().prefix(prefix).keys_only();
    let mut scan = turn.server.store.scan(Cursor(from), filter);
    let (mut places, mut keys, mut bytes) = (PLACES, Vec::new(), 0);
    while keys.len() < most && bytes < OUTPUT_MAX {
        let Some(pair) = scan.next_within(&mut places) else { break };
        let pair = pair.map_err(|error| Refusal::new(400, error.to_string()))?;
        if marks::is_hidden(pair.metadata.marks) {
            continue;
        }
        bytes += pair.key.len();
        let mut key = Object::new();
        put_bytes(&mut key, "key", &pair.key);
        key.insert("version".into(), turn.cas(pair.metadata.version).into());
        key.insert("value_len".into(), pair.metadata.value_len.into());
        key.insert("flags".into(), pair.metadata.flags.into());
        key.insert("expires_at_ms".into(), pair.metadata.expires_at_ms.map_or(Value::Null, Value::from));
        keys.push(Value::Object(key));
    }
    // As text: the numbers of JSON are exact up to 2^53 in many languages.
    let cursor = scan.cursor().map_or(Value::Null, |cursor| cursor.0.to_string().into());
    let body = json!({ "keys": keys, "cursor": cursor }).to_string();
    answer.whole(&mut turn.out.bytes, 200, JSON, body.as_bytes());
    Ok(())
}
