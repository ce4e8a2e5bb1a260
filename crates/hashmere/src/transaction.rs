//! Several keys at one moment.

use crate::{Attributes, BatchResult, Branch, Condition, Counter, Item, ReadError, Store, Ttl, WriteBatch, WriteError};
use hashmere_engine::FileTransaction as Writes;
use std::fmt;

/// What a function given to [`Store::transaction`] reads and writes with.
///
/// Reads see what the transaction wrote, and else what the store has. Writes are seen by nothing else before the
/// transaction commits, when the function has returned.
pub struct Transaction<'t, 'e>(&'t mut Writes<'e>);

impl fmt::Debug for Transaction<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

impl Transaction<'_, '_> {
    /// The value of a key.
    ///
    /// # Errors
    /// [`WriteError::Conflict`]: the key has changed since the transaction read it first. Return it, and the function
    /// is called again. [`WriteError::TooManyKeys`], and those of [`Store::get`].
    #[inline]
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, WriteError> {
        self.0.get(key.as_ref())
    }

    /// Copies the value of a key into a buffer, whose content it replaces, and returns its length; `None`: the key is
    /// absent, and the buffer is empty. If the buffer has room nothing is allocated.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub fn get_into(&mut self, key: impl AsRef<[u8]>, buffer: &mut Vec<u8>) -> Result<Option<usize>, WriteError> {
        buffer.clear();
        Ok(self.0.append_to(key.as_ref(), buffer)?.then_some(buffer.len()))
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains_key(&mut self, key: impl AsRef<[u8]>) -> Result<bool, WriteError> {
        Ok(self.get(key)?.is_some())
    }

    /// Stores a value without attributes.
    ///
    /// # Errors
    /// [`WriteError::TooLarge`], [`WriteError::WrongLength`], [`WriteError::TooManyKeys`].
    #[inline]
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), WriteError> {
        self.0.set(key.as_ref(), value.as_ref(), Attributes::NONE)
    }

    /// Stores a value with flags and expiry.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_with(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        attributes: Attributes,
    ) -> Result<(), WriteError> {
        self.0.set(key.as_ref(), value.as_ref(), attributes)
    }

    /// Removes a key, if it is there.
    ///
    /// # Errors
    /// [`WriteError::TooManyKeys`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<(), WriteError> {
        self.0.delete(key.as_ref())
    }

    /// Adds to a counter, or subtracts, stopping at zero: what it is then, or `None` if the key is absent and stays so.
    ///
    /// # Errors
    /// [`WriteError::NotANumber`], and those of [`get`](Self::get) and [`set`](Self::set).
    pub fn incr_by(&mut self, key: impl AsRef<[u8]>, by: i64, counter: Counter) -> Result<Option<u64>, WriteError> {
        self.0.incr_by(key.as_ref(), by, counter)
    }

    /// Adds to a counter that may be below zero, as [`Store::incr_signed`]; `None`: the key is absent and stays so.
    ///
    /// # Errors
    /// [`WriteError::Overflow`]: the sum is below -2^63 or above 2^63 - 1; those of [`incr_by`](Self::incr_by).
    pub fn incr_signed(
        &mut self,
        key: impl AsRef<[u8]>,
        by: i64,
        counter: Counter<i64>,
    ) -> Result<Option<i64>, WriteError> {
        self.0.incr_signed(key.as_ref(), by, counter)
    }

    /// Adds to a decimal fraction, exactly, as [`Store::incr_float`]; `None`: the key is absent and stays so.
    ///
    /// # Errors
    /// [`WriteError::Overflow`]: the sum is beyond the numbers of an `f64`; [`WriteError::InvalidState`]: the step or
    /// the initial value is NaN or infinite; those of [`incr_by`](Self::incr_by).
    pub fn incr_float(
        &mut self,
        key: impl AsRef<[u8]>,
        by: f64,
        counter: Counter<f64>,
    ) -> Result<Option<f64>, WriteError> {
        self.0.incr_float(key.as_ref(), by, counter)
    }

    /// Puts bytes behind a value, keeping flags and expiry. `false`: the key is absent.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`set`](Self::set).
    pub fn append(&mut self, key: impl AsRef<[u8]>, tail: impl AsRef<[u8]>) -> Result<bool, WriteError> {
        self.0.extend(key.as_ref(), tail.as_ref(), false)
    }

    /// Puts bytes in front of a value, keeping flags and expiry. `false`: the key is absent.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn prepend(&mut self, key: impl AsRef<[u8]>, head: impl AsRef<[u8]>) -> Result<bool, WriteError> {
        self.0.extend(key.as_ref(), head.as_ref(), true)
    }

    /// Gives a key another expiry; value and version stay. `false`: the key is absent.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn touch(&mut self, key: impl AsRef<[u8]>, ttl: Ttl) -> Result<bool, WriteError> {
        self.0.touch(key.as_ref(), ttl)
    }
}

