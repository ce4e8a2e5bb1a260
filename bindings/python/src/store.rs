//! The handle: opening, closing, and what concerns a whole store.

use crate::error::{self, raised, OrRaise};
use crate::handle::{Handle, Use};
use crate::item;
use hashmere::{Mode, Options, Store};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

/// The methods that are called through PyO3. The class that Python sees is `Store`, made of it in `hot`.
#[pyclass(frozen, subclass, module = "hashmere._hashmere")]
pub struct StoreBase {
    /// The open store.
    pub handle: Handle,
}

impl StoreBase {
    /// The store, for one call.
    #[inline(always)]
    pub fn enter(&self, py: Python<'_>) -> PyResult<Use<'_>> {
        self.handle.enter().ok_or_else(|| error::closed(py))
    }
}

/// A name or path: text, bytes or anything with `__fspath__`.
pub fn name_of(name: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let name = name.py().import("os")?.call_method1("fspath", (name,)).map_err(|error| {
        if error.is_instance_of::<PyTypeError>(name.py()) {
            crate::bytes::refused(name, "a name must be str, bytes or a path")
        } else {
            error
        }
    })?;
    let bytes = match name.cast::<PyBytes>() {
        Ok(bytes) => bytes.as_bytes().to_vec(),
        Err(_) => name.py().import("os")?.call_method1("fsencode", (&name,))?.cast::<PyBytes>()?.as_bytes().to_vec(),
    };
    if bytes.contains(&0) {
        return Err(PyValueError::new_err("a name must not contain a zero byte"));
    }
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

fn duration(seconds: f64, name: &str) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{name} must be a number of seconds from 0 on, and is {seconds}")))
}

#[pymethods]
impl StoreBase {
    #[new]
    #[pyo3(signature = (name, /, *, create=true, create_new=false, read_only=false, cache=None, max_bytes=None,
        expected_items=None, fixed_key_len=None, fixed_value_len=None, permissions=None, remove_on_last_close=false,
        busy_timeout=None, segment_bytes=None, leaf_bytes=None, durable=false, sync_every=None,
        allow_foreign_owner=false, on_recovery=None, feed=None, feed_values=false, origin=0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        name: &Bound<'_, PyAny>,
        create: bool,
        create_new: bool,
        read_only: bool,
        cache: Option<bool>,
        max_bytes: Option<u64>,
        expected_items: Option<u64>,
        fixed_key_len: Option<u32>,
        fixed_value_len: Option<u32>,
        permissions: Option<u32>,
        remove_on_last_close: bool,
        busy_timeout: Option<f64>,
        segment_bytes: Option<u32>,
        leaf_bytes: Option<u32>,
        durable: bool,
        sync_every: Option<f64>,
        allow_foreign_owner: bool,
        on_recovery: Option<Py<PyAny>>,
        feed: Option<u64>,
        feed_values: bool,
        origin: u32,
    ) -> PyResult<StoreBase> {
        if create_new && (read_only || !create) {
            return Err(PyValueError::new_err("create_new creates a store: not with read_only or create=False"));
        }
        let mut options =
            Options::new().create(create).create_new(create_new).remove_on_last_close(remove_on_last_close);
        for (asked, set) in [
            (read_only, Options::read_only as fn(Options) -> Options),
            (durable, Options::durable),
            (allow_foreign_owner, Options::allow_foreign_owner),
        ] {
            options = if asked { set(options) } else { options };
        }
        if let Some(cache) = cache {
            options = options.mode(if cache { Mode::Cache } else { Mode::Strict });
        }
        options = max_bytes.map_or(options.clone(), |n| options.max_bytes(n));
        options = expected_items.map_or(options.clone(), |n| options.expected_items(n));
        options = fixed_key_len.map_or(options.clone(), |n| options.fixed_key_len(n));
        options = fixed_value_len.map_or(options.clone(), |n| options.fixed_value_len(n));
        options = permissions.map_or(options.clone(), |n| options.permissions(n));
        options = segment_bytes.map_or(options.clone(), |n| options.segment_bytes(n));
        options = leaf_bytes.map_or(options.clone(), |n| options.leaf_bytes(n));
        options = feed.map_or(options.clone(), |n| options.feed(n)).feed_values(feed_values).origin(origin);
        if let Some(seconds) = busy_timeout {
            options = options.busy_timeout(duration(seconds, "busy_timeout")?);
        }
        if let Some(seconds) = sync_every {
            options = options.sync_every(duration(seconds, "sync_every")?);
        }
        if let Some(told) = on_recovery {
            options = options.on_recovery(move |done, of| {
                Python::attach(|py| {
                    if let Err(error) = told.call1(py, (done, of)) {
                        error.write_unraisable(py, Some(told.bind(py)));
                    }
                });
            });
        }
        let path = name_of(name)?;
        let py = name.py();
        let store = py.detach(|| options.open(&path)).or_raise(py)?;
        Ok(StoreBase { handle: Handle::new(store) })
    }

