//! What a crashed process changed and did not report is reported by the process that repairs what it left.
//!
//! Nothing says whether it had reported already: then the entry is there twice. The locks of its keys are still held in
//! its name, so no other change of them lies between.

use crate::engine::client::writer_state::FeedCursor;
use crate::engine::feed::report::Happened;
use crate::engine::Engine;
use crate::fault::{self, Fault};
use hashmere_format::feed::{FeedIntent, Operation};
use hashmere_format::leaf::{LockWord, Slot, LINE, LOCK_WORD};
use hashmere_format::record::VERSION_MAX;
use hashmere_format::row;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Reports a commit that took place, under the client's own name.
    pub(in crate::engine) fn repair_report(&self, slot: u32, root: u64, new: Slot, old: Slot) {
        let row = row::offset(slot);
        let intent = FeedIntent(self.mem.load(row + row::at::FEED, Ordering::Relaxed));
        let Some(operation) = intent.operation().filter(|_| intent.record() == 0) else { return };
        let (record, version) = match operation.removes() {
            true => (old.offset(), Some(self.version_after(row))),
            false => (new.offset(), None),
        };
        self.report_for(slot, root, std::iter::once(Happened { operation, record, version }));
    }

    /// Reports what a record says that was being changed in place, whether or not that took place; and forgets what was
    /// noted.
    pub(in crate::engine) fn repair_report_in_place(&self, slot: u32, root: u64) {
        let row = row::offset(slot);
        let intent = FeedIntent(self.mem.load(row + row::at::FEED, Ordering::Acquire));
        if let Some(operation) = intent.operation().filter(|_| intent.record() != 0) {
            let happened = Happened { operation, record: intent.record(), version: None };
            self.report_for(slot, root, std::iter::once(happened));
        }
        self.mem.store(row + row::at::FEED, 0, Ordering::Release);
    }

    /// One entry for all that a crashed client's transaction changed.
    pub(in crate::engine) fn report_for(&self, slot: u32, root: u64, happened: impl Iterator<Item = Happened> + Clone) {
        if self.snapshot().has_feed() && !fault::is(Fault::FeedForgotten) {
            // Its chunk stays the client's until the repair is done.
            self.report_all(slot, &mut FeedCursor::default(), root, happened);
        }
    }

    /// The version that a removal under the crashed client's lock gave.
    fn version_after(&self, row: u64) -> u64 {
        let bucket = self.mem.load(row + row::at::LOCK, Ordering::Relaxed);
        if bucket == 0 || bucket & (LINE - 1) != 0 || !self.is_inside(bucket, LINE) {
            return 0;
        }
        (LockWord(self.mem.load(bucket + LOCK_WORD, Ordering::Relaxed)).version() + 1) & VERSION_MAX
    }
}

/// What happens to a key that gets a record of this version.
pub(in crate::engine) fn operation_between(old_version: Option<u64>, new_version: u64) -> Operation {
    match old_version {
        Some(old) if old == new_version => Operation::Touch,
        _ => Operation::Set,
    }
}
