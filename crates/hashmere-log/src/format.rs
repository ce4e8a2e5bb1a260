//! Lines as text and as JSON.

use crate::line::{Level, LogLine, Value};
use std::io::Write;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// `2026-11-22T01:12:56.123456Z INFO web[4711] 3: text key=value`. Control characters are escaped; a line break
    /// within a line is followed by a tab, so what does not begin with one is the start of a line.
    #[default]
    Text,
    /// The same with colours for a terminal.
    Colour,
    /// One object a line: `time`, `level`, `process`, `pid`, `thread`, `text`, and where they apply `fields`, `lost`,
    /// `more`, `continued`, `note`.
    Json,
}

impl Format {
    /// Appends the line to `out`, with its line break.
    pub fn write(self, record: &LogLine, out: &mut Vec<u8>) {
        match self {
            Format::Text => text(record, None, out),
            Format::Colour => text(record, Some(colour(record.level())), out),
            Format::Json => json(record, out),
        }
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::Error => "\x1b[31m",
        Level::Warn => "\x1b[33m",
        Level::Info => "\x1b[32m",
        Level::Debug => "\x1b[34m",
        Level::Trace => "\x1b[2m",
    }
}

fn digits(mut number: u64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + width, b'0');
    for place in out[start..].iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Appends a time of the proleptic Gregorian calendar, in UTC, to the microsecond.
