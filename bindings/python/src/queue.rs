//! Queues between processes, and waiting for keys. The library lets other Python threads run while it sleeps.

use crate::bytes::{Key, Value};
use crate::error::QueueResult;
use crate::store::StoreBase;
use hashmere::{Store, Version};
use hashmere_queue::{Element as Held, Hand as Grip, Kind, OnDeath, PoolOptions, QueueOptions};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::time::{Duration, Instant};

/// How long a signal may have to wait.
const SLICE: Duration = Duration::from_millis(50);

fn seconds(timeout: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(timeout)
        .map_err(|_| PyValueError::new_err(format!("timeout must be a number of seconds from 0 on, and is {timeout}")))
}

/// Waits in slices, between which signals are heard.
fn in_slices<T>(
    py: Python<'_>,
    timeout: f64,
    mut wait: impl FnMut(Duration) -> PyResult<Option<T>>,
) -> PyResult<Option<T>> {
    let end = Instant::now().checked_add(seconds(timeout)?);
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

#[pymethods]
impl StoreBase {
    /// Waits until a key has another version than ``seen`` (``None``: it was absent), in whatever process it is changed. Returns its
    /// version then, 0 if it is absent; ``None``: the time is up.
    #[pyo3(signature = (key, seen, /, *, timeout))]
    fn wait(&self, py: Python<'_>, key: Key<'_>, seen: Option<u64>, timeout: f64) -> PyResult<Option<u64>> {
        let store = self.enter(py)?;
        let store: &Store = &store;
        let seen = seen.filter(|seen| *seen != 0).map(Version);
        in_slices(py, timeout, |slice| {
            let now = store.wait(key.0, seen, slice).map_err(|error| crate::error::raised(py, error))?;
            Ok(now.map(|version| version.map_or(0, |version| version.0)))
        })
    }
}

/// So many elements of so many bytes in a store's file, and named queues between which they move by reference.
///
/// What a process held when it died goes back where it came from. After a fork open it anew in the child.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Pool {
    pool: hashmere_queue::Pool,
}

#[pymethods]
impl Pool {
    /// Opens a pool; creates it if ``elements`` and ``bytes`` are given and it is missing. ``recycle``: elements of the dead go to
    /// ``free`` and not to where they were pulled from.
    #[new]
    #[pyo3(signature = (store, name, /, *, elements=None, bytes=None, queues=None, hands=None, batch=None, recycle=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        store: &Bound<'_, StoreBase>,
        name: &str,
        elements: Option<u64>,
        bytes: Option<u64>,
        queues: Option<u64>,
        hands: Option<u64>,
        batch: Option<u64>,
        recycle: bool,
    ) -> PyResult<Pool> {
        let store = store.get().enter(py)?;
        let pool = match (elements, bytes) {
            (None, None) => hashmere_queue::Pool::open(&store, name),
            (Some(elements), Some(bytes)) => {
                let mut options = PoolOptions::new(elements, bytes);
                options = queues.map_or(options, |queues| options.queues(queues));
                options = hands.map_or(options, |hands| options.hands(hands));
                options = batch.map_or(options, |batch| options.batch(batch));
                options = if recycle { options.on_death(OnDeath::Queue("free")) } else { options };
                options.open(&store, name)
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
        hashmere_queue::Pool::remove(&store, name).or_raise_queue(py)
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
        options = match kind {
            None => options,
            Some("mpmc") => options.kind(Kind::Mpmc),
            Some("mpsc") => options.kind(Kind::Mpsc),
            Some("spsc") => options.kind(Kind::Spsc),
            Some(_) => return Err(PyValueError::new_err("kind must be \"mpmc\", \"mpsc\" or \"spsc\"")),
        };
        options = bound.map_or(options, |bound| options.bound(bound));
        Ok(Queue { queue: self.pool.queue_with(name, options).or_raise_queue(py)? })
    }

    /// Takes part: one for each thread.
    fn hand(&self, py: Python<'_>) -> PyResult<Hand> {
        let hand = Box::new(self.pool.hand().or_raise_queue(py)?);
        Ok(Hand { held: Vec::new(), hand: Some(hand) })
    }

    /// Gives back what the dead held; how many elements. Pulls from empty queues and waits do this by themselves.
    fn recover(&self, py: Python<'_>) -> PyResult<u64> {
        self.pool.recover().or_raise_queue(py)
    }

    /// Figures of about now.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.pool.stats();
        let dict = PyDict::new(py);
        dict.set_item("elements", stats.elements)?;
        dict.set_item("bytes", stats.element_bytes)?;
        dict.set_item("bytes_all", stats.bytes)?;
        dict.set_item("hands", stats.hands)?;
        dict.set_item("hands_max", stats.hands_max)?;
        dict.set_item("queues", stats.queues.len())?;
        dict.set_item("queues_max", stats.queues_max)?;
        dict.set_item("held", stats.held)?;
        dict.set_item("recovered", stats.recovered)?;
        Ok(dict)
    }
}

/// A queue of a pool; any number of threads may use it.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Queue {
    queue: hashmere_queue::Queue,
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
}

