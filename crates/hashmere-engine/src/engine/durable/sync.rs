//! Syncs: everything that was acknowledged before one begins survives a power cut after it.

use crate::engine::client::stalled::LOOK;
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::cell::{Stage, Status};
use hashmere_format::checksum::STAMP_MAX;
use hashmere_format::header::{at, flag};
use hashmere_format::segment::State;
use hashmere_format::sync::SyncPoint;
use hashmere_format::{root, row};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Makes everything acknowledged so far survive a power cut. Returns the number of the sync that did it.
    pub fn sync(&self, writer: &Writer) -> Result<u64, WriteError> {
        if !self.layout.is_durable() {
            return Err(WriteError::InvalidState(
                "the store is not durable; only one that was created so can be synced",
            ));
        }
        // First of all: what is visible now, and not yet stamped, must get a number that the sync below covers.
        self.wait_for_commits(writer.slot)?;
        let wanted = self.mem.load(at::SYNC_NEXT, Ordering::SeqCst);
        self.acquire_global(writer.slot, at::SYNC_LOCK)?;
        // The last owner of the lock may have begun its sync after we were called: then it covers us, too.
        let done = self.mem.load(at::SYNC_DONE, Ordering::Acquire);
        let synced = if done >= wanted { Ok(done) } else { self.sync_locked() };
        self.release_global(at::SYNC_LOCK);
        let number = synced?;
        if self.mem.load(at::WAITING, Ordering::Relaxed) != 0 {
            self.end_waiting(writer.slot)?;
        }
        Ok(number)
    }

    /// After a write: syncs if the last sync is older than the period that was asked for. The write is done; an
    /// error here is returned by the next sync, or it is tried again.
    #[inline(always)]
    pub(in crate::engine) fn sync_if_due(&self, writer: &Writer) {
        if let Some(period) = self.access.sync_every {
            let (last, now) = (self.mem.load(at::SYNC_TIME, Ordering::Relaxed), self.host.now_ms());
            if self.layout.is_durable() && u128::from(now.saturating_sub(last)) >= period.as_millis() {
                // The next writer waits for a period, not for us.
                self.mem.store(at::SYNC_TIME, now, Ordering::Relaxed);
                let _ = self.sync(writer);
            }
        }
    }

    /// A sync by the only one who has the store open, with no writer any more.
    pub(crate) fn sync_alone(&self) -> Result<u64, WriteError> {
        self.sync_locked()
    }

    /// The caller holds the lock of syncs, or is alone.
    fn sync_locked(&self) -> Result<u64, WriteError> {
        self.refuse_if_poisoned()?;
        let number = self.mem.load(at::SYNC_NEXT, Ordering::Relaxed);
        if number >= STAMP_MAX {
            return Err(WriteError::InvalidState(
                "the store has used up its 2^32 syncs; dump it and load the dump again",
            ));
        }
        // SYNC(stamp): a writer that still loads the old number has its commit, and all before it, in what is flushed
        // below.
        self.mem.swap(at::SYNC_NEXT, number + 1, Ordering::SeqCst);
        self.mem.fence(Ordering::SeqCst);
        // After the number: what a clear leaves behind waits for a sync that knows its floor.
        let floor = self.mem.load(self.block_within(self.root()) + root::at::FLOOR, Ordering::Acquire);
        if !fault::is(Fault::PointEarly) {
            self.flush()?;
        }
        self.write_point(SyncPoint { number, floor, time: self.host.now_ms() });
        if !fault::is(Fault::PointUnflushed) {
            self.flush()?;
        }
        self.mem.store(at::SYNC_DONE, number, Ordering::Release);
        self.mem.store(at::SYNC_TIME, self.host.now_ms(), Ordering::Relaxed);
        Ok(number)
    }

    /// The last sync point that is whole, and where it is.
    pub(in crate::engine) fn last_point(&self) -> (SyncPoint, Option<u64>) {
        let read = |slot: u64| {
            let words = [0, 8, 16, 24].map(|word| self.mem.load(slot + word, Ordering::Acquire));
            SyncPoint::unpack(words, self.layout.seed).map(|point| (point, Some(slot)))
        };
        at::SYNC_POINTS.into_iter().filter_map(read).max_by_key(|(point, _)| point.number).unwrap_or_default()
    }

    /// Writes a sync point over the other one than the last.
    pub(in crate::engine) fn write_point(&self, point: SyncPoint) {
        let last = self.last_point().1;
        let [first, second] = at::SYNC_POINTS;
        let slot = if (last == Some(first)) != fault::is(Fault::PointInPlace) { second } else { first };
        for (word, value) in point.pack(self.layout.seed).into_iter().enumerate() {
            self.mem.store(slot + 8 * word as u64, value, Ordering::Release);
        }
    }

    /// Writes everything to the medium. A failure is forever: which pages arrived cannot be known, and the kernel
    /// forgets that the others did not.
    pub(crate) fn flush(&self) -> Result<(), WriteError> {
        self.mem.sync().map_err(|source| {
            if !fault::is(Fault::PoisonIgnored) {
                self.change_status(flag::POISONED, 0);
            }
            WriteError::Io { action: "write the store to disk", source }
        })
    }

    /// Waits until every commit that may be visible already is complete. Crashed clients are repaired.
    fn wait_for_commits(&self, own: u32) -> Result<(), WriteError> {
        if fault::is(Fault::CommitsUnawaited) {
            return Ok(());
        }
        self.rows().filter(|slot| *slot != own).try_for_each(|slot| self.wait_for_commit(slot))
    }

    /// What a row says about its commit under way, and that of a transaction, which may be visible.
    fn intent(&self, slot: u32) -> [u64; 4] {
        [row::at::INTENT, row::at::INTENT_NEW, row::at::INTENT_OLD, row::at::STATUS]
            .map(|word| self.mem.load(row::offset(slot) + word, Ordering::Acquire))
    }

    fn wait_for_commit(&self, slot: u32) -> Result<(), WriteError> {
        let seen = self.intent(slot);
        let start = self.host.monotonic();
        let mut looks = 0;
        let is_visible = seen[0] != 0 || Status(seen[3]).stage() == Stage::Committed;
        while is_visible && self.intent(slot) == seen {
            looks += 1;
            if looks < M::SPINS {
                self.mem.relax();
                continue;
            }
            if self.recover_if_dead(slot)? {
                return Ok(());
            }
            let waited = self.host.monotonic().saturating_sub(start);
            if waited >= self.access.busy_timeout {
                return Err(self.busy(slot, waited));
            }
            self.mem.wait(row::offset(slot) + row::at::INTENT, seen[0] as u32, LOOK);
        }
        Ok(())
    }

    /// Frees what waited for a sync that is completed.
    fn end_waiting(&self, slot: u32) -> Result<(), WriteError> {
        let mut waiting = 0;
        for segment in 0..self.segments() {
            if self.state(segment).state == State::PendingFree && !self.free_pending(segment, slot)? {
                waiting += 1;
            }
        }
        self.mem.store(at::WAITING, waiting, Ordering::Relaxed);
        Ok(())
    }

    /// Syncs if segments wait for it, and says whether that freed any.
    pub(in crate::engine) fn sync_for_room(&self, writer: &Writer) -> Result<bool, WriteError> {
        if !self.layout.is_durable() || !(0..self.segments()).any(|s| self.state(s).state == State::PendingFree) {
            return Ok(false);
        }
        let before = self.vacant();
        self.sync(writer)?;
        // Whatever the hint says: those who wait are looked for.
        self.end_waiting(writer.slot)?;
        Ok(self.vacant() > before)
    }
}
