//! Stores as text.

use crate::error;
use crate::scan::{filter, Which};
use crate::store::{name_of, StoreBase};
use hashmere_dump::{DumpError, Format, LoadError, Records};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn format_of(name: Option<&str>) -> PyResult<Option<Format>> {
    match name {
        None => Ok(None),
        Some("tsv") => Ok(Some(Format::Tsv)),
        Some("jsonl") => Ok(Some(Format::Jsonl)),
        Some(other) => Err(PyValueError::new_err(format!("format is \"tsv\" or \"jsonl\", not {other:?}"))),
    }
}

fn dumped(py: Python<'_>, done: Result<u64, DumpError>) -> PyResult<u64> {
    done.map_err(|error| match error {
        DumpError::Store(error) => error::raised(py, error),
        DumpError::Io { ref source, .. } => {
            let errno = source.raw_os_error();
            error::exception(py, error.code(), error.to_string(), errno)
        }
        other => error::exception(py, other.code(), other.to_string(), None),
    })
}

fn loaded(py: Python<'_>, done: Result<u64, LoadError>) -> PyResult<u64> {
    done.map_err(|error| match error {
        LoadError::Store { error, loaded: 0, tried: 0 } => error::raised(py, error),
        LoadError::Io { ref source, .. } => {
            let errno = source.raw_os_error();
            error::exception(py, error.code(), error.to_string(), errno)
        }
        LoadError::Store { error: ref inner, .. } => {
            error::exception(py, error.code(), error.to_string(), error::errno_of(inner))
        }
        other => error::exception(py, other.code(), other.to_string(), None),
    })
}

#[pymethods]
impl StoreBase {
    /// Writes all records (key, value, flags and expiry) to a file, which appears when it is complete; returns how many
    /// there are. ``format`` is ``"tsv"`` or ``"jsonl"``, and by the name of the file if it is not given.
    #[pyo3(signature = (path, /, *, format=None, prefix=None, glob=None, regex=None, part=None))]
    #[allow(clippy::too_many_arguments)]
    fn dump(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        format: Option<&str>,
        prefix: Option<&Bound<'_, PyAny>>,
        glob: Option<&Bound<'_, PyAny>>,
        regex: Option<&Bound<'_, PyAny>>,
        part: Option<(u32, u32)>,
    ) -> PyResult<u64> {
        let (path, format) = (name_of(path)?, format_of(format)?);
        let filter = filter(&Which { prefix, glob, regex, part })?;
        let store = self.enter(py)?;
        let store: &hashmere::Store = &store;
        dumped(py, py.detach(|| store.dump(path, format, filter)))
    }

    /// Stores all records of a file, in order; returns how many there are. ``Malformed`` names a line that is none, and
    /// how many before it are stored.
    #[pyo3(signature = (path, /, *, format=None))]
    fn load(&self, py: Python<'_>, path: &Bound<'_, PyAny>, format: Option<&str>) -> PyResult<u64> {
        let (path, format) = (name_of(path)?, format_of(format)?);
        let store = self.enter(py)?;
        let store: &hashmere::Store = &store;
        loaded(py, py.detach(|| store.load(path, format)))
    }
}
