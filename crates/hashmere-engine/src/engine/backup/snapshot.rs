//! Snapshots: what a backup asks of those who go on writing, and how it begins and ends.
//!
//! One word of the header says it all. While it *marks*, every write gets a version above a floor that no earlier
//! record reaches, and a record from before is marked as kept before it is superseded. So a walk of the index and then
//! of the marks finds every record that was there at the moment of the snapshot. `docs/internals/backup.md` has the
//! argument.

use crate::engine::index::Tree;
use crate::engine::{Engine, Writer};
use crate::error::{BackupError, ReadError, WriteError};
use crate::fault::{self, Fault};
use hashmere_format::header::{at, limit};
use hashmere_format::leaf::{LockWord, LOCK_WORD};
use hashmere_format::record::VERSION_MAX;
use hashmere_format::row;
use hashmere_format::snapshot::Snapshot;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// How far the floor lies above every version seen: what one bucket may be written while all are looked at. (In
/// models none, so that it is too low sometimes.)
const fn margin<M: Mem>() -> u64 {
    if M::STEPPED {
        0
    } else {
        1 << 20
    }
}
/// Versions that must be left above the floor.
const ROOM: u64 = 1 << 32;
/// Times a snapshot is begun again because versions passed the floor or the store was cleared while it began.
const TRIES: u32 = 64;

/// A snapshot in force. Dropped, it is withdrawn.
pub(crate) struct HeldSnapshot<'a, M: Mem, H: Host> {
    pub(super) engine: &'a Engine<M, H>,
    pub(super) slot: u32,
    /// The index of that moment.
    pub(super) root: u64,
    /// What was there has versions up to this.
    pub(crate) floor: u64,
}

impl<M: Mem, H: Host> Drop for HeldSnapshot<'_, M, H> {
    fn drop(&mut self) {
        // A panic passes through, perhaps from the memory itself. The next backup of this client withdraws what it
        // left.
        if std::thread::panicking() {
            return;
        }
        self.engine.withdraw_snapshot(self.slot);
        self.engine.mem.store(row::offset(self.slot) + row::at::ACTIVE, 0, Ordering::Release);
    }
}

/// For statistics.
impl<M: Mem, H: Host> Engine<M, H> {
    pub(in crate::engine) fn backup_pid(&self) -> Option<u32> {
        let owner = self.snapshot().owner().filter(|owner| *owner < limit::CLIENTS)?;
        Some(self.mem.load(row::offset(owner) + row::at::PID, Ordering::Relaxed) as u32)
    }
}

