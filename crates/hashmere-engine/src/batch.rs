//! Several keys at once: their cache misses overlap.

use crate::engine::{KeyHash, When};
use crate::error::{ReadError, WriteError};
use crate::shared::SharedEngine;
use crate::types::Attributes;
use std::sync::Arc;

/// Keys whose cache misses overlap: enough to hide memory latency, few enough that what was fetched is still there when it is
/// used.
pub const BATCH: usize = 32;

impl SharedEngine {
    /// The values of several keys, one behind the other in `bytes`, and in `ends` where each of them ends and whether its key is there. What was in
    /// both before is gone.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get_many_joined<K: AsRef<[u8]>>(
        self: &Arc<Self>,
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
        self: &Arc<Self>,
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

    /// The hashes of at most [`BATCH`] keys, whose buckets and records are asked for on the way.
    #[inline(always)]
    pub fn hash_and_fetch<K: AsRef<[u8]>>(&self, keys: &[K]) -> [Option<KeyHash>; BATCH] {
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
    /// See [`WriteError`], for the first that fails: those before it are stored, those behind it are not.
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
            let mut writer = engine.writer_for_many(names())?;
            for ((key, value), kh) in batch.iter().zip(hashes.into_iter().flatten()) {
                engine.store(&mut writer, (key.as_ref(), kh), value.as_ref(), Attributes::NONE, When::Always)?;
            }
        }
        Ok(pairs.len())
    }

    /// Removes several keys. Returns how many of them were there.
    ///
    /// # Errors
    /// See [`WriteError`], for the first that fails: those before it are removed.
    pub fn delete_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<usize, WriteError> {
        let engine = self.engine();
        let mut removed = 0;
        for batch in keys.chunks(BATCH) {
            for key in batch {
                engine.fetch_buckets(engine.hash(key.as_ref()));
            }
            for key in batch {
                let (key, kh) = (key.as_ref(), engine.hash(key.as_ref()));
                removed += usize::from(engine.remove(&mut *engine.writer_for(key, kh)?, key, kh, None)?);
            }
        }
        Ok(removed)
    }
}
