//! All keys.

use crate::bytes;
use crate::error::OrRaise;
use crate::item::item;
use crate::key::Key;
use crate::store::StoreBase;
use hashmere::{Cursor, Filter, Pair, ReadError, Store};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// At most this many pairs and bytes, and for this time, are read ahead without the interpreter.
const AHEAD: usize = 128;
const AHEAD_BYTES: usize = 1 << 20;
const AHEAD_TIME: Duration = Duration::from_millis(5);

/// What a scan returns for each key.
#[derive(Clone, Copy)]
enum Yield {
    Key,
    Pair,
    Item,
}

/// An iterator over the keys of a store.
///
/// A key that exists all the while is returned exactly once, however the store grows and is written to; one that comes
/// or goes during the scan is returned or not. Writers never wait for it.
#[pyclass(frozen, module = "hashmere._hashmere")]
pub struct Scan {
    store: Py<StoreBase>,
    filter: Filter,
    yields: Yield,
    state: Mutex<State>,
}

struct State {
    /// Read ahead, each with where to go on behind it.
    ahead: VecDeque<(Pair, Option<Cursor>)>,
    failed: Option<ReadError>,
    /// Where to read on; `None`: the end.
    next: Option<Cursor>,
    /// Behind what was returned.
    reached: Option<Cursor>,
}

impl State {
    fn fill(&mut self, store: &Store, filter: &Filter) {
        let Some(from) = self.next else { return };
        let mut scan = store.scan(from, filter.clone());
        let start = Instant::now();
        let mut bytes = 0;
        while self.ahead.len() < AHEAD && bytes < AHEAD_BYTES {
            match scan.next() {
                None => {
                    self.next = None;
                    break;
                }
                Some(Err(error)) => {
                    self.failed = Some(error);
                    self.next = None;
                    break;
                }
                Some(Ok(pair)) => {
                    bytes += pair.key.len() + pair.value.len();
                    self.next = scan.cursor();
                    self.ahead.push_back((pair, self.next));
                }
            }
            if start.elapsed() > AHEAD_TIME {
                break;
            }
        }
    }
}

/// Which keys: what the calls that take a filter are given.
pub struct Which<'a, 'py> {
    pub prefix: Option<&'a Bound<'py, PyAny>>,
    pub glob: Option<&'a Bound<'py, PyAny>>,
    pub regex: Option<&'a Bound<'py, PyAny>>,
    pub part: Option<(u32, u32)>,
}

/// Letters of the flags of `re` in the syntax of the engine.
const FLAGS: [(&str, &str); 4] = [("IGNORECASE", "i"), ("MULTILINE", "m"), ("DOTALL", "s"), ("VERBOSE", "x")];

/// A regular expression: `str`, or a compiled pattern of `re`, whose flags are kept.
fn expression(given: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = given.py();
    let re = py.import("re")?;
    if let Ok(text) = given.extract::<String>() {
        return Ok(text);
    }
    if !given.is_instance(&re.getattr("Pattern")?)? {
        return Err(bytes::refused(given, "regex must be str or a pattern of re"));
    }
    let Ok(text) = given.getattr("pattern")?.extract::<String>() else {
        return Err(PyValueError::new_err("a regex is of str; in it, (?-u) takes the key as bytes"));
    };
    let flags: u32 = given.getattr("flags")?.extract()?;
    let mut letters = String::new();
    for (name, letter) in FLAGS {
        if flags & re.getattr(name)?.extract::<u32>()? != 0 {
            letters.push_str(letter);
        }
    }
    Ok(if letters.is_empty() { text } else { format!("(?{letters}){text}") })
}

/// The filter of a call.
pub fn filter(which: &Which<'_, '_>) -> PyResult<Filter> {
    let Which { prefix, glob, regex, part } = *which;
    let bytes = |text: &Bound<'_, PyAny>, must| -> PyResult<Vec<u8>> {
        // SAFETY: borrowed for this call.
        unsafe { bytes::fixed(text.as_ptr()) }.map(<[u8]>::to_vec).ok_or_else(|| bytes::refused(text, must))
    };
    let mut filter = Filter::all();
    if let Some(prefix) = prefix {
        filter = filter.prefix(bytes(prefix, "prefix must be bytes or str")?);
    }
    if let Some(glob) = glob {
        filter = filter.glob(bytes(glob, "glob must be bytes or str")?).or_raise(glob.py())?;
    }
    if let Some(regex) = regex {
        filter = filter.regex(expression(regex)?).or_raise(regex.py())?;
    }
    if let Some((index, count)) = part {
        filter = Python::attach(|py| filter.part(index, count).or_raise(py))?;
    }
    Ok(filter)
}

fn yields(what: &str) -> PyResult<Yield> {
    match what {
        "keys" => Ok(Yield::Key),
        "pairs" => Ok(Yield::Pair),
        "items" => Ok(Yield::Item),
        _ => Err(PyValueError::new_err(format!("a scan yields \"keys\", \"pairs\" or \"items\", not {what:?}"))),
    }
}

