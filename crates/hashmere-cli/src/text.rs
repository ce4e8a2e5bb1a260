//! Text forms: the escapes of binary data, durations, sizes, grouped numbers.

use bytesize::ByteSize;
use std::str::FromStr;
use std::time::Duration;

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

/// Reads `250ms`, `5s`, `1m30s`, `2h`, `7d`, and the longer units of `humantime`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write for example 250ms, 5s, 1m30s, 2h or 7d"))?;
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return Err("expected whole milliseconds, for example 250ms".into());
    }
    Ok(duration)
}

/// A duration in the form that [`parse_duration`] reads.
pub fn duration(duration: Duration) -> String {
    let mut ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut out = String::new();
    for (unit, scale) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if ms >= scale {
            out.push_str(&format!("{}{unit}", ms / scale));
            ms %= scale;
        }
    }
    if out.is_empty() {
        "0ms".into()
    } else {
        out
    }
}

/// Reads a number of bytes: `4096`, `64K`, `64M`, `1G`, `2T`, also with `B` or `iB` behind the letter (all powers of
/// 1024).
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number of bytes such as 65536, 64K, 64M, 1G or 2T".to_string();
    // To the library `64M` and `64MB` are powers of 1000.
    let text = text.trim().trim_end_matches(['b', 'B']).trim_end_matches(['i', 'I']).trim_end();
    let unit = if text.ends_with(|c: char| c.is_ascii_digit()) { "B" } else { "iB" };
    let size = ByteSize::from_str(&format!("{text}{unit}")).map_err(|_| wrong())?;
    // It says so of all sizes that it cannot represent.
    if size.as_u64() == u64::MAX {
        return Err("too large a size".into());
    }
    Ok(size.as_u64())
}

/// A number of bytes for people: `1.5 MiB`.
pub fn size(bytes: u64) -> String {
    ByteSize(bytes).display().iec().to_string()
}

/// A number with its digits in groups of three: `1,234,567`.
pub fn grouped(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// `1 line`, `2 lines`.
pub fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
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

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1m30s").unwrap(), Duration::from_secs(90));
        assert_eq!(parse_duration("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(parse_duration("2h").unwrap(), Duration::from_secs(7200));
        assert_eq!(parse_duration(" 7d ").unwrap(), Duration::from_secs(604_800));
        assert_eq!(parse_duration("1.5s").unwrap(), Duration::from_millis(1500));
        for bad in ["", "5", "s", "1x", "-1s", "99999999999999999d", "1ns", "0.5ms"] {
            assert!(parse_duration(bad).unwrap_err().contains("250ms"), "{bad}");
        }
        assert_eq!(duration(Duration::from_millis(86_400_000 + 61_005)), "1d1m1s5ms");
        assert_eq!(duration(Duration::ZERO), "0ms");
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("64M").unwrap(), 64 << 20);
        assert_eq!(parse_size("1 GiB").unwrap(), 1 << 30);
        assert_eq!(parse_size("12kb").unwrap(), 12 << 10);
        assert_eq!(parse_size("1.5G").unwrap(), 3 << 29);
        for (text, bytes) in
            [("0", 0), ("4096", 4096), ("7B", 7), ("64K", 64 << 10), ("2TiB", 2 << 40), (" 3 m ", 3 << 20)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "M", "1X", "99999999T", "18446744073709551616", "-1", "1Ki5", "0x10", "b"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!((size(0).as_str(), size(5 << 40).as_str()), ("0 B", "5.0 TiB"));
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
        assert_eq!(plural(1, "line"), "1 line");
    }
}
