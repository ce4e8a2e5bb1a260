//! Transactions, call by call: the loop around one is `Store.transaction`.

use crate::attributes::{expiry, given};
use crate::bytes::Value;
use crate::change::{counter, float, float_counter, signed, signed_counter};
use crate::error::{gone, misuse, OrRaise};
use crate::key::PlainKey;
use crate::store::StoreBase;
use hashmere_engine::{FileTransaction, HeldTransaction};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, TryLockError};

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// What a function given to ``Store.transaction`` reads and writes with. Reads see what it wrote, and else the store;
/// writes are seen by nothing else before it has returned. Keys are ``bytes`` or ``str``.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Transaction(Mutex<Option<HeldTransaction>>);

impl Transaction {
    /// It belongs to one thread at a time, and a commit lets others run.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<HeldTransaction>>> {
        match self.0.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(misuse(py, "another thread is using the transaction")),
        }
    }

    fn with<T>(&self, py: Python<'_>, f: impl FnOnce(&mut FileTransaction<'_>) -> T) -> PyResult<T> {
        let mut held = self.lock(py)?;
        Ok(held.as_mut().ok_or_else(|| over(py))?.with(f))
    }

    fn value<'py>(&self, py: Python<'py>, key: &PlainKey<'_>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.with(py, |t| t.get(key.0))?.or_raise(py)?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }
}

fn over(py: Python<'_>) -> PyErr {
    gone(py, "the transaction is over: its function has returned")
}

#[pymethods]
impl Transaction {
    fn __contains__(&self, py: Python<'_>, key: PlainKey<'_>) -> PyResult<bool> {
        Ok(self.value(py, &key)?.is_some())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.value(py, &key.extract()?)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __setitem__(&self, py: Python<'_>, key: PlainKey<'_>, value: Value<'_>) -> PyResult<()> {
        self.set(py, key, value, None, None, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.value(py, &key.extract()?)?.is_none() {
            return Err(PyKeyError::new_err(key.clone().unbind()));
        }
        self.delete(py, key.extract()?)
    }

    /// The value of a key, or the default.
    #[pyo3(signature = (key, default=None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: PlainKey<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.value(py, &key)?.map(Bound::into_any).or(default))
    }

    /// Stores a value.
    #[pyo3(signature = (key, value, /, *, ttl=None, expires_at=None, flags=None))]
    fn set(
        &self,
        py: Python<'_>,
        key: PlainKey<'_>,
        value: Value<'_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<()> {
        let with = given(ttl, expires_at, flags)?;
        self.with(py, |t| t.set(key.0, &value.0, with))?.or_raise(py)
    }

    /// Removes a key, if it is there.
    #[pyo3(signature = (key, /))]
    fn delete(&self, py: Python<'_>, key: PlainKey<'_>) -> PyResult<()> {
        self.with(py, |t| t.delete(key.0))?.or_raise(py)
    }

    /// Adds to a counter; with a negative step it stops at zero. A missing one is created with ``initial`` (to which
    /// nothing is added); without that the result is ``None``.
    #[pyo3(signature = (key, by=None, /, *, initial=None, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn incr(
        &self,
        py: Python<'_>,
        key: PlainKey<'_>,
        by: Any<'_, '_>,
        initial: Any<'_, '_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Option<u64>> {
        let counter = counter(initial, ttl, expires_at, flags)?;
        let by = by.map_or(Ok(1), |by| signed(by, "by"))?;
        self.with(py, |t| t.incr_by(key.0, by, counter))?.or_raise(py)
    }

    /// Adds to a signed counter, which may be below zero; beyond 64 bits ``Overflow`` is raised. Else as ``incr``.
    #[pyo3(signature = (key, by=None, /, *, initial=None, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn incr_signed(
        &self,
        py: Python<'_>,
        key: PlainKey<'_>,
        by: Any<'_, '_>,
        initial: Any<'_, '_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Option<i64>> {
        let counter = signed_counter(initial, ttl, expires_at, flags)?;
        let by = by.map_or(Ok(1), |by| signed(by, "by"))?;
        self.with(py, |t| t.incr_signed(key.0, by, counter))?.or_raise(py)
    }

    /// Adds to a decimal fraction, exactly; the number next to the sum. Else as ``incr``.
    #[pyo3(signature = (key, by, /, *, initial=None, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn incr_float(
        &self,
        py: Python<'_>,
        key: PlainKey<'_>,
        by: &Bound<'_, PyAny>,
        initial: Any<'_, '_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Option<f64>> {
        let counter = float_counter(initial, ttl, expires_at, flags)?;
        let by = float(by, "by")?;
        self.with(py, |t| t.incr_float(key.0, by, counter))?.or_raise(py)
    }

    /// Puts bytes behind a value; ``False``: the key is absent.
    #[pyo3(signature = (key, tail, /))]
    fn append(&self, py: Python<'_>, key: PlainKey<'_>, tail: Value<'_>) -> PyResult<bool> {
        self.with(py, |t| t.extend(key.0, &tail.0, false))?.or_raise(py)
    }

    /// Puts bytes in front of a value; ``False``: the key is absent.
    #[pyo3(signature = (key, head, /))]
    fn prepend(&self, py: Python<'_>, key: PlainKey<'_>, head: Value<'_>) -> PyResult<bool> {
        self.with(py, |t| t.extend(key.0, &head.0, true))?.or_raise(py)
    }

    /// Gives a key another expiry; without one it does not expire any more. ``False``: it is absent.
    #[pyo3(signature = (key, /, ttl=None, *, expires_at=None))]
    fn touch(&self, py: Python<'_>, key: PlainKey<'_>, ttl: Any<'_, '_>, expires_at: Any<'_, '_>) -> PyResult<bool> {
        let ttl = expiry(ttl, expires_at)?;
        self.with(py, |t| t.touch(key.0, ttl))?.or_raise(py)
    }

    /// Does all of it at one moment. ``False``: others have changed what it read; it begins again.
    fn _commit(&self, py: Python<'_>) -> PyResult<bool> {
        let mut held = self.lock(py)?;
        let held = held.as_mut().ok_or_else(|| over(py))?;
        py.detach(|| held.commit()).or_raise(py)
    }

    /// Forgets all of it. ``False``: what it had read was not there at one moment.
    fn _rollback(&self, py: Python<'_>) -> PyResult<bool> {
        let mut held = self.lock(py)?;
        let held = held.as_mut().ok_or_else(|| over(py))?;
        py.detach(|| held.give_up()).or_raise(py)
    }

    /// It is of no use any more.
    fn _close(&self, py: Python<'_>) -> PyResult<()> {
        *self.lock(py)? = None;
        Ok(())
    }
}

#[pymethods]
impl StoreBase {
    /// A transaction that has read and written nothing.
    fn _begin(&self, py: Python<'_>) -> PyResult<Transaction> {
        Ok(Transaction(Mutex::new(Some(HeldTransaction::new(&*self.enter(py)?)))))
    }
}
