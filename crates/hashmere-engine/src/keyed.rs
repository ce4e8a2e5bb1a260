//! Calls with a key, for Hashmere's own crates: what the public crate, the queues and the locks do the same way.

use crate::engine::{CounterKind, KeyHash, Tick, When};
use crate::error::{Error, ReadError, WriteError};
use crate::fork_handle::SharedEngine;
use crate::open::FileEngine;
use crate::types::{
    Attributes, CasOutcome, Change, Counter, Expected, Item, Metadata, Stored, Update, Updated, Version,
    WaitAnyOutcome, WaitOutcome,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the function given to `SharedEngine::update_with` is asked about one key at least, before that is an
/// error: it may change the key itself, by ways that [`WriteError::Reentered`] does not see.
const ASKED_MOST: u32 = 1000;
/// From when on its time is taken.
const ASKED_OFTEN: u32 = 16;
/// And for how long it is asked then: others who only write often are out of luck for moments, what writes its own key
/// every time.
const ASKED_FOR: Duration = Duration::from_secs(5);

impl FileEngine {
    /// Stores a value, whether the key was there or not, with the key's hash.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[inline(always)]
    pub fn set_hashed(
        &self,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        attributes: Attributes,
    ) -> Result<Stored, WriteError> {
        let mut writer = self.writer_for(key, kh)?;
        self.store(&mut writer, (key, kh), value, attributes, When::Always)?;
        Ok(writer.stored)
    }
}

impl SharedEngine {
    /// The value of a key.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get(self: &Arc<Self>, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self.get_item(key)?.map(|item| item.value))
    }

    /// The value of a key with flags, version, expiry and UID.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get_item(self: &Arc<Self>, key: &[u8]) -> Result<Option<Item>, ReadError> {
        self.item(key, self.engine().hash(key))
    }

    /// Everything about a key except its value.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn metadata(&self, key: &[u8]) -> Result<Option<Metadata>, ReadError> {
        self.engine().peek(key, self.engine().hash(key))
    }

    /// Stores a value if the condition holds. `None`: it does not, and nothing has changed.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[inline(always)]
    pub fn put(
        &self,
        key: &[u8],
        kh: KeyHash,
        value: &[u8],
        attributes: Attributes,
        when: When,
    ) -> Result<Option<Stored>, WriteError> {
        let engine = self.engine();
        let mut writer = engine.writer_for(key, kh)?;
        let stored = engine.store(&mut writer, (key, kh), value, attributes, when)?;
        Ok(stored.then_some(writer.stored))
    }

    /// Stores a value, whether the key was there or not.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[inline(always)]
    pub fn set_with(&self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<Stored, WriteError> {
        let engine = self.engine();
        engine.set_hashed(key, engine.hash(key), value, attributes)
    }

    /// Removes what is left of a key that has expired, which cleaning would do later. `false`: nothing is left, or the
    /// key lives.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn delete_expired(&self, key: &[u8]) -> Result<bool, WriteError> {
        let engine = self.engine();
        let kh = engine.hash(key);
        // Nearly always there is nothing, and no lock is taken to find that out.
        if !engine.may_be_expired(key, kh) {
            return Ok(false);
        }
        engine.expire(&mut *engine.writer()?, key, kh)
    }

    /// The same without attributes.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<Stored, WriteError> {
        self.set_with(key, value, Attributes::NONE)
    }

    /// Stores a value if the key is absent. `None`: it is there, and stays as it is.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn add(&self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<Option<Stored>, WriteError> {
        self.put(key, self.engine().hash(key), value, attributes, When::Absent)
    }

    /// Changes a key if it is as expected.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn cas(&self, key: &[u8], expected: Expected<'_>, change: Change<'_>) -> Result<CasOutcome, WriteError> {
        self.cas_hashed(key, self.engine().hash(key), expected, change)
    }

    /// The same, with the key's hash.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn cas_hashed(
        &self,
        key: &[u8],
        kh: KeyHash,
        expected: Expected<'_>,
        change: Change<'_>,
    ) -> Result<CasOutcome, WriteError> {
        let engine = self.engine();
        let mut writer = engine.writer_for(key, kh)?;
        engine.with_index_room(&mut writer, |writer| engine.cas(writer, key, kh, expected, change))
    }

    /// Counts in one step: what the counter is now, and how that was stored. `None`: the key is absent, and stays so.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[inline(always)]
    pub fn count<K: CounterKind>(
        &self,
        (key, kh): (&[u8], KeyHash),
        kind: &K,
        counter: Counter<K::Number>,
        tick: impl Fn(K::Number) -> Result<Tick<K::Number>, WriteError>,
    ) -> Result<Option<(K::Number, Stored)>, WriteError> {
        let engine = self.engine();
        let mut writer = engine.writer_for(key, kh)?;
        let now = engine.with_index_room(&mut writer, |writer| engine.tick(writer, (key, kh), kind, counter, &tick))?;
        Ok(now.map(|number| (number, writer.stored)))
    }

    /// Shows a key to `f` and does what it says, in one step.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn update_with(
        self: &Arc<Self>,
        key: &[u8],
        f: impl FnMut(Option<&Item>) -> Update,
    ) -> Result<Updated, WriteError> {
        self.update_hashed(key, self.engine().hash(key), f)
    }

    /// The same, with the key's hash.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn update_hashed(
        self: &Arc<Self>,
        key: &[u8],
        kh: KeyHash,
        mut f: impl FnMut(Option<&Item>) -> Update,
    ) -> Result<Updated, WriteError> {
        let engine = self.engine();
        let (mut asked, mut since) = (0u32, None);
        engine.update(key, kh, &mut || self.item(key, kh), &mut |item| {
            if asked >= ASKED_OFTEN && since.get_or_insert_with(Instant::now).elapsed() >= ASKED_FOR && asked == ASKED_MOST
            {
                return Err(WriteError::InvalidState(
                    "the key was changed each time that the function given to update ran, 1,000 times within at least 5 seconds; it must not write that key itself (through another handle, thread or process), and must take less than 5 ms where others write the key without pause",
                ));
            }
            asked = ASKED_MOST.min(asked + 1);
            let _shown = engine.show(key, kh);
            Ok(f(item))
        })
    }

    /// Waits until a key has another version than it was `seen` with.
    ///
    /// # Errors
    /// As [`wait_any`](Self::wait_any).
    pub fn wait(&self, key: &[u8], seen: Option<Version>, timeout: Duration) -> Result<WaitOutcome, Error> {
        Ok(match self.wait_any(&[(key, seen)], timeout)? {
            WaitAnyOutcome::Changed(_, version) => WaitOutcome::Changed(version),
            WaitAnyOutcome::Removed(_) => WaitOutcome::Removed,
            WaitAnyOutcome::TimedOut => WaitOutcome::TimedOut,
        })
    }

    /// The same for several keys.
    ///
    /// # Errors
    /// [`ReadOnly`](WriteError::ReadOnly), [`InvalidState`](WriteError::InvalidState) without a key, and those of
    /// reading.
    pub fn wait_any(&self, keys: &[(&[u8], Option<Version>)], timeout: Duration) -> Result<WaitAnyOutcome, Error> {
        let engine = self.engine();
        if engine.access.read_only {
            return Err(WriteError::ReadOnly.into());
        }
        if keys.is_empty() {
            return Err(WriteError::InvalidState("no key to wait for was given").into());
        }
        let seen: Vec<_> = keys.iter().map(|(key, seen)| (*key, engine.hash(key), *seen)).collect();
        Ok(match engine.wait_for_change(&seen, timeout)? {
            Some((index, Some(version))) => WaitAnyOutcome::Changed(index, version),
            Some((index, None)) => WaitAnyOutcome::Removed(index),
            None => WaitAnyOutcome::TimedOut,
        })
    }
}