fn time(ns: u64, out: &mut Vec<u8>) {
    let (seconds, micros) = (ns / 1_000_000_000, ns % 1_000_000_000 / 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that a leap day is the last of its year; 400 of them have 146,097 days.
    let z = days + 719_468;
    let (era, day) = (z / 146_097, z % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    for (number, width, mark) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (second / 3600, 2, b':'),
        (second / 60 % 60, 2, b':'),
        (second % 60, 2, b'.'),
        (micros, 6, b'Z'),
    ] {
        digits(number, width, out);
        out.push(mark);
    }
}

/// Appends bytes of a line: what could be taken for something else on a terminal or in a file of lines is escaped.
fn plain(bytes: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| *byte >= b' ' && *byte != 0x7f || *byte == b'\t';
    if bytes.iter().all(is_plain) {
        return out.extend_from_slice(bytes);
    }
    for byte in bytes {
        match byte {
            b'\n' => out.extend_from_slice(b"\n\t"),
            byte if is_plain(byte) => out.push(*byte),
            byte => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}

/// Appends a name, of a process or a field, in which there is no line break either: it is in the first line of the
/// text.
fn word(bytes: &[u8], out: &mut Vec<u8>) {
    for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\t')) {
        match part.split_last() {
            Some((b'\n', before)) => {
                plain(before, out);
                out.extend_from_slice(b"\\x0a");
            }
            Some((b'\t', before)) => {
                plain(before, out);
                out.extend_from_slice(b"\\x09");
            }
            _ => plain(part, out),
        }
    }
}

fn value(value: Value<'_>, out: &mut Vec<u8>) {
    let _ = match value {
        Value::Text(text) => {
            let is_word =
                !text.is_empty() && text.iter().all(|byte| byte.is_ascii_graphic() && !b"=\"\\".contains(byte));
            if is_word {
                out.extend_from_slice(text);
            } else {
                string(text, out);
            }
            Ok(())
        }
        Value::Signed(number) => write!(out, "{number}"),
        Value::Unsigned(number) => write!(out, "{number}"),
        Value::Float(number) => write!(out, "{number}"),
        Value::Truth(truth) => write!(out, "{truth}"),
    };
}

fn text(record: &LogLine, colour: Option<&str>, out: &mut Vec<u8>) {
    let (on, off) = colour.map_or(("", ""), |on| (on, "\x1b[0m"));
    if record.lost > 0 {
        time(record.time_ns, out);
        let _ = write!(out, " {on}WARN {off} ");
        who(record, out);
        let _ = writeln!(out, ": {} lines were lost here: the ring was full", record.lost);
    }
    if record.is_note() {
        return;
    }
    time(record.time_ns, out);
    let _ = write!(out, " {on}{:<5}{off} ", record.level());
    who(record, out);
    out.extend_from_slice(if record.is_continuation() { b": ..." } else { b": " });
    let body = record.text();
    // A caller that logs a line with its line break means one line.
    plain(body.strip_suffix(b"\n").unwrap_or(body), out);
    for (key, field) in record.fields() {
        out.push(b' ');
        word(key, out);
        out.push(b'=');
        value(field, out);
    }
    out.extend_from_slice(if record.is_continued() { b"...\n" } else { b"\n" });
}

fn who(record: &LogLine, out: &mut Vec<u8>) {
    if record.thread() == 0 {
        return out.extend_from_slice(b"several threads");
    }
    word(record.process(), out);
    let _ = write!(out, "[{}] {}", record.pid(), record.thread());
}

/// Appends a JSON string. Bytes that are not UTF-8 become U+FFFD.
fn string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\t' => out.extend_from_slice(b"\\t"),
                0..=0x1f | 0x7f => {
                    let _ = write!(out, "\\u{byte:04x}");
                }
                _ => out.push(byte),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

fn json(record: &LogLine, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"time\":\"");
    time(record.time_ns, out);
    let _ = write!(out, "\",\"level\":\"{}\",\"process\":", record.level().name().to_ascii_lowercase());
    string(record.process(), out);
    let _ = write!(out, ",\"pid\":{},\"thread\":{},\"text\":", record.pid(), record.thread());
    string(record.text(), out);
    let mut before: &[u8] = b",\"fields\":{";
    for (key, field) in record.fields() {
        out.extend_from_slice(before);
        before = b",";
        string(key, out);
        out.push(b':');
        match field {
            Value::Text(text) => string(text, out),
            // JSON has no such numbers.
            Value::Float(number) if !number.is_finite() => string(number.to_string().as_bytes(), out),
            field => value(field, out),
        }
    }
    if before == b"," {
        out.push(b'}');
    }
    if record.lost > 0 {
        let _ = write!(out, ",\"lost\":{}", record.lost);
    }
    let flags = [(record.is_continued(), "more"), (record.is_continuation(), "continued"), (record.is_note(), "note")];
    for (flag, name) in flags {
        if flag {
            let _ = write!(out, ",\"{name}\":true");
        }
    }
    out.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::flag;
    use crate::line::{encode_field, encode_text};

    fn record(text: &[u8]) -> LogLine {
        let mut name = [0; 16];
        name[..3].copy_from_slice(b"web");
        LogLine {
            time_ns: 951_782_399_123_456_789,
            who: 3 << 32 | 4711,
            name,
            level: 2,
            payload: text.to_vec(),
            ..LogLine::default()
        }
    }

    fn written(format: Format, record: &LogLine) -> String {
        let mut out = Vec::new();
        format.write(record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_has_one_line_and_cannot_be_forged() {
        let line = written(Format::Text, &record(b"hello\n"));
        assert_eq!(line, "2000-02-28T23:59:59.123456Z WARN  web[4711] 3: hello\n");
        let line = written(Format::Text, &record(b"a\n2000-02-29 forged\x1b[2J"));
        assert!(line.ends_with("3: a\n\t2000-02-29 forged\\x1b[2J\n"), "{line}");
        let mut renamed = record(b"a");
        renamed.name[..3].copy_from_slice(b"w\n\t");
        renamed.flags = flag::FIELDS;
        encode_text(b"a", &mut renamed.payload);
        encode_field(b"k\n2000", 7u64.into(), &mut renamed.payload);
        assert!(written(Format::Text, &renamed).ends_with(" WARN  w\\x0a\\x09[4711] 3: a k\\x0a2000=7\n"));
        let mut later = record(b"");
        later.time_ns += 1_000_000_000;
        later.lost = 7;
        let line = written(Format::Text, &later);
        assert!(line.starts_with("2000-02-29T00:00:00.123456Z WARN  web[4711] 3: 7 lines were lost here"), "{line}");
    }

    #[test]
    fn a_note_is_one_line() {
        let mut note = LogLine { level: 0, lost: 7, ..record(b"") };
        let line = written(Format::Text, &note);
        assert_eq!(line, "2000-02-28T23:59:59.123456Z WARN  web[4711] 3: 7 lines were lost here: the ring was full\n");
        assert!(written(Format::Json, &note).ends_with(",\"thread\":3,\"text\":\"\",\"lost\":7,\"note\":true}\n"));
        (note.who, note.name) = (0, [0; 16]);
        assert!(written(Format::Text, &note).contains("Z WARN  several threads: 7 lines were lost"));
    }

    #[test]
    fn fields_in_both_forms() {
        let mut record = record(b"");
        record.flags = flag::FIELDS;
        encode_text(b"a \"b\"", &mut record.payload);
        encode_field(b"user", "Ada L".into(), &mut record.payload);
        encode_field(b"n", 7u64.into(), &mut record.payload);
        encode_field(b"bad", Value::Text(b"\xff"), &mut record.payload);
        assert!(written(Format::Text, &record).ends_with(": a \"b\" user=\"Ada L\" n=7 bad=\"\u{fffd}\"\n"));
        let json = written(Format::Json, &record);
        let end = r#","text":"a \"b\"","fields":{"user":"Ada L","n":7,"bad":"�"}}"#;
        assert!(json.starts_with("{\"time\":\"2000-02-28T23:59:59.123456Z\",\"level\":\"warn\",\"process\":\"web\","));
        assert!(json.ends_with(&format!("{end}\n")), "{json}");
    }
}
