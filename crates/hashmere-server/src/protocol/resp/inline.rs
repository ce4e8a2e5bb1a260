//! Inline requests: words between spaces, with quotes as Redis reads them.

use std::ops::Range;

/// Splits a line into words, which are put into `bytes`. `None`: a quote is not closed, or not followed by a space.
pub fn split(line: &[u8], bytes: &mut Vec<u8>, words: &mut Vec<Range<usize>>) -> Option<()> {
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(());
        }
        let start = bytes.len();
        rest = word(rest, bytes)?;
        words.push(start..bytes.len());
    }
}

/// Takes one word; returns what is behind it.
fn word<'a>(text: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' | 0 => break,
            quote @ (b'"' | b'\'') => {
                let behind = quoted(text.get(at + 1..)?, *quote, bytes)?;
                // A closing quote ends its word.
                return behind.first().is_none_or(u8::is_ascii_whitespace).then_some(behind);
            }
            _ => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    // A zero ends the line.
    let rest = text.get(at..).unwrap_or_default();
    Some(if rest.first() == Some(&0) { &[] } else { rest })
}

/// Takes what is in quotes, the first of which is passed; returns what is behind them.
fn quoted<'a>(text: &'a [u8], quote: u8, bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    let hex = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut at = 0;
    loop {
        let byte = *text.get(at)?;
        let next = text.get(at + 1);
        if byte == b'\\' && quote == b'"' && next == Some(&b'x') {
            if let (Some(high), Some(low)) = (hex(text.get(at + 2)), hex(text.get(at + 3))) {
                bytes.push((high << 4 | low) as u8);
                at += 4;
                continue;
            }
        }
        match (byte, next) {
            (b'\\', Some(escaped)) if quote == b'"' => {
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                at += 2;
            }
            (b'\\', Some(b'\'')) if quote == b'\'' => {
                bytes.push(b'\'');
                at += 2;
            }
            (byte, _) if byte == quote => return text.get(at + 1..),
            _ => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_and_without_quotes() {
        let words = |line: &[u8]| {
            let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
            split(line, &mut bytes, &mut ranges)?;
            Some(
                ranges
                    .iter()
                    .map(|range| bytes[range.clone()].escape_ascii().to_string())
                    .collect::<Vec<_>>()
                    .join("|"),
            )
        };
        for (line, expected) in [
            (&b""[..], Some("")),
            (b"  a\tb  ", Some("a|b")),
            (b"a \"\" ''", Some("a||")),
            (b"\"a\\x41\\n\\q\\\"\" 'it\\'s \\n'", Some("aA\\nq\\\"|it\\'s \\\\n")),
            (b"\"\\xzz\"", Some("xzz")),
            (b"a\"b c\"", Some("ab c")),
            (b"a \"b", None),
            (b"'a", None),
            (b"\"a\"b", None),
            (b"\"a\\", None),
        ] {
            assert_eq!(words(line).as_deref(), expected, "{}", line.escape_ascii());
        }
    }
}
