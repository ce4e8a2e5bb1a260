//! An item as Python sees it: the named tuple `hashmere.Item`.

use crate::key::uid;
use hashmere::Metadata;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};

/// `tuple.__new__` and `hashmere.Item`: the class itself would be called by way of Python code.
static MAKE: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();

/// An expiry in milliseconds as Python tells times.
pub fn seconds(ms: Option<u64>) -> Option<f64> {
    ms.map(|ms| ms as f64 / 1000.0)
}

/// `Item(key, value, version, flags, expires_at, uid)`
pub fn item<'py>(py: Python<'py>, key: &[u8], value: &[u8], meta: &Metadata) -> PyResult<Bound<'py, PyAny>> {
    let load = || -> PyResult<_> {
        let new = py.get_type::<PyTuple>().getattr("__new__")?.unbind();
        Ok((new, py.import("hashmere._types")?.getattr("Item")?.unbind()))
    };
    let (new, class) = MAKE.get_or_try_init(py, load)?;
    let (key, value) = (PyBytes::new(py, key), PyBytes::new(py, value));
    let fields = (key, value, meta.version.0, meta.flags, seconds(meta.expires_at_ms), uid(py, meta.uid)?);
    new.bind(py).call1((class, fields))
}
