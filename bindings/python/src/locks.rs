//! A readers-writer lock and a semaphore between processes and threads.

use crate::error::QueueResult;
use crate::key::PlainKey;
use crate::store::StoreBase;
use crate::wait::in_slices;
use hashmere_queue::RwLockMode;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Mutex as Guarded, PoisonError};

/// Something that is held until it is released, once; a forked child has a copy of it, and holds nothing.
struct Kept<T> {
    held: Guarded<Option<T>>,
    abandoned: bool,
    pid: u32,
}

impl<T> Kept<T> {
    fn new(held: T, abandoned: bool) -> Kept<T> {
        Kept { held: Guarded::new(Some(held)), abandoned, pid: std::process::id() }
    }

    fn release(&self) -> PyResult<()> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        match held.filter(|_| self.pid == std::process::id()) {
            Some(held) => drop(held),
            None => return Err(PyRuntimeError::new_err("release of what this process does not hold, or not any more")),
        }
        Ok(())
    }
}

/// A readers-writer lock between processes and threads, at a key of a store, which says by whom it is held and is
/// otherwise absent.
///
/// A holder that crashes, at any instruction, has released it; a process that is stopped has not. It stays held when
/// the store is cleared. It is not recursive. A waiter competes for its turn, in which no reader or writer that comes
/// later passes it. ``with lock.read() as guard:`` waits without end.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct RwLock(hashmere_queue::RwLock);

/// A readers-writer lock that is held; ``with`` releases it in the end, as does letting go of it.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct RwLockGuard(Kept<hashmere_queue::RwLockGuard>);

impl RwLock {
    fn take(&self, py: Python<'_>, mode: RwLockMode, timeout: Option<f64>) -> PyResult<Option<RwLockGuard>> {
        // It keeps its turn from slice to slice.
        let mut waiter = self.0.waiter(mode);
        let guard = in_slices(py, timeout, |slice| waiter.wait(slice).or_raise_queue(py))?;
        Ok(guard.map(|guard| {
            let abandoned = guard.was_abandoned();
            RwLockGuard(Kept::new(guard, abandoned))
        }))
    }
}

#[pymethods]
impl RwLock {
    /// The readers-writer lock of a key.
    #[new]
    #[pyo3(signature = (store, key, /))]
    fn new(py: Python<'_>, store: &Bound<'_, StoreBase>, key: PlainKey<'_>) -> PyResult<RwLock> {
        let store = store.get().enter(py)?;
        Ok(RwLock(hashmere_queue::RwLock::new(&*store, key.0).or_raise_queue(py)?))
    }

    /// Locks it for reading, beside other readers, and waits for it as many seconds as ``timeout`` says; forever
    /// without. ``None``: a living process wrote, or had its turn to, all the while.
    #[pyo3(signature = (timeout=None))]
    fn read(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<RwLockGuard>> {
        self.take(py, RwLockMode::Read, timeout)
    }

    /// Locks it for writing, alone. ``None``: living processes held it all the while.
    #[pyo3(signature = (timeout=None))]
    fn write(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<RwLockGuard>> {
        self.take(py, RwLockMode::Write, timeout)
    }

    /// The process that holds it for writing at about this moment, by its id; ``None``: none, or one that is gone, or
    /// whose name went when the store was cleared or the key deleted.
    #[getter]
    fn writer(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        Ok(self.0.writer().or_raise_queue(py)?.map(|holder| holder.pid))
    }

    /// The processes that hold it for reading at about this moment, by their ids, each as often as it does.
    #[getter]
    fn readers(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.0.readers().or_raise_queue(py)?.iter().map(|holder| holder.pid).collect())
    }
}

#[pymethods]
impl RwLockGuard {
    /// Whether a writer died with it, and no other writer had it since: what it protects may be half done.
    #[getter]
    fn was_abandoned(&self) -> bool {
        self.0.abandoned
    }

    /// Releases it, from whatever thread.
    fn release(&self) -> PyResult<()> {
        self.0.release()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.release()
    }
}

/// A semaphore between processes and threads, at a key of a store: at most ``permits`` (1 to 1024) holders at a time.
/// All who use it give the same number. While there are holders the key names them, else it is absent.
///
/// A holder that crashes, at any instruction, has given its permit back; a process that is stopped has not. Permits
/// stay held when the store is cleared. It is not fair. ``with semaphore.acquire() as guard:`` waits without end.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Semaphore(hashmere_queue::Semaphore);

/// A permit of a semaphore; ``with`` gives it back in the end, as does letting go of it.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct SemaphoreGuard(Kept<hashmere_queue::SemaphoreGuard>);

#[pymethods]
impl Semaphore {
    /// The semaphore of a key.
    #[new]
    #[pyo3(signature = (store, key, permits, /))]
    fn new(py: Python<'_>, store: &Bound<'_, StoreBase>, key: PlainKey<'_>, permits: u32) -> PyResult<Semaphore> {
        let store = store.get().enter(py)?;
        Ok(Semaphore(hashmere_queue::Semaphore::new(&*store, key.0, permits).or_raise_queue(py)?))
    }

    /// Takes a permit, and waits for it as many seconds as ``timeout`` says; forever without. ``None``: living
    /// processes held all of them all the while. A thread may hold several; one that holds all gets `QueueReentered`.
    #[pyo3(signature = (timeout=None))]
    fn acquire(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<SemaphoreGuard>> {
        let guard = in_slices(py, timeout, |slice| self.0.acquire(slice).or_raise_queue(py))?;
        Ok(guard.map(|guard| {
            let abandoned = guard.was_abandoned();
            SemaphoreGuard(Kept::new(guard, abandoned))
        }))
    }

    /// The processes that hold permits at about this moment, by their ids, each as often as it has one.
    #[getter]
    fn holders(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.0.holders().or_raise_queue(py)?.iter().map(|holder| holder.pid).collect())
    }
}

#[pymethods]
impl SemaphoreGuard {
    /// Whether a holder died with its permit since the last one was taken: what it worked on may be half done.
    #[getter]
    fn was_abandoned(&self) -> bool {
        self.0.abandoned
    }

    /// Gives the permit back, from whatever thread.
    fn release(&self) -> PyResult<()> {
        self.0.release()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.release()
    }
}
