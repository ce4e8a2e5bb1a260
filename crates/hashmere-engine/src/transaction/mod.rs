//! Several keys as one: what a transaction read and is to write, kept by this process alone until it commits.
//!
//! [`Transaction`] remembers of each key that was read what it was, and of each that was written what it becomes; then
//! [`commit`](Transaction::commit) does all of it at one moment if all that was read is still as it was.
//! [`retry`] runs a function until its transaction commits, [`batch`] writes without conditions, or under some, and
//! [`snapshot`] reads several keys as they were at one moment.

mod backoff;
pub(crate) mod batch;
mod notes;
pub(crate) mod retry;
pub(crate) mod snapshot;

use crate::engine::{
    step, Change, CounterKind, Engine, Found, FractionStep, Guard, KeyHash, Rounds, Signed, TransactionOutcome,
    Unsigned, Value,
};
use crate::error::{ReadError, WriteError};
use crate::transaction::notes::{FEW, NO_ROOT};
use crate::transaction::snapshot::Seen;
use crate::types::{Attributes, Counter, Item, Ttl};
use hashmere_mem::{Host, Mem};
use std::borrow::Cow;

pub use notes::Notes;

/// How a transaction reads a key.
pub type Reader<'e> = dyn Fn(&[u8], KeyHash) -> Result<Option<Item>, ReadError> + 'e;

/// A value that the transaction sees.
struct Now {
    value: Vec<u8>,
    flags: u64,
    expires: Option<u64>,
    /// It is what the key has, not what the transaction wrote.
    is_stored: bool,
}

/// A transaction that is being made.
pub struct Transaction<'t, M: Mem, H: Host> {
    engine: &'t Engine<M, H>,
    read: &'t Reader<'t>,
    notes: &'t mut Notes,
}

impl<'t, M: Mem, H: Host> Transaction<'t, M, H> {
    /// One that goes on with what was noted. Notes that were [cleared](Notes::clear) make one that has read and written
    /// nothing.
    pub fn new(engine: &'t Engine<M, H>, read: &'t Reader<'t>, notes: &'t mut Notes) -> Self {
        if notes.root == NO_ROOT {
            notes.root = engine.root_word();
        }
        Transaction { engine, read, notes }
    }

    /// The part of a key, made if there is none.
    #[inline(always)]
    fn part(&mut self, key: &[u8]) -> Result<usize, WriteError> {
        if let Some(found) = self.notes.find_among_few(key) {
            return Ok(found);
        }
        let kh = self.engine.hash(key);
        if let Some(found) = self.notes.find(key, kh) {
            return Ok(found);
        }
        // (Every store takes this number.)
        if self.notes.parts.len() >= FEW {
            let limit = self.engine.keys_of_transaction_max();
            if self.notes.parts.len() as u64 >= limit {
                return Err(WriteError::TooManyKeys { limit });
            }
        }
        Ok(self.notes.add(key, kh))
    }

    /// Reads a key of the store that was not read before to the end of `buffer`, and remembers what it was and where.
    /// `None`: nothing is known, and [`look`](Self::look) is to find out.
    #[inline(always)]
    fn look_first<R>(&mut self, part: usize, buffer: &mut Vec<u8>, also: impl FnOnce(&Found) -> R) -> Option<R> {
        let Notes { parts, bytes, .. } = &mut *self.notes;
        let part = parts.get_mut(part)?;
        if part.guard != Guard::Any || part.change != Change::Same {
            return None;
        }
        let read = self.engine.read_part(bytes, part, buffer, also)?;
        self.notes.hits += 1;
        Some(read)
    }

