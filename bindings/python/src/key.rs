//! What names a key in a call: its bytes, or a `HashedKey`, a `Uid` or an `EntryId`.
//!
//! `bytes` and `str` are looked for first, by `bytes::fixed`, and cost no more than if there were nothing else.

use crate::attributes::unsigned;
use crate::bytes::{fixed, refused};
use crate::error::OrRaise;
use crate::handle::Use;
use crate::item;
use crate::store::StoreBase;
use hashmere::{EntryId, Key as Named, Uid};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};
use std::borrow::Cow;

/// What a key may be.
const KEY: &str = "a key must be bytes, str, or a hashmere.Uid, EntryId or HashedKey";
/// What it may be where its bytes are needed.
const PLAIN: &str = "this call takes a key as bytes or str";

/// A key argument.
#[derive(Clone, Copy)]
pub struct Key<'a>(pub Named<'a>);

impl<'a, 'py> FromPyObject<'a, 'py> for Key<'a> {
    type Error = PyErr;
    #[inline(always)]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Key<'a>> {
        // SAFETY: borrowed for 'a.
        match unsafe { fixed(object.as_ptr()) } {
            Some(bytes) => Ok(Key(Named::Bytes(bytes))),
            None => named(object).map(Key),
        }
    }
}

/// A key argument of a call that sleeps or locks: these know a key by its bytes.
pub struct PlainKey<'a>(pub &'a [u8]);

impl<'a, 'py> FromPyObject<'a, 'py> for PlainKey<'a> {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<PlainKey<'a>> {
        // SAFETY: borrowed for 'a.
        unsafe { fixed(object.as_ptr()) }.map(PlainKey).ok_or_else(|| refused(&object, PLAIN))
    }
}

/// The key that an object names which is neither `bytes` nor `str`.
#[cold]
pub fn named<'a>(object: Borrowed<'a, '_, PyAny>) -> PyResult<Named<'a>> {
    let py = object.py();
    if PyErr::occurred(py) {
        // A text without UTF-8.
        return Err(PyErr::fetch(py));
    }
    let Classes { uid, id } = classes(py)?;
    if object.is_instance(id.bind(py))? {
        return Ok(EntryId(number(&object, "an EntryId", u64::MAX)?).into());
    }
    if object.is_instance(uid.bind(py))? {
        return Ok(Uid(number(&object, "a Uid", u32::MAX.into())? as u32).into());
    }
    if let Ok(hashed) = object.cast::<HashedKey>() {
        let HashedKey { key, hash } = hashed.get();
        return Ok(Named::Hashed(key, *hash));
    }
    Err(refused(&object, KEY))
}

/// The number of an id, which has to fit.
fn number(object: &Bound<'_, PyAny>, what: &str, most: u64) -> PyResult<u64> {
    let number = object.extract::<u64>().ok().filter(|number| *number <= most);
    number.ok_or_else(|| PyOverflowError::new_err(format!("{what} must be from 0 to {most}, and {object:?} is not")))
}

/// The classes `hashmere.Uid` and `hashmere.EntryId`.
struct Classes {
    uid: Py<PyType>,
    id: Py<PyType>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    CLASSES.get_or_try_init(py, || {
        let types = py.import("hashmere._types")?;
        let class = |name| Ok::<_, PyErr>(types.getattr(name)?.cast_into::<PyType>()?.unbind());
        Ok(Classes { uid: class("Uid")?, id: class("EntryId")? })
    })
}

/// A `hashmere.Uid`.
pub fn uid(py: Python<'_>, uid: Uid) -> PyResult<Bound<'_, PyAny>> {
    classes(py)?.uid.bind(py).call1((uid.0,))
}

/// A key, and a hash of 64 bits that the caller has of it already.
///
/// A key stored with a hash is found with the same hash only; the same bytes stored without one, or with another, are
/// another key. Such a record takes eight bytes more.
#[pyclass(frozen, eq, hash, module = "hashmere._hashmere")]
#[derive(PartialEq, Eq, Hash)]
pub struct HashedKey {
    key: Box<[u8]>,
    hash: u64,
}

#[pymethods]
impl HashedKey {
    #[new]
    #[pyo3(signature = (key, hash, /))]
    fn new(key: PlainKey<'_>, hash: &Bound<'_, PyAny>) -> PyResult<HashedKey> {
        Ok(HashedKey { key: key.0.into(), hash: unsigned(hash, "hash")? })
    }

    /// The key.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.key)
    }

    /// Its hash.
    #[getter]
    fn hash(&self) -> u64 {
        self.hash
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("HashedKey({}, {})", self.key(py).repr()?, self.hash))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (Bound<'py, PyBytes>, u64)) {
        (py.get_type::<HashedKey>(), (self.key(py), self.hash))
    }
}

/// The key with everything about it as an `Item`.
fn item_of<'py>(py: Python<'py>, store: &Use<'_>, key: Named<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
    // By an entry id the bytes of the key and the rest are of one entry, whatever happens between the two calls.
    let (key, bytes) = match key {
        Named::Bytes(bytes) | Named::Hashed(bytes, _) => (key, Some(Cow::Borrowed(bytes))),
        Named::Id(_) | Named::Uid(_) => {
            let Some(id) = store.id_of(key).or_raise(py)? else { return Ok(None) };
            (id.into(), store.key_of(id).or_raise(py)?.map(Cow::Owned))
        }
    };
    let found = bytes.zip(store.get_item(key).or_raise(py)?);
    found.map(|(bytes, found)| item::item(py, &bytes, &found.value, &found.metadata)).transpose()
}

#[pymethods]
impl StoreBase {
    /// A key with its value, version, flags, expiry and UID as an ``Item``; ``None``: absent.
    #[pyo3(signature = (key, /))]
    fn get_item<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
        item_of(py, &self.enter(py)?, key.0)
    }

    /// The ``Uid`` of a key: a number by which it is found without its bytes, as long as it exists. ``None``: absent.
    #[pyo3(signature = (key, /))]
    fn uid_of<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let metadata = self.enter(py)?.metadata(key.0).or_raise(py)?;
        metadata.map(|metadata| uid(py, metadata.uid)).transpose()
    }

    /// The ``EntryId`` of a key: its UID, and a fingerprint that tells when the UID has come to mean another key.
    /// ``None``: absent.
    #[pyo3(signature = (key, /))]
    fn id_of<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let id = self.enter(py)?.id_of(key.0).or_raise(py)?;
        id.map(|id| classes(py)?.id.bind(py).call1((id.0,))).transpose()
    }

    /// The bytes of a key, such as of that which a ``Uid`` or ``EntryId`` names; ``None``: absent.
    #[pyo3(signature = (key, /))]
    fn key_of<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = self.enter(py)?.key_of(key.0).or_raise(py)?;
        Ok(key.map(|key| PyBytes::new(py, &key)))
    }
}
