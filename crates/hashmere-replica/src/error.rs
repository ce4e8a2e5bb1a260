//! Why a store cannot follow another one.

use hashmere_engine::{Error, ReadError, WriteError};
use hashmere_feed::FeedError;
use std::fmt;
use std::path::PathBuf;

/// Numbers of the errors that are this crate's own.
pub mod code {
    /// Another process replicates to the store.
    pub const REPLICA_TAKEN: i32 = 85;
    /// Source and target are one store.
    pub const REPLICA_SAME_STORE: i32 = 86;
    /// A newer version noted the place.
    pub const REPLICA_UNKNOWN_PLACE: i32 = 87;
    /// A served store cannot be followed.
    pub const REPLICA_REFUSED: i32 = 88;
}

/// Any error of this crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplicaError {
    /// One of the stores says no; its code.
    Store {
        /// Which.
        path: PathBuf,
        /// What it says.
        source: Box<Error>,
    },
    /// The source's changes cannot be followed; the feed's code.
    Feed {
        /// The source.
        path: PathBuf,
        /// Why.
        source: FeedError,
    },
    /// Another process replicates to this store. Code 85.
    Taken {
        /// The target.
        path: PathBuf,
        /// Its process id, if it can be told.
        pid: Option<u32>,
    },
    /// The two are the same store. Code 86.
    SameStore {
        /// Its file.
        path: PathBuf,
    },
    /// The target notes its place in a form that this version does not know. Code 87.
    UnknownPlace {
        /// The target.
        path: PathBuf,
    },
    /// A served store cannot be followed, and that does not pass: its address, its certificate, an account, what its
    /// server allows. Code 88.
    Refused {
        /// Its address.
        address: String,
        /// Why, and what to do.
        why: String,
    },
}

impl ReplicaError {
    /// The number of this error, the same everywhere.
    pub fn code(&self) -> i32 {
        match self {
            ReplicaError::Store { source, .. } => source.code(),
            ReplicaError::Feed { source, .. } => source.code(),
            ReplicaError::Taken { .. } => code::REPLICA_TAKEN,
            ReplicaError::SameStore { .. } => code::REPLICA_SAME_STORE,
            ReplicaError::UnknownPlace { .. } => code::REPLICA_UNKNOWN_PLACE,
            ReplicaError::Refused { .. } => code::REPLICA_REFUSED,
        }
    }
}

impl fmt::Display for ReplicaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplicaError::Store { path, source } => write!(f, "{}: {source}", path.display()),
            ReplicaError::Feed { path, source } => write!(f, "{}: {source}", path.display()),
            ReplicaError::Taken { path, pid } => {
                let who = pid.map_or_else(|| "another process".to_string(), |pid| format!("process {pid}"));
                write!(f, "{}: {who} replicates to this store already; stop it first", path.display())
            }
            ReplicaError::SameStore { path } => {
                write!(f, "{}: source and target are the same store; name two", path.display())
            }
            ReplicaError::Refused { address, why } => write!(f, "{address}: {why}"),
            ReplicaError::UnknownPlace { path } => write!(
                f,
                "{}: its place is in a form that this version does not know; replicate with the version that wrote \
                 it, or to a new store",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ReplicaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReplicaError::Store { source, .. } => Some(source),
            ReplicaError::Feed { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Names the store in an error.
pub(crate) trait At<T> {
    /// The same, with the store's path.
    fn at(self, store: &hashmere::Store) -> Result<T, ReplicaError>;
}

impl<T> At<T> for Result<T, WriteError> {
    fn at(self, store: &hashmere::Store) -> Result<T, ReplicaError> {
        self.map_err(|error| ReplicaError::Store { path: store.path().into(), source: Box::new(error.into()) })
    }
}

impl<T> At<T> for Result<T, ReadError> {
    fn at(self, store: &hashmere::Store) -> Result<T, ReplicaError> {
        self.map_err(|error| ReplicaError::Store { path: store.path().into(), source: Box::new(error.into()) })
    }
}

impl<T> At<T> for Result<T, FeedError> {
    fn at(self, store: &hashmere::Store) -> Result<T, ReplicaError> {
        self.map_err(|source| ReplicaError::Feed { path: store.path().into(), source })
    }
}
