//! Several operations as one transaction.
//!
//! ```text
//! [{"op":"set","key":"a","value":"1","ttl":60},{"op":"incr","key":"n","by":2,"initial":0}]
//! {"if":[{"key":"a","version":17}],"operations":[..]}
//! ```

use super::guard;
use super::json::{put_bytes, take_bytes, Object};
use super::record::{parse_ttl, refusal_of};
use super::reply::{Answer, Refusal, JSON};
use crate::commands::set;
use crate::turn::Turn;
use hashmere::{Attributes, BatchResult, Condition, Counter, Ttl, Version, WriteBatch};
use serde_json::{json, Value};

/// Most operations of one request.
pub const OPERATIONS_MAX: usize = 1000;

/// A condition, with the bytes that it is about.
enum Holds {
    Absent,
    Present,
    Version(u64),
    Value(Vec<u8>),
}

/// Performs a bulk request.
pub fn run(turn: &mut Turn<'_>, body: &[u8], answer: &Answer<'_>) -> Result<(), Refusal> {
    let parsed: Value =
        serde_json::from_slice(body).map_err(|error| Refusal::new(400, format!("the body is not JSON: {error}")))?;
    let (conditions, operations) = match parsed {
        Value::Array(operations) => (Vec::new(), operations),
        Value::Object(mut object) => match (object.remove("if"), object.remove("operations")) {
            (Some(Value::Array(conditions)), Some(Value::Array(operations))) => (conditions, operations),
            (None, Some(Value::Array(operations))) => (Vec::new(), operations),
            _ => return Err(shape()),
        },
        _ => return Err(shape()),
    };
    if operations.len() + conditions.len() > OPERATIONS_MAX {
        return Err(Refusal::new(413, format!("a bulk request has at most {OPERATIONS_MAX} operations")));
    }
    let mut batch = WriteBatch::new();
    let mut writes = false;
    for (index, operation) in operations.iter().enumerate() {
        writes |= add(turn, &mut batch, operation).map_err(|refusal| at(index, refusal))?;
    }
    if writes {
        guard::check_write(turn.server)?;
    }
    let conditions = conditions.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    let borrowed: Vec<Condition<'_>> = conditions
        .iter()
        .map(|(key, holds)| match holds {
            Holds::Absent => Condition::Absent(key),
            Holds::Present => Condition::Present(key),
            Holds::Version(version) => Condition::Version(key, Version(*version)),
            Holds::Value(value) => Condition::Value(key, value),
        })
        .collect();
    let store = &turn.server.store;
    let done = store.write_batch_if(&borrowed, &batch, &WriteBatch::new()).map_err(|error| refusal_of(turn, &error))?;
    if !done.succeeded {
        return Err(Refusal::new(412, "a condition does not hold; nothing was changed"));
    }
    let results: Vec<Value> = done.results.iter().map(|result| shown(turn, result)).collect();
    let body = json!({ "results": results }).to_string();
    answer.whole(&mut turn.out.bytes, 200, JSON, body.as_bytes());
    Ok(())
}

fn shape() -> Refusal {
    Refusal::new(400, "the body is an array of operations, or an object with `operations` and `if`")
}

fn at(index: usize, refusal: Refusal) -> Refusal {
    Refusal { text: format!("operation {index}: {}", refusal.text).into(), ..refusal }
}

fn object_with_key(value: &Value) -> Result<(&Object, Vec<u8>), Refusal> {
    let object = value.as_object().ok_or_else(|| Refusal::new(400, "an object is expected"))?;
    match take_bytes(object, "key")? {
        Some(key) if !key.is_empty() => Ok((object, key)),
        _ => Err(Refusal::new(400, "`key` or `key_base64` is needed")),
    }
}