    /// Counts the keys that were read since it was counted last.
    #[inline(always)]
    pub(crate) fn count_hits(&mut self) {
        if self.notes.hits != 0 {
            let hits = std::mem::take(&mut self.notes.hits);
            let notes = &*self.notes;
            self.engine.count_hits(hits, |nth| {
                let was_read = |part: &usize| matches!(notes.parts[*part].guard, Guard::Version(_) | Guard::Seen(_));
                // They were read last.
                let part = (0..notes.parts.len()).rev().filter(was_read).nth(nth as usize)?;
                Some((Cow::Borrowed(notes.key(part)), notes.parts[part].kh.hash))
            });
        }
    }

    /// Reads a key of the store, and remembers what it was.
    fn look(&mut self, part: usize) -> Result<Option<Item>, WriteError> {
        let (engine, mut value) = (self.engine, Vec::new());
        if let Some(metadata) = self.look_first(part, &mut value, |found| engine.meta_of_found(found)) {
            return Ok(Some(Item { value, metadata }));
        }
        let kh = self.notes.parts[part].kh;
        let version = self.engine.version_of_bucket(kh)?;
        let item = (self.read)(self.notes.key(part), kh)?;
        let seen = Seen { version, metadata: item.as_ref().map(|item| item.metadata) };
        match self.notes.seen(part) {
            Some(before) if !before.is_same(&seen) => {
                self.notes.conflict = Some(part);
                Err(self.notes.conflict_at(part))
            }
            Some(_) => Ok(item),
            None => {
                self.notes.parts[part].guard = seen.metadata.map_or(Guard::Absent(version), Guard::Seen);
                Ok(item)
            }
        }
    }

    /// What a key is within the transaction.
    fn now(&mut self, part: usize) -> Result<Option<Now>, WriteError> {
        match self.notes.parts[part].change {
            Change::Remove => Ok(None),
            Change::Put(Value { expires, .. }) if self.engine.is_deadline_reached(expires) => Ok(None),
            Change::Put(Value { bytes, expires, flags, .. }) => {
                Ok(Some(Now { value: bytes.of(&self.notes.bytes).to_vec(), flags, expires, is_stored: false }))
            }
            Change::Same => Ok(self.look(part)?.map(|item| {
                let meta = item.metadata;
                let flags = u64::from(meta.flags) | u64::from(meta.marks) << 32;
                Now { value: item.value, flags, expires: meta.expires_at_ms, is_stored: true }
            })),
        }
    }

    /// The value of a key: what this transaction wrote, or else what the store has.
    ///
    /// # Errors
    /// [`WriteError::Conflict`]: the key has changed since the transaction read it first. Those of reading.
    #[inline(always)]
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, WriteError> {
        let mut value = Vec::new();
        Ok(self.append_to(key, &mut value)?.then_some(value))
    }

    /// The same to the end of a buffer. `false`: the key is absent.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline(always)]
    pub fn append_to(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, WriteError> {
        let part = self.part(key)?;
        if self.look_first(part, buffer, |_| ()).is_some() {
            return Ok(true);
        }
        self.append_slowly(part, buffer)
    }

    #[inline(never)]
    fn append_slowly(&mut self, part: usize, buffer: &mut Vec<u8>) -> Result<bool, WriteError> {
        let Some(now) = self.now(part)? else { return Ok(false) };
        if buffer.capacity() == 0 {
            *buffer = now.value;
        } else {
            buffer.extend_from_slice(&now.value);
        }
        Ok(true)
    }

    /// The same with flags, version, expiry and UID of what the store has; `None` within: it is what this transaction
    /// wrote, which has no version yet.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) fn get_item(&mut self, part: usize) -> Result<Option<Item>, WriteError> {
        if self.notes.parts[part].change == Change::Same {
            return self.look(part);
        }
        Ok(self.now(part)?.map(|now| {
            let mut item = Item { value: now.value, metadata: Default::default() };
            item.metadata.value_len = item.value.len() as u64;
            (item.metadata.flags, item.metadata.expires_at_ms) = (now.flags as u32, now.expires);
            item
        }))
    }

