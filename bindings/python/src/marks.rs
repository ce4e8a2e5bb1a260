//! Marks: what several readers agree on about a value, such as who computes the next one.

use crate::attributes::attributes;
use crate::bytes::{Key, Value};
use crate::error::OrRaise;
use crate::store::StoreBase;
use hashmere::{Attributes, Item, Metadata, Uid, Version};
use hashmere_engine::StoreHandle;
use pyo3::prelude::*;

/// What a `Item` says.
fn meta_of(seen: &Bound<'_, PyAny>) -> PyResult<Metadata> {
    let expires_at: Option<f64> = seen.getattr("expires_at")?.extract()?;
    Ok(Metadata {
        value_len: seen.getattr("value")?.len()? as u64,
        flags: seen.getattr("flags")?.extract()?,
        marks: seen.getattr("marks")?.extract()?,
        version: Version(seen.getattr("version")?.extract()?),
        expires_at_ms: expires_at.map(|seconds| (seconds * 1000.0).round() as u64),
        uid: Uid(seen.getattr("uid")?.extract()?),
    })
}

#[pymethods]
impl StoreBase {
    /// The marks of a key, see `set_marked`; ``None``: absent.
    #[pyo3(signature = (key, /))]
    fn marks(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<u32>> {
        Ok(self.enter(py)?.metadata(key.0).or_raise(py)?.map(|meta| meta.marks))
    }

    /// Stores a value with marks if the key is still as the ``Item`` that was ``seen`` (``None``: absent). Returns its version;
    /// ``None``: another writer changed it. Marks are 32 bits that say something about one value: that it is stale, or that a
    /// process computes the next. Any other write clears them; a touch keeps them.
    #[pyo3(signature = (key, value, marks, /, *, seen, ttl=None, expires_at=None, flags=None))]
    #[allow(clippy::too_many_arguments)]
    fn set_marked(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        value: Value<'_>,
        marks: u32,
        seen: Option<&Bound<'_, PyAny>>,
        ttl: Option<&Bound<'_, PyAny>>,
        expires_at: Option<&Bound<'_, PyAny>>,
        flags: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<u64>> {
        let with = attributes(ttl, expires_at, flags)?.unwrap_or(Attributes::NONE);
        let seen = seen.map(meta_of).transpose()?;
        let stored = self.enter(py)?.shared().set_marked(key.0, &value.0, with, marks, seen.as_ref()).or_raise(py)?;
        Ok(stored.map(|stored| stored.version.0))
    }

    /// Gives a key other marks if it is still the ``Item`` that was seen; all else stays. Whether it was: of several that saw the same, one
    /// succeeds.
    #[pyo3(signature = (key, seen, marks, /))]
    fn remark(&self, py: Python<'_>, key: Key<'_>, seen: &Bound<'_, PyAny>, marks: u32) -> PyResult<bool> {
        let value = seen.getattr("value")?;
        let value = value.as_borrowed().extract::<Value<'_>>()?.0.to_vec();
        let item = Item { value, metadata: meta_of(seen)? };
        self.enter(py)?.shared().remark(key.0, &item, marks).or_raise(py)
    }
}
