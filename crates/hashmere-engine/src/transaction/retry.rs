//! Running a function until its transaction commits.

use crate::engine::{Engine, Rounds};
use crate::error::WriteError;
use crate::transaction::backoff::Backoff;
use crate::transaction::{Notes, Reader, Transaction};
use hashmere_mem::{Host, Mem};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often a transaction is tried at least, before a conflict is an error,
const TRIED_MOST: u32 = 1000;
/// and for how long.
const TRIED_FOR: Duration = Duration::from_secs(5);
/// From when on its time is taken.
const TRIED_OFTEN: u32 = 16;

/// How often the same transaction was tried.
#[derive(Default)]
pub(crate) struct Attempts {
    rounds: Rounds,
    backoff: Backoff,
    tried: u32,
    since: Option<Instant>,
    /// The key that had changed the last time, for which others may have to be asked to yield.
    changed: Vec<u8>,
    is_again: bool,
}

impl Attempts {
    /// Before the next one.
    ///
    /// # Errors
    /// Of asking others to yield: see [`WriteError`].
    #[inline(always)]
    pub(crate) fn begin<M: Mem, H: Host>(&self, engine: &Engine<M, H>) -> Result<(), WriteError> {
        if self.is_again {
            return self.begin_again(engine);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn begin_again<M: Mem, H: Host>(&self, engine: &Engine<M, H>) -> Result<(), WriteError> {
        engine.begin_round(self.rounds, &self.changed, engine.hash(&self.changed))
    }

    /// Commits. `false`: what was read has changed, and nothing has happened.
    ///
    /// # Errors
    /// See [`WriteError`]; [`WriteError::Conflict`]: it was tried often enough.
    pub(crate) fn commit<M: Mem, H: Host>(
        &mut self,
        transaction: &mut Transaction<'_, M, H>,
    ) -> Result<bool, WriteError> {
        Ok(transaction.commit(&mut self.rounds)? || self.lost(transaction)?)
    }

    /// Ends it without a commit. `false`: what was read was not there together, so what follows from it means nothing.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(crate) fn give_up<M: Mem, H: Host>(
        &mut self,
        transaction: &mut Transaction<'_, M, H>,
    ) -> Result<bool, WriteError> {
        if transaction.notes.conflict.is_none() && transaction.validate()? {
            return Ok(true);
        }
        self.rounds.lose();
        self.lost(transaction)
    }

    /// Waits a little before the next attempt. Always `false`.
    fn lost<M: Mem, H: Host>(&mut self, transaction: &Transaction<'_, M, H>) -> Result<bool, WriteError> {
        let notes = &transaction.notes;
        let conflict = notes.conflict.unwrap_or(0);
        self.tried += 1;
        let is_long = self.tried >= TRIED_OFTEN && self.since.get_or_insert_with(Instant::now).elapsed() >= TRIED_FOR;
        if is_long && self.tried >= TRIED_MOST {
            return Err(notes.conflict_at(conflict));
        }
        self.is_again = !notes.parts.is_empty();
        if self.is_again {
            self.changed.clear();
            self.changed.extend_from_slice(notes.key(conflict));
        }
        self.backoff.wait(&transaction.engine.mem);
        Ok(false)
    }
}

thread_local! {
    /// The notes of this thread's last transaction, for the next one: what they allocated costs as much as a write.
    static NOTES: Cell<Option<Box<Notes>>> = const { Cell::new(None) };
}

/// Runs `f` with a new transaction and commits it; again if what it read has changed by then, also if it failed.
pub(crate) fn run<M: Mem, H: Host, R, S, E: From<WriteError>>(
    engine: &Engine<M, H>,
    read: &Reader<'_>,
    f: impl FnMut(&mut Transaction<'_, M, H>) -> Result<R, E>,
    after: impl FnMut(&Transaction<'_, M, H>, R) -> S,
) -> Result<S, E> {
    with_notes(|notes| run_with(engine, read, notes, f, after))
}

/// Calls `f` with the notes of this thread's last transaction.
#[inline(always)]
pub(super) fn with_notes<R>(f: impl FnOnce(&mut Notes) -> R) -> R {
    // A transaction within the function of another one, and one at the end of its thread, finds none.
    let mut notes = NOTES.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let done = f(&mut notes);
    if notes.is_small() {
        let _ = NOTES.try_with(|kept| kept.set(Some(notes)));
    }
    done
}

fn run_with<M: Mem, H: Host, R, S, E: From<WriteError>>(
    engine: &Engine<M, H>,
    read: &Reader<'_>,
    notes: &mut Notes,
    mut f: impl FnMut(&mut Transaction<'_, M, H>) -> Result<R, E>,
    mut after: impl FnMut(&Transaction<'_, M, H>, R) -> S,
) -> Result<S, E> {
    let mut attempts = Attempts::default();
    loop {
        attempts.begin(engine)?;
        notes.clear();
        let mut transaction = Transaction::new(engine, read, notes);
        let done = f(&mut transaction);
        transaction.count_hits();
        match done {
            Ok(result) => {
                if attempts.commit(&mut transaction)? {
                    return Ok(after(&transaction, result));
                }
            }
            // What it saw may never have been together: then its error means nothing.
            Err(error) => {
                if attempts.give_up(&mut transaction)? {
                    return Err(error);
                }
            }
        }
    }
}
