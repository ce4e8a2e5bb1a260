//! Codes and texts of the errors.

use crate::error::{AddressLimit, BackupError, Error, OpenError, ReadError, WriteError};
use std::fmt;

impl OpenError {
    /// The stable number of this error, the same in every language.
    pub fn code(&self) -> i32 {
        match self {
            Self::NotFound { .. } => 1,
            Self::AlreadyExists { .. } => 2,
            Self::NotAStore { .. } => 3,
            Self::OptionMismatch { .. } => 4,
            Self::BadOption { .. } => 5,
            Self::TooManyClients { .. } => 6,
            Self::BadName { .. } => 7,
            Self::InsecurePermissions { .. } => 8,
            Self::NotCleanlyClosed { .. } => 9,
            Self::Io { .. } => 10,
            Self::NoSpace { .. } => 12,
            Self::AddressSpace { .. } => 13,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { path } => write!(f, "there is no store at {}; create it, or check the name and HASHMERE_DIR", path.display()),
            Self::AlreadyExists { path } => write!(f, "there is a store at {} already; open it, or remove it first", path.display()),
            Self::NotAStore { path, reason } => write!(f, "{} cannot be opened as a store: {reason}", path.display()),
            Self::OptionMismatch { path, option: "max_bytes", store, asked } => {
                write!(f, "{} has max_bytes = {store}, and {asked} was asked for; delete keys, ask for more, or leave the option out", path.display())
            }
            Self::OptionMismatch { path, option, store, asked } => {
                write!(f, "{} was created with {option} = {store}, but {asked} was asked for; leave the option out, or create another store", path.display())
            }
            Self::BadOption { option, reason } => write!(f, "option {option}: {reason}"),
            Self::TooManyClients { path, limit } => {
                write!(f, "all {limit} client slots of {} are taken by living processes; close some", path.display())
            }
            Self::BadName { name, reason } => write!(f, "{name:?} is no name for a store: {reason}"),
            Self::InsecurePermissions { path, reason } => write!(f, "{} is not safe to use: {reason}", path.display()),
            Self::NotCleanlyClosed { path, durable: false, copied: true } => write!(
                f,
                "{} is a copy of a store that was not closed, and may be torn; close a store before its file is copied or moved to another \
                 file system, or copy it with `hashmere backup`, and remove this file",
                path.display()
            ),
            Self::NotCleanlyClosed { path, durable: true, copied: true } => write!(
                f,
                "{} is a copy of a store that was not closed, and cannot be rebuilt by a read-only handle; open it once for writing, or run `hashmere sync {}`",
                path.display(),
                path.display()
            ),
            Self::NotCleanlyClosed { path, durable: false, copied: false } => write!(
                f,
                "{} was open when the machine went down, and a volatile store may be torn then; remove it and start again \
                 (a store created as durable survives this)",
                path.display()
            ),
            Self::NotCleanlyClosed { path, durable: true, copied: false } => write!(
                f,
                "{} was open when the machine went down, and cannot be rebuilt by a read-only handle; open it once for writing, or run `hashmere sync {}`",
                path.display(),
                path.display()
            ),
            Self::Io { path, action, source } => write!(f, "could not {action} {}: {source}", path.display()),
            Self::AddressSpace { path, needed, limit } => {
                write!(f, "{}: ", path.display())?;
                no_addresses(f, *needed, *limit)
            }
            Self::NoSpace { path, source } => write!(f, "there is no room for {}: {source}; free some, or choose another folder", path.display()),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::NoSpace { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl ReadError {
    /// The stable number of this error, the same in every language.
    pub fn code(&self) -> i32 {
        match self {
            Self::Corrupt { .. } => 20,
            Self::Stale => 21,
            Self::OutOfMemory { .. } => 22,
            Self::BadCursor => 23,
            Self::BadPattern { .. } => 24,
            Self::BadPart { .. } => 25,
            Self::AddressSpace { .. } => 13,
            Self::Conflict { .. } => 40,
        }
    }
}

fn no_addresses(f: &mut fmt::Formatter<'_>, needed: u64, limit: AddressLimit) -> fmt::Result {
    write!(f, "this process has no addresses for the {needed} bytes of the file that it needs: {limit}")
}

const STALE: &str = "the key that this number named is not there any more";

fn out_of_memory(f: &mut fmt::Formatter<'_>, bytes: u64) -> fmt::Result {
    write!(f, "a value of {bytes} bytes does not fit the memory of this process; use a view")
}

fn conflict(f: &mut fmt::Formatter<'_>, key: &str) -> fmt::Result {
    write!(f, "the key {key:?} was changed by others each time; try again, or read and write fewer keys at once")
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { what, offset } => {
                write!(f, "the file is damaged: {what} (at byte {offset}); `hashmere check` tells more")
            }
            Self::Stale => f.write_str(STALE),
            Self::OutOfMemory { bytes } => out_of_memory(f, *bytes),
            Self::BadCursor => {
                f.write_str("the cursor is not one that a scan of this store returned; start again from 0")
            }
            Self::BadPattern { pattern, reason } => write!(f, "the pattern {pattern:?} has {reason}"),
            Self::BadPart { index, count, limit } => {
                write!(f, "there is no part {index} of {count}: there are 1 to {limit} parts, numbered from 0")
            }
            Self::AddressSpace { needed, limit } => no_addresses(f, *needed, *limit),
            Self::Conflict { key } => conflict(f, key),
        }
    }
}

impl std::error::Error for ReadError {}

impl WriteError {
    /// The stable number of this error, the same in every language.
    pub fn code(&self) -> i32 {
        match self {
            Self::TooManyClients { .. } => 6,
            Self::Io { .. } => 10,
            Self::NoSpace(_) => 12,
            Self::AddressSpace { .. } => 13,
            Self::Corrupt { .. } => 20,
            Self::Stale => 21,
            Self::OutOfMemory { .. } => 22,
            Self::ReadOnly => 30,
            Self::Full { .. } => 31,
            Self::Busy { .. } => 32,
            Self::TooLarge { .. } => 33,
            Self::WrongLength { .. } => 34,
            Self::NotANumber => 35,
            Self::TooManyCollisions => 36,
            Self::InvalidState(_) => 37,
            Self::Poisoned => 38,
            Self::Reentered { .. } => 39,
            Self::Conflict { .. } => 40,
            Self::TooManyKeys { .. } => 41,
            Self::Overflow => 42,
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyClients { limit } => write!(f, "all {limit} client slots are taken by living processes; close some"),
            Self::Io { action, source } => write!(f, "could not {action}: {source}"),
            Self::AddressSpace { needed, limit } => no_addresses(f, *needed, *limit),
            Self::NoSpace(source) => write!(f, "the file system has no room: {source}; free some, or delete keys"),
            Self::Corrupt { what, offset } => write!(f, "the file is damaged: {what} (at byte {offset}); `hashmere check` tells more"),
            Self::Stale => f.write_str(STALE),
            Self::OutOfMemory { bytes } => out_of_memory(f, *bytes),
            Self::ReadOnly => f.write_str("the store was opened read-only"),
            Self::Full { max_bytes } => write!(f, "the store is full at its maximum size of {max_bytes} bytes; delete keys, or open it with a larger max_bytes; of records longer than half of segment_bytes more fit into one that is made with larger segments"),
            Self::Busy { holder, waited, .. } => write!(f, "the key is locked: {holder}; this call waited {:.1} s", waited.as_secs_f64()),
            Self::TooLarge { bytes, limit } => write!(f, "key and value have {bytes} bytes together, the limit is {limit}"),
            Self::WrongLength { what, given, fixed } => write!(f, "the {what} has {given} bytes, but in this store each has {fixed}"),
            Self::NotANumber => f.write_str("the value is not a number of this kind of counter (incr: 0 to 2^64 - 1; incr_signed: -2^63 to 2^63 - 1; incr_float: a finite decimal fraction), so it cannot be counted with"),
            Self::TooManyCollisions => f.write_str("too many keys share the same hash bits; choose a better hash, or spread the keys over several stores"),
            Self::InvalidState(what) => f.write_str(what),
            Self::Poisoned => f.write_str("the store could not be written to disk earlier, so nothing more is written; reading goes on: dump it to another disk, or restart the machine to go back to the last completed sync"),
            Self::Reentered { key } => write!(f, "the function given to update for the key {key:?} writes that key itself, and would be asked again without end; return what is to become of it, and write it afterwards if need be"),
            Self::Conflict { key } => conflict(f, key),
            Self::TooManyKeys { limit } => write!(f, "a transaction has at most {limit} keys; divide it, or make the store with larger segments if that is fewer than 1024"),
            Self::Overflow => f.write_str("the counter would be beyond the numbers of its kind, so it stays as it is; set it to another number, or use a kind with more of them"),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::NoSpace(source) => Some(source),
            _ => None,
        }
    }
}

impl BackupError {
    /// The stable number of this error, the same in every language.
    pub fn code(&self) -> i32 {
        match self {
            Self::Running { .. } => 50,
            Self::Abandoned => 51,
            Self::Exists { .. } => 52,
            Self::Source(e) | Self::Target(e) => e.code(),
            Self::Create(e) => e.code(),
        }
    }
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { pid, name } => write!(f, "pid {pid} ({name}) is making a backup of this store; wait for it"),
            Self::Abandoned => f.write_str("a write needed the room that the backup held back, so the backup was given up; try again when less is written, or open the store with a larger max_bytes"),
            Self::Exists { path } => write!(f, "{} is there already; choose another name, or have it replaced", path.display()),
            Self::Source(e) => write!(f, "the store cannot be backed up: {e}"),
            Self::Target(e) => write!(f, "the copy cannot be written: {e}"),
            Self::Create(e) => write!(f, "the copy cannot be made: {e}"),
        }
    }
}

