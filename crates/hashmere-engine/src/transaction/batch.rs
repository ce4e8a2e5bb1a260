//! Batches: operations that are done at one moment, all of them, or one of two batches depending on what some keys are.

use crate::engine::{Change, Engine, Part, Room, Span, TransactionOutcome, Value};
use crate::error::WriteError;
use crate::transaction::notes::FEW;
use crate::transaction::retry::{run, with_notes};
use crate::transaction::{Notes, Reader, Transaction};
use crate::types::{Attributes, Counter, Item, Stored, Ttl, Version};
use hashmere_mem::{Host, Mem};

/// Operations on up to 1,024 keys that are done at one moment: see `Store::write_batch`.
///
/// They are done in order: a later one sees what an earlier one of the same batch does.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    /// Keys and values.
    bytes: Vec<u8>,
    operations: Vec<(Span, Operation)>,
}

#[derive(Clone, Debug)]
enum Operation {
    Set(Span, Attributes),
    Delete,
    Incr(i64, Counter),
    IncrSigned(i64, Counter<i64>),
    IncrFloat(f64, Counter<f64>),
    Extend(Span, bool),
    Touch(Ttl),
    Get,
}

/// What an operation of a batch did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BatchResult {
    /// `set`: the value is stored. Version and UID are those of the key after the batch (none if a later operation
    /// removed it).
    Stored(Stored),
    /// `delete`: whether the key was there.
    Deleted(bool),
    /// `incr`: the number; `None`: the key is absent, and stays so.
    Counted(Option<u64>),
    /// `incr_signed`: the same.
    CountedSigned(Option<i64>),
    /// `incr_float`: the number next to the text; else the same.
    CountedFloat(Option<f64>),
    /// `append`, `prepend`: whether the key was there.
    Extended(bool),
    /// `touch`: whether the key was there.
    Touched(bool),
    /// `get`: the item, or `None`. One that an earlier operation of the batch wrote has version 0.
    Item(Option<Item>),
}

