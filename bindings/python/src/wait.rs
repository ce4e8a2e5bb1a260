//! Waiting for keys, and what processes agree by: a mutex, a computation that is done once, a barrier.
//!
//! A thread that sleeps lets other Python threads run, and wakes often enough to handle signals.

use crate::bytes::Value;
use crate::error::{misuse, QueueResult};
use crate::key::PlainKey;
use crate::store::StoreBase;
use hashmere::{Store, Version, WaitAnyOutcome};
use hashmere_queue::{MutexGuard, QueueError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex as Guarded, MutexGuard as Locked, PoisonError};
use std::time::{Duration, Instant};

/// How long a signal may have to wait.
const SLICE: Duration = Duration::from_millis(50);

/// The longest wait, in seconds: three hundred years.
const FOREVER: f64 = 1e10;

/// A number of seconds.
pub fn seconds(timeout: f64) -> PyResult<Duration> {
    if timeout > FOREVER {
        return Ok(Duration::from_secs_f64(FOREVER));
    }
    Duration::try_from_secs_f64(timeout)
        .map_err(|_| PyValueError::new_err(format!("timeout must be a number of seconds from 0 on, and is {timeout}")))
}

/// Waits in slices, between which signals are heard; forever if there is no `timeout`.
pub fn in_slices<T>(
    py: Python<'_>,
    timeout: Option<f64>,
    mut wait: impl FnMut(Duration) -> PyResult<Option<T>>,
) -> PyResult<Option<T>> {
    let timeout = timeout.filter(|timeout| *timeout <= FOREVER || timeout.is_nan()).map(seconds).transpose()?;
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()));
        if let Some(done) = wait(left.min(SLICE))? {
            return Ok(Some(done));
        }
        if left <= SLICE && end.is_some() {
            return Ok(None);
        }
        py.check_signals()?;
    }
}

fn seen(version: Option<u64>) -> Option<Version> {
    version.filter(|version| *version != 0).map(Version)
}

/// How a wait for a key ended: exactly one of ``changed``, ``removed`` and ``timed_out`` is true. It is false if the
/// time was over.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct WaitOutcome {
    outcome: hashmere::WaitOutcome,
    index: usize,
}

#[pymethods]
impl WaitOutcome {
    /// Whether the key has another version; it is ``version``.
    #[getter]
    fn changed(&self) -> bool {
        self.version().is_some()
    }
    /// Whether the key is absent now.
    #[getter]
    fn removed(&self) -> bool {
        self.outcome == hashmere::WaitOutcome::Removed
    }
    /// Whether no key changed within the time.
    #[getter]
    fn timed_out(&self) -> bool {
        self.outcome == hashmere::WaitOutcome::TimedOut
    }
    /// The version that the key has now; ``None`` unless it was changed.
    #[getter]
    fn version(&self) -> Option<u64> {
        match self.outcome {
            hashmere::WaitOutcome::Changed(version) => Some(version.0),
            _ => None,
        }
    }
    /// Of ``wait_any``: which of the keys was changed or removed, by its place; else ``None``.
    #[getter]
    fn index(&self) -> Option<usize> {
        (!self.timed_out()).then_some(self.index)
    }
    fn __bool__(&self) -> bool {
        !self.timed_out()
    }
    fn __repr__(&self) -> String {
        match self.outcome {
            hashmere::WaitOutcome::Changed(version) => format!("<hashmere.WaitOutcome changed, version {}>", version.0),
            hashmere::WaitOutcome::Removed => "<hashmere.WaitOutcome removed>".into(),
            hashmere::WaitOutcome::TimedOut => "<hashmere.WaitOutcome timed out>".into(),
        }
    }
}

/// Why `once` has no value: the engine, or what the function raised.
enum Failed {
    Queue(QueueError),
    Raised(PyErr),
}

impl From<QueueError> for Failed {
    fn from(error: QueueError) -> Failed {
        Failed::Queue(error)
    }
}

#[pymethods]
impl StoreBase {
    /// Waits until a key has another version than ``seen`` (``None``: it was absent), in whatever process it is
    /// changed. Without a ``timeout`` in seconds it waits forever.
    #[pyo3(signature = (key, seen, /, *, timeout=None))]
    fn wait(
        &self,
        py: Python<'_>,
        key: PlainKey<'_>,
        seen: Option<u64>,
        timeout: Option<f64>,
    ) -> PyResult<WaitOutcome> {
        let store = self.enter(py)?;
        let store: &Store = &store;
        let seen = self::seen(seen);
        let outcome = in_slices(py, timeout, |slice| {
            let outcome = store.wait(key.0, seen, slice).map_err(|error| crate::error::raised(py, error))?;
            Ok(Some(outcome).filter(|outcome| *outcome != hashmere::WaitOutcome::TimedOut))
        })?;
        Ok(WaitOutcome { outcome: outcome.unwrap_or(hashmere::WaitOutcome::TimedOut), index: 0 })
    }

