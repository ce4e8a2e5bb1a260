//! The change feed: what happens to the keys of a store, in order, for consumers that stop and resume.

use crate::bytes::Value as Text;
use crate::error::{gone, FeedResult};
use crate::log_line::of_types;
use crate::store::StoreBase;
use crate::wait::in_slices;
use hashmere_feed::{Change, Event, FeedOptions, FeedStart, ReadyFd, ResetReason, Value};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};
use std::os::fd::AsRawFd;
use std::time::Duration;

static EVENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static PART: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static INFO: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A consumer of a store's changes, as ``Store.feed`` makes it: an iterator over `FeedEvent` that waits without end.
/// ``next`` waits for a time. One thread at a time may use it; it belongs to the process that made it.
#[pyclass(module = "hashmere._hashmere")]
pub struct Feed {
    feed: Option<hashmere_feed::Feed>,
    ready: Option<ReadyFd>,
}

impl Feed {
    fn feed(&mut self, py: Python<'_>) -> PyResult<&mut hashmere_feed::Feed> {
        self.feed.as_mut().ok_or_else(|| gone(py, "the feed was closed; follow again with its token"))
    }

    fn wait<'py>(&mut self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let feed = self.feed(py)?;
        let next = in_slices(py, timeout, |slice| match feed.next_within(Duration::ZERO).or_raise_feed(py)? {
            None if !slice.is_zero() => py.detach(|| feed.next_within(slice)).or_raise_feed(py),
            next => Ok(next),
        })?;
        if let (None, Some(ready), Some(feed)) = (&next, &self.ready, &self.feed) {
            ready.arm(feed);
        }
        next.map(|event| of_event(py, &event)).transpose()
    }
}

fn reason_of(reason: ResetReason) -> &'static str {
    match reason {
        ResetReason::Asked => "asked",
        ResetReason::Gone => "gone",
        ResetReason::OtherFeed => "other_feed",
        ResetReason::Gap => "gap",
        _ => "unknown",
    }
}

fn state_of(value: &Value) -> &'static str {
    match value {
        Value::Absent => "absent",
        Value::Bytes(_) => "bytes",
        Value::NotKept => "not_kept",
        Value::Superseded => "superseded",
        _ => "unknown",
    }
}

/// A `hashmere.FeedEvent`.
fn of_event<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyAny>> {
    let token = event.token().map(ToString::to_string);
    let (kind, reason, ts_ms, change) = match event {
        Event::Reset { reason } => ("reset", Some(reason_of(*reason)), 0, None),
        Event::Read(change) => ("read", None, change.ts_ms, Some(change)),
        Event::Synced { .. } => ("synced", None, 0, None),
        Event::Change(change) => ("change", None, change.ts_ms, Some(change)),
        Event::Clear { ts_ms, .. } => ("clear", None, *ts_ms, None),
        _ => ("unknown", None, 0, None),
    };
    let of = |get: fn(&Change) -> u64| change.map_or(0, get);
    let part = match change.and_then(|change| change.transaction) {
        Some(part) => Some(of_types(py, &PART, "FeedTransaction")?.call1((part.id, part.index, part.len))?),
        None => None,
    };
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
    let fields = [
        kind.into_pyobject(py)?.into_any(),
        change.map(|change| change.operation.name()).into_pyobject(py)?.into_any(),
        change.map(|change| bytes(&change.key)).into_pyobject(py)?.into_any(),
        change.and_then(|change| change.value.bytes()).map(bytes).into_pyobject(py)?.into_any(),
        change.map(|change| state_of(&change.value)).into_pyobject(py)?.into_any(),
        of(|change| change.value_len.into()).into_pyobject(py)?.into_any(),
        of(|change| change.version.0).into_pyobject(py)?.into_any(),
        of(|change| change.flags.into()).into_pyobject(py)?.into_any(),
        change.and_then(|change| change.expires_at_ms).into_pyobject(py)?.into_any(),
        of(|change| change.origin.into()).into_pyobject(py)?.into_any(),
        ts_ms.into_pyobject(py)?.into_any(),
        part.into_pyobject(py)?.into_any(),
        change.and_then(|change| change.supplied_hash).into_pyobject(py)?.into_any(),
        reason.into_pyobject(py)?.into_any(),
        token.into_pyobject(py)?.into_any(),
    ];
    of_types(py, &EVENT, "FeedEvent")?.call1(PyTuple::new(py, fields)?)
}

