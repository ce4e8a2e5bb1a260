//! Several keys at once: their cache misses overlap.

use crate::engine::{KeyHash, When, Writer, BATCH};
use crate::error::{ReadError, WriteError};
use crate::fork_handle::SharedEngine;
use crate::open::FileEngine;
use crate::types::Attributes;
use std::borrow::Cow;
use std::sync::Arc;

impl SharedEngine {
    /// The values of several keys, one behind the other in `bytes`, and in `ends` where each of them ends and whether
    /// its key is there. What was in both before is gone.
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
            let all = engine.look_ahead(keys.iter().map(AsRef::as_ref));
            let mut hits = 0;
            for (key, ahead) in keys.iter().zip(all.each()) {
                let key = key.as_ref();
                let found = if engine.fetch_ahead(key, (&all, ahead), bytes) {
                    hits += 1;
                    true
                } else {
                    self.fetch_alone(engine, key, ahead.hash(), bytes)?
                };
                ends.push((bytes.len(), found));
            }
            // Which of them those were is looked up only if one is to be sampled: those that were found ahead.
            engine.count_hits(hits, |nth| {
                let mut found = keys.iter().zip(all.each()).filter(|(_, ahead)| ahead.is_found());
                let (key, ahead) = found.nth(nth as usize)?;
                Some((Cow::Borrowed(key.as_ref()), ahead.hash().hash))
            });
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn fetch_alone(
        self: &Arc<Self>,
        engine: &FileEngine,
        key: &[u8],
        kh: KeyHash,
        bytes: &mut Vec<u8>,
    ) -> Result<bool, ReadError> {
        self.fetch_bytes(engine, key, kh, bytes)
    }

    /// Asks for the cache lines that looking up these keys needs, at most [`BATCH`] of them: for a caller that will
    /// read or write them one by one, soon.
    pub fn prefetch<K: AsRef<[u8]>>(&self, keys: &[K]) {
        self.engine().look_ahead(keys.iter().map(AsRef::as_ref));
    }

    /// Stores several pairs, in order, without attributes. Returns how many there were.
    ///
    /// # Errors
    /// See [`WriteError`], for the first that fails: those before it are stored, those behind it are not.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, pairs: &[(K, V)]) -> Result<usize, WriteError> {
        let engine = self.engine();
        for batch in pairs.chunks(BATCH) {
            let all = engine.look_ahead(batch.iter().map(|(key, _)| key.as_ref()));
            let hashed = || {
                batch.iter().zip(all.each()).map(|((key, value), ahead)| (key.as_ref(), ahead.hash(), value.as_ref()))
            };
            let store = |writer: &mut Writer, key, kh, value| {
                engine.store(writer, (key, kh), value, Attributes::NONE, When::Always)
            };
            match engine.writer_for_many(hashed().map(|(key, kh, _)| (key, kh))) {
                Ok(mut writer) => {
                    for (key, kh, value) in hashed() {
                        store(&mut writer, key, kh, value)?;
                    }
                }
                // One of these keys may not be written by this thread now: those before it are stored.
                Err(_) => {
                    for (key, kh, value) in hashed() {
                        store(&mut *engine.writer_for(key, kh)?, key, kh, value)?;
                    }
                }
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
            let all = engine.look_ahead(batch.iter().map(AsRef::as_ref));
            let keys = || batch.iter().map(AsRef::as_ref).zip(all.each().map(|ahead| ahead.hash()));
            match engine.writer_for_many(keys()) {
                Ok(mut writer) => {
                    for (key, kh) in keys() {
                        removed += usize::from(engine.remove(&mut writer, key, kh, None)?);
                    }
                }
                // As in `set_many`.
                Err(_) => {
                    for (key, kh) in keys() {
                        removed += usize::from(engine.remove(&mut *engine.writer_for(key, kh)?, key, kh, None)?);
                    }
                }
            }
        }
        Ok(removed)
    }
}
