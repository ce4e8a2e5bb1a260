//! What looking up a key costs on a store here and now.

use hashmere::{Cursor, Filter, ReadError, Store};
use std::time::Instant;

/// Keys that are looked up in one call.
const KEYS: usize = 200;
/// Places of the index that are passed to find them, whether there are keys in them or not.
const PLACES: usize = 4096;
/// Readings of the clock that say what one takes.
const READINGS: usize = 101;

/// Times look-ups of keys of a store, in the order of their hashes, which is as good as at random: each call times
/// those that the call before chose, so that they are no nearer to the processor than other keys are.
///
/// A look-up finds the key's record and reads its header, not its value. It is not counted as a read, and no record is
/// kept from eviction by it.
#[derive(Debug, Default)]
pub struct LookupProbe {
    keys: Vec<Vec<u8>>,
    cursor: Cursor,
}

/// Percentiles of the time of a look-up, in nanoseconds. The time of one reading of the clock is in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupTimes {
    /// How many were timed.
    pub count: u64,
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// 90 % took no longer.
    pub p90_ns: u64,
    /// 99 % took no longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// What a reading of the clock takes: the median of some.
    pub clock_ns: u64,
}

impl LookupProbe {
    /// Looks up the keys that the last call chose, and chooses others. `None`: there were none, as in the first call.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn poll(&mut self, store: &Store) -> Result<Option<LookupTimes>, ReadError> {
        let mut times = Vec::with_capacity(KEYS);
        for key in &self.keys {
            let start = Instant::now();
            let found = store.metadata(key)?;
            let took = start.elapsed();
            // Of a key that is gone the time would be that of a miss.
            if found.is_some() {
                times.push(took.as_nanos() as u64);
            }
        }
        self.choose(store)?;
        Ok(percentiles(times))
    }

    fn choose(&mut self, store: &Store) -> Result<(), ReadError> {
        self.keys.clear();
        let mut scan = store.scan(self.cursor, Filter::all().keys_only());
        let mut places = PLACES;
        while self.keys.len() < KEYS {
            let Some(pair) = scan.next_within(&mut places) else { break };
            let pair = pair?;
            // A key that was stored with a hash of the caller's is not found without it.
            if pair.supplied_hash.is_none() {
                self.keys.push(pair.key);
            }
        }
        self.cursor = scan.cursor().unwrap_or(Cursor::START);
        Ok(())
    }
}

fn percentiles(mut times: Vec<u64>) -> Option<LookupTimes> {
    times.sort_unstable();
    let at = |percent: usize| times.get(((times.len() * percent).div_ceil(100)).saturating_sub(1)).copied();
    Some(LookupTimes {
        count: times.len() as u64,
        p50_ns: at(50)?,
        p90_ns: at(90)?,
        p99_ns: at(99)?,
        max_ns: at(100)?,
        clock_ns: clock_ns(),
    })
}

fn clock_ns() -> u64 {
    let mut readings: Vec<u64> = (0..READINGS).map(|_| Instant::now().elapsed().as_nanos() as u64).collect();
    readings.sort_unstable();
    readings[READINGS / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        assert_eq!(percentiles(Vec::new()), None);
        let times = percentiles((1..=200).rev().collect()).unwrap();
        let found = (times.count, times.p50_ns, times.p90_ns, times.p99_ns, times.max_ns);
        assert_eq!(found, (200, 100, 180, 198, 200));
        let one = percentiles(vec![7]).unwrap();
        assert_eq!((one.count, one.p50_ns, one.p90_ns, one.p99_ns, one.max_ns), (1, 7, 7, 7, 7));
    }
}
