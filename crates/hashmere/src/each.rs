//! Changing every key, each atomically.

use crate::{Cursor, Filter, Item, Key, Store, Update, Updated, WriteError};

impl Store {
    /// Calls `f` with every key that passes the filter and does what it returns, each key atomically as
    /// [`update_with`](Self::update_with) does; returns how many keys were stored or removed.
    ///
    /// A key that exists during the whole call is visited exactly once, beside writers and growth; one that comes or
    /// goes during it is visited or not. No lock is held between keys or while `f` runs: it may use the store, and is
    /// called again with a key that another writer changed during its call. So what `f` counts for itself may count
    /// such a key twice; the result does not. Several processes share the work with [`Filter::part`].
    ///
    /// # Errors
    /// As [`update_with`](Self::update_with), for the first key that fails: those visited before it are changed.
    pub fn update_each(&self, filter: Filter, mut f: impl FnMut(&[u8], &Item) -> Update) -> Result<u64, WriteError> {
        let mut changed = 0;
        for pair in self.scan(Cursor::START, filter.keys_only()) {
            let pair = pair?;
            let key = pair.supplied_hash.map_or(Key::Bytes(&pair.key), |hash| Key::Hashed(&pair.key, hash));
            let updated = self.update_with(key, |item| item.map_or(Update::Keep, |item| f(&pair.key, item)))?;
            changed += u64::from(updated != Updated::Unchanged);
        }
        Ok(changed)
    }
}
