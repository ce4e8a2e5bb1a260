//! The operations that take a tenth of a microsecond: slots and methods that Python calls without a tuple of arguments,
//! and that go from the record to the object with one copy.
//!
//! They hold the interpreter: letting go of it costs more than they do. Values that take longer than that to copy are
//! copied without it, and so is every wait for a lock (`handle::let_others_run`).

use crate::attributes::given;
use crate::bytes::{self, fixed, Bytes};
use crate::error::{self, raised};
use crate::handle::{Handle, Use};
use crate::key;
use crate::raw::{self, slot};
use crate::store::StoreBase;
use hashmere::{Attributes, Error, Key, View};
use hashmere_engine::{Roomed, StoreHandle};
use pyo3::exceptions::{PyKeyError, PySystemError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use std::ffi::{c_int, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;

/// A Python error is set.
struct Raised;

type Object = *mut ffi::PyObject;

/// Values from this length on are copied without the interpreter.
pub const LONG: usize = 128 << 10;

#[cold]
fn raise(error: impl FnOnce(Python<'_>) -> PyErr) -> Raised {
    Python::attach(|py| error(py).restore(py));
    Raised
}

#[cold]
fn raise_engine(error: impl Into<Error>) -> Raised {
    raise(|py| raised(py, error))
}

/// The end of a call from C: no panic leaves it.
#[inline(always)]
fn answer<T>(failed: T, call: impl FnOnce() -> Result<T, Raised>) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(Raised)) => failed,
        Err(_) => {
            raise(|_| PySystemError::new_err("hashmere panicked; please report it"));
            failed
        }
    }
}

/// # Safety
/// `this` is an instance of the type made in [`make`], and outlives what is returned.
#[inline(always)]
unsafe fn enter<'a>(this: Object) -> Result<Use<'a>, Raised> {
    // SAFETY: the interpreter is attached in all of this file. Python calls slots and methods of a type with its
    // instances only.
    let bound = unsafe { Bound::ref_from_ptr(Python::assume_attached(), &this).cast_unchecked::<StoreBase>() };
    let handle: *const Handle = &bound.get().handle;
    // SAFETY: the object outlives the call.
    unsafe { &*handle }.enter().ok_or_else(|| raise(error::closed))
}

/// # Safety
/// A live object.
unsafe fn any(py: Python<'_>, object: Object) -> Bound<'_, PyAny> {
    // SAFETY: the caller's word.
    unsafe { Bound::from_borrowed_ptr(py, object) }
}

/// A `bytes` object that no other code has seen yet.
struct Fresh {
    object: Object,
    at: *mut u8,
    len: usize,
}

impl Fresh {
    #[inline(always)]
    fn new(len: usize) -> Option<Fresh> {
        // SAFETY: the interpreter is attached in all of this file. Python keeps `len` writable bytes behind a new
        // object; it hands out the same empty one every time, of which nothing is written.
        unsafe {
            let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), len as ffi::Py_ssize_t);
            if object.is_null() {
                return None;
            }
            Some(Fresh { object, at: ffi::PyBytes_AsString(object).cast(), len })
        }
    }

    #[inline(always)]
    fn finish(self) -> Object {
        std::mem::ManuallyDrop::new(self).object
    }
}

impl AsMut<[u8]> for Fresh {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: see `new`; no other code knows the object.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: our reference, not given away.
        unsafe { ffi::Py_DECREF(self.object) }
    }
}

/// The value of a key as `bytes`; null: it is not there.
///
/// # Safety
/// A live object.
#[inline(always)]
unsafe fn fetch(store: &Use<'_>, name: Object) -> Result<Object, Raised> {
    // SAFETY: the caller's word.
    let Some(key) = (unsafe { fixed(name) }) else { return unsafe { fetch_named(store, name) } };
    match store.shared().get_in(key, Fresh::new) {
        Ok(Roomed::Copied(value)) => Ok(value.finish()),
        Ok(Roomed::Absent) => Ok(null_mut()),
        Ok(Roomed::Long(view)) => long_value(&view),
        // No memory for the object: Python has said so.
        Err(_) if pending() => Err(Raised),
        Err(error) => Err(raise_engine(error)),
    }
}

/// Values up to this length are copied by way of the stack where the key is no bytes.
const SHORT: usize = 512;

/// # Safety
/// As [`fetch`].
#[cold]
unsafe fn fetch_named(store: &Use<'_>, name: Object) -> Result<Object, Raised> {
    // SAFETY: the caller's word.
    let key = unsafe { named(name) }?;
    // Asked first, for what reads the value is counted, and a long one is read in another way.
    let metadata = store.metadata(key).map_err(raise_engine)?;
    if metadata.is_some_and(|metadata| metadata.value_len > SHORT as u64) {
        return store.view(key).map_err(raise_engine)?.map_or(Ok(null_mut()), |view| long_value(&view));
    }
    let mut short = [0; SHORT];
    match store.get_into(key, &mut short).map_err(raise_engine)? {
        None => Ok(null_mut()),
        Some(len) if len <= SHORT => {
            let mut fresh = Fresh::new(len).ok_or(Raised)?;
            fresh.as_mut().copy_from_slice(&short[..len]);
            Ok(fresh.finish())
        }
        // It was overwritten by a long one since.
        // SAFETY: as above.
        Some(_) => unsafe { fetch_named(store, name) },
    }
}

