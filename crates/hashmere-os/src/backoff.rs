//! How long to sleep next, when no process can be relied on to wake us: the one that would may be dead.

use std::time::{Duration, Instant};

/// The first sleep bounds what a wake-up costs that was lost between two store buffers; later ones are twice as long
/// each.
const SLEEP_MIN: Duration = Duration::from_millis(1);
const SLEEP_MAX: Duration = Duration::from_millis(128);

/// Sleeps of growing length up to a deadline.
#[derive(Debug)]
pub struct Backoff {
    until: Option<Instant>,
    sleep: Duration,
}

impl Backoff {
    /// For this long in all.
    pub fn new(timeout: Duration) -> Backoff {
        Backoff { until: Instant::now().checked_add(timeout), sleep: SLEEP_MIN }
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    /// `None`: the time is up.
    fn next(&mut self) -> Option<Duration> {
        let left = self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        let sleep = self.sleep.min(left);
        self.sleep = (self.sleep * 2).min(SLEEP_MAX);
        (!left.is_zero()).then_some(sleep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_grow_and_end() {
        let mut backoff = Backoff::new(Duration::MAX);
        let sleeps: Vec<_> = (0..10).map(|_| backoff.next().unwrap().as_millis()).collect();
        assert_eq!(sleeps, [1, 2, 4, 8, 16, 32, 64, 128, 128, 128]);
        assert_eq!(Backoff::new(Duration::ZERO).next(), None);
    }
}
