//! Several keys at once. Lists, tuples and dicts are read by the plain calls of the C API: a thousand keys with one
//! call are the counterpart of a transaction of a thousand elsewhere, and what is done for each of them counts.

use crate::attributes::attributes;
use crate::bytes::{self, fixed, Bytes};
use crate::error::OrRaise;
use crate::key::named;
use crate::store::StoreBase;
use hashmere::{Attributes, Key, ReadError, Store, WriteError};
use hashmere_engine::StoreHandle;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::collections::BTreeMap;

/// From this many keys on the interpreter is let go of.
const MANY: usize = 256;

/// Bytes of arguments, with references to the objects that have them: other threads may change what these were taken
/// from.
#[derive(Default)]
pub struct Kept<'py> {
    objects: Vec<Bound<'py, PyAny>>,
    /// Buffers of values such as a `bytearray`; their bytes may change while they are read, but not go away.
    buffers: Vec<Bytes<'static>>,
    /// Keys that are no bytes, by their places; mostly there are none, and all keys go to the engine in one call.
    named: Named,
}

type Named = BTreeMap<usize, Key<'static>>;

impl<'py> Kept<'py> {
    /// Whether all keys are bytes.
    pub fn is_plain(&self) -> bool {
        self.named.is_empty()
    }

    /// The bytes of the key at a place; of one that is in `named`, none.
    fn key(&mut self, place: usize, object: Bound<'py, PyAny>) -> PyResult<&'static [u8]> {
        // SAFETY: `bytes` and `str` do not change, and the user of what is returned keeps `self`, which keeps the
        // object.
        let bytes = match unsafe { fixed(object.as_ptr()) } {
            Some(bytes) => bytes,
            None => {
                // SAFETY: as above, for a `HashedKey` does not change either.
                let key = unsafe { std::mem::transmute::<Key<'_>, Key<'static>>(named(object.as_borrowed())?) };
                self.named.insert(place, key);
                &[]
            }
        };
        self.objects.push(object);
        Ok(bytes)
    }

    fn value(&mut self, object: Bound<'py, PyAny>) -> PyResult<&'static [u8]> {
        // SAFETY: as above.
        if let Some(bytes) = unsafe { fixed(object.as_ptr()) } {
            self.objects.push(object);
            return Ok(bytes);
        }
        let buffer = bytes::value(object.as_borrowed())?;
        // SAFETY: as above; the buffer is released before the object, and its bytes stay where they are when it is
        // moved.
        let (buffer, bytes) = unsafe {
            let bytes: &'static [u8] = std::mem::transmute::<&[u8], &'static [u8]>(&buffer);
            (std::mem::transmute::<Bytes<'_>, Bytes<'static>>(buffer), bytes)
        };
        self.buffers.push(buffer);
        self.objects.push(object);
        Ok(bytes)
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.buffers.clear();
    }
}

/// Calls `each` with the objects of an iterable. A single text is one key too few by far, and surely a mistake.
fn for_each<'py>(objects: &Bound<'py, PyAny>, mut each: impl FnMut(Bound<'py, PyAny>) -> PyResult<()>) -> PyResult<()> {
    if objects.is_instance_of::<PyString>() || objects.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("several keys are asked for: give a list of them"));
    }
    if let Ok(list) = objects.cast_exact::<PyList>() {
        list.iter().try_for_each(each)
    } else if let Ok(tuple) = objects.cast_exact::<PyTuple>() {
        tuple.iter().try_for_each(each)
    } else {
        objects.try_iter()?.try_for_each(|object| each(object?))
    }
}

fn len_of(objects: &Bound<'_, PyAny>) -> usize {
    objects.len().unwrap_or(0)
}

pub fn keys_of<'py>(objects: &Bound<'py, PyAny>) -> PyResult<(Kept<'py>, Vec<&'static [u8]>)> {
    let len = len_of(objects);
    let (mut kept, mut keys) = (Kept::default(), Vec::with_capacity(len));
    kept.objects.reserve(len);
    for_each(objects, |object| {
        keys.push(kept.key(keys.len(), object)?);
        Ok(())
    })?;
    Ok((kept, keys))
}

type Pairs = Vec<(&'static [u8], &'static [u8])>;

fn pairs_of<'py>(pairs: &Bound<'py, PyAny>) -> PyResult<(Kept<'py>, Pairs)> {
    let len = len_of(pairs);
    let (mut kept, mut borrowed) = (Kept::default(), Vec::with_capacity(len));
    kept.objects.reserve(2 * len);
    let mut add = |key: Bound<'py, PyAny>, value: Bound<'py, PyAny>| -> PyResult<()> {
        borrowed.push((kept.key(borrowed.len(), key)?, kept.value(value)?));
        Ok(())
    };
    if let Ok(dict) = pairs.cast_exact::<PyDict>() {
        dict.iter().try_for_each(|(key, value)| add(key, value))?;
        return Ok((kept, borrowed));
    }
    let items = if pairs.cast_exact::<PyList>().is_err() && pairs.hasattr("keys")? {
        pairs.call_method0("items")?
    } else {
        pairs.clone()
    };
    for_each(&items, |pair| match pair.cast_exact::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => add(pair.get_item(0)?, pair.get_item(1)?),
        _ => {
            let (key, value) = pair.extract()?;
            add(key, value)
        }
    })?;
    Ok((kept, borrowed))
}

