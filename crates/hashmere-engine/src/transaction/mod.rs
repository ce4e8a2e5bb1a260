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

use crate::engine::{number_of, step, Engine, KeyHash, Part, Rounds, TransactionOutcome, Unsigned};
use crate::error::{ReadError, WriteError};
use crate::transaction::notes::{emptied, Entry, Write, Written, NO_ROOT};
use crate::transaction::snapshot::Seen;
use crate::types::{Attributes, Counter, Item, Ttl};
use hashmere_mem::{Host, Mem};

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

    /// The entry of a key, made if there is none.
    #[inline(always)]
    fn entry(&mut self, key: &[u8]) -> Result<usize, WriteError> {
        let kh = self.engine.hash(key);
        if let Some(found) = self.notes.find(key, kh) {
            return Ok(found);
        }
        let limit = self.engine.keys_of_transaction_max();
        if self.notes.entries.len() as u64 >= limit {
            return Err(WriteError::TooManyKeys { limit });
        }
        Ok(self.notes.add(key, kh))
    }

    /// Reads a key of the store that was not read before, and remembers what it was and where. `None`: nothing is
    /// known, and [`look`](Self::look) is to find out.
    #[inline(always)]
    fn look_first(&mut self, entry: usize) -> Option<Vec<u8>> {
        let Notes { entries, bytes, .. } = &mut *self.notes;
        let Entry { key, kh, seen, lookup, write: Write::None, .. } = entries.get_mut(entry)? else { return None };
        if seen.is_some() {
            return None;
        }
        self.engine.read_for_transaction(&bytes[key.clone()], *kh, |metadata, found| {
            // The version of the bucket says something of a key that is absent.
            *seen = Some(Seen { version: 0, metadata: Some(metadata) });
            *lookup = Some(found);
        })
    }

    /// Reads a key of the store, and remembers what it was.
    fn look(&mut self, entry: usize) -> Result<Option<Item>, WriteError> {
        if let Some(value) = self.look_first(entry) {
            let metadata = self.notes.entries[entry].seen.as_ref().and_then(|seen| seen.metadata).unwrap_or_default();
            return Ok(Some(Item { value, metadata }));
        }
        let kh = self.notes.entries[entry].kh;
        let version = self.engine.version_of_bucket(kh)?;
        let item = (self.read)(self.notes.key(entry), kh)?;
        let seen = Seen { version, metadata: item.as_ref().map(|item| item.metadata) };
        match &self.notes.entries[entry].seen {
            Some(before) if !before.is_same(&seen) => {
                self.notes.conflict = Some(entry);
                Err(self.notes.conflict_at(entry))
            }
            Some(_) => Ok(item),
            None => {
                self.notes.entries[entry].seen = Some(seen);
                Ok(item)
            }
        }
    }

    /// What a key is within the transaction.
    fn now(&mut self, entry: usize) -> Result<Option<Now>, WriteError> {
        match self.notes.entries[entry].write.clone() {
            Write::Gone => Ok(None),
            Write::Put { value, expires, flags, .. } => {
                Ok(Some(Now { value: self.notes.bytes[value].to_vec(), flags, expires, is_stored: false }))
            }
            Write::None => Ok(self.look(entry)?.map(|item| {
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
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, WriteError> {
        let entry = self.entry(key)?;
        if let Some(value) = self.look_first(entry) {
            return Ok(Some(value));
        }
        Ok(self.now(entry)?.map(|now| now.value))
    }

    /// The same with flags, version, expiry and UID of what the store has; `None` within: it is what this transaction
    /// wrote, which has no version yet.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) fn get_item(&mut self, entry: usize) -> Result<Option<Item>, WriteError> {
        if matches!(self.notes.entries[entry].write, Write::None) {
            return self.look(entry);
        }
        Ok(self.now(entry)?.map(|now| {
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
        let entry = self.entry(key)?;
        self.get_item(entry)
    }

    /// Stores a value when the transaction commits, whatever the key is then.
    ///
    /// # Errors
    /// [`WriteError::TooLarge`], [`WriteError::WrongLength`], [`WriteError::TooManyKeys`].
    pub fn set(&mut self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<(), WriteError> {
        let entry = self.entry(key)?;
        self.set_entry(entry, value, attributes)
    }

    #[inline(always)]
    fn set_entry(&mut self, entry: usize, value: &[u8], attributes: Attributes) -> Result<(), WriteError> {
        let expires = self.engine.deadline(attributes.ttl);
        self.put(entry, value, expires, attributes.flags.into(), attributes.min_version.0, false)
    }

    #[inline(always)]
    fn put(
        &mut self,
        entry: usize,
        value: &[u8],
        expires: Option<u64>,
        flags: u64,
        least: u64,
        keeps_version: bool,
    ) -> Result<(), WriteError> {
        self.engine.admit(self.notes.entries[entry].key.len() as u64, value.len() as u64)?;
        self.notes.forget(entry);
        let value = self.notes.keep(value);
        self.notes.entries[entry].write = Write::Put { value, expires, flags, least, keeps_version };
        Ok(())
    }

    /// Removes a key when the transaction commits, whatever it is then.
    ///
    /// # Errors
    /// [`WriteError::TooManyKeys`].
    pub fn delete(&mut self, key: &[u8]) -> Result<(), WriteError> {
        let entry = self.entry(key)?;
        self.notes.forget(entry);
        self.notes.entries[entry].write = Write::Gone;
        Ok(())
    }

    /// Counts: what the key is then, or `None`: it is absent, and stays so.
    ///
    /// # Errors
    /// [`WriteError::NotANumber`], and those of [`get`](Self::get).
    pub fn incr_by(&mut self, key: &[u8], by: i64, counter: Counter) -> Result<Option<u64>, WriteError> {
        let entry = self.entry(key)?;
        let (next, flags, expires) = match (self.now(entry)?, counter.initial) {
            (Some(now), _) => (step(number_of(&now.value)?, by), now.flags & u64::from(u32::MAX), now.expires),
            (None, Some(initial)) => {
                (initial, counter.attributes.flags.into(), self.engine.deadline(counter.attributes.ttl))
            }
            (None, None) => return Ok(None),
        };
        let text = self.engine.counter_text(&Unsigned, next)?;
        self.put(entry, &text, expires, flags, counter.attributes.min_version.0, false)?;
        Ok(Some(next))
    }

    /// Puts bytes behind (or with `in_front` before) a value, keeping flags and expiry. `false`: the key is absent.
    ///
    /// # Errors
    /// As [`set`](Self::set) and [`get`](Self::get).
    pub fn extend(&mut self, key: &[u8], more: &[u8], in_front: bool) -> Result<bool, WriteError> {
        let entry = self.entry(key)?;
        let Some(now) = self.now(entry)? else { return Ok(false) };
        let value = if in_front { [more, &now.value].concat() } else { [&now.value, more].concat() };
        self.put(entry, &value, now.expires, now.flags & u64::from(u32::MAX), 0, false)?;
        Ok(true)
    }

    /// Gives a key another expiry; value and version stay. `false`: the key is absent.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn touch(&mut self, key: &[u8], ttl: Ttl) -> Result<bool, WriteError> {
        let entry = self.entry(key)?;
        let Some(now) = self.now(entry)? else { return Ok(false) };
        let deadline = self.engine.deadline(ttl);
        if let Write::Put { expires, .. } = &mut self.notes.entries[entry].write {
            *expires = deadline;
            return Ok(true);
        }
        self.put(entry, &now.value, deadline, now.flags, 0, now.is_stored)?;
        Ok(true)
    }

    /// Whether everything that was read is still as it was, all at one moment of this call; else the key that is not.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub(crate) fn validate(&mut self) -> Result<bool, ReadError> {
        for at in 0..self.notes.entries.len() {
            let entry = &self.notes.entries[at];
            let Some(seen) = &entry.seen else { continue };
            if !self.engine.is_as_seen(&self.notes.bytes[entry.key.clone()], entry.kh, seen)? {
                self.notes.conflict = Some(at);
                return Ok(false);
            }
        }
        // A clear in between is found by the first key that was read.
        let read = self.notes.entries.iter().position(|entry| entry.seen.is_some());
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
        if self.notes.entries.iter().all(|entry| matches!(entry.write, Write::None)) {
            return Ok(self.validate()?);
        }
        let (mut spare, mut written) = (std::mem::take(&mut self.notes.spare), std::mem::take(&mut self.notes.written));
        let mut parts = self.notes.parts(spare.parts);
        let keys = self.notes.entries.iter().map(|entry| (&self.notes.bytes[entry.key.clone()], entry.kh));
        let mut conflict = None;
        let done = self.engine.writer_for_many(keys).and_then(|mut writer| {
            self.engine.end_round(rounds, &mut writer, |writer| {
                Ok(match self.engine.transact(writer, &mut parts, &mut spare.room)? {
                    TransactionOutcome::Committed => Some(()),
                    TransactionOutcome::Conflict(at) => {
                        conflict = Some(at);
                        None
                    }
                })
            })
        });
        // Only batches ask.
        if !self.notes.operations.is_empty() {
            let written_of =
                |part: &Part<'_>| Written { stored: self.engine.stored_of(part), was_there: part.was_there };
            written.extend(parts.iter().map(written_of));
        }
        spare.parts = emptied(parts);
        (self.notes.spare, self.notes.written) = (spare, written);
        let done = done?;
        self.notes.conflict = conflict;
        Ok(done.is_some())
    }
}
