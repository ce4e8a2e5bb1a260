//! The traced process is stopped instead of killed: readers do not notice, a writer of its key is told, and afterwards
//! both have done what they said.

use super::run::Case;
use super::verify::dump;
use crate::limits::now_ns;
use hashmere::{Options, WriteError};
use std::time::Duration;

/// What is written beside it; a number, so that a counter can go on from there.
const BESIDE: &[u8] = b"100";
/// What a writer of the key waits for a stopped process.
const BUSY: Duration = Duration::from_millis(3);
/// Time for reading everything, on a machine that is busy.
const READ_NS: u64 = 1_000_000_000;

impl Case<'_> {
    /// Stops it behind an instruction. How long it took to read everything meanwhile, in nanoseconds.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn stand_behind(&self, at: u64) -> Result<u64, String> {
        let path = self.scratch.store("stopped");
        self.before.write(&path);
        let options = Options::new().existing_only().busy_timeout(BUSY);
        let live = options.open(&path).map_err(|error| error.to_string())?;
        let tracee = self.start(&path);
        tracee.steps(at);
        let stopped = tracee.leave_stopped();
        let begin = now_ns();
        let seen = dump(&live)?;
        let took = now_ns() - begin;
        if took > READ_NS {
            return Err(format!("reading took {} ms beside a stopped process", took / 1_000_000));
        }
        if seen != self.frame.before && seen != self.frame.after {
            return Err("beside a stopped process, what is seen is neither before nor after".into());
        }
        let wrote = self.write_beside(&live, stopped.pid())?;
        stopped.finish();
        let now = dump(&live)?;
        let mut expected = self.frame.after.clone();
        if let Some(key) = self.frame.key.as_ref().filter(|_| wrote) {
            // Which of the two writes came last depends on where it stood.
            expected.remove(key);
            expected.extend(now.get(key).map(|value| (key.clone(), value.clone())));
        }
        if now != expected {
            return Err("after it went on, keys of nobody have changed".into());
        }
        match live.check().problems.first() {
            Some(problem) => Err(format!("check: {} {}", problem.code, problem.text)),
            None => Ok(took),
        }
    }

    /// Whether a write of the same key succeeded. If not, the error names who stands.
    fn write_beside(&self, live: &hashmere::Store, pid: u32) -> Result<bool, String> {
        let Some(key) = &self.frame.key else { return Ok(false) };
        match live.set(key, BESIDE) {
            Ok(_) => Ok(true),
            Err(WriteError::Busy { pid: named, holder, .. }) if named == pid && holder.contains("stopped") => Ok(false),
            Err(error) => Err(format!("a write beside a stopped process: {error}")),
        }
    }
}
