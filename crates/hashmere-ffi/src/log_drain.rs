//! `hashmere_log.h`: writing lines out, and following them.

use crate::args::{Input, Maybe, Out, Owned, Plain, Shared};
use crate::failure::Failure;
use crate::log::HmLog;
use crate::log_abi::{level_of, HmDrainOptions, HmField, HmLine, HmShowLine};
use crate::queue::close;
use crate::result::{ABSENT, OK, TIMEOUT};
use hashmere_log::{Drainer, Follower, Format, Level, LogError, LogFile, LogLine, Since, Sink};
use std::ffi::{c_int, c_void, CStr, OsStr};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::time::{Duration, Instant};

pub(crate) const STANDBY: u64 = 1;

/// `hm_drainer`.
pub struct HmDrainer(Drainer);

/// `hm_follower`.
pub struct HmFollower {
    pub(crate) follower: Follower,
    /// The caller has pointers into the line that was returned last, and into its fields.
    fields: Vec<HmField>,
}

/// A callback, with what it is given, that the thread of the drainer calls.
struct Show {
    show: HmShowLine,
    user: *mut c_void,
    fields: Vec<HmField>,
}
// SAFETY: the header says that another thread calls it, one line at a time. The fields lead into a line during such a
// call only.
unsafe impl Send for Show {}

impl Show {
    fn show(&mut self, record: &LogLine) {
        (self.show)(self.user, &HmLine::of(record, &mut self.fields));
    }
}

fn format_of(number: u64) -> Result<Format, Failure> {
    match number {
        0 => Ok(Format::Text),
        1 => Ok(Format::Colour),
        2 => Ok(Format::Json),
        _ => Err(Failure::Argument("options", "`format` is none of hm_log_format")),
    }
}

fn descriptor(fd: i64, format: Format) -> Result<Sink, Failure> {
    let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0);
    let fd = fd.ok_or(Failure::Argument("options", "`fd` is no descriptor"))?;
    // SAFETY: the caller vouches for it; one that is not open is noticed when it is copied.
    let copied = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
    let copied = copied.map_err(|source| LogError::Output { action: "copy the descriptor", source })?;
    Ok(Sink::descriptor(copied, format))
}

fn file(given: &HmDrainOptions, format: Format) -> Result<Sink, Failure> {
    if given.path.is_null() {
        return Err(Failure::Argument("options", "`path` is NULL"));
    }
    // SAFETY: not NULL, so NUL-terminated.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(given.path) }.to_bytes());
    if path.is_empty() {
        return Err(Failure::Argument("options", "`path` is empty"));
    }
    let mut file = LogFile::new(path);
    if given.max_bytes != 0 {
        let keep = u32::try_from(given.keep).map_err(|_| Failure::Argument("options", "`keep` is too large"))?;
        file = file.rotate(given.max_bytes, keep);
    } else if given.keep != 0 {
        return Err(Failure::Argument("options", "`keep` needs `max_bytes`"));
    }
    Ok(Sink::file(file, format))
}

pub(crate) fn sink_of(given: &HmDrainOptions) -> Result<Sink, Failure> {
    if given.flags & !STANDBY != 0 {
        return Err(Failure::Argument("options", "`flags` has bits that this version of the library does not know"));
    }
    let format = format_of(given.format)?;
    let least = match given.level {
        0 => Level::Trace,
        level @ 1..=5 => level_of(level as c_int).unwrap_or(Level::Trace),
        _ => return Err(Failure::Argument("options", "`level` is none of hm_level")),
    };
    let sink = match given.to {
        0 => Sink::stdout(format)?,
        1 => descriptor(given.fd, format)?,
        2 => file(given, format)?,
        3 => {
            let show = given.show.ok_or(Failure::Argument("options", "`show` is NULL"))?;
            let mut show = Show { show, user: given.user, fields: Vec::new() };
            Sink::callback(move |record| show.show(record))
        }
        _ => return Err(Failure::Argument("options", "`to` is none of hm_drain_to")),
    };
    Ok(if least == Level::Trace { sink } else { sink.only(move |record| record.level() <= least) })
}

export! {
    /// See `hashmere_log.h`.
    fn hm_log_drain(
        log: Shared = (log: *mut HmLog),
        options: Input<HmDrainOptions> = (options: *const HmDrainOptions),
        drainer: Out<*mut HmDrainer> = (drainer: *mut *mut HmDrainer),
    ) {
        drainer.put(ptr::null_mut());
        let sink = sink_of(&options)?;
        let started = if options.flags & STANDBY != 0 { log.0.drain_standby(sink)? } else { log.0.drain(sink)? };
        drainer.put(Box::into_raw(Box::new(HmDrainer(started))));
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_drainer_is_active(drainer: Shared = (drainer: *mut HmDrainer)) {
        Ok(if drainer.0.is_active() { OK } else { ABSENT })
    }

    /// See `hashmere_log.h`.
    fn hm_drainer_stop(drainer: Plain = (drainer: *mut HmDrainer), lines: Maybe<u64> = (lines: *mut u64)) {
        if drainer.is_null() {
            return Ok(OK);
        }
        // SAFETY: made by `hm_log_drain`, and not used any more.
        let stopped = unsafe { Box::from_raw(drainer) };
        lines.put(stopped.0.stop()?);
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_log_follow(
        log: Shared = (log: *mut HmLog),
        last: Plain = (last: u64),
        follower: Out<*mut HmFollower> = (follower: *mut *mut HmFollower),
    ) {
        follower.put(ptr::null_mut());
        let since = match last {
            0 => Since::Now,
            u64::MAX => Since::Oldest,
            last => Since::Last(last),
        };
        let made = HmFollower { follower: log.0.follow(since)?, fields: Vec::new() };
        follower.put(Box::into_raw(Box::new(made)));
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_follower_next(
        follower: Owned = (follower: *mut HmFollower),
        timeout_ms: Plain = (timeout_ms: u64),
        line: Out<HmLine> = (line: *mut HmLine),
    ) {
        let (started, timeout) = (Instant::now(), Duration::from_millis(timeout_ms));
        let HmFollower { follower, fields } = follower;
        loop {
            if let Some(record) = follower.next()? {
                line.put(HmLine::of(record, fields));
                return Ok(OK);
            }
            let Some(rest) = timeout.checked_sub(started.elapsed()).filter(|rest| !rest.is_zero()) else {
                return Ok(TIMEOUT);
            };
            follower.wait(rest);
        }
    }

    /// See `hashmere_log.h`.
    fn hm_follower_missed_bytes(follower: Owned = (follower: *mut HmFollower), bytes: Out<u64> = (bytes: *mut u64)) {
        bytes.put(follower.follower.missed_bytes());
        Ok(OK)
    }
}

/// See `hashmere_log.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_follower_close(follower: *mut HmFollower) {
    // SAFETY: as the header says.
    unsafe { close(follower) }
}
