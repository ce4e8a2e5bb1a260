//! The structures of `hashmere_log.h`, field by field, and how they become Rust's own. The header says what the fields
//! mean.

#![allow(missing_docs)]

use crate::abi::HmBytes;
use crate::args::{Bytes, Versioned};
use crate::failure::Failure;
use hashmere_log::{Level, LogLine, LogStats, RingStats, Value};
use std::ffi::{c_char, c_int, c_void};
use std::mem::size_of;

/// `hm_log_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmLogOptions {
    pub size: usize,
    pub flags: u64,
    pub rings: u64,
    pub ring_bytes: u64,
    pub history_bytes: u64,
    pub level: u64,
    pub on_full: u64,
    pub full_timeout_ms: u64,
    pub on_no_drainer: u64,
    pub on_too_long: u64,
}

/// `hm_field`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmField {
    pub key: HmBytes,
    pub kind: u32,
    pub truth: u32,
    pub text: HmBytes,
    pub integer: i64,
    pub natural: u64,
    pub real: f64,
}

/// `hm_line`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmLine {
    pub text: HmBytes,
    pub fields: *const HmField,
    pub field_count: usize,
    pub process: HmBytes,
    pub position: u64,
    pub time_ns: u64,
    pub level: i32,
    pub pid: u32,
    pub thread: u32,
    pub lost: u32,
    pub flags: u32,
    pub reserved: u32,
}

/// `hm_drain_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmDrainOptions {
    pub size: usize,
    pub flags: u64,
    pub to: u64,
    pub format: u64,
    pub level: u64,
    pub fd: i64,
    pub path: *const c_char,
    pub max_bytes: u64,
    pub keep: u64,
    pub show: Option<HmShowLine>,
    pub user: *mut c_void,
}

/// `hm_log_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmLogStats {
    pub size: usize,
    pub bytes: u64,
    pub rings: u64,
    pub ring_bytes: u64,
    pub history_bytes: u64,
    pub line_max: u64,
    pub rings_used: u64,
    pub bytes_waiting: u64,
    pub bytes_undelivered: u64,
    pub lines: u64,
    pub lost: u64,
    pub halves: u64,
    pub threads: u64,
    pub drainer_pid: u64,
}

/// `hm_ring`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmRing {
    pub ring: u64,
    pub is_owned: u32,
    pub thread: u32,
    pub pid: u32,
    pub reserved: u32,
    pub process: HmBytes,
    pub bytes_waiting: u64,
    pub unreported_drops: u64,
}

/// `hm_show_name`.
pub type HmShowName = extern "C" fn(user: *mut c_void, name: HmBytes) -> c_int;

/// `hm_show_ring`.
pub type HmShowRing = extern "C" fn(user: *mut c_void, ring: *const HmRing) -> c_int;

/// `hm_show_line`.
pub type HmShowLine = extern "C" fn(user: *mut c_void, line: *const HmLine);

// SAFETY: it is.
unsafe impl Versioned for HmLogOptions {
    const NAME: &'static str = "options";
}
// SAFETY: it is; a callback that is missing is all zero.
unsafe impl Versioned for HmDrainOptions {
    const NAME: &'static str = "options";
}
// SAFETY: it is.
unsafe impl Versioned for HmLogStats {
    const NAME: &'static str = "stats";
}

impl From<LogStats> for HmLogStats {
    fn from(s: LogStats) -> HmLogStats {
        HmLogStats {
            size: 0,
            bytes: s.bytes,
            rings: s.rings,
            ring_bytes: s.ring_bytes,
            history_bytes: s.history_bytes,
            line_max: s.line_max,
            rings_used: s.rings_used,
            bytes_waiting: s.waiting_bytes,
            bytes_undelivered: s.undelivered_bytes,
            lines: s.lines,
            lost: s.lost,
            halves: s.halves,
            threads: s.threads,
            drainer_pid: s.drainer.unwrap_or(0).into(),
        }
    }
}

