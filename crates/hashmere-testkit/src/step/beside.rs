//! The traced process is stopped instead of killed: readers do not notice, a writer of its key gets an error, and
//! afterwards both have done what they said.

use super::trace::Stopped;
use super::verify::{dump, is_clean, Frame};
use crate::limits::now_ns;
use hashmere::{Store, WriteError};

/// What is written beside it; a number, so that a counter can go on from there.
const BESIDE: &[u8] = b"100";
/// Time for reading everything, on a machine that is busy.
const READ_NS: u64 = 1_000_000_000;

impl Frame {
    /// How long it took to read everything beside a stopped process, in nanoseconds.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn verify_stopped(&self, live: &Store, stopped: Stopped) -> Result<u64, String> {
        let begin = now_ns();
        let seen = dump(live)?;
        let took = now_ns() - begin;
        if took > READ_NS {
            return Err(format!("reading took {} ms beside a stopped process", took / 1_000_000));
        }
        if seen != self.before && seen != self.after {
            return Err("beside a stopped process, what is seen is neither before nor after".into());
        }
        let wrote = self.write_beside(live, stopped.pid())?;
        stopped.finish();
        let now = dump(live)?;
        let mut expected = self.after.clone();
        if let Some(key) = self.key.as_ref().filter(|_| wrote) {
            // Which of the two writes came last depends on where it was stopped.
            expected.remove(key);
            expected.extend(now.get(key).map(|value| (key.clone(), value.clone())));
        }
        if now != expected {
            return Err("after it went on, keys that no process wrote have changed".into());
        }
        is_clean(live)?;
        Ok(took)
    }

    /// Whether a write of the same key succeeded. If not, the error names the stopped process.
    fn write_beside(&self, live: &Store, pid: u32) -> Result<bool, String> {
        let Some(key) = &self.key else { return Ok(false) };
        match live.set(key, BESIDE) {
            Ok(_) => Ok(true),
            Err(WriteError::Busy { pid: named, holder, .. }) if named == pid && holder.contains("stopped") => Ok(false),
            Err(error) => Err(format!("a write beside a stopped process: {error}")),
        }
    }
}
