//! The log that threads write to: opened, written to, looked at.

use crate::drainer::Drainer;
use crate::error::LogError;
use crate::follow::{Follower, Since};
use crate::format::Format;
use crate::handle::Handle;
use crate::layout::{at, row, wake_flag, Geometry, LogCore, BUSY};
use crate::line::{encode_field, encode_text, Level, Value};
use crate::manual_drainer::ManualDrainer;
use crate::options::{LogOptions, OnNoDrainer};
use crate::sink::Sink;
use crate::thread::{self, Shared, Thread};
use hashmere_engine::{SharedEngine, StoreHandle};
use hashmere_format::region::{kind, NAME_MAX};
use hashmere_mem::Mem;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An open log. Clones share it; every thread may use it, and so may a forked child.
#[derive(Clone)]
pub struct Log {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// Whether a log can have this name: the same rule in every language, and C ends a name with a NUL.
fn check_name(name: &str) -> Result<(), LogError> {
    if (1..=NAME_MAX).contains(&name.len()) && !name.contains('\0') {
        return Ok(());
    }
    Err(LogError::BadOption("the name of a log has 1 to 128 bytes, none of them NUL"))
}

impl Log {
    /// Opens the log of this name in a store, or creates it. An existing one keeps its sizes.
    ///
    /// # Errors
    /// [`BadOption`](LogError::BadOption); the store's: `Full`, `NoSpace` and `AddressSpace` if there is no room for
    /// it, `ReadOnly`, `Corrupt`.
    pub fn open(store: &impl StoreHandle, name: &str, options: LogOptions) -> Result<Log, LogError> {
        check_name(name)?;
        let store = store.shared();
        let handle = Handle::open(store, name, &options)?;
        Ok(Log::new(store, name, options, handle))
    }

    /// Opens the log of this name; the sizes of the options do not count.
    ///
    /// # Errors
    /// [`NotFound`](LogError::NotFound), and as [`open`](Self::open).
    pub fn open_existing(store: &impl StoreHandle, name: &str, options: LogOptions) -> Result<Log, LogError> {
        check_name(name)?;
        let store = store.shared();
        Ok(Log::new(store, name, options, Handle::existing(store, name)?))
    }

    fn new(store: &Arc<SharedEngine>, name: &str, options: LogOptions, handle: Handle) -> Log {
        Log { shared: Arc::new(Shared::new(store, name, options, handle)) }
    }

    /// Names of the logs of a store.
    pub fn list(store: &impl StoreHandle) -> Vec<String> {
        let logs = store.shared().regions().into_iter().filter(|region| region.kind == kind::LOG);
        logs.map(|region| String::from_utf8_lossy(&region.name).into_owned()).collect()
    }

    /// Takes the log's name off it; what was not drained can only be drained by a process that has it open. Its room in
    /// the file is free again when no process has. `false`: there is none.
    ///
    /// # Errors
    /// [`BadOption`](LogError::BadOption) for a name that cannot be; the store's.
    pub fn remove(store: &impl StoreHandle, name: &str) -> Result<bool, LogError> {
        check_name(name)?;
        Ok(store.shared().drop_region(kind::LOG, name.as_bytes())?)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Longest line in bytes that is not split: a quarter of a ring, at most 16 KiB.
    pub fn line_max(&self) -> u64 {
        self.shared.handle.geometry.line_max()
    }

    /// Whether lines of this level are wanted. One load.
    #[inline]
    pub fn enabled(&self, level: Level) -> bool {
        level as u64 <= self.shared.handle.core().get(at::LEVEL)
    }

    /// Whether there is a drainer, as far as is known: one that was killed counts until that is noticed. One load.
    pub fn is_drained(&self) -> bool {
        self.shared.handle.core().get(at::WAKE_FLAG) != wake_flag::NO_DRAINER
    }

    /// The least important level that is wanted; `None`: no lines at all.
    pub fn level(&self) -> Option<Level> {
        Level::from_number(self.shared.handle.core().get(at::LEVEL))
    }

    /// Sets it, for all processes, at once. Lines of other levels are not logged, at the cost of one load each.
    pub fn set_level(&self, level: Option<Level>) {
        self.shared.handle.core().put(at::LEVEL, level.map_or(0, |level| level as u64));
    }

    /// Logs a line of text, which may be any bytes; a line break at its end is left out by who writes it. `false`: its
    /// level is not wanted, or it was dropped ([`OnFull::Drop`](crate::OnFull::Drop)).
    ///
    /// When it returns `true` the line is in the store, and will be written whatever becomes of this process.
    ///
    /// # Errors
    /// [`TooMany`](LogError::TooMany) if there is no ring for this thread (also after a
    /// second, in which threads that are ending give theirs back), [`Full`](LogError::Full),
    /// [`TooLong`](LogError::TooLong), [`Dropped`](LogError::Removed), [`Reentered`](LogError::Reentered); the store's.
    #[inline]
    pub fn line(&self, level: Level, text: impl AsRef<[u8]>) -> Result<bool, LogError> {
        let text = text.as_ref();
        if !self.enabled(level) {
            return Ok(false);
        }
        thread::with(&self.shared, |thread| thread.text(&self.shared, level, text))
    }

    /// Logs a line that is formatted on the way, without allocating: `log.format(Level::Info, format_args!("{n}
    /// users"))`.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn format(&self, level: Level, text: fmt::Arguments<'_>) -> Result<bool, LogError> {
        if !self.enabled(level) {
            return Ok(false);
        }
        if let Some(text) = text.as_str() {
            return self.line(level, text);
        }
        thread::with_buffer(|buffer| {
            // A `Display` that fails has written what it could.
            let _ = std::io::Write::write_fmt(buffer, text);
            thread::with(&self.shared, |thread| thread.text(&self.shared, level, buffer))
        })
    }