    /// The same for several keys, as pairs of key and version: the first in order that has changed.
    #[pyo3(signature = (keys, /, *, timeout=None))]
    fn wait_any(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<WaitOutcome> {
        let pairs: Vec<(Bound<'_, PyAny>, Option<u64>)> =
            keys.try_iter()?.map(|pair| pair?.extract()).collect::<PyResult<_>>()?;
        let mut keys = Vec::with_capacity(pairs.len());
        for (key, version) in &pairs {
            keys.push((key.as_borrowed().extract::<PlainKey<'_>>()?.0, self::seen(*version)));
        }
        let store = self.enter(py)?;
        let store: &Store = &store;
        let outcome = in_slices(py, timeout, |slice| {
            Ok(match store.wait_any(&keys, slice).map_err(|error| crate::error::raised(py, error))? {
                WaitAnyOutcome::Changed(index, version) => Some((index, hashmere::WaitOutcome::Changed(version))),
                WaitAnyOutcome::Removed(index) => Some((index, hashmere::WaitOutcome::Removed)),
                WaitAnyOutcome::TimedOut => None,
            })
        })?;
        let (index, outcome) = outcome.unwrap_or((0, hashmere::WaitOutcome::TimedOut));
        Ok(WaitOutcome { outcome, index })
    }

    /// The value of a key; if there is none, ``compute()`` makes it, in one process at a time, and it is stored. The
    /// others wait for it. If the process that computes dies, or ``compute`` raises, the next one does it. ``None``: a
    /// living process was computing for as long as ``timeout`` seconds (``once_holder`` says who). If ``compute`` asks
    /// for the value of its own key, `QueueReentered` is raised.
    #[pyo3(signature = (key, compute, /, *, timeout=None))]
    fn once(
        &self,
        py: Python<'_>,
        key: PlainKey<'_>,
        compute: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Vec<u8>>> {
        let store = self.enter(py)?;
        let store: &Store = &store;
        in_slices(py, timeout, |slice| {
            let value = hashmere_queue::once(store, key.0, slice, || {
                let made = compute.call0().map_err(Failed::Raised)?;
                let value = made.as_borrowed().extract::<Value<'_>>().map_err(Failed::Raised)?;
                Ok(value.0.to_vec())
            });
            value.map_err(|failed| match failed {
                Failed::Raised(error) => error,
                Failed::Queue(error) => crate::error::queue(py, error),
            })
        })
    }

    /// The process that computes the value of a key by ``once`` at about this moment, by its id; ``None``: none, or one
    /// that is gone; 0: one whose name went when the store was cleared.
    #[pyo3(signature = (key, /))]
    fn once_holder(&self, py: Python<'_>, key: PlainKey<'_>) -> PyResult<Option<u32>> {
        let store = self.enter(py)?;
        Ok(hashmere_queue::once_holder(&*store, key.0).or_raise_queue(py)?.map(|holder| holder.pid))
    }
}

/// A mutex between processes and threads, at a key of a store, which says by whom it is held and is otherwise absent.
///
/// A holder that crashes, at any instruction, has released it; a process that is stopped has not. It is not fair, and
/// not recursive. ``with mutex as abandoned:`` waits without end, and tells whether the holder before died with it.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Mutex {
    /// Borrows from `mutex`; dropped first, as fields are dropped in order.
    held: Guarded<Option<Held>>,
    mutex: Box<hashmere_queue::Mutex>,
}

struct Held {
    guard: Option<MutexGuard<'static>>,
    /// A forked child has a copy of this, and not the mutex.
    pid: u32,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            self.guard.take().map(std::mem::forget).unwrap_or_default();
        }
    }
}

impl Mutex {
    fn held(&self) -> Locked<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the holder before died with it; `None`: it was not to be had in time.
    fn take(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<bool>> {
        let guard = in_slices(py, timeout, |slice| self.mutex.lock(slice).or_raise_queue(py))?;
        let Some(guard) = guard else { return Ok(None) };
        let abandoned = guard.was_abandoned();
        // SAFETY: the mutex is in a box that does not move, and is dropped after the guard.
        let guard = unsafe { std::mem::transmute::<MutexGuard<'_>, MutexGuard<'static>>(guard) };
        let before = self.held().replace(Held { guard: Some(guard), pid: std::process::id() });
        // What a parent held is still in it after a fork; otherwise nothing, for it was ours to take.
        drop(before);
        Ok(Some(abandoned))
    }
}

#[pymethods]
impl Mutex {
    /// The mutex of a key.
    #[new]
    #[pyo3(signature = (store, key, /))]
    fn new(py: Python<'_>, store: &Bound<'_, StoreBase>, key: PlainKey<'_>) -> PyResult<Mutex> {
        let store = store.get().enter(py)?;
        let mutex = hashmere_queue::Mutex::new(&*store, key.0).or_raise_queue(py)?;
        Ok(Mutex { held: Guarded::new(None), mutex: Box::new(mutex) })
    }

    /// Takes it, and waits for it as many seconds as ``timeout`` says; forever without. ``False``: a living process
    /// held it all the while.
    #[pyo3(signature = (timeout=None))]
    fn acquire(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        Ok(self.take(py, timeout)?.is_some())
    }

    /// Releases it, from whatever thread.
    fn release(&self) -> PyResult<()> {
        let held = self.held().take().filter(|held| held.pid == std::process::id());
        match held {
            Some(held) => drop(held),
            None => {
                return Err(PyRuntimeError::new_err(
                    "release of a mutex that this process does not hold through this object",
                ))
            }
        }
        Ok(())
    }

    /// The process that holds it at about this moment, by its id; ``None``: none, or one that is gone; 0: one whose
    /// name went when the store was cleared or the key deleted (no process to send a signal to).
    #[getter]
    fn holder(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        Ok(self.mutex.holder().or_raise_queue(py)?.map(|holder| holder.pid))
    }

    /// Whether it is held through this object.
    #[getter]
    fn held_here(&self) -> bool {
        self.held().as_ref().is_some_and(|held| held.pid == std::process::id())
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<bool> {
        self.take(py, None)?.ok_or_else(|| misuse(py, "the mutex was not to be had"))
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.release()
    }
}

/// A participant of a barrier between processes, at a key of a store: ``size`` of them start together, again and again.
/// Those who die or leave are not waited for. It belongs to one thread at a time; leave by ``close``, ``with``, or
/// letting go of it.
#[pyclass(module = "hashmere._hashmere")]
pub struct Barrier {
    barrier: Option<hashmere_queue::Barrier>,
    /// A forked child has a copy of this, and is no participant.
    pid: u32,
}

impl Barrier {
    fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }

    fn leave(&mut self) {
        let barrier = self.barrier.take();
        if !self.is_ours() {
            std::mem::forget(barrier);
        }
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        self.leave();
    }
}

#[pymethods]
impl Barrier {
    /// Joins the barrier of a key; the first to come makes it.
    #[new]
    #[pyo3(signature = (store, key, size, /))]
    fn new(py: Python<'_>, store: &Bound<'_, StoreBase>, key: PlainKey<'_>, size: u64) -> PyResult<Barrier> {
        let store = store.get().enter(py)?;
        let barrier = hashmere_queue::Barrier::join(&*store, key.0, size).or_raise_queue(py)?;
        Ok(Barrier { barrier: Some(barrier), pid: std::process::id() })
    }

    /// Arrives, and waits until all others have, as many seconds as ``timeout`` says; forever without. Returns
    /// ``(round, lost)``: the number of the round, from 1, and how many participants had died or left by then.
    /// ``None``: a living participant has not arrived yet; call it again to wait on.
    #[pyo3(signature = (timeout=None))]
    fn wait(&mut self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<(u64, u64)>> {
        if !self.is_ours() {
            return Err(misuse(py, "the barrier was joined before a fork; join it in this process"));
        }
        let barrier = self.barrier.as_mut().ok_or_else(|| misuse(py, "this participant has left the barrier"))?;
        in_slices(py, timeout, |slice| {
            let start = barrier.wait(slice).or_raise_queue(py)?;
            Ok(start.map(|start| (start.round, start.lost)))
        })
    }

    /// Leaves: the others go on without.
    fn close(&mut self) {
        self.leave();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&mut self, _exception: &Bound<'_, PyAny>) {
        self.leave();
    }
}
