//! Endpoints, and the elements that they hold.

use crate::bytes::Value;
use crate::error::{gone, misuse, QueueResult};
use crate::pool::Queue;
use crate::room::{self, Exports};
use crate::wait::in_slices;
use hashmere_queue::{Element as Held, Endpoint as Inner};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

const CLOSED_HAND: &str = "the endpoint was closed; take another one with pool.endpoint()";
const NOT_HELD: &str =
    "the element is not held any more: it was pushed or given back, or its endpoint was closed; pop another one";

/// What one thread takes part with. It holds up to 64 elements that were popped one by one, or a batch; what is not
/// pushed stays with it until it is closed.
#[pyclass(unsendable, module = "hashmere._hashmere")]
pub struct Endpoint {
    /// Borrow from `endpoint`; dropped first, as fields are dropped in order.
    held: Vec<Option<Held<'static>>>,
    endpoint: Option<Box<Inner>>,
    /// Buffers of elements of the batch, and of all that it holds.
    batch_exports: Exports,
    exports: Exports,
}

impl Endpoint {
    /// An endpoint that holds nothing yet.
    pub fn new(endpoint: Inner) -> Endpoint {
        Endpoint {
            held: Vec::new(),
            endpoint: Some(Box::new(endpoint)),
            batch_exports: Exports::default(),
            exports: Exports::default(),
        }
    }

