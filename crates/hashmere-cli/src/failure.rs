//! How a command fails: one type, which knows its text and its exit code.

use hashmere::{BackupError, Error, OpenError, ReadError, WriteError};
use hashmere_dump::{DumpError, LoadError};
use hashmere_feed::FeedError;
use hashmere_replica::ReplicaError;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// Codes of the errors that are the command's own. The engine's are below 90.
pub mod code {
    /// Reading or writing a file or a standard stream failed.
    pub const IO: i32 = 90;
    /// A line of the input of `load` or `batch` is malformed.
    pub const MALFORMED: i32 = 91;
    /// `check` found problems.
    pub const NOT_CLEAN: i32 = 92;
    /// `bench` read a value that is not the one it wrote.
    pub const WRONG_VALUE: i32 = 93;
    /// The server could not start.
    pub const SERVE: i32 = 95;
    /// A sink of the feed takes no more.
    pub const SINK: i32 = 96;
    /// Backup, feed directory and moment do not fit together.
    pub const RESTORE: i32 = 97;
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The key is not there or the condition is not met: exit code 1. The text is a message, not an error.
    NotMet(String),
    /// The arguments make no sense: exit code 2.
    Usage(String),
    /// Anything else: exit code 3, with a stable code.
    Error {
        /// The stable code.
        code: i32,
        /// What went wrong, and what to do.
        text: String,
    },
    /// The reader of standard output went away: the command ends quietly.
    BrokenPipe,
}

impl Failure {
    /// An error with one of the [`code`]s.
    pub fn error(code: i32, text: impl Into<String>) -> Failure {
        Failure::Error { code, text: text.into() }
    }

    /// An error of the system: `action` is what was tried, such as `read standard input`.
    pub fn io(action: impl fmt::Display, source: &io::Error) -> Failure {
        Failure::Error { code: code::IO, text: format!("cannot {action}: {source}") }
    }

    /// The same, for writing to standard output, where a reader that went away is no error.
    pub fn output(source: &io::Error) -> Failure {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::io("write to standard output", source),
        }
    }

    /// Appends a sentence to the text of an error.
    pub fn and(mut self, more: &str) -> Failure {
        if let Failure::Error { text, .. } = &mut self {
            text.push_str("; ");
            text.push_str(more);
        }
        self
    }

    /// Prints the message on standard error, and gives the exit code.
    pub fn report(&self, quiet: bool) -> ExitCode {
        match self {
            Failure::NotMet(text) => {
                if !quiet && !text.is_empty() {
                    eprintln!("hashmere: {text}");
                }
                ExitCode::from(1)
            }
            Failure::Usage(text) => {
                eprintln!("hashmere: error: {text}");
                ExitCode::from(2)
            }
            Failure::Error { code, text } => {
                eprintln!("hashmere: error E{code}: {text}");
                ExitCode::from(3)
            }
            Failure::BrokenPipe => ExitCode::SUCCESS,
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        Failure::Error { code: error.code(), text: error.to_string() }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        Failure::Error { code: error.code(), text: error.to_string() }
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Failure {
        let failure = Failure::Error { code: error.code(), text: error.to_string() };
        match error {
            BackupError::Exists { .. } => failure.and("--force replaces a store"),
            BackupError::Abandoned => {
                failure.and("`hashmere create STORE --or-open --max-bytes SIZE` raises the maximum")
            }
            _ => failure,
        }
    }
}

impl From<DumpError> for Failure {
    fn from(error: DumpError) -> Failure {
        match error {
            DumpError::Io { action, source } => Failure::io(action, &source),
            DumpError::Store(error) => error.into(),
            error => Failure::Error { code: error.code(), text: error.to_string() },
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        let so_far = error.so_far();
        match error {
            LoadError::Io { action, source, loaded: 0 } => Failure::io(action, &source),
            LoadError::Io { action, source, .. } => Failure::io(action, &source).and(&so_far),
            LoadError::Store { error, loaded: 0, tried: 0 } => error.into(),
            LoadError::Store { error, .. } => Failure::from(error).and(&so_far),
            error => Failure::Error { code: error.code(), text: error.to_string() },
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Open(error) => error.into(),
            Error::Read(error) => error.into(),
            Error::Write(error) => error.into(),
            Error::Backup(error) => error.into(),
            error => Failure::Error { code: error.code(), text: error.to_string() },
        }
    }
}

impl From<ReplicaError> for Failure {
    fn from(error: ReplicaError) -> Failure {
        Failure::Error { code: error.code(), text: error.to_string() }
    }
}

impl From<FeedError> for Failure {
    fn from(error: FeedError) -> Failure {
        Failure::Error { code: error.code(), text: error.to_string() }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        let failure = Failure::Error { code: error.code(), text: error.to_string() };
        match error {
            WriteError::Full { .. } => {
                failure.and("`hashmere create STORE --or-open --max-bytes SIZE` raises the maximum")
            }
            _ => failure,
        }
    }
}