    /// The value of a key with flags and expiry; version, marks and UID too unless it is what this transaction wrote,
    /// which has none yet.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn item(&mut self, key: &[u8]) -> Result<Option<Item>, WriteError> {
        let part = self.part(key)?;
        self.get_item(part)
    }

    /// Stores a value when the transaction commits, whatever the key is then.
    ///
    /// # Errors
    /// [`WriteError::TooLarge`], [`WriteError::WrongLength`], [`WriteError::TooManyKeys`].
    #[inline(always)]
    pub fn set(&mut self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<(), WriteError> {
        let part = self.part(key)?;
        self.set_part(part, value, attributes)
    }

    #[inline(always)]
    fn set_part(&mut self, part: usize, value: &[u8], attributes: Attributes) -> Result<(), WriteError> {
        let expires = self.engine.deadline(attributes.ttl);
        self.put(part, value, expires, attributes.flags.into(), attributes.min_version.0, false)
    }

    #[inline(always)]
    fn put(
        &mut self,
        part: usize,
        value: &[u8],
        expires: Option<u64>,
        flags: u64,
        least: u64,
        keeps_version: bool,
    ) -> Result<(), WriteError> {
        self.engine.admit(self.notes.parts[part].key.len() as u64, value.len() as u64)?;
        self.notes.forget(part);
        let bytes = self.notes.keep(value);
        self.notes.parts[part].change = Change::Put(Value { bytes, expires, flags, least, keeps_version });
        Ok(())
    }

    /// Removes a key when the transaction commits, whatever it is then.
    ///
    /// # Errors
    /// [`WriteError::TooManyKeys`].
    pub fn delete(&mut self, key: &[u8]) -> Result<(), WriteError> {
        let part = self.part(key)?;
        self.notes.forget(part);
        self.notes.parts[part].change = Change::Remove;
        Ok(())
    }

    /// Counts, as `Store::incr_by`: what the key is then, or `None`: it is absent, and stays so.
    ///
    /// # Errors
    /// [`WriteError::NotANumber`], and those of [`get`](Self::get) and [`set`](Self::set).
    pub fn incr_by(&mut self, key: &[u8], by: i64, counter: Counter) -> Result<Option<u64>, WriteError> {
        self.count(key, &Unsigned, counter, |number| Ok(step(number, by)))
    }

    /// Counts, as `Store::incr_signed`.
    ///
    /// # Errors
    /// [`WriteError::Overflow`], and those of [`incr_by`](Self::incr_by).
    pub fn incr_signed(&mut self, key: &[u8], by: i64, counter: Counter<i64>) -> Result<Option<i64>, WriteError> {
        self.count(key, &Signed, counter, |number| number.checked_add(by).ok_or(WriteError::Overflow))
    }

    /// Counts, as `Store::incr_float`.
    ///
    /// # Errors
    /// [`WriteError::Overflow`], [`WriteError::InvalidState`], and those of [`incr_by`](Self::incr_by).
    pub fn incr_float(&mut self, key: &[u8], by: f64, counter: Counter<f64>) -> Result<Option<f64>, WriteError> {
        let step = FractionStep::new(by, counter.initial)?;
        let part = self.part(key)?;
        let now = self.now(part)?;
        let Some((text, number)) = step.next(now.as_ref().map(|now| &now.value[..]))? else { return Ok(None) };
        self.put_number(part, now, &self.engine.fraction_text(text), counter.attributes)?;
        Ok(Some(number))
    }

    fn count<K: CounterKind>(
        &mut self,
        key: &[u8],
        kind: &K,
        counter: Counter<K::Number>,
        add: impl Fn(K::Number) -> Result<K::Number, WriteError>,
    ) -> Result<Option<K::Number>, WriteError> {
        let part = self.part(key)?;
        let now = self.now(part)?;
        let next = match (&now, counter.initial) {
            (Some(now), _) => add(kind.parse(&now.value, false).ok_or(WriteError::NotANumber)?)?,
            (None, Some(initial)) => initial,
            (None, None) => return Ok(None),
        };
        let text = self.engine.counter_text(kind, next)?;
        self.put_number(part, now, &text, counter.attributes)?;
        Ok(Some(next))
    }

    /// What is counted keeps flags and expiry; what is created has those of `attributes`.
    fn put_number(
        &mut self,
        part: usize,
        now: Option<Now>,
        text: &[u8],
        attributes: Attributes,
    ) -> Result<(), WriteError> {
        let (flags, expires) = match now {
            Some(now) => (now.flags & u64::from(u32::MAX), now.expires),
            None => (attributes.flags.into(), self.engine.deadline(attributes.ttl)),
        };
        self.put(part, text, expires, flags, attributes.min_version.0, false)
    }

    /// Puts bytes behind (or with `in_front` before) a value, keeping flags and expiry. `false`: the key is absent.
    ///
    /// # Errors
    /// As [`set`](Self::set) and [`get`](Self::get).
    pub fn extend(&mut self, key: &[u8], more: &[u8], in_front: bool) -> Result<bool, WriteError> {
        let part = self.part(key)?;
        let Some(now) = self.now(part)? else { return Ok(false) };
        let value = if in_front { [more, &now.value].concat() } else { [&now.value, more].concat() };
        self.put(part, &value, now.expires, now.flags & u64::from(u32::MAX), 0, false)?;
        Ok(true)
    }

    /// Gives a key another expiry; value and version stay. `false`: the key is absent.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn touch(&mut self, key: &[u8], ttl: Ttl) -> Result<bool, WriteError> {
        let part = self.part(key)?;
        let Some(now) = self.now(part)? else { return Ok(false) };
        let deadline = self.engine.deadline(ttl);
        if let Change::Put(value) = &mut self.notes.parts[part].change {
            value.expires = deadline;
            return Ok(true);
        }
        self.put(part, &now.value, deadline, now.flags, 0, now.is_stored)?;
        Ok(true)
    }

    /// Whether everything that was read is still as it was, all at one moment of this call; else the key that is not.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub(crate) fn validate(&mut self) -> Result<bool, ReadError> {
        for at in 0..self.notes.parts.len() {
            let Some(seen) = self.notes.seen(at) else { continue };
            if !self.engine.is_as_seen(self.notes.key(at), self.notes.parts[at].kh, &seen)? {
                self.notes.conflict = Some(at);
                return Ok(false);
            }
        }
        // A clear in between is found by the first key that was read.
        let read = self.notes.parts.iter().position(|part| part.guard != Guard::Any);
        self.notes.conflict = read.filter(|_| self.engine.root_word() != self.notes.root);
        Ok(self.notes.conflict.is_none())
    }

    /// Does all of it at one moment. `false`: what was read has changed, and nothing has happened.
    ///
    /// # Errors
    /// See [`WriteError`]: nothing has changed then.
    pub(crate) fn commit(&mut self, rounds: &mut Rounds) -> Result<bool, WriteError> {
        if self.notes.conflict.is_some() {
            rounds.lose();
            return Ok(false);
        }
        if self.notes.parts.iter().all(|part| part.change == Change::Same) {
            return Ok(self.validate()?);
        }
        let Notes { parts, bytes, room, .. } = &mut *self.notes;
        let keys = parts.iter().map(|part| (part.key.of(bytes), part.kh));
        let mut writer = self.engine.writer_for_many(keys)?;
        let mut conflict = None;
        let done = self.engine.end_round(rounds, &mut writer, |writer| {
            Ok(match self.engine.transact(writer, bytes, parts, room)? {
                TransactionOutcome::Committed => Some(()),
                TransactionOutcome::Conflict(at) => {
                    conflict = Some(at);
                    None
                }
            })
        })?;
        self.notes.conflict = conflict;
        Ok(done.is_some())
    }
}
