//! The log: lines of many threads and processes in one stream. The handler for `logging` is made of it in Python.

use crate::bytes::Value as Text;
use crate::error::{gone, LogResult};
use crate::log_drain::{since, sink, Drainer, Follower};
use crate::log_line::{wanted, Fields, LevelName};
use crate::log_manual_drainer::ManualDrainer;
use crate::store::StoreBase;
use crate::wait::{in_slices, seconds};
use hashmere_log::{Level, Log as Inner, LogOptions, OnFull, OnNoDrainer, OnTooLong, RingStats};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};

/// A log of many threads and processes in a store's file: one ordered stream, in which nothing is lost. `hashmere.Log`
/// is made of it.
#[pyclass(frozen, subclass, module = "hashmere._hashmere")]
pub struct Log {
    log: Mutex<Option<Inner>>,
    /// Whether the thread that logs a line may have to write it out, which can take long.
    writes: bool,
}

impl Log {
    fn log(&self, py: Python<'_>) -> PyResult<Inner> {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or_else(|| gone(py, "the log was closed; open it again"))
    }

    fn put(&self, py: Python<'_>, level: Level, text: &Text<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
        let log = self.log(py)?;
        if !log.enabled(level) {
            return Ok(false);
        }
        let text: &[u8] = &text.0;
        let Some(fields) = fields.filter(|fields| !fields.is_empty()) else {
            return self.alone(py, &log, || log.line(level, text)).or_raise_log(py);
        };
        let fields = Fields::new(fields)?;
        let fields = fields.values();
        self.alone(py, &log, || log.line_fields(level, text, &fields)).or_raise_log(py)
    }

    /// Lets other threads run if it may have to write, for want of a drainer. A wait for room does so by itself.
    fn alone<T: Send>(&self, py: Python<'_>, log: &Inner, act: impl FnOnce() -> T + Send) -> T {
        if self.writes && !log.is_drained() {
            py.detach(act)
        } else {
            act()
        }
    }
}

fn full_of(full: &str, timeout: f64) -> PyResult<OnFull> {
    match full {
        "block" => Ok(OnFull::Block(seconds(timeout)?)),
        "drop" => Ok(OnFull::Drop),
        "overwrite" => Ok(OnFull::Overwrite),
        _ => Err(PyValueError::new_err("on_full must be \"block\", \"drop\" or \"overwrite\"")),
    }
}

fn no_drainer_of(no_drainer: &str) -> PyResult<OnNoDrainer> {
    match no_drainer {
        "stdout" => Ok(OnNoDrainer::Stdout),
        "keep" => Ok(OnNoDrainer::Keep),
        _ => Err(PyValueError::new_err("on_no_drainer must be \"stdout\" or \"keep\"")),
    }
}

fn too_long_of(long: &str) -> PyResult<OnTooLong> {
    match long {
        "split" => Ok(OnTooLong::Split),
        "refuse" => Ok(OnTooLong::Refuse),
        _ => Err(PyValueError::new_err("on_too_long must be \"split\" or \"refuse\"")),
    }
}

