//! Any bytes as printable text on one line, and back.

/// Appends `bytes` to `out` so that what is appended is printable UTF-8 on one line without a tab: `\\`, `\t`, `\n`,
/// `\r`, and `\xNN` for every other control byte and every byte that is not part of valid UTF-8.
pub fn escape_into(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut utf8 = [0; 4];
            let encoded = c.encode_utf8(&mut utf8).as_bytes();
            match c {
                '\\' => out.extend_from_slice(b"\\\\"),
                '\t' => out.extend_from_slice(b"\\t"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                _ if c.is_control() => hex_into(encoded, out),
                _ => out.extend_from_slice(encoded),
            }
        }
        hex_into(chunk.invalid(), out);
    }
}

fn hex_into(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        let digit = |nibble: u8| DIGITS[usize::from(nibble & 15)];
        out.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(*byte)]);
    }
}

/// The escaped form as text, for messages.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    escape_into(bytes, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The opposite of [`escape_into`]; also takes `\0`. What is not escaped stays as it is.
///
/// # Errors
/// What is wrong with it, in words.
pub fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&b| b == b'\\') {
        out.extend_from_slice(&rest[..at]);
        let (byte, used) = escape_at(&rest[at..])?;
        out.push(byte);
        rest = &rest[at + used..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// The byte that the escape at the start of `text` means, and the length of the escape.
fn escape_at(text: &[u8]) -> Result<(u8, usize), String> {
    let hex = |b: Option<&u8>| b.and_then(|b| char::from(*b).to_digit(16));
    match text.get(1) {
        Some(b'\\') => Ok((b'\\', 2)),
        Some(b't') => Ok((b'\t', 2)),
        Some(b'n') => Ok((b'\n', 2)),
        Some(b'r') => Ok((b'\r', 2)),
        Some(b'0') => Ok((0, 2)),
        Some(b'x') => match (hex(text.get(2)), hex(text.get(3))) {
            (Some(high), Some(low)) => Ok(((high * 16 + low) as u8, 4)),
            _ => Err("`\\x` is not followed by two hexadecimal digits".into()),
        },
        Some(other) => Err(format!("unknown escape `\\{}` (known: \\\\ \\t \\n \\r \\0 \\xNN)", escaped(&[*other]))),
        None => Err("a single `\\` at the end (write `\\\\`)".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_survive_escaping() {
        let all: Vec<u8> = (0..=255).chain("é\u{85}€\u{10ffff}".bytes()).collect();
        let mut text = Vec::new();
        escape_into(&all, &mut text);
        assert!(text.iter().all(|b| *b >= b' ') && std::str::from_utf8(&text).is_ok());
        assert_eq!(unescape(&text).unwrap(), all);
        assert_eq!(escaped(b"a\\b\t\n\r\0\xff"), "a\\\\b\\t\\n\\r\\x00\\xff");
    }

    #[test]
    fn bad_escapes_are_named() {
        assert!(unescape(b"a\\q").unwrap_err().contains("\\q"));
        assert!(unescape(b"a\\x1").unwrap_err().contains("hexadecimal"));
        assert!(unescape(b"a\\").unwrap_err().contains("end"));
        assert_eq!(unescape(b"\\0\\xfF").unwrap(), [0, 255]);
    }
}
