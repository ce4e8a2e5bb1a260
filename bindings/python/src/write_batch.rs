//! Batches, with conditions and without, and snapshot reads.

use crate::attributes::{expiry, given, unsigned};
use crate::bytes::{self, Value};
use crate::change::{counter, float, float_counter, signed, signed_counter};
use crate::error::{misuse, OrRaise};
use crate::item::item;
use crate::key::PlainKey;
use crate::many::keys_of;
use crate::store::StoreBase;
use hashmere::{BatchResult, Condition, Version};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::{RwLock, RwLockReadGuard, TryLockError};

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The operations, and of those that read a key that key.
#[derive(Default)]
struct Operations {
    batch: hashmere::WriteBatch,
    read: Vec<Option<Vec<u8>>>,
}

/// Operations on up to 1,024 keys that are done at one moment, in order: a later one sees what an earlier one does. It
/// belongs to no store, and may be written any number of times. Keys are ``bytes`` or ``str``. Each method returns the
/// batch.
#[pyclass(frozen, module = "hashmere._hashmere")]
#[derive(Default)]
pub struct WriteBatch(RwLock<Operations>);

impl WriteBatch {
    fn add<'py>(
        this: Bound<'py, Self>,
        key: PlainKey<'_>,
        reads: bool,
        add: impl FnOnce(&mut hashmere::WriteBatch, &[u8]),
    ) -> PyResult<Bound<'py, Self>> {
        match this.get().0.try_write() {
            Ok(mut operations) => {
                add(&mut operations.batch, key.0);
                operations.read.push(reads.then(|| key.0.to_vec()));
            }
            Err(TryLockError::WouldBlock) => return Err(in_use(this.py())),
            Err(TryLockError::Poisoned(_)) => return Err(misuse(this.py(), "the batch was left half done")),
        }
        Ok(this)
    }

    fn operations(&self, py: Python<'_>) -> PyResult<RwLockReadGuard<'_, Operations>> {
        self.0.try_read().map_err(|_| in_use(py))
    }
}

fn in_use(py: Python<'_>) -> PyErr {
    misuse(py, "another thread is writing the batch, or changing it")
}

