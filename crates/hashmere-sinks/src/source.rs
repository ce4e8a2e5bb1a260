//! Where events come from.

use hashmere_feed::{Event, Feed, FeedError};
use std::fmt;
use std::time::Duration;

/// Why a source has no more.
#[derive(Debug)]
pub struct SourceError(pub Box<dyn std::error::Error + Send + Sync>);

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for SourceError {}

/// A feed, or a test's idea of one.
pub trait Source {
    /// The next events, at most `max`; waits for the first one up to `timeout`. Empty: there was none in that time.
    ///
    /// # Errors
    /// [`SourceError`]: there will be no more.
    fn next_batch(&mut self, max: usize, timeout: Duration) -> Result<Vec<Event>, SourceError>;
}

impl From<FeedError> for SourceError {
    fn from(error: FeedError) -> SourceError {
        SourceError(Box::new(error))
    }
}

impl Source for Feed {
    fn next_batch(&mut self, max: usize, timeout: Duration) -> Result<Vec<Event>, SourceError> {
        Ok(Feed::next_batch(self, max, timeout)?)
    }
}
