//! Reading and changing one key, beyond `hot`.

use crate::attributes::{attributes, expiry, given, unsigned};
use crate::bytes::{self, Value};
use crate::error::OrRaise;
use crate::item::seconds;
use crate::key::Key;
use crate::store::StoreBase;
use hashmere::{Attributes, CasOutcome, Change, Counter, Expected, Item, Stored, Ttl, Update, Updated, Version};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// What `expected` and `version` of a conditional call say; exactly one of them.
fn condition<'a>(version: Any<'_, '_>, expected: Option<&'a Value<'_>>) -> PyResult<Expected<'a>> {
    match (version, expected) {
        (Some(version), None) => Ok(Expected::Version(Version(unsigned(version, "version")?))),
        (None, Some(value)) => Ok(Expected::Value(&value.0)),
        _ => Err(PyTypeError::new_err("give either version or expected")),
    }
}

/// What is attached to a counter that is created.
pub fn counter(
    initial: Any<'_, '_>,
    ttl: Any<'_, '_>,
    expires_at: Any<'_, '_>,
    flags: Any<'_, '_>,
) -> PyResult<Counter> {
    let initial = initial.map(|n| unsigned(n, "initial")).transpose()?;
    Ok(Counter { initial, attributes: given(ttl, expires_at, flags)? })
}

/// The same of one that may be below zero.
pub fn signed_counter(
    initial: Any<'_, '_>,
    ttl: Any<'_, '_>,
    expires_at: Any<'_, '_>,
    flags: Any<'_, '_>,
) -> PyResult<Counter<i64>> {
    let initial = initial.map(|n| signed(n, "initial")).transpose()?;
    Ok(Counter { initial, attributes: given(ttl, expires_at, flags)? })
}

/// The same of a fraction.
pub fn float_counter(
    initial: Any<'_, '_>,
    ttl: Any<'_, '_>,
    expires_at: Any<'_, '_>,
    flags: Any<'_, '_>,
) -> PyResult<Counter<f64>> {
    let initial = initial.map(|n| float(n, "initial")).transpose()?;
    Ok(Counter { initial, attributes: given(ttl, expires_at, flags)? })
}

/// A signed number of 64 bits.
pub fn signed(number: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    number.extract::<i64>().map_err(|error| match error.is_instance_of::<PyTypeError>(number.py()) {
        true => bytes::refused(number, &format!("{name} must be an int")),
        false => PyOverflowError::new_err(format!("{name} must be from -9223372036854775808 to 9223372036854775807")),
    })
}

/// A floating-point number, or an integer that is one.
pub fn float(number: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    number.extract::<f64>().map_err(|error| match error.is_instance_of::<PyTypeError>(number.py()) {
        true => bytes::refused(number, &format!("{name} must be a float")),
        false => error,
    })
}

/// A signed step, or an unsigned one beyond that.
pub fn step(by: &Bound<'_, PyAny>) -> PyResult<Result<u64, i64>> {
    match by.extract::<u64>() {
        Ok(by) => Ok(Ok(by)),
        Err(error) if error.is_instance_of::<PyTypeError>(by.py()) => Err(bytes::refused(by, "by must be an int")),
        Err(_) => by
            .extract::<i64>()
            .map(Err)
            .map_err(|_| PyOverflowError::new_err("by must be from -9223372036854775808 to 18446744073709551615")),
    }
}

/// The version of what was stored, if it was.
fn version_of(stored: Option<Stored>) -> Option<u64> {
    stored.map(|stored| stored.version.0)
}