#[pymethods]
impl WriteBatch {
    #[new]
    fn new() -> WriteBatch {
        WriteBatch::default()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.operations(py)?.batch.len())
    }

    /// Stores a value; a ``ttl`` is reckoned from the write. Its result: the version.
    #[pyo3(signature = (key, value, /, *, ttl=None, expires_at=None, flags=None))]
    fn set<'py>(
        this: Bound<'py, Self>,
        key: PlainKey<'_>,
        value: Value<'_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Bound<'py, Self>> {
        let with = given(ttl, expires_at, flags)?;
        Self::add(this, key, false, |batch, key| {
            batch.set_with(key, &*value.0, with);
        })
    }

    /// Removes a key. Its result: whether it was there.
    #[pyo3(signature = (key, /))]
    fn delete<'py>(this: Bound<'py, Self>, key: PlainKey<'_>) -> PyResult<Bound<'py, Self>> {
        Self::add(this, key, false, |batch, key| {
            batch.delete(key);
        })
    }

    /// Adds to a counter; with a negative step it stops at zero. A missing one is created with ``initial``, or stays
    /// missing. Its result: the number, or ``None``.
    #[pyo3(signature = (key, by=None, /, *, initial=None, ttl=None, expires_at=None, flags=None))]
    fn incr<'py>(
        this: Bound<'py, Self>,
        key: PlainKey<'_>,
        by: Any<'_, '_>,
        initial: Any<'_, '_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Bound<'py, Self>> {
        let counter = counter(initial, ttl, expires_at, flags)?;
        let by = by.map_or(Ok(1), |by| signed(by, "by"))?;
        Self::add(this, key, false, |batch, key| {
            batch.incr(key, by, counter);
        })
    }

    /// Adds to a signed counter, which may be below zero; beyond 64 bits the write raises ``Overflow``. Else as
    /// ``incr``.
    #[pyo3(signature = (key, by=None, /, *, initial=None, ttl=None, expires_at=None, flags=None))]
    fn incr_signed<'py>(
        this: Bound<'py, Self>,
        key: PlainKey<'_>,
        by: Any<'_, '_>,
        initial: Any<'_, '_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Bound<'py, Self>> {
        let counter = signed_counter(initial, ttl, expires_at, flags)?;
        let by = by.map_or(Ok(1), |by| signed(by, "by"))?;
        Self::add(this, key, false, |batch, key| {
            batch.incr_signed(key, by, counter);
        })
    }

    /// Adds to a decimal fraction, exactly. Its result: the number next to the sum, or ``None``. Else as ``incr``; what
    /// is not finite is refused by the write.
    #[pyo3(signature = (key, by, /, *, initial=None, ttl=None, expires_at=None, flags=None))]
    fn incr_float<'py>(
        this: Bound<'py, Self>,
        key: PlainKey<'_>,
        by: &Bound<'_, PyAny>,
        initial: Any<'_, '_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Bound<'py, Self>> {
        let counter = float_counter(initial, ttl, expires_at, flags)?;
        let by = float(by, "by")?;
        Self::add(this, key, false, |batch, key| {
            batch.incr_float(key, by, counter);
        })
    }

    /// Puts bytes behind a value. Its result: whether the key was there.
    #[pyo3(signature = (key, tail, /))]
    fn append<'py>(this: Bound<'py, Self>, key: PlainKey<'_>, tail: Value<'_>) -> PyResult<Bound<'py, Self>> {
        Self::add(this, key, false, |batch, key| {
            batch.append(key, &*tail.0);
        })
    }

    /// Puts bytes in front of a value. Its result: whether the key was there.
    #[pyo3(signature = (key, head, /))]
    fn prepend<'py>(this: Bound<'py, Self>, key: PlainKey<'_>, head: Value<'_>) -> PyResult<Bound<'py, Self>> {
        Self::add(this, key, false, |batch, key| {
            batch.prepend(key, &*head.0);
        })
    }

    /// Gives a key another expiry; without one it does not expire any more. Its result: whether the key was there.
    #[pyo3(signature = (key, /, ttl=None, *, expires_at=None))]
    fn touch<'py>(
        this: Bound<'py, Self>,
        key: PlainKey<'_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
    ) -> PyResult<Bound<'py, Self>> {
        let ttl = expiry(ttl, expires_at)?;
        Self::add(this, key, false, |batch, key| {
            batch.touch(key, ttl);
        })
    }

    /// Reads a key. Its result: an ``Item``, or ``None``; if an earlier operation of the batch wrote it, its version
    /// is 0.
    #[pyo3(signature = (key, /))]
    fn get<'py>(this: Bound<'py, Self>, key: PlainKey<'_>) -> PyResult<Bound<'py, Self>> {
        Self::add(this, key, true, |batch, key| {
            batch.get(key);
        })
    }

    /// Takes all operations out.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let mut operations = self.0.try_write().map_err(|_| in_use(py))?;
        operations.batch.clear();
        operations.read.clear();
        Ok(())
    }
}

impl Operations {
    /// What the operations did, as Python has it.
    fn results<'py>(&self, py: Python<'py>, results: &[BatchResult]) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for (result, key) in results.iter().zip(&self.read) {
            match result {
                BatchResult::Stored(stored) => list.append(stored.version.0)?,
                BatchResult::Deleted(is) | BatchResult::Extended(is) | BatchResult::Touched(is) => list.append(is)?,
                BatchResult::Counted(number) => list.append(number)?,
                BatchResult::CountedSigned(number) => list.append(number)?,
                BatchResult::CountedFloat(number) => list.append(number)?,
                BatchResult::Item(Some(found)) => {
                    list.append(item(py, key.as_deref().unwrap_or_default(), &found.value, &found.metadata)?)?;
                }
                _ => list.append(py.None())?,
            }
        }
        Ok(list)
    }
}

/// A condition as Python has it: its kind, its key, what is asked.
struct Asked<'a> {
    kind: String,
    key: &'a [u8],
    value: bytes::Bytes<'a>,
    version: u64,
}

