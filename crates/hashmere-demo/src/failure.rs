//! How the demo fails: a text for people.

use hashmere::{OpenError, ReadError, WriteError};
use std::fmt;
use std::io;

/// What went wrong, and what to do.
#[derive(Debug)]
pub struct Failure(pub String);

/// Done, or why not.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// A failure with this text.
    pub fn new(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }

    /// An error of the system: `action` is what was tried, such as `wait for a worker`.
    pub fn io(action: impl fmt::Display, source: &io::Error) -> Failure {
        Failure(format!("cannot {action}: {source}"))
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        Failure(error.to_string())
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        Failure(error.to_string())
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        Failure(error.to_string())
    }
}
