//! Draining a log in an event loop of the caller's.

use crate::error::{gone, misuse, LogResult};
use crate::wait::seconds;
use hashmere_log::ManualDrainer as Inner;
use pyo3::prelude::*;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The role of the drainer, for event loops: made by `Log.drain_manual`, used by one thread at a time. Wait until it is
/// readable (it has a ``fileno``), and ``poll`` it. It drains the rest when it is closed; if the process ends without
/// that, the next drainer goes on.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct ManualDrainer {
    drain: Mutex<Option<Inner>>,
}

impl ManualDrainer {
    /// One that has the role.
    pub fn new(drain: Inner) -> ManualDrainer {
        ManualDrainer { drain: Mutex::new(Some(drain)) }
    }

    /// No thread waits for it while it has the interpreter, which the callback for lines needs.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Inner>>> {
        match self.drain.try_lock() {
            Ok(drain) => Ok(drain),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(misuse(py, "another thread uses this drainer, or the function that it calls does"))
            }
        }
    }

    fn with<T>(&self, py: Python<'_>, act: impl FnOnce(&mut Inner) -> PyResult<T>) -> PyResult<T> {
        let mut drain = self.lock(py)?;
        act(drain
            .as_mut()
            .ok_or_else(|| gone(py, "the drainer was closed; make another one with log.drain_manual()"))?)
    }
}

impl Drop for ManualDrainer {
    fn drop(&mut self) {
        let Some(drain) = self.drain.get_mut().unwrap_or_else(PoisonError::into_inner).take() else { return };
        // Its watcher is a thread that is waited for; a function that it calls needs the interpreter.
        let mut left = Some(drain);
        Python::try_attach(|py| py.detach(|| drop(left.take())));
        std::mem::forget(left);
    }
}

#[pymethods]
impl ManualDrainer {
    /// A descriptor that is readable while there is something to drain. It belongs to this object.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        self.with(py, |drain| Ok(drain.ready_fd().or_raise_log(py)?.as_raw_fd()))
    }

    /// Takes the lines that are in the rings and writes them out; returns how many. What is too young by some
    /// millionths of a second stays for the next call.
    fn poll(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |drain| Ok(py.detach(|| drain.poll()).or_raise_log(py)?.0))
    }

    /// Without an event loop: waits for something to drain, at most ``timeout`` seconds; may return early.
    #[pyo3(signature = (timeout, /))]
    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = seconds(timeout)?;
        self.with(py, |drain| {
            py.detach(|| drain.wait(timeout));
            Ok(())
        })
    }

    /// Drains the rest, and gives the role back; returns how many lines that were.
    fn close(&self, py: Python<'_>) -> PyResult<u64> {
        let drain = self.lock(py)?.take();
        match drain {
            Some(drain) => py.detach(|| drain.finish()).or_raise_log(py),
            None => Ok(0),
        }
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.is_none())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py).map(drop)
    }
}