/// Calls that store a value with attributes, or not.
macro_rules! stores {
    ($($(#[$($doc:tt)*])* $name:ident)*) => {$(
        #[pymethods]
        impl StoreBase {
            $(#[$($doc)*])*
            #[pyo3(signature = (key, value, /, *, ttl=None, expires_at=None, flags=None))]
            fn $name(
                &self,
                py: Python<'_>,
                key: Key<'_>,
                value: Value<'_>,
                ttl: Any<'_, '_>,
                expires_at: Any<'_, '_>,
                flags: Any<'_, '_>,
            ) -> PyResult<Option<u64>> {
                let with = given(ttl, expires_at, flags)?;
                self.enter(py)?.$name(key.0, &value.0, with).or_raise(py).map(version_of)
            }
        }
    )*};
}

stores! {
    /// Stores a value if the key is absent. The version, or ``None``: it is there, and stays as it is.
    add
    /// Stores a value if the key is there. The version, or ``None``: it is absent, and stays so.
    replace
}

#[pymethods]
impl StoreBase {
    /// Puts bytes behind a value; flags and expiry stay. The version, or ``None``: the key is absent.
    #[pyo3(signature = (key, tail, /))]
    fn append(&self, py: Python<'_>, key: Key<'_>, tail: Value<'_>) -> PyResult<Option<u64>> {
        self.enter(py)?.append(key.0, &tail.0).or_raise(py).map(version_of)
    }

    /// Puts bytes in front of a value; flags and expiry stay. The version, or ``None``: the key is absent.
    #[pyo3(signature = (key, head, /))]
    fn prepend(&self, py: Python<'_>, key: Key<'_>, head: Value<'_>) -> PyResult<Option<u64>> {
        self.enter(py)?.prepend(key.0, &head.0).or_raise(py).map(version_of)
    }

    /// Removes a key, given a condition only if it has that ``version`` or the ``expected`` value. Whether it was
    /// removed.
    #[pyo3(signature = (key, /, *, version=None, expected=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        version: Any<'_, '_>,
        expected: Option<Value<'_>>,
    ) -> PyResult<bool> {
        let store = self.enter(py)?;
        if version.is_none() && expected.is_none() {
            return store.delete(key.0).or_raise(py);
        }
        let condition = condition(version, expected.as_ref())?;
        Ok(matches!(store.cas(key.0, condition, Change::Remove).or_raise(py)?, CasOutcome::Removed))
    }

    /// Removes a key and returns its value; exactly one of several callers gets it. Without the key the default.
    #[pyo3(signature = (key, default=None, /))]
    fn take<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let taken = self.enter(py)?.take(key.0).or_raise(py)?;
        Ok(taken.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }

    /// Stores a value if the key has this ``version`` (0: is absent) or the ``expected`` value. The new version;
    /// ``None``: it is otherwise.
    #[pyo3(signature = (key, value, /, *, version=None, expected=None, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn cas(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        value: Value<'_>,
        version: Any<'_, '_>,
        expected: Option<Value<'_>>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Option<u64>> {
        let with = given(ttl, expires_at, flags)?;
        let condition = condition(version, expected.as_ref())?;
        let change = Change::SetWith(&value.0, with);
        Ok(match self.enter(py)?.cas(key.0, condition, change).or_raise(py)? {
            CasOutcome::Stored(stored) => version_of(Some(stored)),
            _ => None,
        })
    }

    /// Calls ``f`` with the value of a key (``None``: absent) and does what it returns: stores bytes, leaves the key
    /// with ``KEEP``, removes it with ``REMOVE``. If another writer changed the key, ``f`` is called again. Flags and
    /// expiry stay unless some are given. Returns the value that is there afterwards. ``f`` may use the store: it may
    /// read this key (as it is stored) and write others; if it writes this one, or clears the store, ``Reentered`` is
    /// raised there.
    #[pyo3(signature = (key, f, /, *, ttl=None, expires_at=None, flags=None))]
    fn update_with<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        f: &Bound<'py, PyAny>,
        ttl: Any<'_, 'py>,
        expires_at: Any<'_, 'py>,
        flags: Any<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let with = attributes(ttl, expires_at, flags)?;
        let store = self.enter(py)?;
        let mut visitor = Visitor { f, with, failed: None, seen: None, said: None };
        let updated = store.update_with(key.0, |item| visitor.ask(item)).or_raise(py)?;
        visitor.outcome(updated)
    }

    /// Adds to a counter, which is a decimal number; returns its new value. It wraps at 2^64 and, with a negative step,
    /// stops at zero. A missing counter is created with ``initial`` (to which nothing is added); without that the
    /// result is ``None``.
    #[pyo3(signature = (key, by=None, /, *, initial=None, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn incr(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        by: Any<'_, '_>,
        initial: Any<'_, '_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Option<u64>> {
        let counter = counter(initial, ttl, expires_at, flags)?;
        let by = by.map_or(Ok(Ok(1)), step)?;
        let store = self.enter(py)?;
        match by {
            Ok(by) => store.incr(key.0, by, counter),
            Err(by) => store.incr_by(key.0, by, counter),
        }
        .or_raise(py)
    }

    /// Subtracts from a counter, stopping at zero: see ``incr``.
    #[pyo3(signature = (key, by=None, /, *, initial=None, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn decr(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        by: Any<'_, '_>,
        initial: Any<'_, '_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Option<u64>> {
        let counter = counter(initial, ttl, expires_at, flags)?;
        let by = by.map_or(Ok(1), |by| unsigned(by, "by"))?;
        self.enter(py)?.decr(key.0, by, counter).or_raise(py)
    }

    /// Adds to a signed counter, which may be below zero; returns its new value. Beyond 64 bits ``Overflow`` is raised,
    /// and nothing changes. A missing counter is created with ``initial`` (to which nothing is added); without that the
    /// result is ``None``.
    #[pyo3(signature = (key, by=None, /, *, initial=None, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn incr_signed(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        by: Any<'_, '_>,
        initial: Any<'_, '_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Option<i64>> {
        let counter = signed_counter(initial, ttl, expires_at, flags)?;
        let by = by.map_or(Ok(1), |by| signed(by, "by"))?;
        self.enter(py)?.incr_signed(key.0, by, counter).or_raise(py)
    }

    /// Adds to a decimal fraction, exactly, with 17 digits behind the point; returns the number next to the sum, whose
    /// text is the value. A missing counter is created with ``initial`` (to which nothing is added); without that the
    /// result is ``None``.
    #[pyo3(signature = (key, by, /, *, initial=None, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn incr_float(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        by: &Bound<'_, PyAny>,
        initial: Any<'_, '_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
        flags: Any<'_, '_>,
    ) -> PyResult<Option<f64>> {
        let counter = float_counter(initial, ttl, expires_at, flags)?;
        let by = float(by, "by")?;
        self.enter(py)?.incr_float(key.0, by, counter).or_raise(py)
    }

    /// Counts references: adds them, and creates the key with them if it is absent. Returns the count.
    #[pyo3(signature = (key, by=None, /))]
    fn inc_ref(&self, py: Python<'_>, key: Key<'_>, by: Any<'_, '_>) -> PyResult<u64> {
        let by = by.map_or(Ok(1), |by| unsigned(by, "by"))?;
        self.enter(py)?.inc_ref(key.0, by).or_raise(py)
    }

    /// Gives references back, and removes the key with the last one. Returns the count; ``None``: the key is absent.
    #[pyo3(signature = (key, by=None, /))]
    fn dec_ref(&self, py: Python<'_>, key: Key<'_>, by: Any<'_, '_>) -> PyResult<Option<u64>> {
        let by = by.map_or(Ok(1), |by| unsigned(by, "by"))?;
        self.enter(py)?.dec_ref(key.0, by).or_raise(py)
    }

    /// The version of a key's value; ``None``: absent.
    #[pyo3(signature = (key, /))]
    fn version(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<u64>> {
        Ok(self.enter(py)?.metadata(key.0).or_raise(py)?.map(|meta| meta.version.0))
    }

    /// Whether a key is still there with the version that it was seen with; false if it was changed or removed since.
    /// By ``Uid`` or ``EntryId`` the key is not looked up.
    #[pyo3(signature = (key, version, /))]
    fn is_up_to_date(&self, py: Python<'_>, key: Key<'_>, version: &Bound<'_, PyAny>) -> PyResult<bool> {
        let version = Version(unsigned(version, "version")?);
        self.enter(py)?.is_up_to_date(key.0, version).or_raise(py)
    }

    /// The length of a value in bytes; ``None``: absent.
    #[pyo3(signature = (key, /))]
    fn value_len(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<u64>> {
        Ok(self.enter(py)?.metadata(key.0).or_raise(py)?.map(|metadata| metadata.value_len))
    }

    /// How many seconds a key still lives: ``math.inf`` if it does not expire, ``None`` if it is absent.
    #[pyo3(signature = (key, /))]
    fn ttl(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<f64>> {
        Ok(self
            .enter(py)?
            .ttl(key.0)
            .or_raise(py)?
            .map(|expiry| expiry.remaining.map_or(f64::INFINITY, |left| left.as_secs_f64())))
    }

    /// When a key expires, in seconds since 1970; ``None``: never, or it is absent.
    #[pyo3(signature = (key, /))]
    fn expires_at(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<f64>> {
        Ok(self.enter(py)?.metadata(key.0).or_raise(py)?.and_then(|meta| seconds(meta.expires_at_ms)))
    }

    /// Gives a key another expiry; without one it does not expire any more. Its version stays. Whether it is there.
    #[pyo3(signature = (key, /, ttl=None, *, expires_at=None))]
    fn touch(&self, py: Python<'_>, key: Key<'_>, ttl: Any<'_, '_>, expires_at: Any<'_, '_>) -> PyResult<bool> {
        let ttl: Ttl = expiry(ttl, expires_at)?;
        self.enter(py)?.touch(key.0, ttl).or_raise(py)
    }

    /// Gives a key another expiry and returns its value; ``None``: absent.
    #[pyo3(signature = (key, /, ttl=None, *, expires_at=None))]
    fn get_and_touch<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        ttl: Any<'_, '_>,
        expires_at: Any<'_, '_>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let ttl = expiry(ttl, expires_at)?;
        let item = self.enter(py)?.get_and_touch(key.0, ttl).or_raise(py)?;
        Ok(item.map(|item| PyBytes::new(py, &item.value)))
    }
}

/// A Python function that is asked what a key is to become.
struct Visitor<'a, 'py> {
    f: &'a Bound<'py, PyAny>,
    with: Option<Attributes>,
    failed: Option<PyErr>,
    /// The value that it was last shown, and the one that it last returned.
    seen: Option<Vec<u8>>,
    said: Option<Vec<u8>>,
}

impl<'py> Visitor<'_, 'py> {
    /// What it says. If it raises, the key is left as it is.
    fn ask(&mut self, item: Option<&Item>) -> Update {
        self.try_ask(item).unwrap_or_else(|error| {
            self.failed = Some(error);
            Update::Keep
        })
    }

    fn try_ask(&mut self, item: Option<&Item>) -> PyResult<Update> {
        let py = self.f.py();
        self.seen = item.map(|item| item.value.clone());
        let answer = self.f.call1((item.map(|item| PyBytes::new(py, &item.value)),))?;
        let types = py.import("hashmere._types")?;
        if answer.is(types.getattr("KEEP")?) {
            return Ok(Update::Keep);
        }
        if answer.is(types.getattr("REMOVE")?) {
            return Ok(Update::Remove);
        }
        let value = bytes::value(answer.as_borrowed())
            .map_err(|error| match answer.is_none() {
                true => {
                    PyTypeError::new_err("the function must return a value, hashmere.KEEP or hashmere.REMOVE, not None")
                }
                false => error,
            })?
            .to_vec();
        self.said = Some(value.clone());
        Ok(match self.with {
            Some(with) => Update::SetWith(value, with),
            None => Update::Set(value),
        })
    }

    /// The value that is there after the update.
    fn outcome(self, updated: Updated) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let value = match updated {
            Updated::Unchanged => self.seen,
            Updated::Stored(_) => self.said,
            Updated::Removed => None,
        };
        Ok(value.map(|value| PyBytes::new(self.f.py(), &value)))
    }
}
