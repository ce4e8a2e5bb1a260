//! Access by UID and entry id: `hashmere.Uid` and `hashmere.EntryId` are ints, told apart by their classes.

use crate::bytes::{Key, Value};
use crate::change::Visitor;
use crate::error::OrRaise;
use crate::item::item;
use crate::store::StoreBase;
use hashmere::{EntryId, Key as Named, ReadError, Uid, WriteError};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};

static CLASSES: PyOnceLock<(Py<PyType>, Py<PyType>)> = PyOnceLock::new();

fn classes<'py>(py: Python<'py>) -> PyResult<(&'py Bound<'py, PyType>, &'py Bound<'py, PyType>)> {
    let load = || -> PyResult<_> {
        let types = py.import("hashmere._types")?;
        let class = |name| Ok::<_, PyErr>(types.getattr(name)?.cast_into::<PyType>()?.unbind());
        Ok((class("Uid")?, class("EntryId")?))
    };
    let (uid, id) = CLASSES.get_or_try_init(py, load)?;
    Ok((uid.bind(py), id.bind(py)))
}

fn address(at: &Bound<'_, PyAny>) -> PyResult<Named<'static>> {
    let (uid, id) = classes(at.py())?;
    if at.is_instance(id)? {
        return Ok(EntryId(at.extract()?).into());
    }
    if at.is_instance(uid)? {
        return Ok(Uid(at.extract()?).into());
    }
    Err(crate::bytes::refused(at, "a place must be a hashmere.Uid or a hashmere.EntryId"))
}

/// A `hashmere.Uid`.
pub fn uid(py: Python<'_>, uid: Uid) -> PyResult<Bound<'_, PyAny>> {
    classes(py)?.0.call1((uid.0,))
}

#[pymethods]
impl StoreBase {
    /// The ``Uid`` of a key: a number by which it is found faster than by its bytes, as long as it exists.
    #[pyo3(signature = (key, /))]
    fn uid_of<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let metadata = self.enter(py)?.metadata(key.0).or_raise(py)?;
        metadata.map(|metadata| self::uid(py, metadata.uid)).transpose()
    }

    /// The ``EntryId`` of a key: its UID, and a fingerprint that tells when the UID has come to mean another key.
    #[pyo3(signature = (key, /))]
    fn id_of<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let id = self.enter(py)?.id_of(key.0).or_raise(py)?;
        id.map(|id| classes(py)?.1.call1((id.0,))).transpose()
    }

    /// The value at a UID or entry id. Raises ``Stale`` if nothing is there, or by id another key.
    #[pyo3(signature = (at, /))]
    fn get_at<'py>(&self, py: Python<'py>, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut value = Vec::new();
        let found = self.enter(py)?.get_into(address(at)?, &mut value).or_raise(py)?;
        found.ok_or(ReadError::Stale).or_raise(py)?;
        Ok(PyBytes::new(py, &value))
    }

    /// The ``Item`` at a UID or entry id. Raises ``Stale``.
    #[pyo3(signature = (at, /))]
    fn get_item_at<'py>(&self, py: Python<'py>, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (store, at) = (self.enter(py)?, address(at)?);
        let (key, found) = (store.key_of(at).or_raise(py)?, store.get_item(at).or_raise(py)?);
        let (key, found) = key.zip(found).ok_or(ReadError::Stale).or_raise(py)?;
        item(py, &key, &found.value, &found.metadata)
    }

    /// Stores a value for the key at a UID or entry id; returns its version. Raises ``Stale``.
    #[pyo3(signature = (at, value, /))]
    fn set_at(&self, py: Python<'_>, at: &Bound<'_, PyAny>, value: Value<'_>) -> PyResult<u64> {
        Ok(self.enter(py)?.set(address(at)?, &value.0).or_raise(py)?.version.0)
    }

    /// Removes the key at a UID or entry id. Raises ``Stale``.
    #[pyo3(signature = (at, /))]
    fn delete_at(&self, py: Python<'_>, at: &Bound<'_, PyAny>) -> PyResult<()> {
        let there = self.enter(py)?.delete(address(at)?).or_raise(py)?;
        there.then_some(()).ok_or(WriteError::Stale).or_raise(py)
    }

    /// As ``update_with``, for the key at a UID or entry id. Raises ``Stale``.
    #[pyo3(signature = (at, f, /))]
    fn update_with_at<'py>(
        &self,
        py: Python<'py>,
        at: &Bound<'py, PyAny>,
        f: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if !f.is_callable() {
            return Err(PyTypeError::new_err("update_with_at() needs a function"));
        }
        let mut visitor = Visitor { f, with: None, failed: None, seen: None, said: None };
        let updated = self.enter(py)?.update_with(address(at)?, |item| visitor.ask(item)).or_raise(py)?;
        visitor.outcome(updated)
    }
}
