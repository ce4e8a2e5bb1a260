//! Shared atomics: words of 64 bits that processes change in place.

use crate::attributes::unsigned;
use crate::change::step;
use crate::error::QueueResult;
use crate::store::StoreBase;
use crate::wait::in_slices;
use pyo3::prelude::*;

/// A set of up to 1024 shared atomics with names, in the store's file; it is created if it is missing.
///
/// `clear` leaves it as it is, a backup does not copy it, and after a crash of the machine a durable store is rebuilt
/// without it. After a fork open it again in the child.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Atomics(hashmere_queue::Atomics);

/// A shared atomic: a word of 64 bits, 0 at first, that processes read and change in place, each operation by one
/// instruction. A process that dies has done each wholly or not at all. Those that change it wake those who wait.
///
/// It is no key: no part of transactions, of the change feed or of what clients of a server see.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Atomic(hashmere_queue::Atomic);

#[pymethods]
impl Atomics {
    /// Opens the set of this name.
    #[new]
    #[pyo3(signature = (store, name, /))]
    fn new(py: Python<'_>, store: &Bound<'_, StoreBase>, name: &str) -> PyResult<Atomics> {
        let store = store.get().enter(py)?;
        Ok(Atomics(hashmere_queue::Atomics::open(&*store, name).or_raise_queue(py)?))
    }

    /// Takes a set's name off it; whether there was one.
    #[staticmethod]
    #[pyo3(signature = (store, name, /))]
    fn remove(py: Python<'_>, store: &Bound<'_, StoreBase>, name: &str) -> PyResult<bool> {
        let store = store.get().enter(py)?;
        hashmere_queue::Atomics::remove(&*store, name).or_raise_queue(py)
    }

    /// The atomic of this name, of 1 to 56 bytes; made if it is missing, and kept until the set is removed.
    #[pyo3(signature = (name, /))]
    fn atomic(&self, py: Python<'_>, name: &str) -> PyResult<Atomic> {
        Ok(Atomic(self.0.atomic(name.as_bytes()).or_raise_queue(py)?))
    }
}

#[pymethods]
impl Atomic {
    /// The value, from 0 to 2^64 - 1.
    fn load(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.load().or_raise_queue(py)
    }

    /// Stores a value.
    #[pyo3(signature = (value, /))]
    fn store(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.store(unsigned(value, "value")?).or_raise_queue(py)
    }

    /// Stores a value; returns the one before.
    #[pyo3(signature = (value, /))]
    fn swap(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.swap(unsigned(value, "value")?).or_raise_queue(py)
    }

    /// Adds, modulo 2^64, which may be a negative number too; returns the value before.
    #[pyo3(signature = (by=None, /))]
    fn fetch_add(&self, py: Python<'_>, by: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let by = by.map_or(Ok(Ok(1)), step)?;
        self.0.fetch_add(by.unwrap_or_else(|below| below as u64)).or_raise_queue(py)
    }

    /// Clears the bits that are not set in ``value``; returns the value before.
    #[pyo3(signature = (value, /))]
    fn fetch_and(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.fetch_and(unsigned(value, "value")?).or_raise_queue(py)
    }

    /// Sets the bits of ``value``; returns the value before.
    #[pyo3(signature = (value, /))]
    fn fetch_or(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.fetch_or(unsigned(value, "value")?).or_raise_queue(py)
    }

    /// Flips the bits of ``value``; returns the value before.
    #[pyo3(signature = (value, /))]
    fn fetch_xor(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.fetch_xor(unsigned(value, "value")?).or_raise_queue(py)
    }

    /// Stores ``value`` if it is ``current``; returns the value before, which says whether it was.
    #[pyo3(signature = (current, value, /))]
    fn compare_exchange(&self, py: Python<'_>, current: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (current, value) = (unsigned(current, "current")?, unsigned(value, "value")?);
        self.0.compare_exchange(current, value).or_raise_queue(py)
    }

    /// Waits until the value is another than ``seen``, and returns it. ``None``: it was ``seen`` whenever it was looked
    /// at, for as many seconds as ``timeout`` says; without one it waits forever.
    #[pyo3(signature = (seen, /, timeout=None))]
    fn wait(&self, py: Python<'_>, seen: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<Option<u64>> {
        let seen = unsigned(seen, "seen")?;
        in_slices(py, timeout, |slice| self.0.wait(seen, slice).or_raise_queue(py))
    }
}
