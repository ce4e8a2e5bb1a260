//! Versions that the caller asks for: a write may say which version it must have at least.
//!
//! The repair of a crashed owner's lock, and a clear, must know how far versions may have gone without having seen each
//! of them. They know it from the *raised* word of the header: it goes up before the first record gets such a version,
//! and never back. Without such writes it is zero.

use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use crate::types::Version;
use hashmere_format::header::at;
use hashmere_format::record::VERSION_MAX;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// How far the word goes beyond what was asked for: a writer of ever larger versions (times, numbers of a sequence)
/// takes the lock once in this many.
const AHEAD: u64 = 1 << 20;

impl<M: Mem, H: Host> Engine<M, H> {
    /// What the caller asked for, and no version above it but by counting.
    pub(in crate::engine) fn raised(&self) -> u64 {
        self.mem.load(at::RAISED, Ordering::Acquire) & VERSION_MAX
    }

    /// Makes it known that records may get versions up to `least`. Before the operation enters, and with no lock held.
    ///
    /// Killed after the store: versions begin higher than they had to.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn ask_version(&self, writer: &Writer, least: u64) -> Result<(), WriteError> {
        if least > Version::MIN_VERSION_MAX.0 {
            return Err(WriteError::InvalidState(
                "a version that a write asks for is at most 2^41 (2199023255552): the rest is for counting; ask for a smaller one",
            ));
        }
        if least <= self.raised() || fault::is(Fault::RaiseUnsaid) {
            return Ok(());
        }
        // SYNC(raised): a clear reads the word and stores the root under this lock. Either it reads ours, or we enter
        // after it and work under its root.
        self.acquire_global(writer.slot, at::INDEX_LOCK)?;
        self.mem.store(at::RAISED, self.raised().max(least + AHEAD), Ordering::Release);
        self.release_global(at::INDEX_LOCK);
        Ok(())
    }
}
