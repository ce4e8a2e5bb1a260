//! `hashmere_log.h`: logs, and lines.

use crate::args::{Bytes, Filled, Input, Label, Open, Out, Plain, Shared};
use crate::failure::Failure;
use crate::handle::HmStore;
use crate::log_abi::{level_of, Fields, HmField, HmLogOptions, HmLogStats, Of};
use crate::queue::close;
use crate::result::{ABSENT, OK, SKIPPED, TIMEOUT};
use hashmere_log::{Log, LogOptions, OnFull, OnNoDrainer, OnTooLong};
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::time::Duration;

const EXISTING: u64 = 1;

/// `hm_log`.
pub struct HmLog(pub(crate) Log);

/// What a call that logs says.
#[inline(always)]
fn logged(logged: bool) -> c_int {
    if logged {
        OK
    } else {
        SKIPPED
    }
}

/// How the log is opened; whether it has to be there; the level that it shall have.
fn options_of(given: &HmLogOptions) -> Result<(LogOptions, bool, Option<c_int>), Failure> {
    if given.flags & !EXISTING != 0 {
        return Err(Failure::Argument("options", "`flags` has bits that this version of the library does not know"));
    }
    let mut options = LogOptions::new();
    if given.rings != 0 {
        options = options.rings(given.rings);
    }
    if given.ring_bytes != 0 {
        options = options.ring_bytes(given.ring_bytes);
    }
    if given.history_bytes != 0 {
        options = options.history_bytes(given.history_bytes);
    }
    options = match (given.on_full, given.full_timeout_ms) {
        (0, 0) => options,
        (0, ms) => options.on_full(OnFull::Block(Duration::from_millis(ms))),
        (1, _) => options.on_full(OnFull::Drop),
        (2, _) => options.on_full(OnFull::Overwrite),
        _ => return Err(Failure::Argument("options", "`on_full` is none of hm_log_on_full")),
    };
    options = options.on_no_drainer(match given.on_no_drainer {
        0 => OnNoDrainer::Stdout,
        1 => OnNoDrainer::Keep,
        _ => return Err(Failure::Argument("options", "`on_no_drainer` is none of hm_log_on_no_drainer")),
    });
    options = options.on_too_long(match given.on_too_long {
        0 => OnTooLong::Split,
        1 => OnTooLong::Refuse,
        _ => return Err(Failure::Argument("options", "`on_too_long` is none of hm_log_on_too_long")),
    });
    let level = match given.level {
        0 => None,
        level @ 1..=5 => Some(level as c_int),
        _ => return Err(Failure::Argument("options", "`level` is none of hm_level")),
    };
    Ok((options, given.flags & EXISTING != 0, level))
}

export! {
    /// See `hashmere_log.h`.
    fn hm_log_open(
        store: Open = (store: *mut HmStore),
        name: Label = (name: *const c_char),
        options: Input<HmLogOptions> = (options: *const HmLogOptions),
        log: Out<*mut HmLog> = (log: *mut *mut HmLog),
    ) {
        log.put(ptr::null_mut());
        let (options, is_there, level) = options_of(&options)?;
        let opened = if is_there { Log::open_existing(store, name, options)? } else { Log::open(store, name, options)? };
        if let Some(level) = level {
            opened.set_level(level_of(level));
        }
        log.put(Box::into_raw(Box::new(HmLog(opened))));
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_log_remove(store: Open = (store: *mut HmStore), name: Label = (name: *const c_char)) {
        Ok(if Log::remove(store, name)? { OK } else { ABSENT })
    }

    /// See `hashmere_log.h`.
    fn hm_log_get_level(log: Shared = (log: *mut HmLog), level: Out<c_int> = (level: *mut c_int)) {
        level.put(log.0.level().map_or(0, |level| level as c_int));
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_log_set_level(log: Shared = (log: *mut HmLog), level: Plain = (level: c_int)) {
        if !(0..=5).contains(&level) {
            return Err(Failure::Argument("level", "it is none of hm_level"));
        }
        log.0.set_level(level_of(level));
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_log_line(
        log: Shared = (log: *mut HmLog),
        level: Of = (level: c_int),
        text: Bytes = (text: *const c_void, len: usize),
    ) {
        Ok(logged(log.0.line(level, text)?))
    }

    /// See `hashmere_log.h`.
    fn hm_log_line_fields(
        log: Shared = (log: *mut HmLog),
        level: Of = (level: c_int),
        text: Bytes = (text: *const c_void, len: usize),
        fields: Fields = (fields: *const HmField, count: usize),
    ) {
        if fields.is_empty() {
            return Ok(logged(log.0.line(level, text)?));
        }
        let put = log.0.line_fields_with(level, text, |writer| {
            for field in fields {
                // SAFETY: what the arguments lead to is valid during the call; `Fields` has looked at all of them.
                if let Ok((key, value)) = unsafe { field.pair() } {
                    writer.field(key, value);
                }
            }
        });
        Ok(logged(put?))
    }

    /// See `hashmere_log.h`.
    fn hm_log_flush(log: Shared = (log: *mut HmLog), timeout_ms: Plain = (timeout_ms: u64)) {
        Ok(if log.0.flush(Duration::from_millis(timeout_ms))? { OK } else { TIMEOUT })
    }

    /// See `hashmere_log.h`.
    fn hm_log_get_stats(
        log: Shared = (log: *mut HmLog),
        stats: Filled<HmLogStats> = (stats: *mut HmLogStats),
    ) {
        stats.put(log.0.stats()?.into());
        Ok(OK)
    }
}

/// See `hashmere_log.h`. Not an `export!`: it is one load, in front of every line, and nothing in it can fail.
#[no_mangle]
pub unsafe extern "C" fn hm_log_enabled(log: *const HmLog, level: c_int) -> c_int {
    // SAFETY: as the header says: NULL or an open log.
    let Some(log) = (unsafe { log.as_ref() }) else { return 0 };
    c_int::from(level_of(level).is_some_and(|level| log.0.enabled(level)))
}

/// See `hashmere_log.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_log_close(log: *mut HmLog) {
    // SAFETY: as the header says.
    unsafe { close(log) }
}
