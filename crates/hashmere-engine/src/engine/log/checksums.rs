//! Checksums and stamps: what makes a record of a durable store provable without the index.
//!
//! Order of a write under the key's lock: the head with its version; the checksum with the stamp *never*; the head of
//! the segment passes; COMMIT; the stamp *alive*; then the superseded record is stamped with the number of the sync to
//! come. So in every segment whole records follow each other without gaps, and whatever the medium kept of them, a
//! record that died before a completed sync is known to be dead. `docs/internals/durability.md` has the proof.

use crate::engine::{Draft, Engine};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::checksum::{self, Checksum, ALIVE, NEVER};
use hashmere_format::header::{at, flag};
use hashmere_format::leaf::Slot;
use hashmere_format::record::Head;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Durable stores: refuses to write once a flush has failed.
    #[inline(always)]
    pub(in crate::engine) fn refuse_if_poisoned(&self) -> Result<(), WriteError> {
        if self.layout.is_durable() && self.status() & flag::POISONED != 0 {
            return Err(WriteError::Poisoned);
        }
        Ok(())
    }

    /// The checksum word of a record.
    pub(in crate::engine) fn checksum_word(&self, record: u64) -> Checksum {
        Checksum(self.mem.load(record + checksum::AT, Ordering::Acquire))
    }

    fn set_checksum(&self, record: u64, checksum: Checksum) {
        self.mem.store(record + checksum::AT, checksum.0, Ordering::Release);
    }

    fn payload_checksum(&self, record: u64, bytes: u64) -> u32 {
        let head = self.mem.load(record, Ordering::Relaxed);
        checksum::of_payload(head, bytes / 8, |word| self.mem.load(record + 8 * word, Ordering::Relaxed))
    }

    fn record_checksum(&self, record: u64, payload: u32) -> u32 {
        checksum::of_record(payload, self.mem.load(record, Ordering::Relaxed), record, self.layout.seed)
    }

    /// Computes the checksum of a draft, outside the lock: under it only the version is added.
    #[inline(always)]
    pub(in crate::engine) fn seal(&self, draft: &Draft) {
        if self.layout.is_durable() {
            self.seal_payload(draft);
        }
    }

    #[inline(never)]
    fn seal_payload(&self, draft: &Draft) {
        self.set_checksum(draft.offset, Checksum::new(self.payload_checksum(draft.offset, draft.bytes), NEVER));
    }

    /// Completes the checksum of a sealed draft, whose version is there by now.
    pub(in crate::engine) fn finish_checksum(&self, record: u64) {
        let stamp = if fault::is(Fault::BornEarly) { ALIVE } else { NEVER };
        self.set_checksum(
            record,
            Checksum::new(self.record_checksum(record, self.checksum_word(record).checksum()), stamp),
        );
    }

    /// Writes the checksum of a copy that is about to be committed.
    pub(in crate::engine) fn checksum_copy(&self, record: u64, bytes: u64) {
        self.set_checksum(
            record,
            Checksum::new(self.record_checksum(record, self.payload_checksum(record, bytes)), NEVER),
        );
    }

    /// After its commit: the record lives.
    pub(in crate::engine) fn mark_live(&self, record: u64) {
        self.set_checksum(record, self.checksum_word(record).stamped(ALIVE));
    }

    /// After a power cut: the record was never committed.
    pub(in crate::engine) fn mark_never(&self, record: u64) {
        self.set_checksum(record, self.checksum_word(record).stamped(NEVER));
    }

    /// Says in a superseded record that it died in this period, unless it says so already.
    pub(in crate::engine) fn stamp(&self, record: u64) {
        let sum = self.checksum_word(record);
        if sum.stamp() == ALIVE && !fault::is(Fault::DeathUnstamped) {
            // SYNC(stamp): pairs with the fence in `sync`. The number is loaded after the commit: if it is that of a
            // sync under way or past, that sync flushes what took the record's place.
            self.mem.fence(Ordering::SeqCst);
            self.set_checksum(record, sum.stamped(self.mem.load(at::SYNC_NEXT, Ordering::SeqCst)));
        }
    }

    /// Completes the checksums of a commit whose writer died after it.
    pub(in crate::engine) fn complete_checksums(&self, new: Slot, old: Slot) {
        if fault::is(Fault::RepairUnstamped) {
            return;
        }
        if !new.is_empty() && self.is_inside(new.offset(), 16) && self.checksum_word(new.offset()).stamp() == NEVER {
            self.mark_live(new.offset());
        }
        if !old.is_empty() && self.is_inside(old.offset(), 16) {
            self.stamp(old.offset());
        }
    }

    /// Whether a record's bytes are what was committed.
    pub(in crate::engine) fn is_whole(&self, record: u64, head: &Head) -> bool {
        let payload = self.payload_checksum(record, head.record_bytes(self.layout.lengths));
        self.record_checksum(record, payload) == self.checksum_word(record).checksum()
    }
}
