//! The key of a request before it is parsed.

use super::binary::{HEADER, REQUEST};
use super::KEY_MAX;

/// `lease-get` and others.
const LONGEST_COMMAND: usize = 9;
/// A line with a length, and the kind in front of it.
const LINE_LONGEST: usize = 12;

/// The probable key of the first request; `None` if it has none, or it is incomplete. Good for a hint only.
pub fn peek_key(input: &[u8]) -> Option<&[u8]> {
    if *input.first()? == REQUEST {
        let length = u16::from_be_bytes([*input.get(2)?, *input.get(3)?]);
        let extras = *input.get(4)?;
        let start = HEADER + usize::from(extras);
        return input.get(start..start + usize::from(length)).filter(|key| !key.is_empty());
    }
    if input.starts_with(b"*") {
        return second_bulk(input);
    }
    let space = input.iter().take(LONGEST_COMMAND + 1).position(|byte| *byte == b' ')?;
    let rest = &input[space + 1..];
    let end = rest.iter().take(KEY_MAX + 1).position(|byte| matches!(byte, b' ' | b'\r' | b'\n'))?;
    (end > 0).then(|| &rest[..end])
}

/// The argument behind the name in a request of Redis' protocol, with at most two digits in the length of the name.
fn second_bulk(input: &[u8]) -> Option<&[u8]> {
    let line_end = |from: usize| {
        let rest = input.get(from..)?;
        rest.iter().take(LINE_LONGEST).position(|byte| *byte == b'\r').map(|end| from + end)
    };
    let name = line_end(0)? + 2;
    let start = line_end(name)? + 2;
    let digits = input.get(name + 1..start - 2)?;
    let skip = std::str::from_utf8(digits).ok()?.parse::<u8>().ok()?;
    let length = start + usize::from(skip) + 2;
    let start = line_end(length)? + 2;
    let digits = input.get(length + 1..start - 2)?;
    let length = std::str::from_utf8(digits).ok()?.parse::<usize>().ok()?;
    input.get(start..start.checked_add(length)?).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::peek_key;

    #[test]
    fn keys_of_whole_and_broken_requests() {
        let binary = |extras: u8, length: u16, rest: &[u8]| {
            let mut request = vec![0x80, 0, (length >> 8) as u8, length as u8, extras];
            request.resize(24, 0);
            request.extend_from_slice(rest);
            request
        };
        let cases: [(&[u8], Option<&[u8]>); 21] = [
            (b"get key\r\n", Some(b"key")),
            (b"get key other\r\n", Some(b"key")),
            (b"prepend key 0 0 1\r\nx\r\n", Some(b"key")),
            (b"mg key v\r\n", Some(b"key")),
            (b"mn\r\n", None),
            (b"get ke", None),
            (b"get  key\r\n", None),
            (b"get \r\n", None),
            (b"lease-get key\r\n", Some(b"key")),
            (b"lease-set key 9 0 0 1\r\nx\r\n", Some(b"key")),
            (b"cache_memlimit 64\r\n", None),
            (b"", None),
            (&binary(0, 3, b"key"), Some(b"key")),
            (&binary(8, 3, b"extras..keyvalue"), Some(b"key")),
            (&binary(8, 300, b"extras..key"), None),
            (&[0x80, 0, 0], None),
            (b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n", Some(b"key")),
            (b"*3\r\n$3\r\nSET\r\n$12\r\nkey and more\r\n$1", Some(b"key and more")),
            (b"*1\r\n$4\r\nPING\r\n", None),
            (b"*2\r\n$3\r\nGET\r\n$99999999999999999999\r\n", None),
            (b"*\r\r\r\r\r\r", None),
        ];
        for (input, expected) in cases {
            assert_eq!(peek_key(input), expected, "{}", input.escape_ascii());
        }
    }
}