/// What one thread takes part with. It holds up to 64 elements; those that are not pushed stay with it until it is closed.
#[pyclass(unsendable, module = "hashmere._hashmere")]
pub struct Hand {
    /// Borrow from `hand`; dropped first, as fields are dropped in order.
    held: Vec<Option<Held<'static>>>,
    hand: Option<Box<Grip>>,
}

impl Hand {
    fn grip(&self, py: Python<'_>) -> PyResult<&'static Grip> {
        let hand = self.hand.as_deref().ok_or_else(|| crate::error::closed(py))?;
        // SAFETY: it stands in a box that does not move, and is dropped after all that borrows it.
        Ok(unsafe { &*std::ptr::from_ref(hand) })
    }

    fn keep(&mut self, element: Held<'static>) -> usize {
        match self.held.iter().position(Option::is_none) {
            Some(place) => {
                self.held[place] = Some(element);
                place
            }
            None => {
                self.held.push(Some(element));
                self.held.len() - 1
            }
        }
    }
}

#[pymethods]
impl Hand {
    /// Takes the first element of a queue, and waits for one as many seconds as ``timeout`` says; ``None``: none came.
    #[pyo3(signature = (queue, /, *, timeout=0.0))]
    fn pull(slf: &Bound<'_, Self>, queue: &Bound<'_, Queue>, timeout: f64) -> PyResult<Option<Element>> {
        let py = slf.py();
        // Borrowed for as long as it waits: a signal handler cannot close it meanwhile.
        let hand = slf.borrow();
        let (grip, from) = (hand.grip(py)?, &queue.get().queue);
        let pulled = match grip.pull(from).or_raise_queue(py)? {
            None if timeout != 0.0 => in_slices(py, timeout, |slice| grip.pull_wait(from, slice).or_raise_queue(py))?,
            pulled => pulled,
        };
        let Some(element) = pulled else { return Ok(None) };
        let number = element.number();
        drop(hand);
        let place = slf.borrow_mut().keep(element);
        Ok(Some(Element { hand: slf.clone().unbind(), place, number, is_held: true }))
    }

    /// Gives back all that it holds.
    fn close(&mut self) {
        self.held.clear();
        self.hand = None;
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    #[pyo3(signature = (*_exception))]
    fn __exit__(&mut self, _exception: &Bound<'_, PyAny>) {
        self.close();
    }
}

/// An element that a hand holds, until it is pushed.
#[pyclass(unsendable, module = "hashmere._hashmere")]
pub struct Element {
    hand: Py<Hand>,
    place: usize,
    number: u32,
    is_held: bool,
}

impl Element {
    fn with<T>(&self, py: Python<'_>, f: impl FnOnce(&mut Held<'static>) -> PyResult<T>) -> PyResult<T> {
        let mut hand = self.hand.borrow_mut(py);
        let held = hand.held.get_mut(self.place).and_then(Option::as_mut).filter(|_| self.is_held);
        f(held.ok_or_else(|| crate::error::closed(py))?)
    }

    fn take(&mut self, py: Python<'_>) -> PyResult<Held<'static>> {
        let held = self.hand.borrow_mut(py).held.get_mut(self.place).filter(|_| self.is_held).and_then(Option::take);
        self.is_held = false;
        held.ok_or_else(|| crate::error::closed(py))
    }
}

fn range(start: usize, count: usize, len: usize) -> PyResult<std::ops::Range<usize>> {
    match start.checked_add(count).filter(|end| *end <= len) {
        Some(end) => Ok(start..end),
        None => Err(PyIndexError::new_err(format!("{count} bytes from {start} on of an element of {len}"))),
    }
}

#[pymethods]
impl Element {
    /// Puts it at the end of a queue. ``False``: that has reached its bound, and the hand still holds it.
    #[pyo3(signature = (queue, /))]
    fn push(&mut self, py: Python<'_>, queue: &Bound<'_, Queue>) -> PyResult<bool> {
        let held = self.take(py)?;
        let back = held.push(&queue.get().queue).or_raise_queue(py)?;
        let Some(back) = back else { return Ok(true) };
        self.place = self.hand.borrow_mut(py).keep(back);
        self.is_held = true;
        Ok(false)
    }

    /// Puts it back where it came from.
    fn give_back(&mut self, py: Python<'_>) -> PyResult<()> {
        self.take(py).map(drop)
    }

    /// A copy of its bytes, or of ``count`` of them.
    #[pyo3(signature = (start=0, count=None, /))]
    fn read<'py>(&self, py: Python<'py>, start: usize, count: Option<usize>) -> PyResult<Bound<'py, PyBytes>> {
        self.with(py, |held| {
            let all: &[u8] = held;
            let range = range(start, count.unwrap_or(all.len().saturating_sub(start)), all.len())?;
            Ok(PyBytes::new(py, &all[range]))
        })
    }

    /// Writes bytes into it.
    #[pyo3(signature = (start, bytes, /))]
    fn write(&self, py: Python<'_>, start: usize, bytes: Value<'_>) -> PyResult<()> {
        let bytes: &[u8] = &bytes.0;
        self.with(py, |held| {
            let range = range(start, bytes.len(), held.len())?;
            held[range].copy_from_slice(bytes);
            Ok(())
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |held| Ok(held.len()))
    }

    /// Its number in the pool, from 0.
    #[getter]
    fn number(&self) -> u32 {
        self.number
    }
}
