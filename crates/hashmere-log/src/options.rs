//! How a log is opened: sizes, and what happens to lines that have no place to go.

use crate::layout::Geometry;
use std::time::Duration;

/// What happens to a line for which a thread's ring has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// The thread waits for the drainer, at most this long; then [`LogError::Full`](crate::LogError::Full).
    Block(Duration),
    /// The line is dropped and counted. Which and how many were dropped is reported with the thread's next line, or
    /// when it has ended.
    Drop,
    /// The thread's oldest lines that were not drained are given up, and counted in the same way.
    Overwrite,
}

/// What happens to lines when no process drains the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnNoDrainer {
    /// The thread that logs a line writes all there is to the standard output of its process, in order.
    Stdout,
    /// They stay in the log until a process drains it; a ring that is full does what [`OnFull`] says.
    Keep,
}

/// What happens to a line that is too long: [`Log::line_max`](crate::Log::line_max).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTooLong {
    /// It becomes several lines that are marked as such.
    Split,
    /// It is refused: [`LogError::TooLong`](crate::LogError::TooLong). Records with fields always are.
    Refuse,
}

/// How a log is opened. Sizes count when it is created; the rest is for the process that opens it.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    rings: u64,
    ring_bytes: u64,
    history_bytes: u64,
    pub(crate) on_full: OnFull,
    pub(crate) on_no_drainer: OnNoDrainer,
    pub(crate) on_too_long: OnTooLong,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            rings: 64,
            ring_bytes: 64 << 10,
            history_bytes: 1 << 20,
            on_full: OnFull::Block(Duration::from_secs(30)),
            on_no_drainer: OnNoDrainer::Stdout,
            on_too_long: OnTooLong::Split,
        }
    }
}

impl LogOptions {
    /// 64 rings of 64 KiB, a history of 1 MiB; a full ring blocks for 30 s at most, lines without a drainer go to
    /// standard output, those that are too long are split.
    pub fn new() -> LogOptions {
        LogOptions::default()
    }

    /// How many threads of all processes together can log at a time: 1 to 1024.
    pub fn rings(self, rings: u64) -> LogOptions {
        LogOptions { rings, ..self }
    }

    /// Bytes for each of them, rounded up to a power of two from 4 KiB on; at most 32 MiB.
    pub fn ring_bytes(self, ring_bytes: u64) -> LogOptions {
        LogOptions { ring_bytes, ..self }
    }

    /// Bytes of lines that were drained and can still be followed, rounded up to a power of two, 64 KiB and two rings.
    pub fn history_bytes(self, history_bytes: u64) -> LogOptions {
        LogOptions { history_bytes, ..self }
    }

    /// What this handle does when a ring is full.
    pub fn on_full(self, on_full: OnFull) -> LogOptions {
        LogOptions { on_full, ..self }
    }

    /// What this handle does when no process drains.
    pub fn on_no_drainer(self, on_no_drainer: OnNoDrainer) -> LogOptions {
        LogOptions { on_no_drainer, ..self }
    }

    /// What this handle does with lines that are too long.
    pub fn on_too_long(self, on_too_long: OnTooLong) -> LogOptions {
        LogOptions { on_too_long, ..self }
    }

    pub(crate) fn geometry(&self) -> Option<Geometry> {
        Geometry::new(self.rings, self.ring_bytes, self.history_bytes)
    }
}
