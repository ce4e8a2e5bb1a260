//! Levels, fields and lines of a log, between Python and Rust.

use crate::bytes::{self, Bytes};
use hashmere_log::{Level, LogLine, Value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

static LEVEL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static LINE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

pub(crate) fn of_types<'py>(
    py: Python<'py>,
    kept: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let load = || Ok::<_, PyErr>(py.import("hashmere._types")?.getattr(name)?.unbind());
    Ok(kept.get_or_try_init(py, load)?.bind(py))
}

/// A level as an argument: its name, its number, or a `hashmere.Level`.
pub struct LevelName(pub Level);

impl<'a, 'py> FromPyObject<'a, 'py> for LevelName {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<LevelName> {
        let level = if let Ok(name) = object.cast::<PyString>() {
            name.to_string_lossy().parse().ok()
        } else if object.cast::<PyInt>().is_ok() {
            object.extract::<u64>().ok().and_then(Level::from_number)
        } else {
            return Err(PyTypeError::new_err("a level is a hashmere.Level, its name or its number"));
        };
        let wrong = || PyValueError::new_err("a level is error, warn, info, debug or trace, or a number from 1 to 5");
        level.map(LevelName).ok_or_else(wrong)
    }
}

/// The `hashmere.Level` of a level.
pub fn level(py: Python<'_>, level: Level) -> PyResult<Bound<'_, PyAny>> {
    of_types(py, &LEVEL, "Level")?.call1((level as u8,))
}

/// Whether a line is as important as this.
pub fn wanted(least: Level) -> impl Fn(&LogLine) -> bool + Send {
    move |record| record.level() <= least
}

enum Field<'a> {
    Value(Value<'static>),
    Bytes(Bytes<'a>),
    Text(String),
}

/// Fields of a line, as the log takes them.
pub struct Fields<'py> {
    /// Borrow from `values`; dropped first, as fields are dropped in order.
    fields: Vec<(String, Field<'static>)>,
    _values: Vec<Bound<'py, PyAny>>,
}

impl<'py> Fields<'py> {
    /// Of a dict with texts as keys.
    pub fn new(dict: &Bound<'py, PyDict>) -> PyResult<Fields<'py>> {
        let (mut fields, mut values) = (Vec::with_capacity(dict.len()), Vec::with_capacity(dict.len()));
        for (key, value) in dict {
            fields.push((key.cast::<PyString>()?.to_string_lossy().into_owned(), field(&value)?));
            values.push(value);
        }
        Ok(Fields { fields, _values: values })
    }

    /// The fields, borrowed from here.
    pub fn values(&self) -> Vec<(&str, Value<'_>)> {
        self.fields.iter().map(|(key, field)| (key.as_str(), field.value())).collect()
    }
}

impl Field<'static> {
    fn value(&self) -> Value<'_> {
        match self {
            Field::Value(value) => *value,
            Field::Bytes(bytes) => Value::Text(bytes),
            Field::Text(text) => Value::Text(text.as_bytes()),
        }
    }
}

fn field(value: &Bound<'_, PyAny>) -> PyResult<Field<'static>> {
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Field::Value(Value::Truth(truth.is_true())));
    }
    if value.cast::<PyInt>().is_ok() {
        if let Ok(number) = value.extract::<i64>() {
            return Ok(Field::Value(Value::Signed(number)));
        }
        if let Ok(number) = value.extract::<u64>() {
            return Ok(Field::Value(Value::Unsigned(number)));
        }
    } else if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(Field::Value(Value::Float(number.value())));
    } else if value.cast::<PyBytes>().is_ok() {
        let bytes = bytes::value(value.as_borrowed())?;
        // SAFETY: the object is kept beside the field, and is dropped after it; the bytes of a `bytes` never change.
        return Ok(Field::Bytes(unsafe { std::mem::transmute::<Bytes<'_>, Bytes<'static>>(bytes) }));
    }
    // Texts with half surrogates, which have no UTF-8, as well as they can be written.
    Ok(Field::Text(value.str()?.to_string_lossy().into_owned()))
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A `hashmere.LogLine`.
pub fn line<'py>(py: Python<'py>, record: &LogLine) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    for (key, value) in record.fields() {
        let key = text(key);
        match value {
            Value::Text(value) => fields.set_item(key, text(value))?,
            Value::Signed(number) => fields.set_item(key, number)?,
            Value::Unsigned(number) => fields.set_item(key, number)?,
            Value::Float(number) => fields.set_item(key, number)?,
            Value::Truth(truth) => fields.set_item(key, truth)?,
            _ => {}
        }
    }
    let who = (record.pid(), record.thread(), text(record.process()));
    of_types(py, &LINE, "LogLine")?.call1((
        record.time_ns(),
        level(py, record.level())?,
        text(record.text()),
        fields,
        who.0,
        who.1,
        who.2,
        record.lost(),
        record.is_continued(),
        record.is_continuation(),
        record.position(),
        record.is_note(),
    ))
}
