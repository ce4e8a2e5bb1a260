//! Why something with queues failed. Empty and full are results, not errors.

use hashmere_engine::{Error, ReadError, WriteError};
use std::fmt;

/// Any error of this crate. Small, since it is part of the result of operations of a few nanoseconds.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueueError {
    /// The store says no; its code.
    Store(
        /// What it says.
        Box<Error>,
    ),
    /// There is no such pool or queue. Code 60.
    NotFound(
        /// Its name.
        Box<str>,
    ),
    /// There is such a pool or queue already, of other sizes or kind than asked for. Code 61.
    Exists(
        /// Its name, and how it differs.
        Box<str>,
    ),
    /// A size, a name or an option that cannot be. Code 62.
    BadOption(
        /// What is wrong, and what would be right.
        &'static str,
    ),
    /// All queues, endpoints or slots of the pool are taken. Code 63.
    TooMany(
        /// Which, and what to do.
        &'static str,
    ),
    /// Another endpoint is the only one that may do this with this queue, until it is dropped or its process ends.
    /// Code 64.
    Taken(
        /// `"producer"` or `"consumer"`.
        &'static str,
    ),
    /// This process was forked from the one that opened the pool or joined the barrier: do so again. Code 65.
    Forked,
    /// The pool, or the set of atomics, was removed. Code 66.
    Removed,
    /// The queue is of another pool than the endpoint. Code 67.
    OtherPool,
    /// A participant that others counted on is gone, or the key holds something else. Code 68.
    Broken(
        /// What was found.
        &'static str,
    ),
    /// This thread would wait for itself: [`once`](crate::once()) was called for a key whose value it is computing just
    /// then, or it holds the [`Mutex`](crate::Mutex) or [`RwLock`](crate::RwLock) that it wants to lock, or every
    /// permit of the [`Semaphore`](crate::Semaphore) of which it wants one. Code 69.
    Reentered {
        /// `"once"`, `"mutex"`, `"readers-writer lock"` or `"semaphore"`.
        what: &'static str,
        /// The key; bytes that are not UTF-8 are U+FFFD.
        key: Box<str>,
    },
    /// There is no room for a pool or a set of atomics; the code of what the store says.
    NoRoom {
        /// Bytes that it needs, in one piece.
        bytes: u64,
        /// What the store says.
        error: Box<Error>,
    },
}

impl QueueError {
    pub(crate) fn damaged(what: &'static str, offset: u64) -> QueueError {
        WriteError::Corrupt { what, offset }.into()
    }

    /// The stable number of this error, the same in every language.
    pub fn code(&self) -> i32 {
        match self {
            Self::Store(error) => error.code(),
            Self::NotFound(_) => 60,
            Self::Exists(_) => 61,
            Self::BadOption(_) => 62,
            Self::TooMany(_) => 63,
            Self::Taken(_) => 64,
            Self::Forked => 65,
            Self::Removed => 66,
            Self::OtherPool => 67,
            Self::Broken(_) => 68,
            Self::Reentered { .. } => 69,
            Self::NoRoom { error, .. } => error.code(),
        }
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::NotFound(name) => write!(f, "there is no {name}; create it, or check the name"),
            Self::Exists(name) => write!(f, "there is a {name}; open it, remove it, or choose another name"),
            Self::BadOption(what) => f.write_str(what),
            Self::TooMany(what) => f.write_str(what),
            Self::Taken(role) => {
                write!(f, "another endpoint is the {role} of this queue, which has one at a time; drop that endpoint first, or use an MPMC queue")
            }
            Self::Forked => f.write_str("this was opened, or joined, before a fork; do so again in this process"),
            Self::Removed => f.write_str("the pool or set was removed; create a new one"),
            Self::OtherPool => f.write_str("the queue is of another pool; elements move within one pool only"),
            Self::Broken(what) => f.write_str(what),
            Self::Reentered { what: "semaphore", key } => {
                write!(f, "this thread holds every permit of the semaphore {key:?}, so this would wait for itself: release one first")
            }
            Self::Reentered { what, key } if *what != "once" => {
                write!(f, "the {what} {key:?} was locked by this thread and not released since; it is not recursive, so this would wait for itself: release it first")
            }
            Self::Reentered { key, .. } => {
                write!(f, "`once` of {key:?} was called by this thread, which is computing the value of that key; return it from there")
            }
            Self::NoRoom { bytes, error } => write!(f, "{error}; {bytes} bytes in one piece are needed"),
        }
    }
}

impl std::error::Error for QueueError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) | Self::NoRoom { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<WriteError> for QueueError {
    fn from(error: WriteError) -> QueueError {
        QueueError::Store(Box::new(error.into()))
    }
}
impl From<ReadError> for QueueError {
    fn from(error: ReadError) -> QueueError {
        QueueError::Store(Box::new(error.into()))
    }
}
impl From<Error> for QueueError {
    fn from(error: Error) -> QueueError {
        QueueError::Store(Box::new(error))
    }
}
