//! Bytes of an element as a writable `memoryview`, while an endpoint holds it.

use crate::raw;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// How many buffers there are of something that must stay in the endpoint for as long.
#[derive(Clone, Default)]
pub struct Exports(Arc<AtomicUsize>);

impl Exports {
    /// Refuses to go on while there are any.
    pub fn refuse(&self) -> PyResult<()> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(PyBufferError::new_err("a memoryview of the element is still in use; release it first")),
        }
    }
}

struct Bytes {
    at: *mut u8,
    len: usize,
    /// Of the element or the batch, and of the whole endpoint.
    exports: [Exports; 2],
    /// Keeps the endpoint alive.
    _owner: Py<PyAny>,
}

// SAFETY: the pointer is used through the memoryviews of it, as with every writable buffer; the rest may go anywhere.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

/// What a `memoryview` of an element leads to. The class that Python sees is `Room`, made of it below.
#[pyclass(frozen, subclass, module = "hashmere._hashmere")]
#[derive(Default)]
pub struct RoomBase(OnceLock<Bytes>);

#[pymethods]
impl RoomBase {
    #[new]
    fn new() -> RoomBase {
        RoomBase::default()
    }

    fn __len__(&self) -> usize {
        self.0.get().map_or(0, |bytes| bytes.len)
    }
}

/// A writable `memoryview` of bytes that stay where they are, and the owner's, until both counts are back to what they
/// were.
pub fn view<'py>(
    py: Python<'py>,
    bytes: &mut [u8],
    exports: [Exports; 2],
    owner: Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let object = make(py)?.call0()?;
    // What was set is ours: no other code has seen the object.
    let _ = object.cast::<RoomBase>()?.get().0.set(Bytes {
        at: bytes.as_mut_ptr(),
        len: bytes.len(),
        exports,
        _owner: owner,
    });
    // SAFETY: a live object; the result is a new reference or null with an error set.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromObject(object.as_ptr())) }
}

/// # Safety
/// As Python calls slots: with an instance of the class, and attached.
unsafe fn base(this: &*mut ffi::PyObject) -> Option<&Bytes> {
    // SAFETY: the caller's word.
    unsafe { Bound::ref_from_ptr(Python::assume_attached(), this).cast_unchecked::<RoomBase>() }.get().0.get()
}

/// `bf_getbuffer`
unsafe extern "C" fn export(this: *mut ffi::PyObject, buffer: *mut raw::Buffer, flags: c_int) -> c_int {
    // SAFETY: called by Python.
    let Some(bytes) = (unsafe { base(&this) }) else {
        Python::attach(|py| PyBufferError::new_err("this is made by Element.view").restore(py));
        return -1;
    };
    // SAFETY: the bytes are the endpoint's for as long as the counts say so, and the buffer holds a reference to what
    // keeps the endpoint.
    let filled =
        unsafe { raw::PyBuffer_FillInfo(buffer, this, bytes.at.cast(), bytes.len as ffi::Py_ssize_t, 0, flags) };
    for exports in &bytes.exports {
        exports.0.fetch_add(usize::from(filled == 0), Ordering::Relaxed);
    }
    filled
}

/// `bf_releasebuffer`
unsafe extern "C" fn release(this: *mut ffi::PyObject, _buffer: *mut raw::Buffer) {
    // SAFETY: called by Python.
    for exports in unsafe { base(&this) }.into_iter().flat_map(|bytes| &bytes.exports) {
        exports.0.fetch_sub(1, Ordering::Relaxed);
    }
}

static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The type with the buffer slots.
pub fn make<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyType>> {
    let make = || {
        let doc = c"The object behind a memoryview of an element.";
        raw::with_buffer(&py.get_type::<RoomBase>(), c"hashmere._hashmere.Room", doc, export, release)
            .map(Bound::unbind)
    };
    Ok(CLASS.get_or_try_init(py, make)?.bind(py))
}
