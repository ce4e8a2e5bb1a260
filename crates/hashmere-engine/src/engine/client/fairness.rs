//! How long a writer that finds a lock free leaves it to an update that asks for it (see
//! [`crate::engine::write::fairness`]).

use crate::engine::{Engine, Writer};
use crate::fault::{self, Fault};
use hashmere_format::leaf::LockWord;
use hashmere_mem::{Host, Mem};
use std::time::Duration;

/// How long a writer yields: long enough for a function that only computes, also on a busy machine; not noticed when it
/// is in vain.
const COURTESY: Duration = Duration::from_millis(5);

impl<M: Mem, H: Host> Engine<M, H> {
    /// How long this writer yields to those who ask.
    pub(in crate::engine) fn courtesy_of(&self, writer: &Writer) -> Duration {
        if writer.insists || fault::is(Fault::YieldIgnored) {
            return Duration::ZERO;
        }
        COURTESY
    }

    /// Leaves a free lock to the update that asks for it, and returns what is left of the courtesy.
    pub(in crate::engine) fn give_way(&self, offset: u64, seen: LockWord, courtesy: Duration) -> Duration {
        let start = self.host.monotonic();
        let noted = seen.0 | LockWord::WAITERS;
        if seen.0 == noted || self.mem.compare_exchange(offset, seen.0, noted).is_ok() {
            self.mem.wait(offset, noted as u32, courtesy);
        }
        courtesy.saturating_sub(self.host.monotonic().saturating_sub(start))
    }
}
