//! Calls with a hash that the caller supplies.

use crate::attributes::attributes;
use crate::bytes::{Key, Value};
use crate::change::Visitor;
use crate::error::OrRaise;
use crate::item::item;
use crate::store::StoreBase;
use hashmere::{Attributes, Counter, Key as Named};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The calls of a store with a hash of 64 bits from the caller.
///
/// A key stored with a hash is found with the same hash only; the same bytes stored without one, or with another, are another
/// key. Such a record takes eight bytes more.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Hashed {
    store: Py<StoreBase>,
}

#[pymethods]
impl StoreBase {
    /// The calls with a hash that the caller supplies.
    #[getter]
    fn hashed(this: Bound<'_, StoreBase>) -> Hashed {
        Hashed { store: this.unbind() }
    }
}

#[pymethods]
impl Hashed {
    /// As ``Store.get``.
    #[pyo3(signature = (key, hash, default=None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        hash: u64,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.store.get().enter(py)?.get(Named::with_hash(key.0, hash)).or_raise(py)?;
        Ok(value.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }

    /// As ``Store.get_item``.
    #[pyo3(signature = (key, hash, /))]
    fn get_item<'py>(&self, py: Python<'py>, key: Key<'_>, hash: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.store.get().enter(py)?.get_item(Named::with_hash(key.0, hash)).or_raise(py)?;
        found.map(|found| item(py, key.0, &found.value, &found.metadata)).transpose()
    }

    /// As ``Store.uid_of``.
    #[pyo3(signature = (key, hash, /))]
    fn uid_of<'py>(&self, py: Python<'py>, key: Key<'_>, hash: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let metadata = self.store.get().enter(py)?.metadata(Named::with_hash(key.0, hash)).or_raise(py)?;
        metadata.map(|metadata| crate::by_number::uid(py, metadata.uid)).transpose()
    }

    /// Whether a key is there.
    #[pyo3(signature = (key, hash, /))]
    fn contains_key(&self, py: Python<'_>, key: Key<'_>, hash: u64) -> PyResult<bool> {
        self.store.get().enter(py)?.contains_key(Named::with_hash(key.0, hash)).or_raise(py)
    }

    /// As ``Store.set``.
    #[pyo3(signature = (key, hash, value, /, *, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn set(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        hash: u64,
        value: Value<'_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<u64> {
        let with = attributes(ttl, expires_at, flags)?.unwrap_or(Attributes::NONE);
        Ok(self.store.get().enter(py)?.set_with(Named::with_hash(key.0, hash), &value.0, with).or_raise(py)?.version.0)
    }

    /// As ``Store.add``.
    #[pyo3(signature = (key, hash, value, /, *, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn add(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        hash: u64,
        value: Value<'_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Option<u64>> {
        let with = attributes(ttl, expires_at, flags)?.unwrap_or(Attributes::NONE);
        let stored = self.store.get().enter(py)?.add(Named::with_hash(key.0, hash), &value.0, with).or_raise(py)?;
        Ok(stored.map(|stored| stored.version.0))
    }

    /// As ``Store.delete``.
    #[pyo3(signature = (key, hash, /))]
    fn delete(&self, py: Python<'_>, key: Key<'_>, hash: u64) -> PyResult<bool> {
        self.store.get().enter(py)?.delete(Named::with_hash(key.0, hash)).or_raise(py)
    }

    /// As ``Store.incr``.
    #[pyo3(signature = (key, hash, by=1, /, *, initial=None))]
    fn incr(&self, py: Python<'_>, key: Key<'_>, hash: u64, by: u64, initial: Option<u64>) -> PyResult<Option<u64>> {
        let counter = Counter { initial, attributes: Attributes::NONE };
        self.store.get().enter(py)?.incr(Named::with_hash(key.0, hash), by, counter).or_raise(py)
    }

    /// As ``Store.update_with``.
    #[pyo3(signature = (key, hash, f, /))]
    fn update_with<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        hash: u64,
        f: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut visitor = Visitor { f, with: None, failed: None, seen: None, said: None };
        let store = self.store.get().enter(py)?;
        let updated = store.update_with(Named::with_hash(key.0, hash), |item| visitor.ask(item)).or_raise(py)?;
        visitor.outcome(updated)
    }
}
