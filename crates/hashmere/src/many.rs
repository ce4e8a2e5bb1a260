//! Several keys at once.

use crate::engine::{KeyHash, When};
use crate::error::{ReadError, WriteError};
use crate::types::Attributes;
use crate::Store;

/// Keys whose cache misses overlap: enough to hide memory latency, few enough that what was fetched is still there when it is
/// used.
pub(crate) const BATCH: usize = 32;

impl Store {
    /// The values of several keys, in order. Their cache misses overlap, so in a table larger than the caches this is several
    /// times as fast as one by one. Each key is read atomically, not all of them together; but a [`clear`](Self::clear) is seen for
    /// all of them or for none.
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
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(keys.len()));
        self.get_many_joined(keys, &mut bytes, &mut ends)?;
        let mut start = 0;
        for (i, (end, found)) in ends.into_iter().enumerate() {
            each(i, found.then(|| &bytes[start..end]));
            start = end;
        }
        Ok(())
    }

    /// The same, all values one behind the other in `bytes`, and in `ends` where each of them ends and whether its key is there. What was in
    /// both before is gone.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get_many_joined<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        bytes: &mut Vec<u8>,
        ends: &mut Vec<(usize, bool)>,
    ) -> Result<(), ReadError> {
        let engine = self.engine();
        loop {
            let root = engine.root_word();
            bytes.clear();
            ends.clear();
            self.collect(keys, bytes, ends)?;
            if engine.root_word() == root {
                return Ok(());
            }
        }
    }

    fn collect<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        bytes: &mut Vec<u8>,
        ends: &mut Vec<(usize, bool)>,
    ) -> Result<(), ReadError> {
        let engine = self.engine();
        for keys in keys.chunks(BATCH) {
            for (key, kh) in keys.iter().zip(self.hash_and_fetch(keys).into_iter().flatten()) {
                let found = self.fetch_bytes(engine, key.as_ref(), kh, bytes)?;
                ends.push((bytes.len(), found));
            }
        }
        Ok(())
    }

    /// Asks the processor for the cache lines that calls with these keys are going to need, all at once: for a caller who has
    /// something else to do meanwhile. Of more than 32 keys only the first are asked for. A hint: it changes nothing and
    /// cannot fail.
    pub fn prefetch<K: AsRef<[u8]>>(&self, keys: &[K]) {
        self.hash_and_fetch(keys);
    }

    /// The hashes of at most [`BATCH`] keys, whose buckets and records are asked for on the way.
    #[inline(always)]
    pub(crate) fn hash_and_fetch<K: AsRef<[u8]>>(&self, keys: &[K]) -> [Option<KeyHash>; BATCH] {
        let engine = self.engine();
        let mut hashes = [None; BATCH];
        let mut places = [None; BATCH];
        for ((key, hash), place) in keys.iter().zip(&mut hashes).zip(&mut places) {
            let kh = engine.hash(key.as_ref());
            (*hash, *place) = (Some(kh), engine.fetch_buckets(kh));
        }
        for (hash, place) in hashes.iter().zip(places) {
            if let (Some(kh), Some(place)) = (hash, place) {
                engine.fetch_record(*kh, place);
            }
        }
        hashes
    }

    /// Stores several pairs, in order, without attributes. Returns how many there were.
    ///
    /// # Errors
    /// As [`set`](Self::set), for the first that fails: those before it are stored, those behind it are not.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, pairs: &[(K, V)]) -> Result<usize, WriteError> {
        let engine = self.engine();
        for batch in pairs.chunks(BATCH) {
            let mut hashes = [None; BATCH];
            for ((key, _), hash) in batch.iter().zip(&mut hashes) {
                let kh = engine.hash(key.as_ref());
                engine.fetch_buckets(kh);
                *hash = Some(kh);
            }
            let names = || batch.iter().map(|(key, _)| key.as_ref()).zip(hashes.iter().flatten().copied());
            let mut lane = engine.lane_for_many(names())?;
            for ((key, value), kh) in batch.iter().zip(hashes.into_iter().flatten()) {
                engine.store(&mut lane, (key.as_ref(), kh), value.as_ref(), Attributes::NONE, When::Always)?;
            }
        }
        Ok(pairs.len())
    }

    /// Removes several keys. Returns how many of them were there.
    ///
    /// # Errors
    /// As [`delete`](Self::delete), for the first that fails: those before it are removed.
    pub fn delete_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<usize, WriteError> {
        let engine = self.engine();
        let mut removed = 0;
        for batch in keys.chunks(BATCH) {
            for key in batch {
                engine.fetch_buckets(engine.hash(key.as_ref()));
            }
            for key in batch {
                removed += usize::from(self.delete(key.as_ref())?);
            }
        }
        Ok(removed)
    }
}
