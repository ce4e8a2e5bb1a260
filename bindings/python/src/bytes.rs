//! Bytes as they come from Python, and values.

use crate::raw;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ops::Deref;

/// Bytes of an argument. Borrowed from `bytes` and `str` (whose UTF-8 Python keeps), exported by anything else.
pub enum Bytes<'a> {
    /// Never changes, so the interpreter may be let go of while it is read.
    Fixed(&'a [u8]),
    /// A buffer such as a `bytearray`.
    Exported(Exported),
}

/// An exported buffer; its owner cannot resize it until it is released.
pub struct Exported(Box<raw::Buffer>);

impl Drop for Exported {
    fn drop(&mut self) {
        // SAFETY: it was filled by `PyObject_GetBuffer`, and the interpreter is attached wherever arguments are
        // dropped.
        unsafe { raw::PyBuffer_Release(&mut *self.0) }
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Fixed(bytes) => bytes,
            Bytes::Exported(Exported(buffer)) if buffer.len == 0 => &[],
            // SAFETY: contiguous, and exported for as long as we live.
            Bytes::Exported(Exported(buffer)) => unsafe {
                std::slice::from_raw_parts(buffer.at.cast::<u8>(), buffer.len as usize)
            },
        }
    }
}

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// The bytes of a `bytes` or `str`. `None`: it is neither, or it is a text without UTF-8, and then an error is set.
///
/// # Safety
/// The interpreter is attached, and the object outlives what is returned.
#[inline(always)]
pub unsafe fn fixed<'a>(object: *mut ffi::PyObject) -> Option<&'a [u8]> {
    // SAFETY: an object that the caller holds.
    unsafe {
        let class = ffi::Py_TYPE(object);
        let is = |exact: *mut ffi::PyTypeObject| class == exact;
        if is(&raw mut ffi::PyBytes_Type) || (!is(&raw mut ffi::PyUnicode_Type) && ffi::PyBytes_Check(object) != 0) {
            let (mut at, mut len) = (std::ptr::null_mut(), 0);
            ffi::PyBytes_AsStringAndSize(object, &mut at, &mut len);
            return Some(std::slice::from_raw_parts(at.cast::<u8>(), len as usize));
        }
        if is(&raw mut ffi::PyUnicode_Type) || ffi::PyUnicode_Check(object) != 0 {
            let mut len = 0;
            let at = raw::PyUnicode_AsUTF8AndSize(object, &mut len);
            return (!at.is_null()).then(|| std::slice::from_raw_parts(at.cast::<u8>(), len as usize));
        }
        None
    }
}

/// What a value may be.
const VALUE: &str = "a value must be bytes, str or an object with the buffer protocol";

/// The error for an object that [`fixed`] refused.
#[cold]
pub fn refused(object: &Bound<'_, PyAny>, must: &str) -> PyErr {
    if let Some(error) = PyErr::take(object.py()) {
        return error;
    }
    let name = object.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
    let given = if object.is_none() { "None".into() } else { name };
    PyTypeError::new_err(format!("{must}, not {given}"))
}

/// The bytes of a value.
pub fn value<'a>(object: Borrowed<'a, '_, PyAny>) -> PyResult<Bytes<'a>> {
    // SAFETY: borrowed for 'a.
    if let Some(bytes) = unsafe { fixed(object.as_ptr()) } {
        return Ok(Bytes::Fixed(bytes));
    }
    if PyErr::occurred(object.py()) {
        return Err(PyErr::fetch(object.py()));
    }
    let mut buffer = Box::new(raw::Buffer::empty());
    // SAFETY: the object is alive, and the buffer stays where it is until it is released.
    if unsafe { raw::PyObject_GetBuffer(object.as_ptr(), &mut *buffer, 0) } == 0 {
        return Ok(Bytes::Exported(Exported(buffer)));
    }
    let error = PyErr::take(object.py());
    match error {
        // A buffer that is not contiguous, or a released memoryview: its own words are the best.
        Some(error) if !error.is_instance_of::<PyTypeError>(object.py()) => Err(error),
        _ => Err(refused(&object, VALUE)),
    }
}

/// A value argument.
pub struct Value<'a>(pub Bytes<'a>);

impl<'a, 'py> FromPyObject<'a, 'py> for Value<'a> {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Value<'a>> {
        value(object).map(Value)
    }
}
