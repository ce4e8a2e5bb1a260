//! Tab-separated lines: `key TAB value`, then the flags and the expiry if there are any.

use crate::text::{escape_into, unescape};
use crate::Record;
use hashmere::Pair;

/// Appends the line of a pair.
pub fn write(pair: &Pair, out: &mut Vec<u8>) {
    escape_into(&pair.key, out);
    out.push(b'\t');
    escape_into(&pair.value, out);
    if pair.metadata.flags != 0 || pair.metadata.expires_at_ms.is_some() {
        out.extend_from_slice(format!("\t{}", pair.metadata.flags).as_bytes());
    }
    if let Some(at) = pair.metadata.expires_at_ms {
        out.extend_from_slice(format!("\t{at}").as_bytes());
    }
    out.push(b'\n');
}

/// Reads a line. A carriage return at its end belongs to the line end (one in the data is escaped).
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(line: &[u8]) -> Result<Record, String> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut fields = line.split(|&b| b == b'\t');
    let key = fields.next().unwrap_or_default();
    let value = fields.next().ok_or("no tab: a line is key TAB value [TAB flags [TAB expires_at_ms]]")?;
    let record = Record {
        key: unescape(key).map_err(|e| format!("in the key: {e}"))?,
        value: unescape(value).map_err(|e| format!("in the value: {e}"))?,
        flags: fields.next().map_or(Ok(0), |field| number(field, "flags", "a whole number below 2^32"))?,
        expires_at_ms: match fields.next() {
            Some(field) => Some(number(field, "expiry", "milliseconds since 1970")?),
            None => None,
        },
    };
    if fields.next().is_some() {
        return Err("more than four fields (a tab in the data is written \\t)".into());
    }
    Ok(record)
}

fn number<N: std::str::FromStr>(field: &[u8], name: &str, expected: &str) -> Result<N, String> {
    let parsed = std::str::from_utf8(field).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| format!("the {name} `{}` is not {expected}", crate::text::escaped(field)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let record = parse(b"k\\t\tv\\x00\t7\t1000\r").unwrap();
        let expected = Record { key: b"k\t".into(), value: b"v\0".into(), flags: 7, expires_at_ms: Some(1000) };
        assert_eq!(record, expected);
        assert_eq!(parse(b"\t").unwrap(), Record::default());
        for (line, why) in [
            (&b""[..], "no tab"),
            (b"k", "no tab"),
            (b"k\\q\tv", "in the key"),
            (b"k\tv\\", "in the value"),
            (b"k\tv\tx", "flags `x`"),
            (b"k\tv\t4294967296", "2^32"),
            (b"k\tv\t1\t-1", "expiry"),
            (b"k\tv\t1\t1\t1", "more than four"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
