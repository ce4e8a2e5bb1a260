//! Why something with a log failed.

use hashmere_engine::{Error, ReadError, WriteError};
use std::fmt;
use std::io;

/// Any error of this crate. Small, since it is part of the result of operations of a few nanoseconds.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// The store says no; its code.
    Store(
        /// What it says.
        Box<Error>,
    ),
    /// There is no such log. Code 70.
    NotFound(
        /// Its name.
        Box<str>,
    ),
    /// A size, a name or an option that cannot be. Code 71.
    BadOption(
        /// What is wrong, and what would be right.
        &'static str,
    ),
    /// Every ring of the log belongs to a living thread. Code 72.
    TooMany {
        /// How many there are.
        rings: u64,
    },
    /// Another process, which is alive, drains the log. Code 73.
    Taken {
        /// Its process id, in its own PID namespace.
        pid: u32,
    },
    /// The line is longer than the log takes in one piece, and must not be split. Code 74.
    TooLong {
        /// Its length in bytes, fields included.
        bytes: u64,
        /// What a line may have.
        limit: u64,
    },
    /// The thread's ring was full for as long as the caller wanted to wait. Code 75.
    Full {
        /// The process that should have drained it; 0: there is no drainer.
        pid: u32,
    },
    /// The log was removed. Code 76.
    Removed,
    /// What the drainer writes to failed. The lines stay in the log. Code 77.
    Output {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A line was logged while this thread was logging one: by a signal handler, or while a value was being written.
    /// Code 78.
    Reentered,
    /// There is no room for a log; the code of what the store says.
    NoRoom {
        /// Bytes that the log needs, in one piece.
        bytes: u64,
        /// What the store says.
        error: Box<Error>,
    },
}

impl LogError {
    pub(crate) fn damaged(what: &'static str, offset: u64) -> LogError {
        WriteError::Corrupt { what, offset }.into()
    }

    /// An error of creating a log of this many bytes.
    pub(crate) fn no_room(error: WriteError, bytes: u64) -> LogError {
        if error.is_no_room() {
            LogError::NoRoom { bytes, error: Box::new(error.into()) }
        } else {
            error.into()
        }
    }

    pub(crate) fn output(action: &'static str) -> impl FnOnce(io::Error) -> LogError {
        move |source| LogError::Output { action, source }
    }

    /// The stable number of this error, the same in every language.
    pub fn code(&self) -> i32 {
        match self {
            Self::Store(error) => error.code(),
            Self::NotFound(_) => 70,
            Self::BadOption(_) => 71,
            Self::TooMany { .. } => 72,
            Self::Taken { .. } => 73,
            Self::TooLong { .. } => 74,
            Self::Full { .. } => 75,
            Self::Removed => 76,
            Self::Output { .. } => 77,
            Self::Reentered => 78,
            Self::NoRoom { error, .. } => error.code(),
        }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::NotFound(name) => write!(f, "there is no log {name:?}; open one for writing, or check the name"),
            Self::BadOption(what) => f.write_str(what),
            Self::TooMany { rings } => {
                write!(f, "all {rings} rings of the log belong to living threads; create it with more, or log from fewer threads")
            }
            Self::Taken { pid } => {
                write!(f, "process {pid} drains the log; follow it instead, or stop that process's drainer")
            }
            Self::TooLong { bytes, limit } => {
                write!(f, "a line of {bytes} bytes, where one has at most {limit}; shorten it, allow splitting, or create the log with larger rings")
            }
            Self::Full { pid: 0 } => {
                f.write_str("the ring is full and no process drains the log; start a drainer (hashmere log)")
            }
            Self::Full { pid } => {
                write!(f, "the ring is full; process {pid}, which drains the log, is stopped or too slow")
            }
            Self::Removed => f.write_str("the log was removed; open it again to create a new one"),
            Self::Output { action, source } => write!(f, "could not {action}: {source}; the lines stay in the log"),
            Self::NoRoom { bytes, error } => {
                write!(f, "{error}; the log needs {bytes} bytes in one piece; fewer or smaller rings and a shorter history need less")
            }
            Self::Reentered => f.write_str("a line was logged while this thread was logging another; it was refused"),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) | Self::NoRoom { error, .. } => Some(error),
            Self::Output { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<WriteError> for LogError {
    fn from(error: WriteError) -> LogError {
        LogError::Store(Box::new(error.into()))
    }
}
impl From<ReadError> for LogError {
    fn from(error: ReadError) -> LogError {
        LogError::Store(Box::new(error.into()))
    }
}
impl From<Error> for LogError {
    fn from(error: Error) -> LogError {
        LogError::Store(Box::new(error))
    }
}