/// A list of the values, which are stored one after the other.
fn list_of<'py>(py: Python<'py>, all: &[u8], ends: &[(usize, bool)]) -> PyResult<Bound<'py, PyList>> {
    // SAFETY: a new list is filled to its end before other code sees it; each call takes the reference that it is
    // given, and if there is no memory for a value the list goes with what it has.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(ends.len() as ffi::Py_ssize_t))?;
        let mut start = 0;
        for (i, (end, found)) in ends.iter().enumerate() {
            let value = if *found {
                ffi::PyBytes_FromStringAndSize(all[start..*end].as_ptr().cast(), (end - start) as ffi::Py_ssize_t)
            } else {
                let none = ffi::Py_None();
                ffi::Py_INCREF(none);
                none
            };
            if value.is_null() || ffi::PyList_SetItem(list.as_ptr(), i as ffi::Py_ssize_t, value) != 0 {
                return Err(PyErr::fetch(py));
            }
            start = *end;
        }
        Ok(list.cast_into_unchecked())
    }
}

/// Keys: these bytes, except where there is a named one.
fn each<'a>(
    named: &'a Named,
    bytes: impl Iterator<Item = &'static [u8]> + 'a,
) -> impl Iterator<Item = Key<'static>> + 'a {
    bytes.enumerate().map(|(place, bytes)| named.get(&place).copied().unwrap_or(Key::Bytes(bytes)))
}

/// Puts the values of keys one behind the other, and where each ends, and whether it was there.
fn get_each(
    store: &Store,
    keys: impl Iterator<Item = Key<'static>>,
    bytes: &mut Vec<u8>,
    ends: &mut Vec<(usize, bool)>,
) -> Result<(), ReadError> {
    for key in keys {
        let value = store.get(key)?;
        bytes.extend(value.iter().flatten());
        ends.push((bytes.len(), value.is_some()));
    }
    Ok(())
}

#[pymethods]
impl StoreBase {
    /// The values of several keys as a list in their order, ``None`` where there is none. In a large store this is
    /// several times as fast as one by one.
    #[pyo3(signature = (keys, /))]
    fn get_many<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let (kept, keys) = keys_of(keys)?;
        let store = self.enter(py)?;
        let store: &Store = &store;
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(keys.len()));
        if kept.named.is_empty() {
            let mut get = || store.shared().get_many_joined(&keys, &mut bytes, &mut ends);
            if keys.len() < MANY { get() } else { py.detach(get) }.or_raise(py)?;
        } else {
            get_each(store, each(&kept.named, keys.into_iter()), &mut bytes, &mut ends).or_raise(py)?;
        }
        drop(kept);
        list_of(py, &bytes, &ends)
    }

    /// Stores the pairs of a mapping or of an iterable, in order, and returns how many there were. If one fails, those
    /// before it are stored and those behind it are not.
    #[pyo3(signature = (pairs, /, *, ttl=None, expires_at=None, flags=None))]
    fn set_many<'py>(
        &self,
        py: Python<'py>,
        pairs: &Bound<'py, PyAny>,
        ttl: Option<&Bound<'py, PyAny>>,
        expires_at: Option<&Bound<'py, PyAny>>,
        flags: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<usize> {
        let with = attributes(ttl, expires_at, flags)?;
        let (kept, pairs) = pairs_of(pairs)?;
        let store = self.enter(py)?;
        let store: &Store = &store;
        let set = || -> Result<usize, WriteError> {
            if with.is_none() && kept.named.is_empty() {
                return store.set_many(&pairs);
            }
            let with = with.unwrap_or(Attributes::NONE);
            let keys = each(&kept.named, pairs.iter().map(|(key, _)| *key));
            keys.zip(&pairs).try_for_each(|(key, (_, value))| store.set_with(key, value, with).map(|_| ()))?;
            Ok(pairs.len())
        };
        // A buffer of the caller's may be written to while others run.
        let alone = pairs.len() < MANY || !kept.buffers.is_empty();
        let stored = if alone { set() } else { py.detach(set) }.or_raise(py);
        drop(kept);
        stored
    }

    /// Removes several keys and returns how many of them were there.
    #[pyo3(signature = (keys, /))]
    fn delete_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (kept, keys) = keys_of(keys)?;
        let store = self.enter(py)?;
        let store: &Store = &store;
        let delete = || -> Result<usize, WriteError> {
            if kept.named.is_empty() {
                return store.delete_many(&keys);
            }
            each(&kept.named, keys.iter().copied())
                .try_fold(0, |deleted, key| Ok(deleted + usize::from(store.delete(key)?)))
        };
        let deleted = if keys.len() < MANY { delete() } else { py.detach(delete) }.or_raise(py);
        drop(kept);
        deleted
    }
}