/// The way of a backup through the stages.
impl<M: Mem, H: Host> Engine<M, H> {
    /// Takes a snapshot: every write acknowledged before this call is in it, none that begins after it returned.
    pub(crate) fn begin_snapshot<'a>(&'a self, writer: &mut Writer) -> Result<HeldSnapshot<'a, M, H>, BackupError> {
        self.refuse_if_poisoned()?;
        self.claim_snapshot(writer.slot)?;
        // From here on withdrawn whatever happens.
        let mut held = HeldSnapshot { engine: self, slot: writer.slot, root: 0, floor: 0 };
        self.clear_old_marks(writer)?;
        for _ in 0..TRIES {
            let root = self.enter(writer);
            if let Some(floor) = self.try_snapshot(writer, root)? {
                (held.root, held.floor) = (root, floor);
                return Ok(held);
            }
            self.clear_old_marks(writer)?;
        }
        Err(BackupError::Abandoned)
    }

    fn claim_snapshot(&self, slot: u32) -> Result<(), BackupError> {
        for _ in 0..TRIES {
            let seen = self.snapshot();
            match seen.owner() {
                // What a panic left: only this writer works under its slot number.
                Some(owner) if owner == slot => self.withdraw_snapshot(slot),
                Some(owner) if owner < limit::CLIENTS => {
                    if !self.recover_if_dead(owner)? {
                        let pid = self.mem.load(row::offset(owner) + row::at::PID, Ordering::Relaxed) as u32;
                        return Err(BackupError::Running { pid, name: self.row_name(owner) });
                    }
                    // A client record without an owner.
                    self.withdraw_snapshot(owner);
                }
                _ => {
                    if self.mem.compare_exchange(at::SNAPSHOT, seen.0, seen.held_by(slot).0).is_ok() {
                        return Ok(());
                    }
                }
            }
        }
        Err(BackupError::Abandoned)
    }

    /// Changes the word from one stage to another, if it is still at this one.
    pub(super) fn turn_snapshot(
        &self,
        slot: u32,
        is_at: impl Fn(Snapshot) -> bool,
        to: impl Fn(Snapshot) -> Snapshot,
    ) -> Result<bool, BackupError> {
        loop {
            let seen = self.snapshot();
            if seen.owner() != Some(slot) {
                return Err(BackupError::Abandoned);
            }
            if !is_at(seen) {
                return Ok(false);
            }
            // SYNC(snapshot): who enters after this exchange sees it; for the others it waits. (Lost only to a bit
            // being set.)
            if self.mem.compare_exchange(at::SNAPSHOT, seen.0, to(seen).0).is_ok() {
                self.mem.fence(Ordering::SeqCst);
                return Ok(true);
            }
        }
    }

    /// Marks that an earlier backup left behind would be taken for ours.
    fn clear_old_marks(&self, writer: &mut Writer) -> Result<(), BackupError> {
        if !self.snapshot().is_dirty() || fault::is(Fault::OldMarksBelieved) {
            return Ok(());
        }
        self.mem.store(writer.row + row::at::ACTIVE, 0, Ordering::Release);
        // Writers that saw the earlier one may still set marks.
        self.wait_for_writers(writer.slot)?;
        self.take_marks(writer, &mut |_, _, _| Ok(()))?;
        self.turn_snapshot(writer.slot, |_| true, Snapshot::clean).map(|_| ())
    }

    /// One attempt; `None`: a version passed the floor, or the store was cleared.
    fn try_snapshot(&self, writer: &Writer, root: u64) -> Result<Option<u64>, BackupError> {
        let slot = writer.slot;
        let floor = (self.highest_version(root)? + margin::<M>()).max(self.snapshot().floor());
        if floor > VERSION_MAX - ROOM {
            let what = "the store has used up its versions; dump it and load the dump again";
            return Err(WriteError::InvalidState(what).into());
        }
        self.turn_snapshot(slot, |_| true, |seen| seen.watching(floor))?;
        let believed = fault::is(Fault::FloorUnawaited);
        if !believed {
            self.wait_for_writers(slot)?;
        }
        // Writers that gave a version and did not see the floor have left: the buckets say how far they went.
        if !believed && self.highest_version(root)? > floor {
            self.turn_snapshot(slot, |_| true, Snapshot::plain)?;
            return Ok(None);
        }
        // The moment of the snapshot.
        if !self.turn_snapshot(slot, Snapshot::is_watching, Snapshot::marking)? {
            return Ok(None);
        }
        self.wait_for_writers(slot)?;
        if self.root() == root {
            return Ok(Some(floor));
        }
        // Cleared, before or after that moment: which of the two is not known.
        self.turn_snapshot(slot, |_| true, |seen| seen.ended(true).held_by(slot))?;
        Ok(None)
    }

    /// The highest version that any bucket gave out before this call.
    fn highest_version(&self, root: u64) -> Result<u64, ReadError> {
        // A leaf that is split during the walk keeps its versions, and the new one has copies of them.
        self.in_reach(|| {
            self.leaves(root, Tree::First)
                .flat_map(|leaf| self.leaf_buckets(leaf))
                .map(|bucket| LockWord(self.mem.load(bucket + LOCK_WORD, Ordering::Acquire)).version())
                .max()
                .unwrap_or(0)
        })
    }
}
