//! Fairness between updates and plain writes.
//!
//! An update (read, ask the caller's function, commit if nothing has changed) holds no lock while it asks, so a thread
//! that writes the key without pause would beat it every time. After some lost rounds it asks the writers of the key's
//! bucket to *yield*: one bit in the lock word while no client holds it. A writer that finds the lock free and the bit
//! set waits a little before it takes the lock; the next holder of the lock clears the bit when it releases it. The bit
//! is a hint: a writer gives up by time, so a bit left by a crashed process costs the next writer that wait, once.

use crate::engine::{Engine, KeyHash, Writer};
use crate::error::WriteError;
use hashmere_format::leaf::{LockWord, LOCK_WORD};
use hashmere_format::row;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Rounds that an update loses before it asks others to yield.
const LOST_BEFORE: u32 = 16;

/// The rounds that an operation lost that commits only what is still as it was seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds(u32);

impl Rounds {
    /// Counts one more that was lost.
    pub(crate) fn lose(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    fn is_beaten(self) -> bool {
        self.0 >= LOST_BEFORE
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Before a round's look at the key: asks others to yield if enough was lost.
    #[inline]
    pub fn begin_round(&self, rounds: Rounds, key: &[u8], kh: KeyHash) -> Result<(), WriteError> {
        if rounds.is_beaten() {
            self.ask_to_yield(&mut *self.writer_for(key, kh)?, kh)?;
        }
        Ok(())
    }

    /// The commit of a round. `None` within: it is lost.
    #[inline]
    pub fn end_round<R>(
        &self,
        rounds: &mut Rounds,
        writer: &mut Writer,
        commit: impl FnOnce(&mut Writer) -> Result<Option<R>, WriteError>,
    ) -> Result<Option<R>, WriteError> {
        writer.insists = rounds.is_beaten();
        let done = commit(writer);
        writer.insists = false;
        if matches!(done, Ok(None)) {
            rounds.lose();
        }
        done
    }

    /// Sets the bit, by taking the key's lock and giving it back with it: so no holder of the lock overwrites it.
    #[cold]
    fn ask_to_yield(&self, writer: &mut Writer, kh: KeyHash) -> Result<(), WriteError> {
        let root = self.enter(writer);
        writer.insists = true;
        let locked = self.lock_key(writer, root, kh.hash);
        writer.insists = false;
        if let Ok(Some((place, word))) = &locked {
            // Not `release`: a waiter that it wakes would take the lock at once. The note of waiters stays, for the
            // next release.
            let sleepers = self.mem.load(place.first + LOCK_WORD, Ordering::Relaxed) & LockWord::WAITERS;
            self.mem.store(place.first + LOCK_WORD, word.released().0 | sleepers | LockWord::YIELD, Ordering::Release);
            self.mem.store(writer.row + row::at::LOCK, 0, Ordering::Release);
        }
        self.mem.store(writer.row + row::at::ACTIVE, 0, Ordering::Release);
        locked.map(|_| ())
    }
}
