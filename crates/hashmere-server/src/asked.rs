//! What the dashboard asks for now and then, kept between its questions: the keys that take the room, and the last
//! lines of logs.

use hashmere::{ReadError, Store};
use hashmere_observe::{BigKeys, BigKeysOptions, LogTail};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The largest keys, and prefixes of each level, that are shown.
pub(crate) const TOP: usize = 20;
/// How long one question counts keys: other clients of the same thread wait for that.
const COUNTING: Duration = Duration::from_millis(2);
/// Places of the index between two looks at the clock.
const STRETCH: usize = 1024;
/// How long after the last question the lines of a log are kept.
const KEPT: Duration = Duration::from_secs(10);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A count of all keys, which goes on with each question.
#[derive(Debug, Default)]
pub(crate) struct Counting(Mutex<Option<BigKeys>>);

impl Counting {
    /// Goes on counting, or begins `again`, and shows what is counted so far.
    ///
    /// # Errors
    /// See [`ReadError`]: the next question begins again.
    pub(crate) fn ask<R>(&self, store: &Store, again: bool, show: impl FnOnce(&BigKeys) -> R) -> Result<R, ReadError> {
        let mut counting = lock(&self.0);
        if again {
            *counting = None;
        }
        let keys = counting.get_or_insert_with(|| BigKeys::new(&BigKeysOptions { top: TOP, ..Default::default() }));
        let start = Instant::now();
        while keys.cursor().is_some() && start.elapsed() < COUNTING {
            if let Err(error) = keys.step(store, STRETCH, u64::MAX) {
                *counting = None;
                return Err(error);
            }
        }
        Ok(show(keys))
    }
}

/// The last lines of the logs that clients asked for in the last seconds.
#[derive(Debug, Default)]
pub(crate) struct Tails(Mutex<HashMap<String, (LogTail, Instant)>>);

impl Tails {
    /// Shows the last lines of a log.
    ///
    /// # Errors
    /// The log cannot be read: code and text.
    pub(crate) fn ask<R>(
        &self,
        store: &Store,
        name: &str,
        show: impl FnOnce(&LogTail) -> R,
    ) -> Result<R, (i32, String)> {
        let mut tails = lock(&self.0);
        let now = Instant::now();
        tails.retain(|_, (_, asked)| now.duration_since(*asked) < KEPT);
        let mut tail = match tails.remove(name) {
            Some((tail, _)) => tail,
            None => LogTail::open(store, name).map_err(|error| (error.code(), error.to_string()))?,
        };
        tail.poll().map_err(|error| (error.code(), error.to_string()))?;
        let shown = show(&tail);
        tails.insert(name.into(), (tail, now));
        Ok(shown)
    }
}
