//! Values written in place in the file, before any reader sees them.

use crate::attributes::given;
use crate::error::{misuse, OrRaise};
use crate::key::Key;
use crate::raw;
use crate::store::StoreBase;
use hashmere::Store;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMemoryView, PyType};
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Room for a value, with the handle that it belongs to.
struct Room {
    /// Borrows from what `store` holds, and goes first.
    room: hashmere::Reservation<'static>,
    store: Store,
    /// It has a writer of this thread.
    thread: ThreadId,
    at: *mut u8,
    len: usize,
}

// SAFETY: `room` is used and dropped on its own thread only: see `ReservationBase::take`, and `drop`, which forgets it
// elsewhere. The rest may go anywhere.
unsafe impl Send for Room {}

#[derive(Default)]
struct State {
    room: Option<Room>,
    /// Buffers that were handed out.
    exports: usize,
    /// The one that `with` handed out.
    entered: Option<Py<PyAny>>,
}

/// What `Store.reserve` returns. The class that Python sees is `Reservation`, made of it below.
#[pyclass(frozen, subclass, module = "hashmere._hashmere")]
#[derive(Default)]
pub struct ReservationBase {
    state: Mutex<State>,
}

impl ReservationBase {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The room, to be committed or given up by its own thread, when no buffer of it is in use any more.
    fn take(&self, py: Python<'_>) -> PyResult<Room> {
        let mut state = self.lock();
        if state.exports > 0 {
            return Err(PyBufferError::new_err("a buffer of the reservation is still in use; release it first"));
        }
        match &state.room {
            None => Err(misuse(py, "the reservation was committed or abandoned before")),
            Some(room) if room.thread != thread::current().id() => {
                Err(misuse(py, "a reservation belongs to the thread that made it"))
            }
            Some(_) => state.room.take().ok_or_else(|| misuse(py, "there is no room")),
        }
    }
}

impl Drop for ReservationBase {
    fn drop(&mut self) {
        let room = self.lock().room.take();
        if let Some(room) = room.filter(|room| room.thread != thread::current().id()) {
            // Its writer stays taken: better than to touch it from here.
            std::mem::forget(room);
        }
    }
}

#[pymethods]
impl ReservationBase {
    #[new]
    fn new() -> ReservationBase {
        ReservationBase::default()
    }

    fn __len__(&self) -> usize {
        self.lock().room.as_ref().map_or(0, |room| room.len)
    }

    /// Makes what was written the value of the key, and returns its version.
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        let Room { room, store, .. } = self.take(py)?;
        let stored = room.commit().or_raise(py);
        drop(store);
        Ok(stored?.version.0)
    }

    /// Gives the room up; the key is as it was.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        drop(self.take(py)?);
        Ok(())
    }

    fn __enter__<'py>(this: Bound<'py, ReservationBase>) -> PyResult<Bound<'py, PyAny>> {
        let buffer = PyMemoryView::from(&this)?.into_any();
        this.get().lock().entered = Some(buffer.clone().unbind());
        Ok(buffer)
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (error, traceback);
        let entered = self.lock().entered.take();
        if let Some(buffer) = entered {
            buffer.call_method0(py, "release")?;
        }
        if self.lock().room.is_none() {
            return Ok(());
        }
        if kind.is_some() {
            return self.abandon(py);
        }
        self.commit(py).map(|_| ())
    }
}

#[pymethods]
impl StoreBase {
    /// Room for a value of ``value_len`` bytes in the file, to be written in place. As ``with store.reserve(key, n) as
    /// room``: a writable ``memoryview``, and at the end the key's value; if the block raises, the key stays as it was.
    #[pyo3(signature = (key, value_len, /, *, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn reserve<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        value_len: u64,
        ttl: Option<&Bound<'_, PyAny>>,
        expires_at: Option<&Bound<'_, PyAny>>,
        flags: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let with = given(ttl, expires_at, flags)?;
        let object = make(py)?.call0()?;
        let store: Store = self.enter(py)?.clone();
        let mut room = store.reserve(key.0, value_len, with).or_raise(py)?;
        let (at, len) = (room.as_mut_ptr(), room.len());
        // SAFETY: what it borrows from lives as long as the last clone of the store, one of which we keep beside it, to
        // be dropped after it.
        let room: hashmere::Reservation<'static> = unsafe { std::mem::transmute(room) };
        object.cast::<ReservationBase>()?.get().lock().room =
            Some(Room { room, store, thread: thread::current().id(), at, len });
        Ok(object)
    }
}

/// # Safety
/// As Python calls slots: with an instance of the class, and attached.
unsafe fn base(this: &*mut ffi::PyObject) -> &ReservationBase {
    // SAFETY: the caller's word.
    unsafe { Bound::ref_from_ptr(Python::assume_attached(), this).cast_unchecked::<ReservationBase>() }.get()
}

/// `bf_getbuffer`
unsafe extern "C" fn export(this: *mut ffi::PyObject, buffer: *mut raw::Buffer, flags: c_int) -> c_int {
    // SAFETY: called by Python.
    let mut state = unsafe { base(&this) }.lock();
    let Some((at, len)) = state.room.as_ref().map(|room| (room.at, room.len)) else {
        drop(state);
        Python::attach(|py| PyBufferError::new_err("the reservation is not open").restore(py));
        return -1;
    };
    // SAFETY: the room is there until it is taken, which waits for the exports to end.
    let filled = unsafe { raw::PyBuffer_FillInfo(buffer, this, at.cast(), len as ffi::Py_ssize_t, 0, flags) };
    state.exports += usize::from(filled == 0);
    filled
}

/// `bf_releasebuffer`
unsafe extern "C" fn release(this: *mut ffi::PyObject, _buffer: *mut raw::Buffer) {
    // SAFETY: called by Python.
    unsafe { base(&this) }.lock().exports -= 1;
}

static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The type with the buffer slots.
pub fn make<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyType>> {
    let make = || {
        let doc = c"Room for a value, written in place: see ``Store.reserve``.";
        raw::with_buffer(&py.get_type::<ReservationBase>(), c"hashmere._hashmere.Reservation", doc, export, release)
            .map(Bound::unbind)
    };
    Ok(CLASS.get_or_try_init(py, make)?.bind(py))
}