/// What a key must be for the first batch of `Store::write_batch_if` to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition<'a> {
    /// This key is absent.
    Absent(&'a [u8]),
    /// This key is there.
    Present(&'a [u8]),
    /// This key is at this version; version 0: it is absent.
    Version(&'a [u8], Version),
    /// This key has exactly this value.
    Value(&'a [u8], &'a [u8]),
}

/// Which batch was done, and what its operations did.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// All conditions held: it was the first.
    pub succeeded: bool,
    /// One for each operation, in order.
    pub results: Vec<BatchResult>,
}

impl WriteBatch {
    /// An empty one.
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Takes all operations out; what was allocated stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.operations.clear();
    }

    fn keep(&mut self, bytes: &[u8]) -> Span {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        Span { start, end: self.bytes.len() }
    }

    fn push(&mut self, key: &[u8], operation: Operation) -> &mut WriteBatch {
        let key = self.keep(key);
        self.operations.push((key, operation));
        self
    }

    /// Stores a value without attributes.
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut WriteBatch {
        self.set_with(key, value, Attributes::NONE)
    }

    /// Stores a value with flags and expiry.
    pub fn set_with(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        attributes: Attributes,
    ) -> &mut WriteBatch {
        let value = self.keep(value.as_ref());
        self.push(key.as_ref(), Operation::Set(value, attributes))
    }

    /// Removes a key, if it is there.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut WriteBatch {
        self.push(key.as_ref(), Operation::Delete)
    }

    /// Adds to a counter, or subtracts, stopping at zero.
    pub fn incr(&mut self, key: impl AsRef<[u8]>, by: i64, counter: Counter) -> &mut WriteBatch {
        self.push(key.as_ref(), Operation::Incr(by, counter))
    }

    /// Adds to a counter that may be below zero, as `Store::incr_signed`.
    pub fn incr_signed(&mut self, key: impl AsRef<[u8]>, by: i64, counter: Counter<i64>) -> &mut WriteBatch {
        self.push(key.as_ref(), Operation::IncrSigned(by, counter))
    }

    /// Adds to a decimal fraction, as `Store::incr_float`. A step or an initial value that is NaN or infinite is
    /// refused when the batch is written.
    pub fn incr_float(&mut self, key: impl AsRef<[u8]>, by: f64, counter: Counter<f64>) -> &mut WriteBatch {
        self.push(key.as_ref(), Operation::IncrFloat(by, counter))
    }

    /// Puts bytes behind a value, if the key is there.
    pub fn append(&mut self, key: impl AsRef<[u8]>, tail: impl AsRef<[u8]>) -> &mut WriteBatch {
        let tail = self.keep(tail.as_ref());
        self.push(key.as_ref(), Operation::Extend(tail, false))
    }

    /// Puts bytes in front of a value, if the key is there.
    pub fn prepend(&mut self, key: impl AsRef<[u8]>, head: impl AsRef<[u8]>) -> &mut WriteBatch {
        let head = self.keep(head.as_ref());
        self.push(key.as_ref(), Operation::Extend(head, true))
    }

    /// Gives a key another expiry, if it is there.
    pub fn touch(&mut self, key: impl AsRef<[u8]>, ttl: Ttl) -> &mut WriteBatch {
        self.push(key.as_ref(), Operation::Touch(ttl))
    }

    /// Reads a key.
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> &mut WriteBatch {
        self.push(key.as_ref(), Operation::Get)
    }

    /// Makes parts of a batch of sets. `false`: two of its keys may be the same.
    #[inline(always)]
    fn put_into<M: Mem, H: Host>(&self, engine: &Engine<M, H>, parts: &mut Vec<Part>) -> Result<bool, WriteError> {
        parts.reserve(self.operations.len());
        for (key, operation) in &self.operations {
            let Operation::Set(bytes, attributes) = operation else { return Ok(false) };
            engine.admit(key.len() as u64, bytes.len() as u64)?;
            let kh = engine.hash(key.of(&self.bytes));
            if parts.iter().any(|part| part.kh == kh) {
                return Ok(false);
            }
            let value = Value {
                bytes: *bytes,
                expires: engine.deadline(attributes.ttl),
                flags: attributes.flags.into(),
                least: attributes.min_version.0,
                keeps_version: false,
            };
            let mut part = Part::new(*key, kh);
            part.change = Change::Put(value);
            parts.push(part);
        }
        Ok(true)
    }

    /// Does the operations within a transaction. What only the commit tells is put in by [`Performed::complete`].
    fn perform<M: Mem, H: Host>(&self, transaction: &mut Transaction<'_, M, H>) -> Result<Performed, WriteError> {
        transaction.notes.reserve(self.operations.len(), self.bytes.len());
        let mut results = Vec::with_capacity(self.operations.len());
        for (key, operation) in &self.operations {
            let key = key.of(&self.bytes);
            let part = transaction.part(key)?;
            let is_first = transaction.notes.parts[part].change == Change::Same;
            results.push(match operation {
                Operation::Set(value, attributes) => {
                    transaction.set_part(part, value.of(&self.bytes), *attributes)?;
                    BatchResult::Stored(Stored::default())
                }
                Operation::Delete => {
                    let change = &transaction.notes.parts[part].change;
                    let was_there =
                        matches!(change, Change::Put(value) if !transaction.engine.is_deadline_reached(value.expires));
                    transaction.delete(key)?;
                    BatchResult::Deleted(was_there)
                }
                Operation::Incr(by, counter) => BatchResult::Counted(transaction.incr_by(key, *by, *counter)?),
                Operation::IncrSigned(by, counter) => {
                    BatchResult::CountedSigned(transaction.incr_signed(key, *by, *counter)?)
                }
                Operation::IncrFloat(by, counter) => {
                    BatchResult::CountedFloat(transaction.incr_float(key, *by, *counter)?)
                }
                Operation::Extend(more, in_front) => {
                    BatchResult::Extended(transaction.extend(key, more.of(&self.bytes), *in_front)?)
                }
                Operation::Touch(ttl) => BatchResult::Touched(transaction.touch(key, *ttl)?),
                Operation::Get => BatchResult::Item(transaction.get_item(part)?),
            });
            transaction.notes.operations.push((part, is_first));
        }
        Ok(Performed(results))
    }
}

/// What the operations of a batch did within a transaction.
struct Performed(Vec<BatchResult>);

