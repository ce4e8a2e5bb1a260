//! Access by UID and handle: `hashmere.Uid` and `hashmere.Handle` are ints, told apart by their classes.

use crate::bytes::{Key, Value};
use crate::change::Visitor;
use crate::error::OrRaise;
use crate::record::record;
use crate::store::StoreBase;
use hashmere::{Address, Handle, Uid};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};

static CLASSES: PyOnceLock<(Py<PyType>, Py<PyType>)> = PyOnceLock::new();

fn classes<'py>(py: Python<'py>) -> PyResult<(&'py Bound<'py, PyType>, &'py Bound<'py, PyType>)> {
    let load = || -> PyResult<_> {
        let types = py.import("hashmere._types")?;
        let class = |name| Ok::<_, PyErr>(types.getattr(name)?.cast_into::<PyType>()?.unbind());
        Ok((class("Uid")?, class("Handle")?))
    };
    let (uid, handle) = CLASSES.get_or_try_init(py, load)?;
    Ok((uid.bind(py), handle.bind(py)))
}

fn address(at: &Bound<'_, PyAny>) -> PyResult<Address> {
    let (uid, handle) = classes(at.py())?;
    if at.is_instance(handle)? {
        return Ok(Handle(at.extract()?).into());
    }
    if at.is_instance(uid)? {
        return Ok(Uid(at.extract()?).into());
    }
    Err(crate::bytes::refused(at, "a place must be a hashmere.Uid or a hashmere.Handle"))
}

/// A `hashmere.Uid`.
pub fn uid(py: Python<'_>, uid: Uid) -> PyResult<Bound<'_, PyAny>> {
    classes(py)?.0.call1((uid.0,))
}

#[pymethods]
impl StoreBase {
    /// The ``Uid`` of a key: a number by which it is found faster than by its bytes, as long as it exists.
    #[pyo3(signature = (key, /))]
    fn uid<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let uid = self.enter(py)?.uid_of(key.0).or_raise(py)?;
        uid.map(|uid| self::uid(py, uid)).transpose()
    }

    /// The ``Handle`` of a key: its UID, and a fingerprint that tells when the UID has come to mean another key.
    #[pyo3(signature = (key, /))]
    fn handle<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let handle = self.enter(py)?.handle_of(key.0).or_raise(py)?;
        handle.map(|handle| classes(py)?.1.call1((handle.0,))).transpose()
    }

    /// The value at a UID or handle. Raises ``Stale`` if nothing is there, or by handle another key.
    #[pyo3(signature = (at, /))]
    fn get_at<'py>(&self, py: Python<'py>, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut value = Vec::new();
        self.enter(py)?.get_at_into(address(at)?, &mut value).or_raise(py)?;
        Ok(PyBytes::new(py, &value))
    }

    /// The ``Record`` at a UID or handle. Raises ``Stale``.
    #[pyo3(signature = (at, /))]
    fn record_at<'py>(&self, py: Python<'py>, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let pair = self.enter(py)?.get_at(address(at)?).or_raise(py)?;
        record(py, &pair.key, &pair.value, &pair.meta)
    }

    /// Stores a value for the key at a UID or handle; returns its version. Raises ``Stale``.
    #[pyo3(signature = (at, value, /))]
    fn set_at(&self, py: Python<'_>, at: &Bound<'_, PyAny>, value: Value<'_>) -> PyResult<u64> {
        Ok(self.enter(py)?.set_at(address(at)?, &value.0).or_raise(py)?.version.0)
    }

    /// Removes the key at a UID or handle. Raises ``Stale``.
    #[pyo3(signature = (at, /))]
    fn delete_at(&self, py: Python<'_>, at: &Bound<'_, PyAny>) -> PyResult<()> {
        self.enter(py)?.delete_at(address(at)?).or_raise(py)
    }

    /// As ``modify``, for the key at a UID or handle. Raises ``Stale``.
    #[pyo3(signature = (at, f, /))]
    fn modify_at<'py>(
        &self,
        py: Python<'py>,
        at: &Bound<'py, PyAny>,
        f: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if !f.is_callable() {
            return Err(PyTypeError::new_err("modify_at() needs a function"));
        }
        let mut visitor = Visitor { f, with: None, failed: None, seen: None, said: None };
        let updated = self.enter(py)?.update_at(address(at)?, |item| visitor.ask(Some(item))).or_raise(py)?;
        visitor.outcome(updated)
    }
}