#[pymethods]
impl Log {
    /// Opens a log of a store; creates it if it is missing, unless ``create`` is ``False``.
    ///
    /// Sizes count when it is created: ``rings`` rings of ``ring_bytes`` (one for each thread that logs), and a history
    /// of ``history_bytes``. The rest is for this handle. ``on_full``: a line for which the thread's ring has no room
    /// waits for the drainer (``"block"``, at most ``full_timeout`` seconds), is dropped and counted (``"drop"``), or
    /// takes the place of older ones (``"overwrite"``). ``on_no_drainer``: without a drainer the thread that logs a
    /// line writes all there is to standard output (``"stdout"``), or lines wait for one (``"keep"``). ``on_too_long``:
    /// a line that is too long becomes several (``"split"``), or is refused (``"refuse"``).
    #[new]
    #[pyo3(signature = (store, name="log", /, *, create=true, rings=None, ring_bytes=None, history_bytes=None, on_full="block",
        full_timeout=30.0, on_no_drainer="stdout", on_too_long="split"))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        store: &Bound<'_, StoreBase>,
        name: &str,
        create: bool,
        rings: Option<u64>,
        ring_bytes: Option<u64>,
        history_bytes: Option<u64>,
        on_full: &str,
        full_timeout: f64,
        on_no_drainer: &str,
        on_too_long: &str,
    ) -> PyResult<Log> {
        let mut options = LogOptions::new();
        options = rings.map_or(options, |rings| options.rings(rings));
        options = ring_bytes.map_or(options, |bytes| options.ring_bytes(bytes));
        options = history_bytes.map_or(options, |bytes| options.history_bytes(bytes));
        let no_drainer = no_drainer_of(on_no_drainer)?;
        options = options
            .on_full(full_of(on_full, full_timeout)?)
            .on_no_drainer(no_drainer)
            .on_too_long(too_long_of(on_too_long)?);
        let store = store.get().enter(py)?.clone();
        let open =
            || if create { Inner::open(&store, name, options) } else { Inner::open_existing(&store, name, options) };
        let log = py.detach(open).or_raise_log(py)?;
        Ok(Log { log: Mutex::new(Some(log)), writes: no_drainer == OnNoDrainer::Stdout })
    }

    /// The names of the logs of a store.
    #[staticmethod]
    #[pyo3(signature = (store, /))]
    fn list(py: Python<'_>, store: &Bound<'_, StoreBase>) -> PyResult<Vec<String>> {
        let store = store.get().enter(py)?;
        Ok(Inner::list(&*store))
    }

    /// Takes a log's name off it; whether there was one.
    #[staticmethod]
    #[pyo3(signature = (store, name, /))]
    fn remove(py: Python<'_>, store: &Bound<'_, StoreBase>, name: &str) -> PyResult<bool> {
        let store = store.get().enter(py)?;
        Inner::remove(&*store, name).or_raise_log(py)
    }

    /// Its name.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.log(py)?.name().to_owned())
    }

    /// Longest line in bytes that is not split.
    #[getter]
    fn line_max(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.log(py)?.line_max())
    }

    /// The least important level that is wanted, in all processes; ``None``: no lines at all. It may be set by name,
    /// too.
    #[getter]
    fn level<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.log(py)?.level().map(|level| crate::log_line::level(py, level)).transpose()
    }

    #[setter]
    fn set_level(&self, py: Python<'_>, level: Option<LevelName>) -> PyResult<()> {
        self.log(py)?.set_level(level.map(|level| level.0));
        Ok(())
    }

    /// Whether lines of this level are wanted.
    #[pyo3(signature = (level, /))]
    fn enabled(&self, py: Python<'_>, level: LevelName) -> PyResult<bool> {
        Ok(self.log(py)?.enabled(level.0))
    }

    /// Logs a line, with fields: text, bytes, numbers and truth values as they are, anything else as its ``str``. When
    /// it returns ``True`` the line will be written whatever becomes of this process. ``False``: its level is not
    /// wanted, or it was dropped.
    #[pyo3(signature = (level, text, /, **fields))]
    fn line(
        &self,
        py: Python<'_>,
        level: LevelName,
        text: Text<'_>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<bool> {
        self.put(py, level.0, &text, fields)
    }

    /// `line` at the level of errors.
    #[pyo3(signature = (text, /, **fields))]
    fn error(&self, py: Python<'_>, text: Text<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
        self.put(py, Level::Error, &text, fields)
    }

    /// `line` at the level of warnings.
    #[pyo3(signature = (text, /, **fields))]
    fn warn(&self, py: Python<'_>, text: Text<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
        self.put(py, Level::Warn, &text, fields)
    }

    /// `line` at the level of information.
    #[pyo3(signature = (text, /, **fields))]
    fn info(&self, py: Python<'_>, text: Text<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
        self.put(py, Level::Info, &text, fields)
    }

    /// `line` at the level of debugging.
    #[pyo3(signature = (text, /, **fields))]
    fn debug(&self, py: Python<'_>, text: Text<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
        self.put(py, Level::Debug, &text, fields)
    }

    /// `line` at the level of everything.
    #[pyo3(signature = (text, /, **fields))]
    fn trace(&self, py: Python<'_>, text: Text<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
        self.put(py, Level::Trace, &text, fields)
    }

    /// Becomes the drainer, in a thread of this process that writes lines to ``to`` until it is stopped, and then
    /// drains the rest: standard output (``None``), a descriptor or an object with ``fileno()``, a path, or a function
    /// of a `hashmere.LogLine`.
    ///
    /// ``format`` is ``"text"``, ``"json"`` or ``"colour"``. A file of more than ``max_bytes`` becomes ``path.1``, and
    /// so on up to ``path.keep``. ``level``: only lines that are as important. If there is a drainer, `LogTaken` is
    /// raised, or with ``standby`` this one waits until that one is gone. What a function raises is reported by
    /// ``sys.unraisablehook``; it may see a line again if the process is killed in it.
    #[pyo3(signature = (to=None, /, *, format="text", max_bytes=None, keep=0, level=None, standby=false))]
    #[allow(clippy::too_many_arguments)]
    fn drain(
        &self,
        py: Python<'_>,
        to: Option<&Bound<'_, PyAny>>,
        format: &str,
        max_bytes: Option<u64>,
        keep: u32,
        level: Option<LevelName>,
        standby: bool,
    ) -> PyResult<Drainer> {
        let log = self.log(py)?;
        let mut sink = sink(py, to, format, max_bytes, keep)?;
        if let Some(LevelName(level)) = level {
            sink = sink.only(wanted(level));
        }
        let start = || if standby { log.drain_standby(sink) } else { log.drain(sink) };
        Ok(Drainer::new(py.detach(start).or_raise_log(py)?))
    }

    /// Becomes the drainer, without a thread: for event loops. The arguments are those of ``drain``. Lines are written
    /// when ``poll`` of what this returns is called, by the caller of that.
    #[pyo3(signature = (to=None, /, *, format="text", max_bytes=None, keep=0, level=None))]
    fn drain_manual(
        &self,
        py: Python<'_>,
        to: Option<&Bound<'_, PyAny>>,
        format: &str,
        max_bytes: Option<u64>,
        keep: u32,
        level: Option<LevelName>,
    ) -> PyResult<ManualDrainer> {
        let log = self.log(py)?;
        let mut sink = sink(py, to, format, max_bytes, keep)?;
        if let Some(LevelName(level)) = level {
            sink = sink.only(wanted(level));
        }
        Ok(ManualDrainer::new(py.detach(|| log.drain_manual(sink)).or_raise_log(py)?))
    }

    /// The rings that threads have, or had, at about this moment: a dict for each, of its number, whether it is
    /// ``owned``, ``thread``, ``pid`` and ``process`` of its last owner, ``waiting_bytes``, and how many lost lines are
    /// ``unreported_drops``. A thread gives its ring back a moment after ``join`` has returned.
    fn rings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rings = self.log(py)?.rings().or_raise_log(py)?;
        let dict = |ring: &RingStats| {
            let dict = PyDict::new(py);
            dict.set_item("ring", ring.ring)?;
            dict.set_item("owned", ring.is_owned)?;
            dict.set_item("thread", ring.thread)?;
            dict.set_item("pid", ring.pid)?;
            dict.set_item("process", String::from_utf8_lossy(&ring.process))?;
            dict.set_item("waiting_bytes", ring.waiting_bytes)?;
            dict.set_item("unreported_drops", ring.unreported_drops)?;
            Ok(dict)
        };
        rings.iter().map(dict).collect()
    }

    /// An iterator over lines that were drained, as `hashmere.LogLine`, without consuming them. ``since`` is ``"now"``,
    /// ``"oldest"``, or how many lines back to begin. It ends when nothing has come for ``timeout`` seconds, without at
    /// once; ``None``: never.
    #[pyo3(signature = (since=None, /, *, timeout=Some(0.0)), text_signature = "($self, since=None, /, *, timeout=0.0)")]
    fn follow(&self, py: Python<'_>, since: Option<&Bound<'_, PyAny>>, timeout: Option<f64>) -> PyResult<Follower> {
        let since = self::since(since)?;
        Ok(Follower::new(self.log(py)?.follow(since).or_raise_log(py)?, timeout))
    }

    /// Waits until all lines that were logged before were delivered. ``False``: they were not within ``timeout``
    /// seconds.
    #[pyo3(signature = (timeout=Some(5.0)), text_signature = "($self, timeout=5.0)")]
    fn flush(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let log = self.log(py)?;
        let flushed =
            in_slices(py, timeout, |slice| Ok(py.detach(|| log.flush(slice)).or_raise_log(py)?.then_some(())))?;
        Ok(flushed.is_some())
    }

    /// Figures of about now.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.log(py)?.stats().or_raise_log(py)?;
        let dict = PyDict::new(py);
        for (name, figure) in [
            ("bytes", stats.bytes),
            ("rings", stats.rings),
            ("ring_bytes", stats.ring_bytes),
            ("history_bytes", stats.history_bytes),
            ("line_max", stats.line_max),
            ("rings_used", stats.rings_used),
            ("waiting_bytes", stats.waiting_bytes),
            ("undelivered_bytes", stats.undelivered_bytes),
            ("lines", stats.lines),
            ("lost", stats.lost),
            ("halves", stats.halves),
            ("threads", stats.threads),
        ] {
            dict.set_item(name, figure)?;
        }
        dict.set_item("drainer", stats.drainer)?;
        Ok(dict)
    }

    /// Lets go of it; drainers and followers go on.
    fn close(&self) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}
