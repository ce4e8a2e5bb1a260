//! What a snapshot asks of those who go on writing: versions above its floor, marks on the records that it still needs.

use crate::engine::Engine;
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::{at, limit};
use hashmere_format::leaf::Slot;
use hashmere_format::record::{field, VERSION_MAX, VERSION_SHIFT};
use hashmere_format::segment;
use hashmere_format::snapshot::Snapshot;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// The word of the header that says it all.
    #[inline(always)]
    pub(in crate::engine) fn snapshot(&self) -> Snapshot {
        Snapshot(self.mem.load(at::SNAPSHOT, Ordering::SeqCst))
    }

    /// Before a commit while a backup begins or is in force: the version to be given, and what is superseded is kept.
    //
    // Words in registers: a reference would have every write put what it found into memory.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn apply_snapshot(&self, old: Slot, version: u64, refresh: bool) -> u64 {
        let Some(floor) = self.floor_for(version) else { return version };
        if !old.is_empty() {
            self.retain_for_snapshot(old);
        }
        if refresh || fault::is(Fault::VersionsUnraised) {
            version
        } else {
            version.max((floor + 1) & VERSION_MAX)
        }
    }

    /// The floor above which versions must be from the moment of a backup on, if that has come; `version` is the
    /// largest that is about to be given. `None`: what is committed now is of before the moment.
    pub(in crate::engine) fn floor_for(&self, version: u64) -> Option<u64> {
        let mut seen = self.snapshot();
        while seen.is_watching() && version > seen.floor() {
            // The floor is too low: let it be set again. But if the moment of the snapshot comes first, we are behind
            // it.
            match self.mem.compare_exchange(at::SNAPSHOT, seen.0, seen.plain().0) {
                Err(now) if !fault::is(Fault::MomentMissed) => seen = Snapshot(now),
                _ => return None,
            }
        }
        seen.is_marking().then(|| seen.floor())
    }

    /// Marks a record from before the snapshot. The caller holds its key's lock and is about to supersede it.
    ///
    /// Killed after it, before the commit: the record is the key's and is kept, too: the backup meets it twice.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn retain_for_snapshot(&self, old: Slot) {
        let seen = self.snapshot();
        let left_out = fault::is(Fault::KeptUnmarked) || fault::is(Fault::KeptLate);
        let word = self.mem.load(old.offset(), Ordering::Relaxed);
        if seen.is_marking() && word >> VERSION_SHIFT <= seen.floor() && !left_out {
            self.mem.store(old.offset(), word | field::RETAINED, Ordering::Release);
        }
    }

    /// Called by a writer that needs room which a backup may hold back: the backup ends with an error. A cache that has
    /// reached its maximum size takes no notice of backups in the first place.
    pub(in crate::engine) fn give_up_snapshot(&self) {
        let seen = self.snapshot();
        if seen.is_held() && !self.is_full_cache() {
            let _ = self.mem.compare_exchange(at::SNAPSHOT, seen.0, seen.ended(true).0);
        }
    }

    /// Ends the snapshot of a client that is dead or done with it, if there is one.
    pub(in crate::engine) fn withdraw_snapshot(&self, slot: u32) {
        let mut seen = self.snapshot();
        while seen.owner() == Some(slot) {
            let idle = seen.ended(true);
            match self.mem.compare_exchange(at::SNAPSHOT, seen.0, idle.0) {
                Ok(_) => return,
                Err(now) => seen = Snapshot(now),
            }
        }
    }

    fn is_full_cache(&self) -> bool {
        self.layout.is_cache() && self.segments() + crate::engine::log::segments::RESERVE >= self.segments_max()
    }

    /// Whether an emptied segment is held back by a backup. The backup of a crashed client is withdrawn on the way.
    pub(in crate::engine) fn is_retained_by_backup(&self, segment: u64) -> Result<bool, WriteError> {
        let seen = self.snapshot();
        if !seen.is_held() || fault::is(Fault::RetainedReused) || !self.has_retained(segment) {
            return Ok(false);
        }
        if self.is_full_cache() {
            // What it drops it might have dropped a moment earlier. The backup shall know.
            if !seen.is_thinned() {
                let _ = self.mem.compare_exchange(at::SNAPSHOT, seen.0, seen.thinned().0);
            }
            return Ok(false);
        }
        match seen.owner() {
            Some(owner) if owner < limit::CLIENTS => Ok(!self.recover_if_dead(owner)?),
            _ => Ok(false),
        }
    }

    pub(in crate::engine) fn is_retained(&self, record: u64) -> bool {
        self.mem.load(record, Ordering::Relaxed) & field::RETAINED != 0
    }

    /// Whether a segment holds a kept record. Of one that is not the caller's the answer may be of any moment.
    pub(in crate::engine) fn has_retained(&self, segment: u64) -> bool {
        let used = self.field(segment, segment::at::USED);
        self.records_with_large(segment, used).any(|record| self.is_retained(record.offset))
    }
}
