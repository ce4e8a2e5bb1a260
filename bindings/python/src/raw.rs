//! The C API beyond what PyO3 offers for a module that runs on every Python from 3.9 on, and types made by hand.
//!
//! The buffer protocol, `PyUnicode_AsUTF8AndSize` and `METH_FASTCALL` became part of the stable ABI in 3.10 and 3.11
//! without any change: 3.9 and 3.10 export the same functions with the same layouts and slot numbers, and these
//! versions are finished. Hence they are declared here and used on all of them; the tests run on the oldest and on the
//! newest.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use std::ffi::{c_char, c_int, c_void, CStr};

/// `Py_buffer`.
#[repr(C)]
pub struct Buffer {
    pub at: *mut c_void,
    owner: *mut ffi::PyObject,
    pub len: ffi::Py_ssize_t,
    item_bytes: ffi::Py_ssize_t,
    readonly: c_int,
    dimensions: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

impl Buffer {
    /// Zeroes, to be filled by `PyObject_GetBuffer`.
    pub fn empty() -> Buffer {
        // SAFETY: numbers and pointers may be zero.
        unsafe { std::mem::zeroed() }
    }
}

#[allow(clashing_extern_declarations)] // PyO3 declares some of them when built for one version
extern "C" {
    /// Contiguous bytes if `flags` is 0.
    pub fn PyObject_GetBuffer(object: *mut ffi::PyObject, buffer: *mut Buffer, flags: c_int) -> c_int;
    pub fn PyBuffer_Release(buffer: *mut Buffer);
    pub fn PyBuffer_FillInfo(
        buffer: *mut Buffer,
        owner: *mut ffi::PyObject,
        at: *mut c_void,
        len: ffi::Py_ssize_t,
        readonly: c_int,
        flags: c_int,
    ) -> c_int;
    pub fn PyUnicode_AsUTF8AndSize(text: *mut ffi::PyObject, len: *mut ffi::Py_ssize_t) -> *const c_char;
    pub fn PyGILState_Check() -> c_int;
}

/// Slot numbers of `typeslots.h`.
pub mod slot {
    use std::ffi::c_int;
    pub const GET_BUFFER: c_int = 1;
    pub const RELEASE_BUFFER: c_int = 2;
    pub const ASS_SUBSCRIPT: c_int = 3;
    pub const SUBSCRIPT: c_int = 5;
    pub const CONTAINS: c_int = 41;
    pub const DOC: c_int = 56;
    pub const METHODS: c_int = 64;
}

/// Positional arguments in an array; with [`KEYWORDS`](ffi::METH_KEYWORDS) the names of the rest as a tuple behind.
pub const FASTCALL: c_int = 0x80;

/// The C signature of a method without keywords.
pub type Fast =
    unsafe extern "C" fn(*mut ffi::PyObject, *const *mut ffi::PyObject, ffi::Py_ssize_t) -> *mut ffi::PyObject;
/// The C signature of a method with keywords.
pub type FastKeywords = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// An entry of a method table.
pub fn method(name: &'static CStr, call: Fast, doc: &'static CStr) -> ffi::PyMethodDef {
    // SAFETY: the flags say which signature it is called with.
    let call = unsafe { std::mem::transmute::<Fast, ffi::PyCFunction>(call) };
    entry(name, call, FASTCALL, doc)
}

/// An entry of a method table, with keywords.
pub fn method_with_keywords(name: &'static CStr, call: FastKeywords, doc: &'static CStr) -> ffi::PyMethodDef {
    // SAFETY: as above.
    let call = unsafe { std::mem::transmute::<FastKeywords, ffi::PyCFunction>(call) };
    entry(name, call, FASTCALL | ffi::METH_KEYWORDS, doc)
}

fn entry(name: &'static CStr, call: ffi::PyCFunction, flags: c_int, doc: &'static CStr) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: call },
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    }
}

/// `bf_getbuffer` and `bf_releasebuffer`.
pub type GetBuffer = unsafe extern "C" fn(*mut ffi::PyObject, *mut Buffer, c_int) -> c_int;
/// See [`GetBuffer`].
pub type ReleaseBuffer = unsafe extern "C" fn(*mut ffi::PyObject, *mut Buffer);

/// A subtype of a PyO3 class whose instances have a buffer.
pub fn with_buffer<'py>(
    base: &Bound<'py, PyType>,
    name: &'static CStr,
    doc: &'static CStr,
    get: GetBuffer,
    release: ReleaseBuffer,
) -> PyResult<Bound<'py, PyType>> {
    let slots = vec![
        ffi::PyType_Slot { slot: slot::GET_BUFFER, pfunc: get as *mut _ },
        ffi::PyType_Slot { slot: slot::RELEASE_BUFFER, pfunc: release as *mut _ },
        ffi::PyType_Slot { slot: slot::DOC, pfunc: doc.as_ptr().cast_mut().cast() },
    ];
    subtype(base, name, slots)
}

/// A subtype of a PyO3 class with slots of our own. Its instances are the base's, and it can be subclassed.
pub fn subtype<'py>(
    base: &Bound<'py, PyType>,
    name: &'static CStr,
    mut slots: Vec<ffi::PyType_Slot>,
) -> PyResult<Bound<'py, PyType>> {
    slots.push(ffi::PyType_Slot { slot: 0, pfunc: std::ptr::null_mut() });
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: 0,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as _,
        slots: slots.as_mut_ptr(),
    };
    let bases = PyTuple::new(base.py(), [base])?;
    // SAFETY: name and documentation are static; the type copies the slots, and its table of methods is leaked by the
    // caller.
    let made = unsafe { ffi::PyType_FromSpecWithBases(&mut spec, bases.as_ptr()) };
    // SAFETY: a new reference, or null with an error set.
    let made = unsafe { Bound::from_owned_ptr_or_err(base.py(), made) }?;
    Ok(made.cast_into::<PyType>()?)
}