impl Store {
    /// Runs `f` with a transaction and then does all that it wrote at one moment, provided that everything that it read
    /// is unchanged at that moment.
    ///
    /// **`f` may run several times**: when another process changed what it read, nothing has happened, and it is called
    /// again with a new transaction. So it must have no effects but through the transaction. While it runs no lock is
    /// held and nothing is announced: other processes neither wait for it nor see it.
    ///
    /// If `f` returns an error nothing has happened, and the error is returned; unless what it had read was changed
    /// by others: then the error may come from that, and it is called again. What it reads need not have been there at
    /// one moment until it commits; a function that must not even see such a mixture reads with
    /// [`get_many_snapshot`](Self::get_many_snapshot).
    ///
    /// Transactions and single operations together are strictly serializable. A transaction has at most 1,024 keys,
    /// read or written; a store with segments below 112 KiB takes fewer.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("hashmere-transaction-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir)?;
    /// use hashmere::{Counter, Store, WriteError};
    ///
    /// let store = Store::open(dir.join("bank.mere"))?;
    /// store.set("alice", b"100")?;
    /// let moved = store.transaction(|t| -> Result<_, WriteError> {
    ///     t.incr_by("alice", -30, Counter::EXISTING)?;
    ///     t.incr_by("bob", 30, Counter::or_create(30))
    /// })?;
    /// assert_eq!(moved, Some(30));
    /// # drop(store);
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of `f`. [`WriteError::Conflict`]: others changed what it read each time, for at least 5 seconds and 1,000
    /// times. [`WriteError::Busy`], [`Full`](WriteError::Full) and the rest of [`WriteError`], as [`set`](Self::set).
    pub fn transaction<R, E: From<WriteError>>(
        &self,
        mut f: impl FnMut(&mut Transaction<'_, '_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.shared.transaction(|writes| f(&mut Transaction(writes)))
    }

    /// Does all operations of a batch at one moment, and says what each did.
    ///
    /// # Errors
    /// As [`set`](Self::set), [`WriteError::NotANumber`] and [`WriteError::TooManyKeys`]: nothing has changed then.
    pub fn write_batch(&self, batch: &WriteBatch) -> Result<Vec<BatchResult>, WriteError> {
        self.shared.write_batch(batch)
    }

    /// Does the one batch if all conditions hold, else the other one; conditions and batch at one moment. (What etcd
    /// calls a transaction.)
    ///
    /// # Errors
    /// As [`write_batch`](Self::write_batch).
    pub fn write_batch_if(
        &self,
        conditions: &[Condition<'_>],
        then: &WriteBatch,
        otherwise: &WriteBatch,
    ) -> Result<Branch, WriteError> {
        self.shared.write_batch_if(conditions, then, otherwise)
    }

    /// The items of several keys as they were at one moment of this call. It takes no lock and keeps no writer waiting:
    /// it reads them, looks at each again, and begins again if one has changed.
    ///
    /// # Errors
    /// [`ReadError::Conflict`]: one of them was changed each of a thousand times; ask for fewer at once, or try again.
    pub fn get_many_snapshot<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Item>>, ReadError> {
        self.shared.get_many_snapshot(keys)
    }
}
