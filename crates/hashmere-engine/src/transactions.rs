//! Several keys as one, for an open store.

use crate::error::{ReadError, WriteError};
use crate::fork_handle::{SharedEngine, StoreHandle};
use crate::open::FileEngine;
use crate::transaction::batch::{self, BatchResult, Branch, Condition, WriteBatch};
use crate::transaction::retry::{self, Attempts};
use crate::transaction::{Notes, Transaction};
use crate::types::Item;
use hashmere_mem::{MapMem, OsHost};
use std::sync::Arc;

/// A transaction of a store in a file.
pub type FileTransaction<'e> = Transaction<'e, MapMem, OsHost>;

impl SharedEngine {
    /// Does all operations of a batch at one moment, and says what each did.
    ///
    /// # Errors
    /// See [`WriteError`]: nothing has changed then.
    pub fn write_batch(self: &Arc<Self>, batch: &WriteBatch) -> Result<Vec<BatchResult>, WriteError> {
        batch::write(self.engine(), &|key, kh| self.item(key, kh), batch)
    }

    /// Does the one batch if all conditions hold, else the other one; conditions and batch at one moment.
    ///
    /// # Errors
    /// See [`WriteError`]: nothing has changed then.
    pub fn write_batch_if(
        self: &Arc<Self>,
        conditions: &[Condition<'_>],
        then: &WriteBatch,
        otherwise: &WriteBatch,
    ) -> Result<Branch, WriteError> {
        batch::write_if(self.engine(), &|key, kh| self.item(key, kh), conditions, then, otherwise)
    }

    /// Runs `f` with a transaction and commits it; again if what it read has changed by then.
    ///
    /// # Errors
    /// Those of `f`, and of [`WriteError`]: nothing has changed then.
    pub fn transaction<R, E: From<WriteError>>(
        self: &Arc<Self>,
        f: impl FnMut(&mut FileTransaction<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        retry::run(self.engine(), &|key, kh| self.item(key, kh), f, |_, result| result)
    }

    /// The items of several keys as they were at one moment.
    ///
    /// # Errors
    /// [`ReadError::Conflict`]: they were changed all the time.
    pub fn get_many_snapshot<K: AsRef<[u8]>>(self: &Arc<Self>, keys: &[K]) -> Result<Vec<Option<Item>>, ReadError> {
        let engine: &FileEngine = self.engine();
        let names: Vec<_> = keys.iter().map(|key| (key.as_ref(), engine.hash(key.as_ref()))).collect();
        engine.snapshot_of(&names, &|key, kh| self.item(key, kh))?.map_err(|at| {
            let key = names.get(at).map_or_else(Default::default, |(key, _)| String::from_utf8_lossy(key).into());
            ReadError::Conflict { key }
        })
    }
}

/// A transaction that lasts from one call to the next, for languages whose functions cannot be called from within one:
/// it reads and writes [with](Self::with) a [`FileTransaction`] each time, until [`commit`](Self::commit).
///
/// It holds no lock and announces nothing; it may be forgotten at any time, and may be used in a forked child.
pub struct HeldTransaction {
    shared: Arc<SharedEngine>,
    notes: Notes,
    attempts: Attempts,
}

impl HeldTransaction {
    /// One that has read and written nothing.
    pub fn new(store: &impl StoreHandle) -> HeldTransaction {
        let shared = Arc::clone(store.shared());
        HeldTransaction { shared, notes: Notes::default(), attempts: Attempts::default() }
    }

    /// Goes on with it.
    pub fn with<R>(&mut self, f: impl FnOnce(&mut FileTransaction<'_>) -> R) -> R {
        Self::go_on(&self.shared, &mut self.notes, f)
    }

    fn go_on<R>(shared: &Arc<SharedEngine>, notes: &mut Notes, f: impl FnOnce(&mut FileTransaction<'_>) -> R) -> R {
        let read = |key: &[u8], kh| shared.item(key, kh);
        let mut transaction = Transaction::new(shared.engine(), &read, notes);
        let done = f(&mut transaction);
        transaction.count_hits();
        done
    }

    /// Does all of it at one moment. `false`: what it read has changed, and nothing has happened; what was computed
    /// from it has to be computed again. In both cases it begins again, with nothing read and written.
    ///
    /// # Errors
    /// [`WriteError::Conflict`]: it was so for at least 5 seconds and 1,000 times. Else, as of a write, nothing has
    /// happened, and it is as it was before the call.
    pub fn commit(&mut self) -> Result<bool, WriteError> {
        let attempts = &mut self.attempts;
        let done = Self::go_on(&self.shared, &mut self.notes, |transaction| attempts.commit(transaction));
        self.again(done, |error| matches!(error, WriteError::Conflict { .. }))
    }

    /// Begins again, with nothing read and written. `false`: what it had read was not there at one moment, so that what
    /// was concluded from it means nothing.
    ///
    /// # Errors
    /// Those of reading, and [`WriteError::Conflict`] as of [`commit`](Self::commit). It begins again all the same.
    pub fn give_up(&mut self) -> Result<bool, WriteError> {
        let attempts = &mut self.attempts;
        let meant = Self::go_on(&self.shared, &mut self.notes, |transaction| attempts.give_up(transaction));
        self.again(meant, |_| true)
    }

    /// Behind an attempt: forgets what it noted, also after errors that `ends` says, and how often it was tried if that
    /// is over.
    fn again(
        &mut self,
        done: Result<bool, WriteError>,
        ends: impl FnOnce(&WriteError) -> bool,
    ) -> Result<bool, WriteError> {
        match &done {
            Ok(true) => self.attempts = Attempts::default(),
            Ok(false) => self.attempts.begin(self.shared.engine())?,
            Err(error) if ends(error) => self.attempts = Attempts::default(),
            Err(_) => return done,
        }
        self.notes.clear();
        done
    }
}
