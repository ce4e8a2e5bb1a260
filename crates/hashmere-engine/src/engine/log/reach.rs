//! How much of the file this process can reach.
//!
//! The file grows by any process; each maps what it needs of it ([`Mem::extend`]). `known` is how far this engine may
//! look: whole segments that the header counts, the file has, and this process has addresses for. Whatever was read
//! from the file is compared with it, and what lies beyond leads here, where it may rise.
//!
//! Where there are no addresses, an operation that needs them ends with an error of its own. What cannot be reached is
//! no damage, and must never be taken for something that is not there: a second record of a key would be the result, or
//! a half-done repair. So code that passes over what it cannot reach checks afterwards whether that happened
//! ([`Engine::refusals`]), and code that repairs or frees maps the whole file first ([`Engine::reach_file`]).

use crate::engine::{corrupt, Engine};
use crate::error::ReadError;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::{AtomicU64, Ordering};

/// How far this process can reach.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// Bytes of the segments known to exist, and to have addresses here: every offset from the file is compared with
    /// it.
    known: AtomicU64,
    /// How often this process had no addresses for a part of the file.
    refusals: AtomicU64,
}

impl Reach {
    #[inline(always)]
    pub(super) fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// The header says that there are `said` bytes of segments, more than are known: the file has grown, and the file
    /// grew first. Or the header was damaged since we opened it; what lies behind the end of the file must not be
    /// touched.
    #[cold]
    pub(in crate::engine) fn learn(&self, said: u64) -> u64 {
        let whole = |bytes: u64| bytes.saturating_sub(at::DATA) & !(self.segment_bytes() - 1);
        let there = said.min(whole(self.mem.size()));
        if !self.mem.extend(at::DATA + there) {
            self.log.reach.refusals.fetch_add(1, Ordering::AcqRel);
        }
        let known = there.min(whole(self.mem.capacity()));
        // Release: a thread that sees it finds the addresses mapped.
        self.log.reach.known.store(known, Ordering::Release);
        known
    }

    /// How often this process was refused addresses so far. What was looked for and not found in between two equal
    /// answers was not there.
    pub(in crate::engine) fn refusals(&self) -> u64 {
        if fault::is(Fault::RefusalIgnored) {
            return 0;
        }
        self.log.reach.refusals.load(Ordering::Acquire)
    }

    /// Makes sure that this process can reach every segment that there is at this moment.
    pub(in crate::engine) fn reach_file(&self) -> Result<(), ReadError> {
        let said = self.layout.bytes_of(self.segments_said());
        let before = self.refusals();
        if fault::is(Fault::ReachUnasked) {
            return Ok(());
        }
        if said > self.log.known() && self.learn(said) < said && self.refusals() != before {
            return Err(self.unreachable());
        }
        Ok(())
    }

    /// Does something that passes over what it cannot reach; its result counts only if there was no such thing.
    pub(in crate::engine) fn in_reach<R>(&self, act: impl FnOnce() -> R) -> Result<R, ReadError> {
        self.reach_file()?;
        let before = self.refusals();
        let done = act();
        if self.refusals() == before {
            Ok(done)
        } else {
            Err(self.unreachable())
        }
    }

    /// The error for what this process has no addresses for.
    #[cold]
    pub(in crate::engine) fn unreachable(&self) -> ReadError {
        let needed = self.segment_offset(self.segments_said()).min(self.mem.size());
        ReadError::AddressSpace { needed, limit: self.mem.address_limit(needed) }
    }

    /// The error for something that leads out of what is known: damage, unless this process was ever refused addresses.
    /// Then that is the likelier cause, also if they were there when it looked again.
    #[cold]
    pub(in crate::engine) fn outside(&self, what: &'static str, offset: u64) -> ReadError {
        if self.refusals() == 0 {
            corrupt(what, offset)
        } else {
            self.unreachable()
        }
    }
}
