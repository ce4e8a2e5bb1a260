//! Values in place in the file, as buffers.

use crate::error::OrRaise;
use crate::item::seconds;
use crate::key::Key;
use crate::raw::{self, slot};
use crate::store::StoreBase;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// What a `memoryview` of a value leads to; it holds the pin. The class that Python sees is `View`, made of it below.
#[pyclass(frozen, subclass, module = "hashmere._hashmere")]
pub struct ViewBase {
    /// Set once, by `Store.view`.
    view: OnceLock<hashmere::View>,
}

impl ViewBase {
    fn view(&self) -> PyResult<&hashmere::View> {
        self.view.get().ok_or_else(|| PyTypeError::new_err("a view is made by Store.view"))
    }
}

#[pymethods]
impl ViewBase {
    #[new]
    fn new() -> ViewBase {
        ViewBase { view: OnceLock::new() }
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.view()?.len())
    }

    /// Whether it looks into the file, rather than being a copy.
    #[getter]
    fn zero_copy(&self) -> PyResult<bool> {
        Ok(self.view()?.is_zero_copy())
    }

    /// Whether the key still has this value: mostly one load, and never a look-up. A touch is no change.
    fn is_up_to_date(&self, py: Python<'_>) -> PyResult<bool> {
        self.view()?.is_up_to_date().or_raise(py)
    }

    /// The version of the value.
    #[getter]
    fn version(&self) -> PyResult<u64> {
        Ok(self.view()?.metadata().version.0)
    }

    /// The flags of the value.
    #[getter]
    fn flags(&self) -> PyResult<u32> {
        Ok(self.view()?.metadata().flags)
    }

    /// When it expires, in seconds since 1970, if at all.
    #[getter]
    fn expires_at(&self) -> PyResult<Option<f64>> {
        Ok(seconds(self.view()?.metadata().expires_at_ms))
    }
}

#[pymethods]
impl StoreBase {
    /// The value of a key as a read-only ``memoryview``, without a copy; ``None``: absent.
    ///
    /// It stays as it is for as long as anything uses it, also when the key is overwritten or deleted and when the
    /// store is closed: release it (``with``, ``release()``, or let go of it) so that the room can be reused. Its
    /// ``obj`` tells version and flags. A process can hold views into 24 segments for each of its threads; further
    /// ones, and those of values of at most 8 bytes, are copies.
    #[pyo3(signature = (key, /))]
    fn view<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(view) = self.enter(py)?.view(key.0).or_raise(py)? else { return Ok(None) };
        let object = make(py)?.call0()?;
        // What was set is ours: no other code has seen the object.
        let _ = object.cast::<ViewBase>()?.get().view.set(view);
        // SAFETY: a live object; the result is a new reference or null with an error set.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromObject(object.as_ptr())) }.map(Some)
    }
}

/// `bf_getbuffer`
unsafe extern "C" fn export(this: *mut ffi::PyObject, buffer: *mut raw::Buffer, flags: c_int) -> c_int {
    // SAFETY: Python calls the slot of a type with its instances, and is attached.
    let object = unsafe { Bound::ref_from_ptr(Python::assume_attached(), &this).cast_unchecked::<ViewBase>() };
    let Some(view) = object.get().view.get() else {
        Python::attach(|py| PyBufferError::new_err("a view is made by Store.view").restore(py));
        return -1;
    };
    let at = view.as_ptr().cast_mut().cast::<c_void>();
    // SAFETY: the bytes stay as they are while the view lives. The buffer holds a reference to the object, and the
    // object the view. Read-only, so no code writes through the pointer.
    unsafe { raw::PyBuffer_FillInfo(buffer, this, at, view.len() as ffi::Py_ssize_t, 1, flags) }
}

static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The type with the buffer slot.
pub fn make<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyType>> {
    let make = || {
        let slots = vec![
            ffi::PyType_Slot { slot: slot::GET_BUFFER, pfunc: export as *mut _ },
            ffi::PyType_Slot {
                slot: slot::DOC,
                pfunc: c"The object behind a memoryview of a value.".as_ptr().cast_mut().cast(),
            },
        ];
        raw::subtype(&py.get_type::<ViewBase>(), c"hashmere._hashmere.View", slots).map(Bound::unbind)
    };
    Ok(CLASS.get_or_try_init(py, make)?.bind(py))
}