fn object<'py>(py: Python<'py>, pair: &Pair, yields: Yield) -> PyResult<Bound<'py, PyAny>> {
    let key = || PyBytes::new(py, &pair.key);
    match yields {
        Yield::Key => Ok(key().into_any()),
        Yield::Pair => Ok((key(), PyBytes::new(py, &pair.value)).into_pyobject(py)?.into_any()),
        Yield::Item => item(py, &pair.key, &pair.value, &pair.metadata),
    }
}

#[pymethods]
impl StoreBase {
    /// The iterator behind ``scan``, ``keys`` and the like.
    #[pyo3(signature = (yields, cursor, prefix, glob, regex, part, /))]
    fn _scan(
        this: Bound<'_, StoreBase>,
        yields: &str,
        cursor: u64,
        prefix: Option<&Bound<'_, PyAny>>,
        glob: Option<&Bound<'_, PyAny>>,
        regex: Option<&Bound<'_, PyAny>>,
        part: Option<(u32, u32)>,
    ) -> PyResult<Scan> {
        let yields = self::yields(yields)?;
        let mut filter = filter(&Which { prefix, glob, regex, part })?;
        if matches!(yields, Yield::Key) {
            filter = filter.keys_only();
        }
        drop(this.get().enter(this.py())?);
        let from = Some(Cursor(cursor));
        let state = State { ahead: VecDeque::new(), failed: None, next: from, reached: from };
        Ok(Scan { store: this.unbind(), filter, yields, state: Mutex::new(state) })
    }

    /// Scans with several threads and calls ``f(key, value)`` for each pair, from all of them. Reading and filtering
    /// run side by side; the calls do only where Python threads do. The first exception of any call is raised, when all
    /// have ended.
    #[pyo3(signature = (f, /, *, threads=4, prefix=None, glob=None, regex=None, part=None))]
    #[allow(clippy::too_many_arguments)]
    fn parallel_scan(
        &self,
        py: Python<'_>,
        f: Py<PyAny>,
        threads: usize,
        prefix: Option<&Bound<'_, PyAny>>,
        glob: Option<&Bound<'_, PyAny>>,
        regex: Option<&Bound<'_, PyAny>>,
        part: Option<(u32, u32)>,
    ) -> PyResult<()> {
        if threads == 0 || threads > 1024 {
            return Err(PyValueError::new_err("threads must be from 1 to 1024"));
        }
        let filter = filter(&Which { prefix, glob, regex, part })?;
        let store = self.enter(py)?;
        let store: &Store = &store;
        let failed: Mutex<Option<PyErr>> = Mutex::new(None);
        let scanned = py.detach(|| {
            store.parallel_scan(threads, &filter, |pair| {
                if lock(&failed).is_some() {
                    return;
                }
                Python::attach(|py| {
                    let arguments = (PyBytes::new(py, &pair.key), PyBytes::new(py, &pair.value));
                    if let Err(error) = f.bind(py).call1(arguments) {
                        lock(&failed).get_or_insert(error);
                    }
                });
            })
        });
        let failed = lock(&failed).take();
        failed.map_or_else(|| scanned.or_raise(py), Err)
    }
}

#[pymethods]
impl StoreBase {
    /// Where a scan begins with this key: it is the first that a scan from there returns, if it passes the filter;
    /// those that a whole scan returns before it are left out. ``None``: the key is absent.
    #[pyo3(signature = (key, /))]
    fn cursor_of(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<u64>> {
        Ok(self.enter(py)?.cursor_of(key.0).or_raise(py)?.map(|cursor| cursor.0))
    }
}

/// What it guards is whole at every moment, so a panic elsewhere does no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Scan {
    fn __iter__(this: Bound<'_, Scan>) -> Bound<'_, Scan> {
        this
    }

    /// ``Scan[bytes]``, for annotations.
    #[classmethod]
    fn __class_getitem__<'py>(class: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        class.py().import("types")?.getattr("GenericAlias")?.call1((class, item))
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut ready = self.take();
        while ready.is_none() && !self.is_at_end() {
            let store = self.store.get().enter(py)?;
            let store: &Store = &store;
            py.detach(|| lock(&self.state).fill(store, &self.filter));
            py.check_signals()?;
            ready = self.take();
        }
        if let Some(pair) = ready {
            return object(py, &pair, self.yields).map(Some);
        }
        match lock(&self.state).failed.take() {
            Some(error) => Err(error).or_raise(py),
            None => Ok(None),
        }
    }

    /// Where to go on behind what was returned so far, in any process and at any later time; ``None``: this is the end.
    #[getter]
    fn cursor(&self) -> Option<u64> {
        lock(&self.state).reached.map(|cursor| cursor.0)
    }
}

impl Scan {
    fn take(&self) -> Option<Pair> {
        let mut state = lock(&self.state);
        match state.ahead.pop_front() {
            Some((pair, behind)) => {
                state.reached = behind;
                Some(pair)
            }
            None => {
                state.reached = state.next;
                None
            }
        }
    }

    fn is_at_end(&self) -> bool {
        let state = lock(&self.state);
        state.next.is_none() && state.ahead.is_empty()
    }
}
