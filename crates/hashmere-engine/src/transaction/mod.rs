//! Several keys as one: what a transaction read and is to write, kept by this process alone until it commits.
//!
//! [`Transaction`] remembers of each key that was read what it was, and of each that was written what it becomes; then
//! [`commit`](Transaction::commit) does all of it at one moment if all that was read is still as it was.
//! [`retry`] runs a function until its transaction commits, [`batch`] writes without conditions, or under some, and
//! [`snapshot`] reads several keys as they were at one moment.

pub(crate) mod batch;
pub(crate) mod retry;
pub(crate) mod snapshot;

use crate::engine::{number_of, step, Change, Engine, Guard, KeyHash, Part, Rounds, TransactionOutcome, Value};
use crate::error::{ReadError, WriteError};
use crate::transaction::snapshot::Seen;
use crate::types::{Attributes, Counter, Item, Stored, Ttl};
use hashmere_format::cell::KEYS_MAX;
use hashmere_mem::{Host, Mem};
use std::collections::HashMap;
use std::ops::Range;

/// Keys up to which a transaction finds them one by one.
const FEW: usize = 16;
/// Bytes of values that were written again before the rest is copied together.
const GARBAGE: usize = 1 << 20;

/// How a transaction reads a key.
pub type Reader<'e> = dyn Fn(&[u8], KeyHash) -> Result<Option<Item>, ReadError> + 'e;

/// What is to be written of a key.
#[derive(Clone, Debug)]
enum Write {
    /// Nothing.
    None,
    Put {
        value: Range<usize>,
        expires: Option<u64>,
        /// Flags, and marks above them.
        flags: u64,
        least: u64,
        keeps_version: bool,
    },
    Gone,
}

struct Entry {
    key: Range<usize>,
    kh: KeyHash,
    /// An earlier entry with the same hash.
    before: Option<usize>,
    seen: Option<Seen>,
    write: Write,
}

/// What became of a key that was written.
#[derive(Clone, Copy, Default)]
struct Written {
    stored: Stored,
    was_there: bool,
}

/// A value that the transaction sees.
struct Now {
    value: Vec<u8>,
    flags: u64,
    expires: Option<u64>,
    /// It is what the key has, not what the transaction wrote.
    is_stored: bool,
}

/// A transaction that is being made.
pub struct Transaction<'e, M: Mem, H: Host> {
    engine: &'e Engine<M, H>,
    read: &'e Reader<'e>,
    /// The root when it began: what was read under another one does not count.
    root: u64,
    entries: Vec<Entry>,
    /// Keys and values.
    bytes: Vec<u8>,
    /// Bytes in it that no entry means any more.
    garbage: usize,
    /// The last entry with a hash, when there are many.
    index: HashMap<u64, usize>,
    /// The key that turned out to have changed since it was read.
    conflict: Option<usize>,
    /// After the commit, of each entry.
    written: Vec<Written>,
}

impl<'e, M: Mem, H: Host> Transaction<'e, M, H> {
    /// One that has read and written nothing.
    pub fn new(engine: &'e Engine<M, H>, read: &'e Reader<'e>) -> Self {
        let root = engine.root_word();
        let (entries, bytes) = (Vec::new(), Vec::new());
        let (index, written) = (HashMap::new(), Vec::new());
        Transaction { engine, read, root, entries, bytes, garbage: 0, index, conflict: None, written }
    }

    /// Makes room for this number of keys, and for this number of bytes of keys and values.
    fn reserve(&mut self, keys: usize, bytes: usize) {
        self.entries.reserve(keys.min(KEYS_MAX as usize));
        self.bytes.reserve(bytes);
    }

    fn key(&self, entry: usize) -> &[u8] {
        &self.bytes[self.entries[entry].key.clone()]
    }

    /// The entry of a key.
    fn find(&self, key: &[u8], kh: KeyHash) -> Option<usize> {
        let is_it = |at: &usize| self.entries[*at].kh == kh && self.key(*at) == key;
        if self.index.is_empty() {
            return (0..self.entries.len()).find(is_it);
        }
        let mut at = self.index.get(&kh.hash).copied();
        while let Some(entry) = at.filter(|at| !is_it(at)) {
            at = self.entries[entry].before;
        }
        at
    }

