//! Text forms: the escapes of binary data, durations, sizes, grouped numbers.

use bytesize::ByteSize;
pub use hashmere_dump::text::{escape_into, escaped, unescape};
use std::str::FromStr;
use std::time::Duration;

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