    fn inner(&self, py: Python<'_>) -> PyResult<&'static Inner> {
        let endpoint = self.endpoint.as_deref().ok_or_else(|| gone(py, CLOSED_HAND))?;
        // SAFETY: it is in a box that does not move, and is dropped after all that borrows it.
        Ok(unsafe { &*std::ptr::from_ref(endpoint) })
    }

    /// The endpoint for its batch: alone, as Rust wants it.
    fn whole(&mut self, py: Python<'_>) -> PyResult<&mut Inner> {
        if self.held.iter().any(Option::is_some) {
            return Err(misuse(
                py,
                "the endpoint holds elements that were popped alone; push them or give them back, or use another endpoint for batches",
            ));
        }
        self.endpoint.as_deref_mut().ok_or_else(|| gone(py, CLOSED_HAND))
    }

    /// The same, to move the batch.
    fn for_moves(&mut self, py: Python<'_>) -> PyResult<&mut Inner> {
        self.batch_exports.refuse()?;
        self.whole(py)
    }

    fn batch_element(&mut self, py: Python<'_>, index: u64) -> PyResult<&mut [u8]> {
        let inner = self.whole(py)?;
        let count = inner.batch_len();
        if index >= count {
            return Err(PyIndexError::new_err(format!("element {index} of a batch of {count}")));
        }
        Ok(inner.batch_mut(index))
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
impl Endpoint {
    /// Takes the first element of a queue, and waits for one as many seconds as ``timeout`` says, without end if it is
    /// ``None``. ``None``: none came.
    #[pyo3(signature = (queue, /, *, timeout=Some(0.0)), text_signature = "($self, queue, /, *, timeout=0.0)")]
    fn pop(slf: &Bound<'_, Self>, queue: &Bound<'_, Queue>, timeout: Option<f64>) -> PyResult<Option<Element>> {
        let py = slf.py();
        // Borrowed for as long as it waits: a signal handler cannot close it before.
        let endpoint = slf.borrow();
        let (inner, from) = (endpoint.inner(py)?, &queue.get().queue);
        let popped = match inner.pop(from).or_raise_queue(py)? {
            None if timeout != Some(0.0) => {
                in_slices(py, timeout, |slice| inner.pop_wait(from, slice).or_raise_queue(py))?
            }
            popped => popped,
        };
        let Some(element) = popped else { return Ok(None) };
        let index = element.index();
        drop(endpoint);
        let place = slf.borrow_mut().keep(element);
        Ok(Some(Element { endpoint: slf.clone().unbind(), place, index, is_held: true, exports: Exports::default() }))
    }

    /// Pushes an element to one queue and pops one from another: the step of a stage that passes on what it was given.
    /// Returns ``(pushed, element)``; if the first queue is full nothing was popped.
    #[pyo3(signature = (element, to, queue, /))]
    fn push_pop(
        slf: &Bound<'_, Self>,
        element: &Bound<'_, Element>,
        to: &Bound<'_, Queue>,
        queue: &Bound<'_, Queue>,
    ) -> PyResult<(bool, Option<Element>)> {
        if !element.borrow_mut().push(slf.py(), to)? {
            return Ok((false, None));
        }
        Ok((true, Endpoint::pop(slf, queue, Some(0.0))?))
    }

    /// Takes up to ``max`` elements in one operation, behind those of this endpoint's batch, and waits for some as
    /// ``pop`` does. Returns how many.
    #[pyo3(signature = (queue, max, /, *, timeout=Some(0.0)), text_signature = "($self, queue, max, /, *, timeout=0.0)")]
    fn pop_many(&mut self, py: Python<'_>, queue: &Bound<'_, Queue>, max: u64, timeout: Option<f64>) -> PyResult<u64> {
        let from = &queue.get().queue;
        let inner = self.for_moves(py)?;
        let mut popped = inner.pop_many(from, max).or_raise_queue(py)?;
        if popped == 0 && max > 0 && timeout != Some(0.0) {
            let some = in_slices(py, timeout, |slice| {
                if !inner.wait(from, slice).or_raise_queue(py)? {
                    return Ok(None);
                }
                Ok(Some(inner.pop_many(from, max).or_raise_queue(py)?).filter(|n| *n > 0))
            })?;
            popped = some.unwrap_or(0);
        }
        Ok(popped)
    }

    /// Pushes the first ``max`` elements of this endpoint's batch (all, without) in one operation, in their order.
    /// Returns how many: fewer if the queue reaches its bound.
    #[pyo3(signature = (queue, max=u64::MAX, /))]
    fn push_many(&mut self, py: Python<'_>, queue: &Bound<'_, Queue>, max: u64) -> PyResult<u64> {
        self.for_moves(py)?.push_many(&queue.get().queue, max).or_raise_queue(py)
    }

    /// Pushes the whole batch to one queue, as far as it takes it, then pops up to ``max`` from another. Returns how
    /// many of each.
    #[pyo3(signature = (to, queue, max, /))]
    fn push_pop_many(
        &mut self,
        py: Python<'_>,
        to: &Bound<'_, Queue>,
        queue: &Bound<'_, Queue>,
        max: u64,
    ) -> PyResult<(u64, u64)> {
        self.for_moves(py)?.push_pop_many(&to.get().queue, &queue.get().queue, max).or_raise_queue(py)
    }

    /// Moves everything that is in a queue now to another, by way of this endpoint's batch, which has to be empty.
    /// Returns how much that was.
    #[pyo3(signature = (queue, to, /))]
    fn drain(&mut self, py: Python<'_>, queue: &Bound<'_, Queue>, to: &Bound<'_, Queue>) -> PyResult<u64> {
        self.for_moves(py)?.drain(&queue.get().queue, &to.get().queue).or_raise_queue(py)
    }

    /// Elements of the batch.
    #[getter]
    fn batch_len(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.inner(py)?.batch_len())
    }

    /// A copy of the bytes of an element of the batch, or of ``count`` of them.
    #[pyo3(signature = (index, start=0, count=None, /))]
    fn batch_read<'py>(
        &mut self,
        py: Python<'py>,
        index: u64,
        start: usize,
        count: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        read(py, self.batch_element(py, index)?, start, count)
    }

    /// Writes bytes into an element of the batch.
    #[pyo3(signature = (index, start, bytes, /))]
    fn batch_write(&mut self, py: Python<'_>, index: u64, start: usize, bytes: Value<'_>) -> PyResult<()> {
        write(self.batch_element(py, index)?, start, &bytes.0)
    }

    /// An element of the batch as a writable ``memoryview``, without a copy. The batch cannot be moved while it is in
    /// use.
    #[pyo3(signature = (index, /))]
    fn batch_view<'py>(slf: &Bound<'py, Self>, index: u64) -> PyResult<Bound<'py, PyAny>> {
        let mut endpoint = slf.borrow_mut();
        let exports = [endpoint.batch_exports.clone(), endpoint.exports.clone()];
        room::view(slf.py(), endpoint.batch_element(slf.py(), index)?, exports, slf.clone().into_any().unbind())
    }

    /// Gives back all that it holds.
    fn close(&mut self) -> PyResult<()> {
        self.exports.refuse()?;
        self.held.clear();
        self.endpoint = None;
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    #[pyo3(signature = (*_exception))]
    fn __exit__(&mut self, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close()
    }
}