/// Adds an operation; whether it is a change.
fn add(turn: &Turn<'_>, batch: &mut WriteBatch, operation: &Value) -> Result<bool, Refusal> {
    let (object, key) = object_with_key(operation)?;
    let value = || -> Result<Vec<u8>, Refusal> {
        let value = take_bytes(object, "value")?;
        let value = value.ok_or_else(|| Refusal::new(400, "`value` or `value_base64` is needed"))?;
        if set::fits(turn, &key, 0, value.len() as u64) {
            Ok(value)
        } else {
            Err(Refusal::new(413, "the item is larger than an item may be (-I)"))
        }
    };
    let attributes = || -> Result<Attributes, Refusal> {
        let flags = number(object, "flags")?.unwrap_or(0);
        let flags = u32::try_from(flags).map_err(|_| Refusal::new(400, "`flags` is a number below 2^32"))?;
        Ok(Attributes::NONE.flags(flags).ttl(ttl(object)?))
    };
    match object.get("op").and_then(Value::as_str) {
        Some("get") => {
            batch.get(&key);
            return Ok(false);
        }
        Some("set") => batch.set_with(&key, value()?, attributes()?),
        Some("delete") => batch.delete(&key),
        Some("append") => batch.append(&key, value()?),
        Some("prepend") => batch.prepend(&key, value()?),
        Some("touch") => batch.touch(&key, ttl(object)?),
        Some("incr") => {
            let counter = Counter { initial: number(object, "initial")?, attributes: attributes()? };
            batch.incr(&key, integer(object, "by")?.unwrap_or(1), counter)
        }
        Some("incr_signed") => {
            let counter = Counter { initial: integer(object, "initial")?, attributes: attributes()? };
            batch.incr_signed(&key, integer(object, "by")?.unwrap_or(1), counter)
        }
        Some("incr_float") => {
            let counter = Counter { initial: fraction(object, "initial")?, attributes: attributes()? };
            let by = fraction(object, "by")?.ok_or_else(|| Refusal::new(400, "`by` is needed"))?;
            batch.incr_float(&key, by, counter)
        }
        _ => {
            const OPERATIONS: &str =
                "`op` is get, set, delete, incr, incr_signed, incr_float, append, prepend or touch";
            return Err(Refusal::new(400, OPERATIONS));
        }
    };
    Ok(true)
}

fn number(object: &Object, name: &str) -> Result<Option<u64>, Refusal> {
    let bad = || Refusal::new(400, format!("`{name}` is a number"));
    object.get(name).map(|value| value.as_u64().ok_or_else(bad)).transpose()
}

fn integer(object: &Object, name: &str) -> Result<Option<i64>, Refusal> {
    let bad = || Refusal::new(400, format!("`{name}` is an integer from -2^63 to 2^63 - 1"));
    object.get(name).map(|value| value.as_i64().ok_or_else(bad)).transpose()
}

fn fraction(object: &Object, name: &str) -> Result<Option<f64>, Refusal> {
    let bad = || Refusal::new(400, format!("`{name}` is a number"));
    object.get(name).map(|value| value.as_f64().ok_or_else(bad)).transpose()
}

/// A time to live is a number of seconds; `null` and none: never.
fn ttl(object: &Object) -> Result<Ttl, Refusal> {
    match object.get("ttl") {
        None | Some(Value::Null) => Ok(Ttl::Never),
        Some(Value::Number(seconds)) => parse_ttl(seconds.to_string().as_bytes()),
        Some(_) => Err(Refusal::new(400, "`ttl` is a number of seconds")),
    }
}

fn condition(value: &Value) -> Result<(Vec<u8>, Holds), Refusal> {
    let (object, key) = object_with_key(value)?;
    let bad = || Refusal::new(400, "a condition has `version`, `value`, or `present` true or false");
    let holds = match (number(object, "version")?, take_bytes(object, "value")?, object.get("present")) {
        (Some(version), None, None) => Holds::Version(version),
        (None, Some(value), None) => Holds::Value(value),
        (None, None, Some(Value::Bool(true))) => Holds::Present,
        (None, None, Some(Value::Bool(false))) => Holds::Absent,
        _ => return Err(bad()),
    };
    Ok((key, holds))
}

fn shown(turn: &Turn<'_>, result: &BatchResult) -> Value {
    match result {
        BatchResult::Stored(stored) => json!({ "version": turn.cas(stored.version) }),
        BatchResult::Deleted(was) => json!({ "deleted": was }),
        BatchResult::Counted(number) => json!({ "number": number }),
        BatchResult::CountedSigned(number) => json!({ "number": number }),
        BatchResult::CountedFloat(number) => json!({ "number": number }),
        BatchResult::Extended(was) => json!({ "extended": was }),
        BatchResult::Touched(was) => json!({ "touched": was }),
        BatchResult::Item(None) => json!({ "value": null }),
        BatchResult::Item(Some(item)) => {
            let mut object = Object::new();
            put_bytes(&mut object, "value", &item.value);
            object.insert("version".into(), turn.cas(item.metadata.version).into());
            object.insert("flags".into(), item.metadata.flags.into());
            object.insert("expires_at_ms".into(), item.metadata.expires_at_ms.map_or(Value::Null, Value::from));
            Value::Object(object)
        }
        // A result of a later version of the engine.
        _ => json!({}),
    }
}