#[pymethods]
impl StoreBase {
    /// Follows the changes of the store, which has to keep some: ``hashmere.open(name, feed=64 << 20)``, `Feed.enable`.
    ///
    /// ``start``: ``"now"``, with the next change; ``"start"``, with every key first; or a token, behind what was dealt
    /// with before, with every key if that is not possible. With a ``prefix`` only of keys that begin with it. With
    /// ``values`` values come along; those that the feed does not keep are read from the store.
    #[pyo3(signature = (start="now", /, *, prefix=None, values=false))]
    fn feed(&self, py: Python<'_>, start: &str, prefix: Option<Text<'_>>, values: bool) -> PyResult<Feed> {
        let start = match start {
            "now" => FeedStart::Now,
            "start" => FeedStart::Start,
            token => FeedStart::At(token.parse().map_err(hashmere_feed::FeedError::BadToken).or_raise_feed(py)?),
        };
        let mut options = FeedOptions::new().values(values);
        if let Some(prefix) = prefix {
            let prefix: &[u8] = &prefix.0;
            options = options.prefix(prefix);
        }
        let store = self.enter(py)?;
        let feed = hashmere_feed::Feed::open(&store, start, options).or_raise_feed(py)?;
        Ok(Feed { feed: Some(feed), ready: None })
    }
}

#[pymethods]
impl Feed {
    /// Makes a store keep about this many bytes of changes, for all processes that have it open. A feed that is there
    /// stays as it is.
    #[staticmethod]
    #[pyo3(signature = (store, bytes, /, *, values=false))]
    fn enable(py: Python<'_>, store: &Bound<'_, StoreBase>, bytes: u64, values: bool) -> PyResult<()> {
        let store = store.get().enter(py)?;
        hashmere_feed::enable(&*store, bytes, values).or_raise_feed(py)
    }

    /// Makes a store keep no changes, and gives back what they took. ``False``: it kept none.
    #[staticmethod]
    #[pyo3(signature = (store, /))]
    fn disable(py: Python<'_>, store: &Bound<'_, StoreBase>) -> PyResult<bool> {
        let store = store.get().enter(py)?;
        hashmere_feed::disable(&*store).or_raise_feed(py)
    }

    /// The `FeedInfo` of a store; ``None``: it keeps no changes.
    #[staticmethod]
    #[pyo3(signature = (store, /))]
    fn info<'py>(py: Python<'py>, store: &Bound<'py, StoreBase>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let store = store.get().enter(py)?;
        let Some(info) = hashmere_feed::info(&*store) else { return Ok(None) };
        let fields = (info.number, info.position, info.oldest, info.bytes, info.values);
        of_types(py, &INFO, "FeedInfo")?.call1(fields).map(Some)
    }

    /// The next event, for which it waits as many seconds as ``timeout`` says; without end if it is ``None``. ``None``:
    /// there is none.
    #[pyo3(signature = (timeout=None, /))]
    fn next<'py>(&mut self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.wait(py, timeout)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.wait(py, None)
    }

    /// Where it is: a consumer that starts with this goes on behind the event that was returned last; within a
    /// transaction, at its beginning.
    #[getter]
    fn token(&mut self, py: Python<'_>) -> PyResult<String> {
        Ok(self.feed(py)?.token().to_string())
    }

    /// How far behind the newest change it is, in positions: each change is one, and so is each transaction.
    #[getter]
    fn lag(&mut self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.feed(py)?.lag())
    }

    /// A descriptor for event loops that is readable while there is an event; it belongs to this object. Take events
    /// with ``next(0)``: the call that finds none takes that back.
    fn fileno(&mut self, py: Python<'_>) -> PyResult<i32> {
        if self.ready.is_none() {
            self.ready = Some(self.feed(py)?.ready_fd().or_raise_feed(py)?);
        }
        Ok(self.ready.as_ref().map_or(-1, AsRawFd::as_raw_fd))
    }

    /// Ends following.
    fn close(&mut self, py: Python<'_>) {
        let (ready, feed) = (self.ready.take(), self.feed.take());
        py.detach(|| drop((ready, feed)));
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.feed.is_none()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&mut self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }
}
