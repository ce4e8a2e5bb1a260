//! Why a server cannot be followed.

use std::io;

/// Why there is no link.
#[derive(Debug)]
pub(super) enum Failed {
    /// It may be there later.
    Passing(String),
    /// Waiting does not help.
    Final(String),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Passing(error.to_string())
    }
}
