//! Several keys as one, for an open store.

use crate::error::{ReadError, WriteError};
use crate::fork_handle::SharedEngine;
use crate::open::FileEngine;
use crate::transaction::batch::{self, BatchResult, Branch, Condition, WriteBatch};
use crate::transaction::{retry, Transaction};
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
