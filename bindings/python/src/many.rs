//! Several keys at once.

use crate::attributes::attributes;
use crate::bytes::{self, Key, Value};
use crate::error::OrRaise;
use crate::store::StoreBase;
use hashmere::{Store, WriteError};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

/// From this many keys on the interpreter is let go of.
const MANY: usize = 256;

/// The objects of an iterable. A single text is one key too few by far, and surely a mistake.
fn objects<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("several keys are asked for: give a list of them"));
    }
    keys.try_iter()?.collect()
}

fn borrow<'a>(objects: &'a [Bound<'_, PyAny>]) -> PyResult<Vec<&'a [u8]>> {
    objects.iter().map(|key| Ok(key.as_borrowed().extract::<Key<'a>>()?.0)).collect()
}

#[pymethods]
impl StoreBase {
    /// The values of several keys as a list in their order, ``None`` where there is none. In a large store this is several
    /// times as fast as one by one.
    #[pyo3(signature = (keys, /))]
    fn get_many<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let objects = objects(keys)?;
        let keys = borrow(&objects)?;
        let store = self.enter(py)?;
        let store: &Store = &store;
        let value = |value: &[u8]| PyBytes::new(py, value);
        if keys.len() < MANY {
            let mut values = Vec::with_capacity(keys.len());
            store.get_many_with(&keys, |_, bytes| values.push(bytes.map(value))).or_raise(py)?;
            return PyList::new(py, values);
        }
        let values = py.detach(|| store.get_many(&keys)).or_raise(py)?;
        PyList::new(py, values.iter().map(|bytes| bytes.as_deref().map(value)))
    }

    /// Stores the pairs of a mapping or of an iterable, in order, and returns how many there were. If one fails, those before it
    /// are stored and those behind it are not.
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
        let pairs = match pairs.cast::<PyDict>() {
            Ok(dict) => dict.items().into_any(),
            Err(_) if pairs.hasattr("keys")? => pairs.call_method0("items")?,
            Err(_) => pairs.clone(),
        };
        let pairs: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> =
            objects(&pairs)?.iter().map(|pair| pair.extract()).collect::<PyResult<_>>()?;
        let mut borrowed = Vec::with_capacity(pairs.len());
        for (key, value) in &pairs {
            borrowed.push((key.as_borrowed().extract::<Key<'_>>()?.0, value.as_borrowed().extract::<Value<'_>>()?.0));
        }
        let store = self.enter(py)?;
        let Some(with) = with else { return store.set_many(&borrowed).or_raise(py) };
        let set = |(key, value): &(&[u8], bytes::Bytes<'_>)| store.set_with(key, value, with).map(|_| ());
        borrowed.iter().try_for_each(set).or_raise(py)?;
        Ok(borrowed.len())
    }

    /// Removes several keys and returns how many of them were there.
    #[pyo3(signature = (keys, /))]
    fn delete_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<usize> {
        let objects = objects(keys)?;
        let keys = borrow(&objects)?;
        let store = self.enter(py)?;
        let store: &Store = &store;
        let delete = || -> Result<usize, WriteError> { store.delete_many(&keys) };
        if keys.len() < MANY { delete() } else { py.detach(delete) }.or_raise(py)
    }
}
