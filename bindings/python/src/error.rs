//! Errors of the engine as Python exceptions: one class for each code, in `hashmere.errors`.

use hashmere::{BackupError, Error, OpenError, ReadError, WriteError};
use hashmere_feed::FeedError;
use hashmere_log::LogError;
use hashmere_queue::QueueError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

/// The code of a closed handle.
pub const CLOSED: i32 = 101;

static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

fn classes<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyDict>> {
    let load = || Ok::<_, PyErr>(py.import("hashmere.errors")?.getattr("BY_CODE")?.cast_into::<PyDict>()?.unbind());
    Ok(CLASSES.get_or_try_init(py, load)?.bind(py))
}

/// The exception for a code. With an `errno` it is an `OSError` as well.
pub fn exception(py: Python<'_>, code: i32, text: String, errno: Option<i32>) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let Some(class) = classes(py)?.get_item(code)? else {
            return Ok(PyRuntimeError::new_err(format!("{text} (code {code})")));
        };
        let arguments = match errno {
            Some(errno) => (errno, text).into_pyobject(py)?.into_any(),
            None => (text,).into_pyobject(py)?.into_any(),
        };
        Ok(PyErr::from_value(class.call1(arguments.cast::<PyTuple>()?)?))
    };
    make().unwrap_or_else(|error| error)
}

fn os_number(source: &std::io::Error) -> Option<i32> {
    source.raw_os_error()
}

/// An error of the engine, to be raised.
pub fn raised(py: Python<'_>, error: impl Into<Error>) -> PyErr {
    let error = error.into();
    let errno = errno_of(&error);
    let raised = exception(py, error.code(), error.to_string(), errno);
    if let Error::Write(WriteError::Busy { pid, .. }) | Error::Backup(BackupError::Running { pid, .. }) = &error {
        // Only these have a number to ask for.
        if let Err(failed) = raised.value(py).setattr("pid", *pid) {
            return failed;
        }
    }
    raised
}

pub fn errno_of(error: &Error) -> Option<i32> {
    match error {
        Error::Open(OpenError::NotFound { .. }) => Some(2),
        Error::Open(OpenError::AlreadyExists { .. }) | Error::Backup(BackupError::Exists { .. }) => Some(17),
        Error::Open(OpenError::InsecurePermissions { .. }) => Some(13),
        Error::Open(OpenError::Io { source, .. } | OpenError::NoSpace { source, .. })
        | Error::Write(WriteError::Io { source, .. } | WriteError::NoSpace(source)) => os_number(source),
        _ => None,
    }
}

/// `?` for results of the queues.
pub trait QueueResult<T> {
    /// Raises the error.
    fn or_raise_queue(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> QueueResult<T> for Result<T, QueueError> {
    fn or_raise_queue(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| queue(py, error))
    }
}

/// An error of the queues, to be raised.
pub fn queue(py: Python<'_>, error: QueueError) -> PyErr {
    match error {
        QueueError::Store(error) => raised(py, *error),
        QueueError::NoRoom { error: ref inner, .. } => exception(py, inner.code(), error.to_string(), errno_of(inner)),
        other => exception(py, other.code(), other.to_string(), None),
    }
}

/// An error of a log, to be raised.
pub fn log(py: Python<'_>, error: LogError) -> PyErr {
    let errno = match &error {
        LogError::Output { source, .. } => os_number(source),
        LogError::NoRoom { error, .. } => errno_of(error),
        _ => None,
    };
    let error = match error {
        LogError::Store(error) => return raised(py, *error),
        other => other,
    };
    let raised = exception(py, error.code(), error.to_string(), errno);
    match error {
        LogError::Taken { pid } | LogError::Full { pid } => {
            raised.value(py).setattr("pid", pid).map_or_else(|failed| failed, |()| raised)
        }
        _ => raised,
    }
}

/// `?` for results of the log.
pub trait LogResult<T> {
    /// Raises the error.
    fn or_raise_log(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> LogResult<T> for Result<T, LogError> {
    fn or_raise_log(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| log(py, error))
    }
}

/// `?` for results of a feed.
pub trait FeedResult<T> {
    /// Raises the error.
    fn or_raise_feed(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> FeedResult<T> for Result<T, FeedError> {
    fn or_raise_feed(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| match error {
            FeedError::Store(error) => raised(py, *error),
            other => exception(py, other.code(), other.to_string(), None),
        })
    }
}

/// The error of a closed handle.
pub fn closed(py: Python<'_>) -> PyErr {
    exception(py, CLOSED, "the store was closed; open it again".into(), None)
}

/// The error of something else that is not open any more.
pub fn gone(py: Python<'_>, what: &str) -> PyErr {
    exception(py, CLOSED, what.into(), None)
}

/// A call that does not fit the state of things.
pub fn misuse(py: Python<'_>, what: &'static str) -> PyErr {
    raised(py, WriteError::InvalidState(what))
}

/// `?` for results of the engine, with the interpreter at hand.
pub trait OrRaise<T> {
    /// Raises the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, ReadError> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, error))
    }
}

impl<T> OrRaise<T> for Result<T, WriteError> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, error))
    }
}

impl<T> OrRaise<T> for Result<T, BackupError> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, error))
    }
}

impl<T> OrRaise<T> for Result<T, OpenError> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, error))
    }
}