/// An element that an endpoint holds, until it is pushed.
#[pyclass(unsendable, module = "hashmere._hashmere")]
pub struct Element {
    endpoint: Py<Endpoint>,
    place: usize,
    index: u32,
    is_held: bool,
    exports: Exports,
}

impl Element {
    fn with<T>(&self, py: Python<'_>, f: impl FnOnce(&mut Held<'static>) -> PyResult<T>) -> PyResult<T> {
        let mut endpoint = self.endpoint.borrow_mut(py);
        let held = endpoint.held.get_mut(self.place).and_then(Option::as_mut).filter(|_| self.is_held);
        let held = held.ok_or_else(|| gone(py, NOT_HELD))?;
        f(held)
    }

    fn take(&mut self, py: Python<'_>) -> PyResult<Held<'static>> {
        self.exports.refuse()?;
        let held =
            self.endpoint.borrow_mut(py).held.get_mut(self.place).filter(|_| self.is_held).and_then(Option::take);
        self.is_held = false;
        held.ok_or_else(|| gone(py, NOT_HELD))
    }
}

fn range(start: usize, count: usize, len: usize) -> PyResult<std::ops::Range<usize>> {
    match start.checked_add(count).filter(|end| *end <= len) {
        Some(end) => Ok(start..end),
        None => Err(PyIndexError::new_err(format!("{count} bytes from {start} on of an element of {len}"))),
    }
}

fn read<'py>(py: Python<'py>, all: &[u8], start: usize, count: Option<usize>) -> PyResult<Bound<'py, PyBytes>> {
    let range = range(start, count.unwrap_or(all.len().saturating_sub(start)), all.len())?;
    Ok(PyBytes::new(py, &all[range]))
}

fn write(all: &mut [u8], start: usize, bytes: &[u8]) -> PyResult<()> {
    let range = range(start, bytes.len(), all.len())?;
    all[range].copy_from_slice(bytes);
    Ok(())
}

#[pymethods]
impl Element {
    /// Puts it at the end of a queue. ``False``: that has reached its bound, and the endpoint still holds it.
    #[pyo3(signature = (queue, /))]
    fn push(&mut self, py: Python<'_>, queue: &Bound<'_, Queue>) -> PyResult<bool> {
        let held = self.take(py)?;
        let back = held.push(&queue.get().queue).or_raise_queue(py)?;
        let Some(back) = back else { return Ok(true) };
        self.place = self.endpoint.borrow_mut(py).keep(back);
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
        self.with(py, |held| read(py, held, start, count))
    }

    /// Writes bytes into it.
    #[pyo3(signature = (start, bytes, /))]
    fn write(&self, py: Python<'_>, start: usize, bytes: Value<'_>) -> PyResult<()> {
        self.with(py, |held| write(held, start, &bytes.0))
    }

    /// Its bytes as a writable ``memoryview``, without a copy. It cannot be pushed while that is in use: ``with
    /// element.view() as room``.
    fn view<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let element = slf.borrow();
        let all = element.endpoint.borrow(py).exports.clone();
        let exports = [element.exports.clone(), all];
        element.with(py, |held| room::view(py, held, exports, slf.clone().into_any().unbind()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |held| Ok(held.len()))
    }

    /// Its index in the pool, from 0.
    #[getter]
    fn index(&self) -> u32 {
        self.index
    }
}