impl Asked<'_> {
    fn condition(&self) -> PyResult<Condition<'_>> {
        match self.kind.as_str() {
            "absent" => Ok(Condition::Absent(self.key)),
            "present" => Ok(Condition::Present(self.key)),
            "version" => Ok(Condition::Version(self.key, Version(self.version))),
            "value" => Ok(Condition::Value(self.key, &self.value)),
            _ => Err(PyTypeError::new_err("a condition is made by Condition.absent, present, version or value")),
        }
    }
}

/// Asks of one condition, whose parts live as long as the tuple.
fn asked<'a>(condition: &'a Bound<'_, PyTuple>, parts: &'a [Bound<'_, PyAny>]) -> PyResult<Asked<'a>> {
    let [kind, key, operand] = parts else {
        return Err(bytes::refused(condition, "a condition must be a hashmere.Condition"));
    };
    let kind: String = kind.extract()?;
    let none = bytes::Bytes::Fixed(&[]);
    let value = if kind == "value" { bytes::value(operand.as_borrowed())? } else { none };
    let version = if kind == "version" { unsigned(operand, "version")? } else { 0 };
    Ok(Asked { kind, key: key.extract::<PlainKey<'_>>()?.0, value, version })
}

#[pymethods]
impl StoreBase {
    /// Does all operations of a batch at one moment, and returns what each did: see ``WriteBatch``. If one of them
    /// cannot be done, none is.
    #[pyo3(signature = (batch, /))]
    fn write_batch<'py>(&self, py: Python<'py>, batch: &Bound<'py, WriteBatch>) -> PyResult<Bound<'py, PyList>> {
        let store = self.enter(py)?;
        let store: &hashmere::Store = &store;
        let operations = batch.get().operations(py)?;
        let done = py.detach(|| store.write_batch(&operations.batch)).or_raise(py)?;
        operations.results(py, &done)
    }

    /// Whether all conditions held, and what was done: see ``Store.write_batch_if``.
    fn _write_batch_if<'py>(
        &self,
        py: Python<'py>,
        conditions: Vec<Bound<'py, PyTuple>>,
        then: &Bound<'py, WriteBatch>,
        otherwise: &Bound<'py, WriteBatch>,
    ) -> PyResult<(bool, Bound<'py, PyList>)> {
        let parts: Vec<Vec<_>> = conditions.iter().map(|one| one.iter().collect()).collect();
        let asked = conditions.iter().zip(&parts).map(|(one, parts)| asked(one, parts));
        let asked = asked.collect::<PyResult<Vec<_>>>()?;
        let conditions = asked.iter().map(Asked::condition).collect::<PyResult<Vec<_>>>()?;
        let store = self.enter(py)?;
        let (then, otherwise) = (then.get().operations(py)?, otherwise.get().operations(py)?);
        // A buffer of the caller's may be written to while others run.
        let done = store.write_batch_if(&conditions, &then.batch, &otherwise.batch).or_raise(py)?;
        let which = if done.succeeded { then } else { otherwise };
        Ok((done.succeeded, which.results(py, &done.results)?))
    }

    /// The items of several keys as they were at one moment of this call, ``None`` where there is none. It takes no
    /// lock and keeps no writer waiting; ``Conflict`` is raised if one of them was changed each of 1,000 times.
    #[pyo3(signature = (keys, /))]
    fn get_many_snapshot<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let (kept, names) = keys_of(keys)?;
        if !kept.is_plain() {
            return Err(PyTypeError::new_err("a snapshot takes keys as bytes or str"));
        }
        let store = self.enter(py)?;
        let store: &hashmere::Store = &store;
        let found = py.detach(|| store.get_many_snapshot(&names)).or_raise(py)?;
        let items = names
            .iter()
            .zip(&found)
            .map(|(key, found)| found.as_ref().map(|found| item(py, key, &found.value, &found.metadata)).transpose());
        let items = PyList::new(py, items.collect::<PyResult<Vec<_>>>()?);
        drop(kept);
        items
    }
}
