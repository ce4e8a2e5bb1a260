//! Pools of elements, and their queues: see `endpoint` for those who move elements between them.

use crate::endpoint::Endpoint;
use crate::error::{gone, QueueResult};
use crate::store::StoreBase;
use hashmere_queue::{Kind, OnDeath, PoolOptions, QueueOptions, QueueStats};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};

/// Names of queues for elements of crashed processes, each once forever: options of the queues' crate hold static ones.
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

fn for_ever(name: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.iter().find(|known| **known == name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.into());
    names.push(kept);
    kept
}

fn kind_of(name: &str) -> PyResult<Kind> {
    match name {
        "mpmc" => Ok(Kind::Mpmc),
        "mpsc" => Ok(Kind::Mpsc),
        "spsc" => Ok(Kind::Spsc),
        _ => Err(PyValueError::new_err("kind must be \"mpmc\", \"mpsc\" or \"spsc\"")),
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Mpmc => "mpmc",
        Kind::Mpsc => "mpsc",
        Kind::Spsc => "spsc",
    }
}

/// A fixed number of elements of a fixed size in a store's file, and named queues between which they move by reference.
///
/// What a process held when it died goes back where it came from. After a fork open it again in the child.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Pool {
    pool: hashmere_queue::Pool,
}

#[pymethods]
impl Pool {
    /// Opens a pool; creates it if ``elements`` and ``bytes`` are given and it is missing. ``on_death`` names the queue
    /// that elements of crashed processes go to (``"free"``, or one that is made with the pool); without it they go to
    /// where they were popped from.
    #[new]
    #[pyo3(signature = (store, name, /, *, elements=None, bytes=None, max_queues=None, max_endpoints=None, batch=None, on_death=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        store: &Bound<'_, StoreBase>,
        name: &str,
        elements: Option<u64>,
        bytes: Option<u64>,
        max_queues: Option<u64>,
        max_endpoints: Option<u64>,
        batch: Option<u64>,
        on_death: Option<&str>,
    ) -> PyResult<Pool> {
        let store = store.get().enter(py)?;
        let pool = match (elements, bytes) {
            (None, None) => hashmere_queue::Pool::open(&*store, name),
            (Some(elements), Some(bytes)) => {
                let mut options = PoolOptions::new(elements, bytes);
                options = max_queues.map_or(options, |queues| options.max_queues(queues));
                options = max_endpoints.map_or(options, |endpoints| options.max_endpoints(endpoints));
                options = batch.map_or(options, |batch| options.batch(batch));
                options = on_death.map_or(options, |name| options.on_death(OnDeath::Queue(for_ever(name))));
                options.open(&*store, name)
            }
            _ => return Err(PyValueError::new_err("give elements and bytes, or none of them")),
        };
        Ok(Pool { pool: pool.or_raise_queue(py)? })
    }

    /// Takes a pool's name off it; whether there was one.
    #[staticmethod]
    #[pyo3(signature = (store, name, /))]
    fn remove(py: Python<'_>, store: &Bound<'_, StoreBase>, name: &str) -> PyResult<bool> {
        let store = store.get().enter(py)?;
        hashmere_queue::Pool::remove(&*store, name).or_raise_queue(py)
    }

    /// The names of the pools of a store.
    #[staticmethod]
    #[pyo3(signature = (store, /))]
    fn list(py: Python<'_>, store: &Bound<'_, StoreBase>) -> PyResult<Vec<String>> {
        let store = store.get().enter(py)?;
        Ok(hashmere_queue::Pool::list(&*store))
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.pool.name()
    }

    /// How many elements it has.
    #[getter]
    fn elements(&self) -> u64 {
        self.pool.elements()
    }

    /// How many bytes each of them has.
    #[getter]
    fn element_bytes(&self) -> u64 {
        self.pool.element_bytes()
    }

    /// Whether its name was taken off it by ``remove``.
    #[getter]
    fn removed(&self) -> bool {
        self.pool.is_removed()
    }

    /// Its queues, ``free`` first.
    fn queues(&self) -> Vec<Queue> {
        self.pool.queues().into_iter().map(|queue| Queue { queue }).collect()
    }

    /// The queue in which all elements are at first.
    #[getter]
    fn free(&self) -> Queue {
        Queue { queue: self.pool.free().clone() }
    }

    /// A queue of this name; made if it is missing. ``kind`` is ``"mpmc"``, ``"mpsc"`` or ``"spsc"``.
    #[pyo3(signature = (name, /, *, kind=None, bound=None))]
    fn queue(&self, py: Python<'_>, name: &str, kind: Option<&str>, bound: Option<u64>) -> PyResult<Queue> {
        let mut options = QueueOptions::new();
        if let Some(kind) = kind {
            options = options.kind(kind_of(kind)?);
        }
        options = bound.map_or(options, |bound| options.bound(bound));
        Ok(Queue { queue: self.pool.queue_with(name, options).or_raise_queue(py)? })
    }

    /// Takes part: one for each thread.
    fn endpoint(&self, py: Python<'_>) -> PyResult<Endpoint> {
        Ok(Endpoint::new(self.pool.endpoint().or_raise_queue(py)?))
    }

    /// Gives back what crashed processes held; how many elements. Pops from empty queues and waits do this by
    /// themselves.
    fn recover(&self, py: Python<'_>) -> PyResult<u64> {
        self.pool.recover().or_raise_queue(py)
    }

    /// Figures of about now; ``queues`` is a list of dicts.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.pool.stats();
        let dict = PyDict::new(py);
        dict.set_item("elements", stats.elements)?;
        dict.set_item("bytes", stats.element_bytes)?;
        dict.set_item("bytes_all", stats.bytes)?;
        dict.set_item("endpoints", stats.endpoints)?;
        dict.set_item("max_endpoints", stats.max_endpoints)?;
        let queues = stats.queues.iter().map(|queue| queue_stats(py, queue)).collect::<PyResult<Vec<_>>>()?;
        dict.set_item("queues", PyList::new(py, queues)?)?;
        dict.set_item("max_queues", stats.max_queues)?;
        dict.set_item("held", stats.held)?;
        dict.set_item("recovered", stats.recovered)?;
        Ok(dict)
    }
}

