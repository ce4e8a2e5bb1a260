//! JSON lines: one object a line. Bytes that are not UTF-8 are written in base64 under another name.

use crate::Record;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine;
use hashmere::Pair;
use serde::Deserialize;
use std::borrow::Cow;

/// Appends the line of a pair, as `dump` writes it.
pub fn write_record(pair: &Pair, out: &mut Vec<u8>) {
    out.push(b'{');
    bytes_field("key", &pair.key, out);
    out.push(b',');
    bytes_field("value", &pair.value, out);
    attributes(pair, out);
    out.extend_from_slice(b"}\n");
}

/// Appends the line of a pair, as `scan --json` writes it: with version and UID, and without the value if asked.
pub fn write_pair(pair: &Pair, with_value: bool, out: &mut Vec<u8>) {
    out.push(b'{');
    bytes_field("key", &pair.key, out);
    if with_value {
        out.push(b',');
        bytes_field("value", &pair.value, out);
    }
    attributes(pair, out);
    let ids = format!(",\"version\":{},\"uid\":{}}}\n", pair.metadata.version.0, pair.metadata.uid.0);
    out.extend_from_slice(ids.as_bytes());
}

fn attributes(pair: &Pair, out: &mut Vec<u8>) {
    if pair.metadata.flags != 0 {
        out.extend_from_slice(format!(",\"flags\":{}", pair.metadata.flags).as_bytes());
    }
    if let Some(at) = pair.metadata.expires_at_ms {
        out.extend_from_slice(format!(",\"expires_at_ms\":{at}").as_bytes());
    }
}

/// Appends `"name":"text"`, or `"name_base64":"..."` if the bytes are not UTF-8.
pub fn bytes_field(name: &str, bytes: &[u8], out: &mut Vec<u8>) {
    let field = match std::str::from_utf8(bytes) {
        Ok(text) => format!("\"{name}\":{}", serde_json::Value::from(text)),
        Err(_) => format!("\"{name}_base64\":\"{}\"", BASE64.encode(bytes)),
    };
    out.extend_from_slice(field.as_bytes());
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    key: Option<Cow<'a, str>>,
    #[serde(borrow)]
    key_base64: Option<Cow<'a, str>>,
    #[serde(borrow)]
    value: Option<Cow<'a, str>>,
    #[serde(borrow)]
    value_base64: Option<Cow<'a, str>>,
    #[serde(default)]
    flags: u32,
    expires_at_ms: Option<u64>,
    /// In the output of `scan --json`; a loaded key gets new ones.
    #[serde(rename = "version")]
    _version: Option<u64>,
    #[serde(rename = "uid")]
    _uid: Option<u32>,
}

/// Reads a line.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(line: &[u8]) -> Result<Record, String> {
    let line: Line<'_> = serde_json::from_slice(line).map_err(|e| format!("not a JSON record: {}", place(&e)))?;
    Ok(Record {
        key: bytes("key", line.key, line.key_base64)?,
        value: bytes("value", line.value, line.value_base64)?,
        flags: line.flags,
        expires_at_ms: line.expires_at_ms,
    })
}

/// The message of an error without its "line 1", which would be confused with the number of the line.
fn place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line ") {
        Some((what, _)) => format!("{what} at column {}", error.column()),
        None => text,
    }
}

fn bytes(name: &str, text: Option<Cow<'_, str>>, base64: Option<Cow<'_, str>>) -> Result<Vec<u8>, String> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_owned().into_bytes()),
        (None, Some(code)) => BASE64.decode(code.as_bytes()).map_err(|e| format!("\"{name}_base64\": {e}")),
        (None, None) => Err(format!("neither \"{name}\" nor \"{name}_base64\"")),
        (Some(_), Some(_)) => Err(format!("both \"{name}\" and \"{name}_base64\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let record = parse(br#"{"key":"k\u0000\n","value_base64":"/wA=","flags":7,"expires_at_ms":9}"#).unwrap();
        let expected = Record { key: b"k\0\n".into(), value: b"\xff\0".into(), flags: 7, expires_at_ms: Some(9) };
        assert_eq!(record, expected);
        assert_eq!(parse(br#"{"key":"","value":"","version":3,"uid":4}"#).unwrap(), Record::default());
        for (line, why) in [
            (&br#""#[..], "column"),
            (br#"[]"#, "not a JSON record"),
            (br#"{"key":"a"}"#, "neither \"value\""),
            (br#"{"key":"a","key_base64":"","value":""}"#, "both \"key\""),
            (br#"{"key":"a","value_base64":"?"}"#, "value_base64"),
            (br#"{"key":"a","value":"","flags":-1}"#, "column"),
            (br#"{"key":"a","value":"","valeu":""}"#, "valeu"),
            (b"{\"key\":\"\xff\",\"value\":\"\"}", "column"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(why) && !error.contains("line 1"), "{error}");
        }
    }
}