impl std::error::Error for BackupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Source(e) | Self::Target(e) => Some(e),
            Self::Create(e) => Some(e),
            _ => None,
        }
    }
}

impl From<WriteError> for BackupError {
    fn from(e: WriteError) -> BackupError {
        BackupError::Source(e)
    }
}
impl From<ReadError> for BackupError {
    fn from(e: ReadError) -> BackupError {
        BackupError::Source(e.into())
    }
}
impl From<BackupError> for Error {
    fn from(e: BackupError) -> Error {
        Error::Backup(e)
    }
}

impl Error {
    /// The stable number of this error, the same in every language.
    pub fn code(&self) -> i32 {
        match self {
            Self::Open(e) => e.code(),
            Self::Read(e) => e.code(),
            Self::Write(e) => e.code(),
            Self::Backup(e) => e.code(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(e) => e.fmt(f),
            Self::Read(e) => e.fmt(f),
            Self::Write(e) => e.fmt(f),
            Self::Backup(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(e) => e.source(),
            Self::Read(e) => e.source(),
            Self::Write(e) => e.source(),
            Self::Backup(e) => e.source(),
        }
    }
}

impl From<OpenError> for Error {
    fn from(e: OpenError) -> Error {
        Error::Open(e)
    }
}
impl From<ReadError> for Error {
    fn from(e: ReadError) -> Error {
        Error::Read(e)
    }
}
impl From<WriteError> for Error {
    fn from(e: WriteError) -> Error {
        Error::Write(e)
    }
}
