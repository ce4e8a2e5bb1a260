//! Who takes lines out of a log: drainers and followers.

use crate::error::LogResult;
use crate::log_line::line;
use crate::store::name_of;
use crate::wait::in_slices;
use hashmere_log::{Format, LogFile, Since, Sink};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

fn format_of(format: &str) -> PyResult<Format> {
    match format {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        "colour" => Ok(Format::Colour),
        _ => Err(PyValueError::new_err("format must be \"text\", \"json\" or \"colour\"")),
    }
}

/// Where lines go, from the arguments of `Log.drain`.
pub fn sink(
    py: Python<'_>,
    to: Option<&Bound<'_, PyAny>>,
    format: &str,
    max_bytes: Option<u64>,
    keep: u32,
) -> PyResult<Sink> {
    let format = format_of(format)?;
    let is_path = |to: &Bound<'_, PyAny>| {
        !to.is_callable() && to.cast::<PyInt>().is_err() && !to.hasattr("fileno").unwrap_or(false)
    };
    if (max_bytes.is_some() || keep > 0) && !to.is_some_and(is_path) {
        return Err(PyTypeError::new_err("only a path can be rotated: max_bytes and keep do not fit here"));
    }
    match to {
        None => Sink::stdout(format).or_raise_log(py),
        Some(to) if is_path(to) => {
            let mut file = LogFile::new(name_of(to)?);
            if let Some(max_bytes) = max_bytes {
                file = file.rotate(max_bytes, keep);
            }
            Ok(Sink::file(file, format))
        }
        Some(to) if to.is_callable() => Ok(to_function(to)),
        Some(to) => to_descriptor(to, format),
    }
}

fn to_descriptor(to: &Bound<'_, PyAny>, format: Format) -> PyResult<Sink> {
    let number: i32 = if to.cast::<PyInt>().is_ok() { to.extract()? } else { to.call_method0("fileno")?.extract()? };
    if number < 0 {
        return Err(PyValueError::new_err("a descriptor is a number from 0 on"));
    }
    // SAFETY: borrowed for this call only, which tells if it is not open.
    let copy = unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned();
    Ok(Sink::descriptor(copy?, format))
}

fn to_function(to: &Bound<'_, PyAny>) -> Sink {
    let function = to.clone().unbind();
    Sink::callback(move |record| {
        // After the end of the interpreter there is nothing to call.
        Python::try_attach(|py| {
            let done = line(py, record).and_then(|line| function.call1(py, (line,)));
            if let Err(error) = done {
                error.write_unraisable(py, Some(function.bind(py)));
            }
        });
    })
}

/// Takes lines out of a log, in a thread of its own, until it is stopped. Made by `Log.drain`.
#[pyclass(frozen, weakref, module = "hashmere._hashmere")]
pub struct Drainer {
    drainer: Mutex<Option<hashmere_log::Drainer>>,
}

impl Drainer {
    /// A drainer that was started.
    pub fn new(drainer: hashmere_log::Drainer) -> Drainer {
        Drainer { drainer: Mutex::new(Some(drainer)) }
    }

    fn take(&self) -> Option<hashmere_log::Drainer> {
        self.drainer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        let Some(drainer) = self.take() else { return };
        // Its thread may be waiting for the interpreter, to call a function.
        let mut left = Some(drainer);
        Python::try_attach(|py| py.detach(|| drop(left.take())));
        std::mem::forget(left);
    }
}

#[pymethods]
impl Drainer {
    /// Drains the rest and ends. Returns how many lines this drainer has taken in all. If lines could not be delivered
    /// that is raised; they stay in the log.
    fn stop(&self, py: Python<'_>) -> PyResult<u64> {
        match self.take() {
            Some(drainer) => py.detach(|| drainer.stop()).or_raise_log(py),
            None => Ok(0),
        }
    }

    /// The same, whether they could be delivered or not.
    fn close(&self, py: Python<'_>) {
        let drainer = self.take();
        py.detach(|| drop(drainer));
    }

    /// Whether it drains: not yet, if it waits for another one, and not any more if it failed or was stopped.
    #[getter]
    fn active(&self) -> bool {
        let drainer = self.drainer.lock().unwrap_or_else(PoisonError::into_inner);
        drainer.as_ref().is_some_and(hashmere_log::Drainer::is_active)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.stop(py).map(drop)
    }
}

/// From where on to follow.
pub fn since(since: Option<&Bound<'_, PyAny>>) -> PyResult<Since> {
    let Some(since) = since else { return Ok(Since::Now) };
    if let Ok(lines) = since.extract::<u64>() {
        return Ok(Since::Last(lines));
    }
    match since.extract::<String>().as_deref() {
        Ok("now") => Ok(Since::Now),
        Ok("oldest") => Ok(Since::Oldest),
        _ => Err(PyValueError::new_err("since must be \"now\", \"oldest\" or a number of lines")),
    }
}

/// Reads lines that were drained, in order, without consuming them. Made by `Log.follow`.
#[pyclass(module = "hashmere._hashmere")]
pub struct Follower {
    follower: hashmere_log::Follower,
    timeout: Option<f64>,
}

impl Follower {
    /// One that ends when nothing has come for so long.
    pub fn new(follower: hashmere_log::Follower, timeout: Option<f64>) -> Follower {
        Follower { follower, timeout }
    }
}

#[pymethods]
impl Follower {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let follower = &mut self.follower;
        in_slices(py, self.timeout, |slice| {
            if let Some(record) = follower.next().or_raise_log(py)? {
                return line(py, record).map(Some);
            }
            if slice.is_zero() {
                return Ok(None);
            }
            follower.wait(slice);
            follower.next().or_raise_log(py)?.map(|record| line(py, record)).transpose()
        })
    }

    /// A descriptor for event loops that is readable while there is a line; it belongs to this object. Follow with a
    /// ``timeout`` of 0 then: the iteration that finds none takes that back.
    fn fileno(&mut self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.follower.ready_fd().or_raise_log(py)?.as_raw_fd())
    }

    /// Bytes of lines that were gone before they were read.
    #[getter]
    fn missed_bytes(&self) -> u64 {
        self.follower.missed_bytes()
    }
}
