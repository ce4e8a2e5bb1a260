//! Where a consumer begins, and what it wants.

use crate::token::Token;

/// Where a consumer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    /// With every key, then the changes.
    Start,
    /// With the next change.
    Now,
    /// Behind what it dealt with before; with every key, if that is not possible.
    At(Token),
}

/// What a consumer gets.
#[derive(Clone, Debug, Default)]
pub struct FeedOptions {
    pub(crate) prefix: Vec<u8>,
    pub(crate) values: bool,
}

impl FeedOptions {
    /// Every key, without values.
    pub fn new() -> FeedOptions {
        FeedOptions::default()
    }
    /// Only keys that begin with these bytes. (A clear and a reset concern every key.)
    pub fn prefix(mut self, prefix: impl Into<Vec<u8>>) -> FeedOptions {
        self.prefix = prefix.into();
        self
    }
    /// Whether values come along (default: no). Those that the feed does not keep are read from the store.
    pub fn values(mut self, values: bool) -> FeedOptions {
        self.values = values;
        self
    }
}