impl HmRing {
    /// The ring, good as long as what it was made of.
    pub(crate) fn of(stats: &RingStats) -> HmRing {
        HmRing {
            ring: stats.ring,
            is_owned: stats.is_owned.into(),
            thread: stats.thread,
            pid: stats.pid,
            reserved: 0,
            process: stats.process.as_slice().into(),
            bytes_waiting: stats.waiting_bytes,
            unreported_drops: stats.unreported_drops,
        }
    }
}

/// A level by its number.
#[inline(always)]
pub(crate) fn level_of(number: c_int) -> Option<Level> {
    match number {
        1 => Some(Level::Error),
        2 => Some(Level::Warn),
        3 => Some(Level::Info),
        4 => Some(Level::Debug),
        5 => Some(Level::Trace),
        _ => None,
    }
}

/// A level that a line can have.
pub(crate) struct Of;
impl Of {
    #[inline(always)]
    pub(crate) unsafe fn read(name: &'static str, level: c_int) -> Result<Level, Failure> {
        level_of(level).ok_or_else(|| Failure::Argument(name, "it is none of hm_level that a line can have"))
    }
}

/// Fields of a record.
pub(crate) struct Fields;
impl Fields {
    pub(crate) unsafe fn read<'a>(
        name: &'static str,
        fields: *const HmField,
        count: usize,
    ) -> Result<&'a [HmField], Failure> {
        if count == 0 {
            return Ok(&[]);
        }
        if fields.is_null() {
            return Err(Failure::Argument(name, "it is NULL, but there is more than nothing in it"));
        }
        if count > isize::MAX as usize / size_of::<HmField>() {
            return Err(Failure::Argument("count", "no array can have this many elements"));
        }
        // SAFETY: not NULL, so `count` elements are valid.
        let fields: &[HmField] = unsafe { std::slice::from_raw_parts(fields, count) };
        // SAFETY: as ours.
        fields.iter().try_for_each(|field| unsafe { field.pair() }.map(drop))?;
        Ok(fields)
    }
}

impl HmField {
    /// Its key and its value.
    ///
    /// # Safety
    /// What it leads to is valid for as long as the result is used.
    pub(crate) unsafe fn pair<'a>(&self) -> Result<(&'a [u8], Value<'a>), Failure> {
        // SAFETY: as ours.
        let key = unsafe { Bytes::read("fields.key", self.key.data, self.key.len) }?;
        let value = match self.kind {
            // SAFETY: as ours.
            0 => Value::Text(unsafe { Bytes::read("fields.text", self.text.data, self.text.len) }?),
            1 => Value::Signed(self.integer),
            2 => Value::Unsigned(self.natural),
            3 => Value::Float(self.real),
            4 => Value::Truth(self.truth != 0),
            _ => return Err(Failure::Argument("fields", "`kind` is none of hm_field_kind")),
        };
        Ok((key, value))
    }

    fn of(key: &[u8], value: Value<'_>) -> HmField {
        let empty = HmBytes::from(&[][..]);
        let mut field = HmField { key: key.into(), kind: 0, truth: 0, text: empty, integer: 0, natural: 0, real: 0.0 };
        match value {
            Value::Signed(number) => (field.kind, field.integer) = (1, number),
            Value::Unsigned(number) => (field.kind, field.natural) = (2, number),
            Value::Float(number) => (field.kind, field.real) = (3, number),
            Value::Truth(truth) => (field.kind, field.truth) = (4, u32::from(truth)),
            Value::Text(text) => field.text = text.into(),
            // Of a kind that this interface has no number for yet.
            _ => {}
        }
        field
    }
}

impl HmLine {
    /// The line, whose fields are put into `fields`; good as long as both are.
    pub(crate) fn of(record: &LogLine, fields: &mut Vec<HmField>) -> HmLine {
        fields.clear();
        fields.extend(record.fields().map(|(key, value)| HmField::of(key, value)));
        HmLine {
            text: record.text().into(),
            fields: fields.as_ptr(),
            field_count: fields.len(),
            process: record.process().into(),
            position: record.position(),
            time_ns: record.time_ns(),
            level: record.level() as i32,
            pid: record.pid(),
            thread: record.thread(),
            lost: record.lost(),
            flags: u32::from(record.is_continued())
                | u32::from(record.is_continuation()) << 1
                | u32::from(record.is_note()) << 2,
            reserved: 0,
        }
    }
}