/// The key that an object names which is neither `bytes` nor `str`.
///
/// # Safety
/// A live object, which outlives what is returned.
#[cold]
unsafe fn named<'a>(name: Object) -> Result<Key<'a>, Raised> {
    // SAFETY: the interpreter is attached in all of this file; otherwise the caller's word.
    let name = unsafe { Borrowed::from_ptr(Python::assume_attached(), name) };
    key::named(name).map_err(|error| raise(|_| error))
}

#[cold]
fn pending() -> bool {
    // SAFETY: the interpreter is attached.
    !unsafe { ffi::PyErr_Occurred() }.is_null()
}

#[cold]
fn long_value(view: &View) -> Result<Object, Raised> {
    let mut fresh = Fresh::new(view.len()).ok_or(Raised)?;
    let into = fresh.as_mut();
    if view.len() < LONG {
        into.copy_from_slice(view);
    } else {
        Python::attach(|py| py.detach(|| into.copy_from_slice(view)));
    }
    Ok(fresh.finish())
}

/// Stores a value, with attributes or without; returns the version.
///
/// # Safety
/// Live objects.
#[inline(always)]
unsafe fn store_value(store: &Use<'_>, name: Object, value: Object, with: Attributes) -> Result<u64, Raised> {
    // SAFETY: the caller's word.
    unsafe {
        let key = fixed(name);
        if let Some(key) = key {
            if let Some(bytes) = fixed(value).filter(|bytes| bytes.len() < LONG) {
                return match store.set_with(key, bytes, with) {
                    Ok(stored) => Ok(stored.version.0),
                    Err(error) => Err(raise_engine(error)),
                };
            }
        }
        store_otherwise(store, key, name, value, with)
    }
}

/// A long value, an object with a buffer, or a key that is no bytes.
///
/// # Safety
/// As [`store_value`].
#[cold]
unsafe fn store_otherwise(
    store: &Use<'_>,
    key: Option<&[u8]>,
    name: Object,
    value: Object,
    with: Attributes,
) -> Result<u64, Raised> {
    if pending() {
        // A text without UTF-8.
        return Err(Raised);
    }
    // SAFETY: the caller's word.
    let key = key.map_or_else(|| unsafe { named(name) }, |key| Ok(Key::Bytes(key)))?;
    Python::attach(|py| {
        // SAFETY: the caller's word.
        let value: Bytes<'_> = bytes::value(unsafe { Borrowed::from_ptr(py, value) })?;
        let store: &hashmere::Store = store;
        let set = |bytes: &[u8]| store.set_with(key, bytes, with);
        let stored = match value {
            Bytes::Fixed(bytes) if bytes.len() >= LONG => py.detach(|| set(bytes)),
            // A buffer of the caller's may be written to while others run.
            other => set(&other),
        };
        Ok(stored.map_err(|error| raised(py, error))?.version.0)
    })
    .map_err(|error: PyErr| raise(|_| error))
}

/// `store[key]`
unsafe extern "C" fn subscript(this: Object, name: Object) -> Object {
    answer(null_mut(), || {
        // SAFETY: Python passes live objects.
        let value = unsafe { fetch(&enter(this)?, name) }?;
        if value.is_null() {
            return Err(no_key(name));
        }
        Ok(value)
    })
}

#[cold]
fn no_key(name: Object) -> Raised {
    // SAFETY: a live object.
    raise(|py| PyKeyError::new_err((unsafe { any(py, name) }.unbind(),)))
}

/// `store[key] = value`, `del store[key]`
unsafe extern "C" fn ass_subscript(this: Object, name: Object, value: Object) -> c_int {
    answer(-1, || {
        // SAFETY: Python passes live objects, or null for a deletion.
        let store = unsafe { enter(this) }?;
        if !value.is_null() {
            // SAFETY: as above.
            return unsafe { store_value(&store, name, value, Attributes::NONE) }.map(|_| 0);
        }
        // SAFETY: as above.
        let deleted = match unsafe { fixed(name) } {
            Some(key) => store.delete(key),
            // SAFETY: as above.
            None => store.delete(unsafe { named(name) }?),
        };
        match deleted {
            Ok(true) => Ok(0),
            Ok(false) => Err(no_key(name)),
            Err(error) => Err(raise_engine(error)),
        }
    })
}

/// `key in store`
unsafe extern "C" fn contains(this: Object, name: Object) -> c_int {
    answer(-1, || {
        // SAFETY: Python passes live objects.
        let store = unsafe { enter(this) }?;
        // SAFETY: as above.
        let found = match unsafe { fixed(name) } {
            Some(key) => store.contains_key(key),
            // SAFETY: as above.
            None => store.contains_key(unsafe { named(name) }?),
        };
        found.map(c_int::from).map_err(raise_engine)
    })
}