fn queue_stats<'py>(py: Python<'py>, stats: &QueueStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &stats.name)?;
    dict.set_item("kind", kind_name(stats.kind))?;
    dict.set_item("bound", stats.bound)?;
    dict.set_item("len", stats.len)?;
    dict.set_item("pushed", stats.pushed)?;
    dict.set_item("has_sleepers", stats.has_sleepers)?;
    Ok(dict)
}

/// A queue of a pool; any number of threads may use it.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Queue {
    /// The queue.
    pub queue: hashmere_queue::Queue,
}

#[pymethods]
impl Queue {
    fn __len__(&self) -> usize {
        self.queue.len() as usize
    }
    fn __bool__(&self) -> bool {
        true
    }
    /// Its name.
    #[getter]
    fn name(&self) -> String {
        self.queue.name()
    }
    /// ``"mpmc"``, ``"mpsc"`` or ``"spsc"``.
    #[getter]
    fn kind(&self) -> &'static str {
        kind_name(self.queue.kind())
    }

    /// The most elements that it takes.
    #[getter]
    fn bound(&self) -> u64 {
        self.queue.bound()
    }

    /// A copy of the first element's bytes, which stays where it is; ``None``: the queue is empty.
    fn peek<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.queue.peek().map(|bytes| PyBytes::new(py, &bytes))
    }

    /// A file descriptor for event loops (``select``, ``epoll``, ``asyncio``) that is readable when there is something
    /// to pop.
    fn ready_fd(&self, py: Python<'_>) -> PyResult<ReadyFd> {
        let ready_fd = self.queue.ready_fd().or_raise_queue(py)?;
        Ok(ReadyFd { ready_fd: Mutex::new(Some(ready_fd)) })
    }
}

/// Readable when a queue has something to pop. Wait until it is, ``acknowledge``, pop as much as you like, and wait
/// again; if something is left it is readable at once. A thread of this process serves it until ``close``; it has no
/// part in a forked child.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct ReadyFd {
    ready_fd: Mutex<Option<hashmere_queue::ReadyFd>>,
}

impl ReadyFd {
    fn with<T>(&self, py: Python<'_>, f: impl FnOnce(&hashmere_queue::ReadyFd) -> T) -> PyResult<T> {
        let ready_fd = self.ready_fd.lock().unwrap_or_else(PoisonError::into_inner);
        ready_fd
            .as_ref()
            .map(f)
            .ok_or_else(|| gone(py, "the ready_fd of the queue was closed; make another one with queue.ready_fd()"))
    }
}

#[pymethods]
impl ReadyFd {
    /// The descriptor, which belongs to this object.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        self.with(py, AsRawFd::as_raw_fd)
    }

    /// Takes the event back. Call it before popping.
    fn acknowledge(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, hashmere_queue::ReadyFd::acknowledge)
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        let ready_fd = self.ready_fd.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(ready_fd));
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.ready_fd.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }
}
