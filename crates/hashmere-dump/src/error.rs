//! Why a dump or a load ended.

use hashmere::{Error, ReadError, WriteError};
use std::fmt;
use std::io;

/// Why a dump failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum DumpError {
    /// The file cannot be written. Code 10.
    Io {
        /// What was tried, such as `write out.tsv`.
        action: String,
        /// What the system said.
        source: io::Error,
    },
    /// The store cannot be opened or read. The code of that error.
    Store(Error),
}

/// Why a load failed. What is stored by then are the lines from the first on.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be opened or read. Code 10.
    Io {
        /// What was tried, such as `read in.tsv`.
        action: String,
        /// What the system said.
        source: io::Error,
        /// How many lines are stored.
        loaded: u64,
    },
    /// A line is not a record. Code 91.
    Malformed {
        /// The file.
        file: String,
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
        /// How many lines are stored.
        loaded: u64,
    },
    /// The store cannot be opened or written. The code of that error.
    Store {
        /// Why.
        error: Error,
        /// How many lines are stored.
        loaded: u64,
        /// Of the lines up to this one, behind those, some are stored as well.
        tried: u64,
    },
}

impl DumpError {
    /// The stable number of this error, the same in every language.
    pub fn code(&self) -> i32 {
        match self {
            DumpError::Io { .. } => 10,
            DumpError::Store(error) => error.code(),
        }
    }
}

impl LoadError {
    /// The stable number of this error, the same in every language.
    pub fn code(&self) -> i32 {
        match self {
            LoadError::Io { .. } => 10,
            LoadError::Malformed { .. } => 91,
            LoadError::Store { error, .. } => error.code(),
        }
    }

    /// What is stored, in words.
    pub fn so_far(&self) -> String {
        let (loaded, tried) = match self {
            LoadError::Io { loaded, .. } | LoadError::Malformed { loaded, .. } => (*loaded, 0),
            LoadError::Store { loaded, tried, .. } => (*loaded, *tried),
        };
        let lines = match loaded {
            0 => "no line before it was loaded".to_string(),
            1 => "the first line is loaded".to_string(),
            n => format!("the first {n} lines are loaded"),
        };
        if tried > loaded {
            return format!("{lines}, and of the lines up to {tried} those that fitted");
        }
        lines
    }
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::Io { action, source } => write!(f, "cannot {action}: {source}"),
            DumpError::Store(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Io { action, source, loaded: 0 } => return write!(f, "cannot {action}: {source}"),
            LoadError::Store { error, loaded: 0, tried: 0 } => return error.fmt(f),
            LoadError::Io { action, source, .. } => write!(f, "cannot {action}: {source}")?,
            LoadError::Malformed { file, line, reason, .. } => write!(f, "{file}, line {line}: {reason}")?,
            LoadError::Store { error, .. } => error.fmt(f)?,
        }
        write!(f, "; {}", self.so_far())
    }
}

impl std::error::Error for DumpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DumpError::Io { source, .. } => Some(source),
            DumpError::Store(error) => Some(error),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LoadError::Io { source, .. } => Some(source),
            LoadError::Malformed { .. } => None,
            LoadError::Store { error, .. } => Some(error),
        }
    }
}

impl From<hashmere::OpenError> for DumpError {
    fn from(error: hashmere::OpenError) -> DumpError {
        DumpError::Store(error.into())
    }
}

impl From<ReadError> for DumpError {
    fn from(error: ReadError) -> DumpError {
        DumpError::Store(error.into())
    }
}

impl From<hashmere::OpenError> for LoadError {
    fn from(error: hashmere::OpenError) -> LoadError {
        LoadError::Store { error: error.into(), loaded: 0, tried: 0 }
    }
}

impl LoadError {
    pub(crate) fn store(error: WriteError, loaded: u64, tried: u64) -> LoadError {
        LoadError::Store { error: error.into(), loaded, tried }
    }
}
