//! Errors: one narrow type per family of calls, stable numbers, texts that name the thing and the remedy.

pub use hashmere_mem::AddressLimit;
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a store could not be opened, created or removed.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such store, and the call was not allowed to create it. Code 1.
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// There is such a store, and the call was only allowed to create it. Code 2.
    AlreadyExists {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a store, or not one that this version may open. Code 3.
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The store was created with another value of an option. Code 4.
    OptionMismatch {
        /// The file.
        path: PathBuf,
        /// The option.
        option: &'static str,
        /// What the store has.
        store: String,
        /// What the caller asked for.
        asked: String,
    },
    /// An option has a value that no store can have. Code 5.
    BadOption {
        /// The option.
        option: &'static str,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// All client slots are taken by living processes. Code 6.
    TooManyClients {
        /// The file.
        path: PathBuf,
        /// How many there can be.
        limit: u32,
    },
    /// The name is not one that a store can have. Code 7.
    BadName {
        /// The name.
        name: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The file or its folder is not safe to use. Code 8.
    InsecurePermissions {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The file was in use when the machine went down, or it is a copy of one that was in use. A volatile store
    /// promises nothing then; a durable one is rebuilt when it is next opened for writing. Code 9.
    NotCleanlyClosed {
        /// The file.
        path: PathBuf,
        /// Whether the store is durable.
        durable: bool,
        /// Whether it is a copy, made by other means than a backup.
        copied: bool,
    },
    /// No room to create the store. Code 12.
    NoSpace {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// This process has no addresses left for the file. Code 13.
    AddressSpace {
        /// The file.
        path: PathBuf,
        /// How much of the file it needs to map.
        needed: u64,
        /// What limits it.
        limit: AddressLimit,
    },
    /// The system refused. Code 10.
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a read failed. A key that is not there is no error.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The file contradicts itself; `hashmere check` says where. Code 20.
    Corrupt {
        /// What was found.
        what: &'static str,
        /// Byte offset in the file.
        offset: u64,
    },
    /// The entry id or UID names a key that is not there any more. Code 21.
    Stale,
    /// The value does not fit the memory of this process. Code 22.
    OutOfMemory {
        /// Length of the value.
        bytes: u64,
    },
    /// The cursor is not one that a scan of this store returned. Code 23.
    BadCursor,
    /// A pattern that cannot match as it was meant. Code 24.
    BadPattern {
        /// The pattern; bytes that are not UTF-8 are U+FFFD.
        pattern: Box<str>,
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },
    /// A part of a scan that does not exist. Code 25.
    BadPart {
        /// Which part was asked for, from 0.
        index: u32,
        /// How many parts there were to be.
        count: u32,
        /// The most that there can be.
        limit: u32,
    },
    /// The file has grown, and this process has no addresses left for what is asked for. Code 13.
    AddressSpace {
        /// How much of the file it needs to map.
        needed: u64,
        /// What limits it.
        limit: AddressLimit,
    },
    /// A snapshot of several keys was to be read, and one of them was changed by others each time. Code 40.
    Conflict {
        /// The key; bytes that are not UTF-8 are U+FFFD.
        key: Box<str>,
    },
}

/// Why a write failed. The key is then as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The store was opened read-only. Code 30.
    ReadOnly,
    /// The store is at its maximum size and nothing can be cleaned. Code 31.
    Full {
        /// The maximum size in bytes.
        max_bytes: u64,
    },
    /// The file system (or a limit of this process) has no room. Code 12.
    NoSpace(
        /// What the system said.
        io::Error,
    ),
    /// This process has no addresses left for what the file has, or would have to grow by. Code 13.
    AddressSpace {
        /// How much of the file it needs to map.
        needed: u64,
        /// What limits it.
        limit: AddressLimit,
    },
    /// A living process holds the lock of this key for longer than the busy timeout. Code 32.
    Busy {
        /// Its process id, in its own PID namespace.
        pid: u32,
        /// Its name and state, in words.
        holder: String,
        /// How long this call waited.
        waited: Duration,
    },
    /// Key and value together are too long. Code 33.
    TooLarge {
        /// Their length.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The store has a fixed key or value length, and this is another. Code 34.
    WrongLength {
        /// `"key"` or `"value"`.
        what: &'static str,
        /// The length given.
        given: u64,
        /// The length that the store demands.
        fixed: u64,
    },
    /// The value that is there, and that the call wanted to read, does not fit the memory of this process. Code 22.
    OutOfMemory {
        /// Length of the value.
        bytes: u64,
    },
    /// A counter call met a value that is not a number of its kind of counter. Code 35.
    NotANumber,
    /// The entry id or UID names a key that is not there any more. Code 21.
    Stale,
    /// Too many keys share the same hash bits for the index to separate. Code 36.
    TooManyCollisions,
    /// All client slots are taken by living processes. Code 6.
    TooManyClients {
        /// How many there can be.
        limit: u32,
    },
    /// The reservation is for another length than was written, or similar misuse. Code 37.
    InvalidState(
        /// What was wrong.
        &'static str,
    ),
    /// The file contradicts itself; `hashmere check` says where. Code 20.
    Corrupt {
        /// What was found.
        what: &'static str,
        /// Byte offset in the file.
        offset: u64,
    },
    /// A durable store could not be written to disk earlier, so what is there is not known. Code 38.
    Poisoned,
    /// A function given to `Store::update` wrote the key that it was asked about. Code 39.
    Reentered {
        /// The key; bytes that are not UTF-8 are U+FFFD.
        key: Box<str>,
    },
    /// What a transaction read was changed by others each time that it was to commit, for at least 5 seconds and 1,000
    /// times; or a function given to `Store::transaction` read a key that has changed since it read it first, and is
    /// called again when it returns this. Code 40.
    Conflict {
        /// The key; bytes that are not UTF-8 are U+FFFD.
        key: Box<str>,
    },
    /// A transaction has more keys than it may. Code 41.
    TooManyKeys {
        /// The most: 1,024, or fewer where segments are short.
        limit: u64,
    },
    /// A counter would leave the numbers of its kind. Code 42.
    Overflow,
    /// The system refused. Code 10.
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a backup failed. The store goes on as before, and no file has the name of the copy.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// Another backup of this store is being made. Code 50.
    Running {
        /// Its process id, in its own PID namespace.
        pid: u32,
        /// The name of its process.
        name: String,
    },
    /// A write needed the room that the backup held back, so the backup was given up. Code 51.
    Abandoned,
    /// There is a file under the name of the copy already. Code 52.
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The store could not be read, or not be told of the backup. The code is that of the cause.
    Source(WriteError),
    /// The copy could not be filled. The code is that of the cause.
    Target(WriteError),
    /// The copy could not be created or named. The code is that of the cause.
    Create(OpenError),
}

/// Any error of this crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// From opening, creating, removing.
    Open(OpenError),
    /// From reading.
    Read(ReadError),
    /// From writing.
    Write(WriteError),
    /// From making a backup.
    Backup(BackupError),
}

impl WriteError {
    /// Whether there was no room for what was to be written, at whatever limit: of the store, the file system or the
    /// process.
    pub fn is_no_room(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::NoSpace(_) | Self::AddressSpace { .. })
    }
}

impl From<ReadError> for WriteError {
    fn from(error: ReadError) -> WriteError {
        match error {
            ReadError::Corrupt { what, offset } => WriteError::Corrupt { what, offset },
            ReadError::Stale => WriteError::Stale,
            ReadError::OutOfMemory { bytes } => WriteError::OutOfMemory { bytes },
            ReadError::AddressSpace { needed, limit } => WriteError::AddressSpace { needed, limit },
            ReadError::BadCursor => WriteError::InvalidState("a cursor that no scan returned"),
            ReadError::BadPattern { .. } => WriteError::InvalidState("a pattern that cannot match as it was meant"),
            ReadError::BadPart { .. } => WriteError::InvalidState("a part of a scan that does not exist"),
            ReadError::Conflict { key } => WriteError::Conflict { key },
        }
    }
}