    /// Closes the handle; calls on it raise ``Closed`` from now on. Views that are held keep the file mapped.
    fn close(&self, py: Python<'_>) {
        let store = self.handle.close();
        py.detach(|| drop(store));
    }

    /// Whether the handle was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// The file, as an absolute path.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<OsString> {
        let store = self.enter(py)?;
        let path = store.path();
        Ok(std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).into_os_string())
    }

    /// Whether it was opened read-only.
    #[getter]
    fn read_only(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.enter(py)?.is_read_only())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.enter(py)?.len() as usize)
    }

    /// How many keys a scan returns now: those that have expired do not count, which ``len`` counts until they are
    /// cleaned away. It looks at every key.
    fn len_exact(&self, py: Python<'_>) -> PyResult<u64> {
        let store = self.enter(py)?;
        let store: &Store = &store;
        py.detach(|| store.len_exact()).or_raise(py)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(!self.enter(py)?.is_empty())
    }

    /// Removes every key. Readers see all of them or none; no process is stopped.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.enter(py)?;
        let store: &Store = &store;
        py.detach(|| store.clear()).or_raise(py)
    }

    /// Durable stores: returns when everything acknowledged before survives a power cut.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.enter(py)?;
        let store: &Store = &store;
        py.detach(|| store.sync()).or_raise(py)
    }

    /// Repairs what dead processes left, removes every key that has expired and cleans what pays; returns the bytes
    /// that became free.
    fn compact(&self, py: Python<'_>) -> PyResult<u64> {
        let store = self.enter(py)?;
        let store: &Store = &store;
        py.detach(|| store.compact()).or_raise(py)
    }

    /// Statistics as a dict; ``clients`` is a list of dicts.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let store = self.enter(py)?;
        let store: &Store = &store;
        crate::stats::stats(py, &py.detach(|| store.stats()))
    }

    /// Reads the whole store and returns what contradicts itself: a list of texts, empty if nothing does.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let store = self.enter(py)?;
        let store: &Store = &store;
        let problems = py.detach(|| store.check()).problems;
        Ok(problems.into_iter().map(|p| format!("{} at byte {}: {}", p.code, p.offset, p.text)).collect())
    }

    /// An item chosen at random, each with nearly the same chance; ``None`` if the store is empty.
    fn random<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let store = self.enter(py)?;
        let store: &Store = &store;
        let pair = py.detach(|| store.random()).or_raise(py)?;
        pair.map(|pair| item::item(py, &pair.key, &pair.value, &pair.metadata)).transpose()
    }
}

/// Removes a store's file; processes that have it open go on with the removed one. ``False``: there was none.
#[pyfunction]
#[pyo3(signature = (name, /))]
pub fn remove(name: &Bound<'_, PyAny>) -> PyResult<bool> {
    let path = name_of(name)?;
    name.py().detach(|| Store::remove(&path)).or_raise(name.py())
}

/// The file that a name or path means.
#[pyfunction]
#[pyo3(signature = (name, /))]
pub fn path_of(name: &Bound<'_, PyAny>) -> PyResult<OsString> {
    let path = Store::path_of(name_of(name)?).map_err(|error| raised(name.py(), error))?;
    Ok(std::path::absolute(&path).unwrap_or(path).into_os_string())
}
