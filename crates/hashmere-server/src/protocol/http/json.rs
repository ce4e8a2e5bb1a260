//! JSON, written and read: bytes that are no text are in base64 under another name.

use super::reply::Refusal;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine;
use serde_json::{Map, Value};

/// An object of JSON.
pub type Object = Map<String, Value>;

/// Puts bytes: as `name`, or as `name_base64`.
pub fn put_bytes(object: &mut Object, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.into(), text.into()),
        Err(_) => object.insert(format!("{name}_base64"), BASE64.encode(bytes).into()),
    };
}

/// Takes bytes that are there as `name` or as `name_base64`.
pub fn take_bytes(object: &Object, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
    let encoded = object.get(&format!("{name}_base64"));
    match (object.get(name), encoded) {
        (None, None) => Ok(None),
        (Some(Value::String(text)), None) => Ok(Some(text.clone().into_bytes())),
        (None, Some(Value::String(text))) => match BASE64.decode(text) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => Err(Refusal::new(400, format!("`{name}_base64`: {error}"))),
        },
        _ => Err(Refusal::new(400, format!("`{name}` is a string, or `{name}_base64` is one, not both"))),
    }
}
