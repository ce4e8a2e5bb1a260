//! Why a feed cannot be followed.

use crate::token::BadToken;
use hashmere_engine::{Error, ReadError, WriteError};
use std::fmt;

/// Any error of this crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum FeedError {
    /// The store says no; its code.
    Store(
        /// What it says.
        Box<Error>,
    ),
    /// The store keeps no changes. Code 80.
    Off,
    /// A text that is no token. Code 81.
    BadToken(
        /// What is wrong.
        BadToken,
    ),
}

impl FeedError {
    /// The number of this error, the same in every language.
    pub fn code(&self) -> i32 {
        match self {
            FeedError::Store(error) => error.code(),
            FeedError::Off => 80,
            FeedError::BadToken(_) => 81,
        }
    }
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeedError::Store(error) => error.fmt(f),
            FeedError::Off => f.write_str(
                "the store keeps no changes; open it with the option `feed`, or run `hashmere feed STORE --enable 64M`",
            ),
            FeedError::BadToken(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FeedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FeedError::Store(error) => Some(error),
            FeedError::Off => None,
            FeedError::BadToken(error) => Some(error),
        }
    }
}

impl From<Error> for FeedError {
    fn from(error: Error) -> FeedError {
        FeedError::Store(Box::new(error))
    }
}

impl From<ReadError> for FeedError {
    fn from(error: ReadError) -> FeedError {
        Error::from(error).into()
    }
}

impl From<WriteError> for FeedError {
    fn from(error: WriteError) -> FeedError {
        Error::from(error).into()
    }
}

impl From<BadToken> for FeedError {
    fn from(error: BadToken) -> FeedError {
        FeedError::BadToken(error)
    }
}