    /// Logs a structured record: a text, and keys with values.
    ///
    /// # Errors
    /// As [`line`](Self::line); it is never split.
    pub fn line_fields(
        &self,
        level: Level,
        text: impl AsRef<[u8]>,
        fields: &[(&str, Value<'_>)],
    ) -> Result<bool, LogError> {
        if fields.is_empty() {
            return self.line(level, text);
        }
        self.line_fields_with(level, text.as_ref(), |writer| {
            fields.iter().for_each(|(key, value)| writer.field(key.as_bytes(), *value));
        })
    }

    /// The same with a function that gives the fields one by one.
    ///
    /// # Errors
    /// As [`line_fields`](Self::line_fields).
    pub fn line_fields_with(
        &self,
        level: Level,
        text: &[u8],
        fields: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<bool, LogError> {
        if !self.enabled(level) {
            return Ok(false);
        }
        thread::with_buffer(|buffer| {
            encode_text(text, buffer);
            fields(&mut FieldWriter(buffer));
            thread::with(&self.shared, |thread| thread.fields(&self.shared, level, buffer))
        })
    }

    /// Becomes the drainer, in a thread of this process that writes lines to `sink` until it is stopped or dropped, or
    /// the process exits, and then drains the rest. If this process is killed, the next drainer goes on where it was.
    ///
    /// # Errors
    /// [`Taken`](LogError::Taken) if a living process has the role; [`Output`](LogError::Output) if the file of the
    /// sink cannot be opened; the store's; those of making a thread.
    pub fn drain(&self, sink: Sink) -> Result<Drainer, LogError> {
        sink.try_file()?;
        Drainer::start(self.shared.handle()?, sink, false)
    }

    /// The same, but if another process drains it waits until that one stops or dies.
    ///
    /// # Errors
    /// As [`drain`](Self::drain), except `Taken`.
    pub fn drain_standby(&self, sink: Sink) -> Result<Drainer, LogError> {
        sink.try_file()?;
        Drainer::start(self.shared.handle()?, sink, true)
    }

    /// Becomes the drainer, in the hands of the caller.
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    pub fn drain_manual(&self, sink: Sink) -> Result<ManualDrainer, LogError> {
        sink.try_file()?;
        let drain = ManualDrainer::new(self.shared.handle()?, sink)?;
        drain.recover_rings()?;
        Ok(drain)
    }

    /// Reads lines that were drained, from now on or from earlier, without consuming them.
    ///
    /// # Errors
    /// The store's.
    pub fn follow(&self, since: Since) -> Result<Follower, LogError> {
        Ok(Follower::new(self.shared.handle()?, since))
    }

    /// Waits until all lines that were logged before were delivered. `false`: they were not within `timeout`. Without a
    /// drainer, and unless they are to be kept, it drains itself.
    ///
    /// # Errors
    /// [`Dropped`](LogError::Removed); the store's.
    pub fn flush(&self, timeout: Duration) -> Result<bool, LogError> {
        let handle = self.shared.handle()?;
        let core = handle.core();
        let rows = || (0..core.rings_used()).map(|ring| core.geometry.row(ring));
        let tails: Vec<u64> = rows().map(|at| core.get(at + row::TAIL) & !BUSY).collect();
        let are_merged =
            || rows().zip(&tails).all(|(at, tail)| core.get(at + row::HEAD).max(core.get(at + row::LOW)) >= *tail);
        let started = Instant::now();
        let mut end = None;
        loop {
            if end.is_none() && are_merged() {
                end = Some(core.get(at::END));
            }
            if end.is_some_and(|end| core.get(at::SENT) >= end) {
                return Ok(true);
            }
            if handle.region.is_dropped() {
                return Err(LogError::Removed);
            }
            if started.elapsed() >= timeout {
                return Ok(false);
            }
            self.attend(&handle)?;
        }
    }

    /// Has the log drained: by the drainer, or if that is dead or absent, by us.
    fn attend(&self, handle: &Arc<Handle>) -> Result<(), LogError> {
        let core = handle.core();
        core.wake_drainer();
        if self.shared.options.on_no_drainer == OnNoDrainer::Stdout && Thread::is_drainer_gone(handle)? {
            match ManualDrainer::new(handle.clone(), Sink::stdout(Format::Text)?).and_then(ManualDrainer::finish) {
                Ok(_) | Err(LogError::Taken { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        core.mem.wait(core.base + at::NEWS, core.get(at::NEWS) as u32, Duration::from_millis(1));
        Ok(())
    }

    /// Figures of about now; no process is stopped for them.
    ///
    /// # Errors
    /// In a forked child, those of opening the log again.
    pub fn stats(&self) -> Result<LogStats, LogError> {
        Ok(self.shared.handle()?.core().stats())
    }

    /// The same of a log that is not opened, also by a process that has the store open read-only: nothing is held for
    /// it. `None`: there is none of this name, or it is damaged.
    pub fn peek_stats(store: &impl StoreHandle, name: &str) -> Option<LogStats> {
        let seen = store.shared().peek_region(kind::LOG, name.as_bytes(), |mem, base, len| {
            let geometry = Geometry::read(mem, base, len).ok()?;
            Some(LogCore { mem, base, geometry: &geometry }.stats())
        });
        seen.flatten()
    }
}

impl<M: Mem> LogCore<'_, M> {
    fn stats(&self) -> LogStats {
        let mut stats = LogStats {
            bytes: self.geometry.size(),
            rings: self.geometry.rings,
            ring_bytes: self.geometry.ring_bytes,
            history_bytes: self.geometry.history_bytes,
            line_max: self.geometry.line_max(),
            rings_used: 0,
            waiting_bytes: 0,
            undelivered_bytes: self.get(at::END).saturating_sub(self.get(at::SENT)),
            lines: self.get(at::LINES),
            lost: self.get(at::LOST),
            halves: self.halves(),
            threads: self.get(at::THREADS),
            drainer: (self.get(at::DRAINER) != 0).then(|| self.get(at::DRAINER_PID) as u32),
        };
        for ring in 0..self.rings_used() {
            stats.rings_used += u64::from(self.get(self.geometry.row(ring) + row::OWNER) != 0);
            stats.waiting_bytes = stats.waiting_bytes.saturating_add(self.waiting(ring));
            stats.lost = stats.lost.saturating_add(self.unreported_drops(ring));
        }
        stats
    }
}

/// Takes the fields of a record.
#[derive(Debug)]
pub struct FieldWriter<'a>(&'a mut Vec<u8>);

impl FieldWriter<'_> {
    /// One more. A key is cut after 255 bytes.
    pub fn field(&mut self, key: &[u8], value: Value<'_>) {
        encode_field(key, value, self.0);
    }
}

/// What [`Log::stats`] returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogStats {
    /// Bytes of the whole log.
    pub bytes: u64,
    /// Rings that there are.
    pub rings: u64,
    /// Bytes of each.
    pub ring_bytes: u64,
    /// Bytes of the history.
    pub history_bytes: u64,
    /// Longest line that is not split.
    pub line_max: u64,
    /// Rings that have an owner.
    pub rings_used: u64,
    /// Bytes in rings that were not drained.
    pub waiting_bytes: u64,
    /// Bytes that were drained and not delivered.
    pub undelivered_bytes: u64,
    /// Lines drained so far.
    pub lines: u64,
    /// Lines of which it is known so far that they were dropped or overwritten.
    pub lost: u64,
    /// Lines that were cut off by the death of their writers.
    pub halves: u64,
    /// Threads that have had a ring so far.
    pub threads: u64,
    /// Process id of the drainer; it may be dead.
    pub drainer: Option<u32>,
}
