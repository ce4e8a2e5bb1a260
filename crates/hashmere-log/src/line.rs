//! A line as a reader of the log sees it: level, fields, process, thread and time.

use crate::layout::{flag, name, Head, NOTE};
use std::fmt;
use std::time::{Duration, SystemTime};

/// How important a line is. A smaller number is more important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// Something failed.
    Error = 1,
    /// Something may be wrong.
    Warn = 2,
    /// What an operator wants to know.
    Info = 3,
    /// What a developer wants to know.
    Debug = 4,
    /// Everything.
    Trace = 5,
}

impl Level {
    /// All of them, the most important first.
    pub const ALL: [Level; 5] = [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];

    /// By its number, 1 to 5.
    pub fn from_number(number: u64) -> Option<Level> {
        Level::ALL.into_iter().find(|level| *level as u64 == number)
    }

    /// Its name in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "ERROR",
            Level::Warn => "WARN",
            Level::Info => "INFO",
            Level::Debug => "DEBUG",
            Level::Trace => "TRACE",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Level {
    type Err = crate::LogError;

    fn from_str(text: &str) -> Result<Level, crate::LogError> {
        let found = Level::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(text));
        found.ok_or(crate::LogError::BadOption("a level is error, warn, info, debug or trace"))
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Text, or any bytes.
    Text(&'a [u8]),
    /// A signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// A number with a fraction.
    Float(f64),
    /// True or false.
    Truth(bool),
}

macro_rules! value_from {
    ($($type:ty => $variant:ident as $inner:ty),* $(,)?) => {$(
        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Value::$variant(<$inner>::from(value))
            }
        }
    )*};
}
value_from!(i8 => Signed as i64, i16 => Signed as i64, i32 => Signed as i64, i64 => Signed as i64,
    u8 => Unsigned as u64, u16 => Unsigned as u64, u32 => Unsigned as u64, u64 => Unsigned as u64,
    f32 => Float as f64, f64 => Float as f64, bool => Truth as bool);

impl From<usize> for Value<'_> {
    fn from(value: usize) -> Self {
        Value::Unsigned(value as u64)
    }
}
impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Value::Text(value.as_bytes())
    }
}
impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Value::Text(value)
    }
}

/// Appends one field to a payload. Keys are cut after 255 bytes.
pub(crate) fn encode_field(key: &[u8], value: Value<'_>, payload: &mut Vec<u8>) {
    let key = &key[..key.len().min(255)];
    payload.push(key.len() as u8);
    payload.extend_from_slice(key);
    match value {
        Value::Text(text) => {
            payload.push(0);
            payload.extend_from_slice(&(text.len() as u32).to_le_bytes());
            payload.extend_from_slice(text);
        }
        Value::Signed(number) => {
            payload.push(1);
            payload.extend_from_slice(&number.to_le_bytes());
        }
        Value::Unsigned(number) => {
            payload.push(2);
            payload.extend_from_slice(&number.to_le_bytes());
        }
        Value::Float(number) => {
            payload.push(3);
            payload.extend_from_slice(&number.to_le_bytes());
        }
        Value::Truth(truth) => payload.extend_from_slice(&[4, u8::from(truth)]),
    }
}

/// Starts a payload with fields.
pub(crate) fn encode_text(text: &[u8], payload: &mut Vec<u8>) {
    payload.clear();
    payload.extend_from_slice(&(text.len() as u32).to_le_bytes());
    payload.extend_from_slice(text);
}

/// The fields of a record, in the order in which they were given.
#[derive(Clone, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn field(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        let [length] = self.take()?;
        let key = self.bytes(length.into())?;
        let [kind] = self.take()?;
        let value = match kind {
            0 => {
                let length = u32::from_le_bytes(self.take()?);
                Value::Text(self.bytes(length as usize)?)
            }
            1 => Value::Signed(i64::from_le_bytes(self.take()?)),
            2 => Value::Unsigned(u64::from_le_bytes(self.take()?)),
            3 => Value::Float(f64::from_le_bytes(self.take()?)),
            4 => Value::Truth(self.take::<1>()? != [0]),
            _ => return None,
        };
        Some((key, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        field
    }
}

/// A line of the log.
#[derive(Clone, Debug, Default)]
pub struct LogLine {
    pub(crate) position: u64,
    pub(crate) time_ns: u64,
    pub(crate) who: u64,
    pub(crate) name: [u8; name::TEXT_MAX],
    pub(crate) lost: u32,
    pub(crate) level: u64,
    pub(crate) flags: u64,
    pub(crate) payload: Vec<u8>,
}

impl LogLine {
    pub(crate) fn take_head(&mut self, head: Head) {
        self.level = head.level;
        self.flags = head.flags;
    }

    /// Its position in the log: grows from line to line, and is never used again.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Nanoseconds since 1970 at which it was logged, in UTC.
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// The same as a time.
    pub fn time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.time_ns)
    }

    /// Its level; that of a [note](Self::is_note) is `Warn`.
    pub fn level(&self) -> Level {
        Level::from_number(self.level).unwrap_or(if self.is_note() { Level::Warn } else { Level::Info })
    }

    /// Whether it was not logged: it only tells how many lines were [lost](Self::lost), those of a thread that has
    /// left, or that had its ring before another one did.
    pub fn is_note(&self) -> bool {
        self.level == NOTE
    }

    /// A small number that the thread has had since its first line in this log, and no other thread has. 0, in a note:
    /// several threads.
    pub fn thread(&self) -> u32 {
        (self.who >> 32) as u32
    }

    /// Process id, in the PID namespace of the process.
    pub fn pid(&self) -> u32 {
        self.who as u32
    }

    /// What the process calls itself, its first 16 bytes.
    pub fn process(&self) -> &[u8] {
        let len = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        &self.name[..len]
    }

    /// How many lines of this thread were lost before this one, because its ring was full; all that a
    /// [note](Self::is_note) says.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Whether the thread's next line continues this one, which was too long.
    pub fn is_continued(&self) -> bool {
        self.flags & flag::MORE != 0
    }

    /// Whether it continues the thread's line before.
    pub fn is_continuation(&self) -> bool {
        self.flags & flag::CONTINUED != 0
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        if self.flags & flag::FIELDS == 0 {
            return (&self.payload, &[]);
        }
        let Some((length, rest)) = self.payload.split_first_chunk() else { return (&[], &[]) };
        rest.split_at_checked(u32::from_le_bytes(*length) as usize).unwrap_or((rest, &[]))
    }

    /// What was logged: any bytes.
    pub fn text(&self) -> &[u8] {
        self.parts().0
    }

    /// Its fields.
    pub fn fields(&self) -> Fields<'_> {
        Fields(self.parts().1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip_and_damage_ends_them() {
        let fields: [(&[u8], Value); 5] = [
            (b"a", Value::Text(b"x=1")),
            (b"", Value::Signed(-3)),
            (b"u", u64::MAX.into()),
            (b"f", 0.5.into()),
            (b"t", true.into()),
        ];
        let mut record = LogLine { flags: flag::FIELDS, ..LogLine::default() };
        encode_text(b"hello", &mut record.payload);
        fields.iter().for_each(|(key, value)| encode_field(key, *value, &mut record.payload));
        assert_eq!(record.text(), b"hello");
        assert_eq!(record.fields().collect::<Vec<_>>(), fields);
        while record.payload.pop().is_some() {
            assert!(record.fields().count() < 5);
        }
    }
}
