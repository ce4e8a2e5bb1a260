//! Waiting for keys to change.

use crate::{Error, Store, Version};
use std::time::Duration;

impl Store {
    /// Waits until a key has another version than it was `seen` with (`None`: it was not there), in whatever process it
    /// is changed. Returns at once if it has. `Ok(None)`: it had not when the time was up; else what it has now.
    ///
    /// Changes are sets, deletes, counters, expiry and eviction; a new time to live alone is none. Several changes may be seen as
    /// one, and a key that was deleted and set again has another version. Nobody pays for it while nobody waits.
    ///
    /// # Errors
    /// [`ReadOnly`](crate::WriteError::ReadOnly), since whoever waits says so in the file; and those of reading.
    pub fn wait(&self, key: &[u8], seen: Option<Version>, timeout: Duration) -> Result<Option<Option<Version>>, Error> {
        Ok(self.wait_any(&[(key, seen)], timeout)?.map(|(_, now)| now))
    }

    /// The same for several keys: returns the first in order that has changed, and its version.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); [`Misuse`](crate::WriteError::Misuse) without a key.
    pub fn wait_any(
        &self,
        keys: &[(&[u8], Option<Version>)],
        timeout: Duration,
    ) -> Result<Option<(usize, Option<Version>)>, Error> {
        self.shared.wait_any(keys, timeout)
    }
}
