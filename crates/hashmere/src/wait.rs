//! Waiting for keys to change.

use crate::{Error, Store, Version, WaitAnyOutcome, WaitOutcome};
use std::time::Duration;

impl Store {
    /// Waits until a key has another version than `seen` (`None`: it was absent), in whatever process it is changed.
    /// Returns at once if it has.
    ///
    /// Changes are sets, deletes, counters, expiry and eviction; a new time to live alone is none. Several changes may
    /// be seen as one, and a key that was deleted and set again has another version. Writers pay for it only while a
    /// process waits.
    ///
    /// # Errors
    /// [`ReadOnly`](crate::WriteError::ReadOnly), since a waiter announces itself in the file; and those of reading.
    pub fn wait(&self, key: &[u8], seen: Option<Version>, timeout: Duration) -> Result<WaitOutcome, Error> {
        self.shared.wait(key, seen, timeout)
    }

    /// The same for several keys.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); [`InvalidState`](crate::WriteError::InvalidState) without a key.
    pub fn wait_any(&self, keys: &[(&[u8], Option<Version>)], timeout: Duration) -> Result<WaitAnyOutcome, Error> {
        self.shared.wait_any(keys, timeout)
    }
}