    /// The same, made if there is none.
    fn entry(&mut self, key: &[u8]) -> Result<usize, WriteError> {
        let kh = self.engine.hash(key);
        if let Some(found) = self.find(key, kh) {
            return Ok(found);
        }
        let (number, limit) = (self.entries.len(), self.engine.keys_of_transaction_max());
        if number as u64 >= limit {
            return Err(WriteError::TooManyKeys { limit });
        }
        if number == FEW {
            for (at, entry) in self.entries.iter_mut().enumerate() {
                entry.before = self.index.insert(entry.kh.hash, at);
            }
        }
        let before = if number >= FEW { self.index.insert(kh.hash, number) } else { None };
        let key = self.keep(key);
        self.entries.push(Entry { key, kh, before, seen: None, write: Write::None });
        Ok(number)
    }

    /// Forgets the value that was to be written of a key, so that one that is written often does not fill the memory.
    fn forget(&mut self, entry: usize) {
        let Write::Put { value, .. } = std::mem::replace(&mut self.entries[entry].write, Write::None) else { return };
        if value.end == self.bytes.len() {
            self.bytes.truncate(value.start);
            return;
        }
        self.garbage += value.len();
        if self.garbage < GARBAGE.max(self.bytes.len() / 2) {
            return;
        }
        let all = std::mem::take(&mut self.bytes);
        for entry in &mut self.entries {
            let mut ranges = vec![&mut entry.key];
            if let Write::Put { value, .. } = &mut entry.write {
                ranges.push(value);
            }
            for range in ranges {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&all[range.clone()]);
                *range = start..self.bytes.len();
            }
        }
        self.garbage = 0;
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Reads a key of the store, and remembers what it was.
    fn look(&mut self, entry: usize) -> Result<Option<Item>, WriteError> {
        let kh = self.entries[entry].kh;
        let version = self.engine.version_of_bucket(kh)?;
        let item = (self.read)(self.key(entry), kh)?;
        let seen = Seen { version, metadata: item.as_ref().map(|item| item.metadata) };
        match &self.entries[entry].seen {
            Some(before) if !before.is_same(&seen) => {
                self.conflict = Some(entry);
                Err(self.conflict_at(entry))
            }
            Some(_) => Ok(item),
            None => {
                self.entries[entry].seen = Some(seen);
                Ok(item)
            }
        }
    }

    fn conflict_at(&self, entry: usize) -> WriteError {
        WriteError::Conflict { key: String::from_utf8_lossy(self.key(entry)).into() }
    }