/// `store.get(key, default=None, /)`
unsafe extern "C" fn get(this: Object, args: *const Object, count: ffi::Py_ssize_t) -> Object {
    answer(null_mut(), || {
        if !(1..=2).contains(&count) {
            return Err(wrong_count("get", "1 or 2", count));
        }
        // SAFETY: `count` live objects.
        let args = unsafe { std::slice::from_raw_parts(args, count as usize) };
        // SAFETY: live objects.
        let value = unsafe { fetch(&enter(this)?, args[0]) }?;
        if !value.is_null() {
            return Ok(value);
        }
        // SAFETY: the default is alive, and so is `None`.
        unsafe {
            let default = args.get(1).copied().unwrap_or_else(|| ffi::Py_None());
            ffi::Py_INCREF(default);
            Ok(default)
        }
    })
}

#[cold]
fn wrong_count(name: &str, wanted: &str, count: ffi::Py_ssize_t) -> Raised {
    raise(|_| PyTypeError::new_err(format!("{name}() takes {wanted} positional arguments, but {count} were given")))
}

/// `store.set(key, value, *, ttl=None, expires_at=None, flags=0)`
unsafe extern "C" fn set(this: Object, args: *const Object, count: ffi::Py_ssize_t, names: Object) -> Object {
    answer(null_mut(), || {
        if count != 2 {
            return Err(wrong_count("set", "2", count));
        }
        // SAFETY: `count` live objects, and those that `names` names behind them.
        let (name, value) = unsafe { (*args, *args.add(2 - 1)) };
        let with = if names.is_null() {
            Attributes::NONE
        } else {
            // SAFETY: as above.
            unsafe { attributes_of(names, args.add(2)) }?
        };
        // SAFETY: live objects.
        let version = unsafe { store_value(&enter(this)?, name, value, with) }?;
        // SAFETY: the interpreter is attached.
        Ok(unsafe { ffi::PyLong_FromUnsignedLongLong(version) })
    })
}

/// # Safety
/// `names` is a tuple of texts, and as many live objects follow from `values` on.
#[cold]
unsafe fn attributes_of(names: Object, values: *const Object) -> Result<Attributes, Raised> {
    Python::attach(|py| {
        // SAFETY: the caller's word.
        let names = unsafe { any(py, names) };
        let mut values_of = [const { None }; 3];
        for i in 0..names.len()? {
            let name = names.get_item(i)?;
            let name: String = name.extract()?;
            let place = ["ttl", "expires_at", "flags"].iter().position(|known| *known == name);
            let Some(place) = place else {
                return Err(PyTypeError::new_err(format!("set() got an unexpected keyword argument '{name}'")));
            };
            // SAFETY: the caller's word.
            values_of[place] = Some(unsafe { any(py, *values.add(i)) });
        }
        let [ttl, expires_at, flags] = &values_of;
        given(ttl.as_ref(), expires_at.as_ref(), flags.as_ref())
    })
    .map_err(|error: PyErr| raise(|_| error))
}

const GET: &CStr = c"get($self, key, default=None, /)\n--\n\nThe value of a key, or the default.";
const SET: &CStr = c"set($self, key, value, /, *, ttl=None, expires_at=None, flags=0)\n--\n\n\
Stores a value, whether the key was there or not, and returns its version.\n\n\
It expires after ``ttl`` seconds (a number or a timedelta), or at ``expires_at`` (seconds since 1970 or a datetime).\n\
``flags`` are 32 bits for the caller. Without them the key has no expiry and no flags, whatever it had before.";
const DOC: &CStr = c"A store of bytes; `hashmere.Store` is made of it.";

/// The type with these slots over the class with the rest.
pub fn make<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyType>> {
    let methods = Box::new([
        raw::method(c"get", get, GET),
        raw::method_with_keywords(c"set", set, SET),
        // SAFETY: the end of the table.
        unsafe { std::mem::zeroed() },
    ]);
    // Types keep a pointer to their methods.
    let methods: &'static mut [ffi::PyMethodDef; 3] = Box::leak(methods);
    let slots = vec![
        entry(slot::SUBSCRIPT, subscript as *mut _),
        entry(slot::ASS_SUBSCRIPT, ass_subscript as *mut _),
        entry(slot::CONTAINS, contains as *mut _),
        entry(slot::METHODS, methods.as_mut_ptr().cast()),
        entry(slot::DOC, DOC.as_ptr().cast_mut().cast()),
    ];
    let base = py.get_type::<StoreBase>();
    let store = raw::subtype(&base, c"hashmere._hashmere.Store", slots)?;
    // The rest under the same roof, where documentation looks for it.
    for name in base.dir()? {
        let name = name.cast_into::<PyString>()?;
        if !name.to_cow()?.starts_with('_') && !store.getattr("__dict__")?.contains(&name)? {
            store.setattr(&name, base.getattr("__dict__")?.get_item(&name)?)?;
        }
    }
    Ok(store)
}

fn entry(slot: c_int, what: *mut std::ffi::c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc: what }
}
