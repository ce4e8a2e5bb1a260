//! The last lines of a log, beside the process that drains it.

use hashmere::Store;
use hashmere_log::{Follower, Format, Log, LogError, LogOptions, Since};
use std::collections::VecDeque;

/// Lines that are kept.
const LINES: usize = 200;
/// Bytes of them.
const BYTES: usize = 1 << 20;
/// Lines that one call reads.
const LINES_AT_ONCE: usize = 10_000;

/// Reads a log as it is drained, and keeps its last 200 lines. It takes nothing out of the log: a log that no process
/// drains has no lines here.
#[derive(Debug)]
pub struct LogTail {
    follower: Follower,
    lines: VecDeque<TailLine>,
    bytes: usize,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailLine {
    /// Where it is in the log: that of a later line is larger.
    pub position: u64,
    /// The line as `hashmere log --json` prints it, without its line break.
    pub json: Vec<u8>,
}

impl LogTail {
    /// Begins with the last lines that were drained.
    ///
    /// # Errors
    /// [`LogError::NotFound`], and the store's.
    pub fn open(store: &Store, name: &str) -> Result<LogTail, LogError> {
        let log = Log::open_existing(store, name, LogOptions::default())?;
        let follower = log.follow(Since::Last(LINES as u64))?;
        Ok(LogTail { follower, lines: VecDeque::new(), bytes: 0 })
    }

    /// Reads what was drained since the last call.
    ///
    /// # Errors
    /// The store's `Corrupt`.
    pub fn poll(&mut self) -> Result<(), LogError> {
        for _ in 0..LINES_AT_ONCE {
            let Some(record) = self.follower.next()? else { break };
            let mut json = Vec::new();
            Format::Json.write(record, &mut json);
            json.truncate(json.trim_ascii_end().len());
            self.bytes += json.len();
            self.lines.push_back(TailLine { position: record.position(), json });
            while self.lines.len() > LINES || self.bytes > BYTES && self.lines.len() > 1 {
                self.bytes -= self.lines.pop_front().map_or(0, |line| line.json.len());
            }
        }
        Ok(())
    }

    /// The lines that are kept, of those behind a position; `None`: all.
    pub fn lines(&self, after: Option<u64>) -> impl Iterator<Item = &TailLine> {
        self.lines.iter().filter(move |line| after.is_none_or(|after| line.position > after))
    }

    /// Bytes of the log that were written over before they were read.
    pub fn missed_bytes(&self) -> u64 {
        self.follower.missed_bytes()
    }
}