    /// What a key is within the transaction.
    fn now(&mut self, entry: usize) -> Result<Option<Now>, WriteError> {
        match self.entries[entry].write.clone() {
            Write::Gone => Ok(None),
            Write::Put { value, expires, flags, .. } => {
                Ok(Some(Now { value: self.bytes[value].to_vec(), flags, expires, is_stored: false }))
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
        Ok(self.now(entry)?.map(|now| now.value))
    }

    /// The same with flags, version, expiry and UID of what the store has; `None` within: it is what this transaction
    /// wrote, which has no version yet.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) fn get_item(&mut self, entry: usize) -> Result<Option<Item>, WriteError> {
        if matches!(self.entries[entry].write, Write::None) {
            return self.look(entry);
        }
        Ok(self.now(entry)?.map(|now| {
            let mut item = Item { value: now.value, metadata: Default::default() };
            item.metadata.value_len = item.value.len() as u64;
            (item.metadata.flags, item.metadata.expires_at_ms) = (now.flags as u32, now.expires);
            item
        }))
    }

    /// Stores a value when the transaction commits, whatever the key is then.
    ///
    /// # Errors
    /// [`WriteError::TooLarge`], [`WriteError::WrongLength`], [`WriteError::TooManyKeys`].
    pub fn set(&mut self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<(), WriteError> {
        let entry = self.entry(key)?;
        self.set_entry(entry, value, attributes)
    }

    fn set_entry(&mut self, entry: usize, value: &[u8], attributes: Attributes) -> Result<(), WriteError> {
        let expires = self.engine.deadline(attributes.ttl);
        self.put(entry, value, expires, attributes.flags.into(), attributes.min_version.0, false)
    }

    fn put(
        &mut self,
        entry: usize,
        value: &[u8],
        expires: Option<u64>,
        flags: u64,
        least: u64,
        keeps_version: bool,
    ) -> Result<(), WriteError> {
        self.engine.admit(self.entries[entry].key.len() as u64, value.len() as u64)?;
        self.forget(entry);
        let value = self.keep(value);
        self.entries[entry].write = Write::Put { value, expires, flags, least, keeps_version };
        Ok(())
    }

    /// Removes a key when the transaction commits, whatever it is then.
    ///
    /// # Errors
    /// [`WriteError::TooManyKeys`].
    pub fn delete(&mut self, key: &[u8]) -> Result<(), WriteError> {
        let entry = self.entry(key)?;
        self.forget(entry);
        self.entries[entry].write = Write::Gone;
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
        let text = self.engine.counter_text(next)?;
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
        if let Write::Put { expires, .. } = &mut self.entries[entry].write {
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
        for at in 0..self.entries.len() {
            let entry = &self.entries[at];
            let Some(seen) = &entry.seen else { continue };
            if !self.engine.is_as_seen(&self.bytes[entry.key.clone()], entry.kh, seen)? {
                self.conflict = Some(at);
                return Ok(false);
            }
        }
        // A clear in between is found by the first key that was read.
        let read = self.entries.iter().position(|entry| entry.seen.is_some());
        self.conflict = read.filter(|_| self.engine.root_word() != self.root);
        Ok(self.conflict.is_none())
    }

    /// Does all of it at one moment. `false`: what was read has changed, and nothing has happened.
    ///
    /// # Errors
    /// See [`WriteError`]: nothing has changed then.
    pub(crate) fn commit(&mut self, rounds: &mut Rounds) -> Result<bool, WriteError> {
        if self.conflict.is_some() {
            rounds.lose();
            return Ok(false);
        }
        if self.entries.iter().all(|entry| matches!(entry.write, Write::None)) {
            return Ok(self.validate()?);
        }
        let mut parts: Vec<_> = self.entries.iter().map(|entry| Self::part(&self.bytes, entry)).collect();
        let keys = self.entries.iter().map(|entry| (&self.bytes[entry.key.clone()], entry.kh));
        let mut writer = self.engine.writer_for_many(keys)?;
        let mut conflict = None;
        let done = self.engine.end_round(rounds, &mut writer, |writer| {
            Ok(match self.engine.transact(writer, &mut parts)? {
                TransactionOutcome::Committed => Some(()),
                TransactionOutcome::Conflict(at) => {
                    conflict = Some(at);
                    None
                }
            })
        })?;
        let written = parts.iter().map(|part| Written { stored: part.stored, was_there: part.was_there });
        self.written = written.collect();
        self.conflict = conflict;
        Ok(done.is_some())
    }

    fn part<'k>(bytes: &'k [u8], entry: &Entry) -> Part<'k> {
        let guard = match entry.seen.as_ref().map(|seen| seen.metadata) {
            None => Guard::Any,
            Some(None) => Guard::Absent,
            Some(Some(seen)) => Guard::Seen(seen),
        };
        let change = match &entry.write {
            Write::None => Change::Same,
            Write::Gone => Change::Remove,
            Write::Put { value, expires, flags, least, keeps_version } => Change::Put(Value {
                bytes: &bytes[value.clone()],
                expires: *expires,
                flags: *flags,
                least: *least,
                keeps_version: *keeps_version,
            }),
        };
        Part::new(&bytes[entry.key.clone()], entry.kh, guard, change)
    }
}