impl Performed {
    /// After the commit: versions and UIDs, and whether what was removed was there.
    fn complete<M: Mem, H: Host>(mut self, transaction: &Transaction<'_, M, H>) -> Vec<BatchResult> {
        for (result, (part, is_first)) in self.0.iter_mut().zip(&transaction.notes.operations) {
            let Some(part) = transaction.notes.parts.get(*part) else { continue };
            match result {
                BatchResult::Stored(stored) => *stored = transaction.engine.stored_of(part),
                BatchResult::Deleted(was_there) if *is_first => *was_there = part.was_there,
                _ => {}
            }
        }
        self.0
    }
}

/// Does all operations of a batch at one moment.
pub(crate) fn write<M: Mem, H: Host>(
    engine: &Engine<M, H>,
    read: &Reader<'_>,
    batch: &WriteBatch,
) -> Result<Vec<BatchResult>, WriteError> {
    if let Some(results) = write_few_sets(engine, batch)? {
        return Ok(results);
    }
    run(engine, read, |t| batch.perform(t), |t, performed| performed.complete(t))
}

/// The same for a few values under different keys: nothing has to be noted, for nothing is read and no operation sees
/// another. `None`: it is another batch, and nothing has happened.
fn write_few_sets<M: Mem, H: Host>(
    engine: &Engine<M, H>,
    batch: &WriteBatch,
) -> Result<Option<Vec<BatchResult>>, WriteError> {
    let few = FEW.min(engine.keys_of_transaction_max() as usize);
    let is_set = |(_, operation): &(_, Operation)| matches!(operation, Operation::Set(..));
    if batch.is_empty() || batch.len() > few || !batch.operations.iter().all(is_set) {
        return Ok(None);
    }
    with_notes(|notes| {
        notes.clear();
        let Notes { parts, room, .. } = &mut *notes;
        let done = put_few(engine, batch, parts, room);
        // They say where something is among the bytes of the batch.
        parts.clear();
        done
    })
}

#[inline(always)]
fn put_few<M: Mem, H: Host>(
    engine: &Engine<M, H>,
    batch: &WriteBatch,
    parts: &mut Vec<Part>,
    room: &mut Room,
) -> Result<Option<Vec<BatchResult>>, WriteError> {
    if !batch.put_into(engine, parts)? {
        return Ok(None);
    }
    let mut writer = engine.writer_for_many(parts.iter().map(|part| (part.key.of(&batch.bytes), part.kh)))?;
    let done = engine.transact(&mut writer, &batch.bytes, parts, room)?;
    let stored = || parts.iter().map(|part| BatchResult::Stored(engine.stored_of(part))).collect();
    Ok((done == TransactionOutcome::Committed).then(stored))
}

/// Does the one batch if all conditions hold, else the other one; conditions and batch at one moment.
pub(crate) fn write_if<M: Mem, H: Host>(
    engine: &Engine<M, H>,
    read: &Reader<'_>,
    conditions: &[Condition<'_>],
    then: &WriteBatch,
    otherwise: &WriteBatch,
) -> Result<Branch, WriteError> {
    let choose = |transaction: &mut Transaction<'_, M, H>| {
        let mut succeeded = true;
        for condition in conditions {
            succeeded &= holds(transaction, condition)?;
        }
        let batch = if succeeded { then } else { otherwise };
        Ok((succeeded, batch.perform(transaction)?))
    };
    run(engine, read, choose, |transaction, (succeeded, performed)| Branch {
        succeeded,
        results: performed.complete(transaction),
    })
}

fn holds<M: Mem, H: Host>(
    transaction: &mut Transaction<'_, M, H>,
    condition: &Condition<'_>,
) -> Result<bool, WriteError> {
    let (Condition::Absent(key) | Condition::Present(key) | Condition::Version(key, _) | Condition::Value(key, _)) =
        condition;
    let part = transaction.part(key)?;
    let item = transaction.look(part)?;
    Ok(match (condition, item) {
        (Condition::Absent(_), item) => item.is_none(),
        (Condition::Present(_), item) => item.is_some(),
        (Condition::Version(_, version), item) => item.map_or(Version(0), |item| item.metadata.version) == *version,
        (Condition::Value(_, value), item) => item.is_some_and(|item| item.value == *value),
    })
}
