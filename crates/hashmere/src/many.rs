//! Several keys at once.

use crate::{ReadError, Store, WriteError};

/// Bytes that a value is expected to have, and the most that is asked for before the values are known.
const SHORT: usize = 32;
const ROOM_MAX: usize = 64 << 10;

impl Store {
    /// The values of several keys, in order. Their cache misses overlap, so in a table larger than the caches this is
    /// several times as fast as one by one. Each key is read atomically, not all of them together; but a
    /// [`clear`](Self::clear) is seen for all of them or for none.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, ReadError> {
        let mut values = Vec::with_capacity(keys.len());
        self.get_many_with(keys, |_, value| values.push(value.map(<[u8]>::to_vec)))?;
        Ok(values)
    }

    /// The same, each value shown to `each` with the number of its key, in order, and not kept.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), ReadError> {
        let room = (keys.len() * SHORT).min(ROOM_MAX);
        let (mut bytes, mut ends) = (Vec::with_capacity(room), Vec::with_capacity(keys.len()));
        self.shared.get_many_joined(keys, &mut bytes, &mut ends)?;
        let mut start = 0;
        for (i, (end, found)) in ends.into_iter().enumerate() {
            each(i, found.then(|| &bytes[start..end]));
            start = end;
        }
        Ok(())
    }

    /// Stores several pairs, in order, without attributes. Returns how many there were.
    ///
    /// # Errors
    /// As [`set`](Self::set), for the first that fails: those before it are stored, those behind it are not.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, pairs: &[(K, V)]) -> Result<usize, WriteError> {
        self.shared.set_many(pairs)
    }

    /// Removes several keys. Returns how many of them were there.
    ///
    /// # Errors
    /// As [`delete`](Self::delete), for the first that fails: those before it are removed.
    pub fn delete_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<usize, WriteError> {
        self.shared.delete_many(keys)
    }
}
