//! An item as Python sees it: the named tuple `hashmere.Item`.

use hashmere::Metadata;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// An expiry in milliseconds as Python tells times.
pub fn seconds(ms: Option<u64>) -> Option<f64> {
    ms.map(|ms| ms as f64 / 1000.0)
}

/// `Item(key, value, version, flags, expires_at, uid, marks)`
pub fn item<'py>(py: Python<'py>, key: &[u8], value: &[u8], meta: &Metadata) -> PyResult<Bound<'py, PyAny>> {
    let load = || Ok::<_, PyErr>(py.import("hashmere._types")?.getattr("Item")?.unbind());
    let make = MAKE.get_or_try_init(py, load)?.bind(py);
    let (key, value) = (PyBytes::new(py, key), PyBytes::new(py, value));
    make.call1((key, value, meta.version.0, meta.flags, seconds(meta.expires_at_ms), meta.uid.0, meta.marks))
}
