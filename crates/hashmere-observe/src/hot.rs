//! Which keys are read and written most, from samples that the processes take of what they do.
//! `docs/internals/sampling.md` has the mechanism and the formulas.

use hashmere::{Store, WriteError};
use hashmere_engine::StoreHandle;
use hashmere_format::sample::{Sample, Sampling, Use, SLOTS};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How often [`Sampler::poll`] should be called: the ring holds 351 samples.
pub const POLL: Duration = Duration::from_millis(5);
/// How often the observer says that it is still there.
const RENEW: Duration = Duration::from_millis(100);
/// The longest time between two looks in which clients sampled all the while.
const LEASE: Duration = Duration::from_secs(2);
/// How long a sample may be under way before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// Samples a second that are wanted of all clients together, and of one.
const RATE: (u64, u64, u64) = (20_000, 20, 1000);
/// Keys that are remembered, of reads and of writes each.
const KEYS: usize = 1 << 16;
/// Quantile of the normal distribution for 95 %.
const Z: f64 = 1.96;

/// Samples the operations on a store for as long as it exists.
///
/// The store must be open for writing: the processes that use it are asked to sample. Should this process be killed
/// they stop by themselves, two seconds later.
#[derive(Debug)]
pub struct Sampler {
    store: Store,
    renewed: Sampling,
    renewed_at: Instant,
    last_poll: Instant,
    sampled: Duration,
    /// The position of the next sample.
    next: u64,
    /// Samples that were begun and are not to be read yet.
    begun: Vec<(u64, Instant)>,
    read: u64,
    lost: u64,
    reads: Counted,
    writes: Counted,
}

impl Sampler {
    /// Has all processes that have the store open for writing sample.
    ///
    /// # Errors
    /// [`WriteError::ReadOnly`]; [`WriteError::NoSpace`]: the file system has no 44 KiB for the samples.
    pub fn start(store: &Store) -> Result<Sampler, WriteError> {
        let engine = store.shared().engine();
        let renewed = engine.renew_sampling(rate(engine.sampled_clients()))?;
        let (next, now) = (engine.samples_begun(), Instant::now());
        engine.arm_clients();
        Ok(Sampler {
            store: store.clone(),
            renewed,
            renewed_at: now,
            last_poll: now,
            sampled: Duration::ZERO,
            next,
            begun: Vec::new(),
            read: 0,
            lost: 0,
            reads: Counted::default(),
            writes: Counted::default(),
        })
    }

    /// Collects what was sampled. To be called every [`POLL`]: what is not read in time is overwritten, and counted as
    /// lost.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn poll(&mut self) -> Result<(), WriteError> {
        let shared = self.store.shared().clone();
        let engine = shared.engine();
        let now = Instant::now();
        self.sampled += (now - self.last_poll).min(LEASE);
        self.last_poll = now;
        if now - self.renewed_at >= RENEW {
            self.renewed = engine.renew_sampling(rate(engine.sampled_clients()))?;
            self.renewed_at = now;
        }
        engine.arm_clients();
        let end = engine.samples_begun();
        for (position, since) in std::mem::take(&mut self.begun) {
            match engine.read_sample(position) {
                Some(sample) => self.take(&sample),
                None if end - position > SLOTS || now - since > PATIENCE => self.lost += 1,
                None => self.begun.push((position, since)),
            }
        }
        let missed = end.saturating_sub(self.next).saturating_sub(SLOTS);
        self.lost += missed;
        for position in self.next + missed..end {
            match engine.read_sample(position) {
                Some(sample) => self.take(&sample),
                None => self.begun.push((position, now)),
            }
        }
        self.next = end;
        Ok(())
    }

    /// Collects for this time, or until `stop` says so.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn poll_for(&mut self, time: Duration, stop: impl Fn() -> bool) -> Result<(), WriteError> {
        let end = Instant::now() + time;
        while Instant::now() < end && !stop() {
            std::thread::sleep(POLL.min(end - Instant::now()));
            self.poll()?;
        }
        Ok(())
    }

    /// What was collected so far.
    pub fn hot_keys(&self) -> HotKeys {
        let seconds = self.sampled.as_secs_f64();
        let all = self.read + self.lost;
        // Losses do not depend on the key: each sample represents more operations.
        let scale = if self.read == 0 { 1.0 } else { all as f64 / self.read as f64 };
        HotKeys {
            seconds,
            samples: self.read,
            lost: self.lost,
            reads: self.reads.hottest(seconds, scale),
            writes: self.writes.hottest(seconds, scale),
        }
    }

    fn take(&mut self, sample: &Sample) {
        self.read += 1;
        if sample.use_.is_write() { &mut self.writes } else { &mut self.reads }.add(sample);
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.store.shared().engine().end_sampling(self.renewed);
    }
}

fn rate(clients: u64) -> u64 {
    (RATE.0 / clients.max(1)).clamp(RATE.1, RATE.2)
}

/// Which keys are hot.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HotKeys {
    /// Seconds that were sampled.
    pub seconds: f64,
    /// Samples that were read.
    pub samples: u64,
    /// Samples that were lost: overwritten before they were read, or never completed.
    pub lost: u64,
    /// The keys that are read, hits and misses.
    pub reads: Hottest,
    /// The keys that are written, sets and deletes.
    pub writes: Hottest,
}

/// Keys by how often something is done with them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Hottest {
    /// Operations on all keys a second.
    pub total: Estimate,
    /// The keys that were seen, the hottest first.
    pub keys: Vec<HotKey>,
    /// Keys that were seen and given up, because there were too many: those with the fewest operations.
    pub given_up: u64,
    /// By how many operations a second what is said of a key may be too low, because it was given up before.
    pub given_up_rate: f64,
}

/// A key, and what is done with it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HotKey {
    /// The key; its first 88 bytes if it is longer.
    pub key: Vec<u8>,
    /// Its length in bytes.
    pub key_len: u32,
    /// Operations a second.
    pub rate: Estimate,
    /// Of all operations on all keys, from 0 to 1.
    pub share: f64,
    /// Those of the rate that were misses (of reads) or deletes (of writes).
    pub absent: f64,
}

impl HotKey {
    /// Whether [`key`](Self::key) is all of it.
    pub fn is_whole(&self) -> bool {
        self.key.len() == self.key_len as usize
    }
}

/// Something a second, as samples show it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The likeliest value.
    pub value: f64,
    /// It is above this and ...
    pub low: f64,
    /// ... below this, with a probability of 95 %.
    pub high: f64,
    /// Samples that say so.
    pub samples: u64,
}

/// Sums of the weights of samples.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    samples: u64,
    weights: f64,
    squares: f64,
    /// Weights of misses, or of deletes.
    absent: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, is_absent: bool) {
        self.samples += 1;
        self.weights += weight;
        self.squares += weight * weight;
        self.absent += if is_absent { weight } else { 0.0 };
    }

    fn estimate(&self, seconds: f64, scale: f64) -> Estimate {
        if self.samples == 0 || seconds <= 0.0 {
            return Estimate::default();
        }
        let (sum, squares) = (self.weights * scale, self.squares * scale * scale);
        let n = sum * sum / squares;
        let bound = |n: f64, z: f64| n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt())).max(0.0).powi(3);
        // Where each operation was sampled nothing is uncertain.
        let unsure = ((squares - sum) / squares).max(0.0).sqrt();
        let low = 1.0 - (1.0 - bound(n, -Z) / n) * unsure;
        let high = 1.0 + (bound(n + 1.0, Z) / n - 1.0) * unsure;
        let value = sum / seconds;
        Estimate { value, low: value * low, high: value * high, samples: self.samples }
    }
}

/// Keys of reads, or of writes.
#[derive(Debug, Default)]
struct Counted {
    /// By hash and length.
    keys: HashMap<(u64, u32), (Vec<u8>, Sums)>,
    total: Sums,
    given_up: u64,
    /// The most weight that a key had which was given up.
    given_up_weight: f64,
}

impl Counted {
    fn add(&mut self, sample: &Sample) {
        let (weight, is_absent) = (sample.weight as f64, matches!(sample.use_, Use::Miss | Use::Delete));
        self.total.add(weight, is_absent);
        let entry = self.keys.entry((sample.hash, sample.key_len));
        entry.or_insert_with(|| (sample.key().to_vec(), Sums::default())).1.add(weight, is_absent);
        if self.keys.len() > KEYS {
            self.give_up_half();
        }
    }

    fn give_up_half(&mut self) {
        let mut weights: Vec<f64> = self.keys.values().map(|(_, sums)| sums.weights).collect();
        let middle = weights.len() / 2;
        let (_, bound, _) = weights.select_nth_unstable_by(middle, f64::total_cmp);
        let (bound, before) = (*bound, self.keys.len());
        self.keys.retain(|_, (_, sums)| sums.weights > bound);
        self.given_up += (before - self.keys.len()) as u64;
        self.given_up_weight += bound;
    }

    fn hottest(&self, seconds: f64, scale: f64) -> Hottest {
        let total = self.total.estimate(seconds, scale);
        let key = |((_, key_len), (key, sums)): (&(u64, u32), &(Vec<u8>, Sums))| HotKey {
            key: key.clone(),
            key_len: *key_len,
            rate: sums.estimate(seconds, scale),
            share: sums.weights / self.total.weights,
            absent: if seconds > 0.0 { sums.absent * scale / seconds } else { 0.0 },
        };
        let mut keys: Vec<HotKey> = self.keys.iter().map(key).collect();
        keys.sort_by(|a, b| b.rate.value.total_cmp(&a.rate.value).then_with(|| a.key.cmp(&b.key)));
        let given_up_rate = if seconds > 0.0 { self.given_up_weight * scale / seconds } else { 0.0 };
        Hottest { total, keys, given_up: self.given_up, given_up_rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(samples: u64, weight: f64) -> Sums {
        let mut sums = Sums::default();
        (0..samples).for_each(|_| sums.add(weight, false));
        sums
    }

    #[test]
    fn an_interval_is_that_of_a_poisson_count() {
        // Garwood's exact interval for a count of 10 is 4.80 to 18.39, for 100 it is 81.4 to 121.6.
        let ten = sums(10, 1e6).estimate(1.0, 1.0);
        assert!((ten.value - 1e7).abs() < 1.0 && ten.samples == 10);
        assert!((ten.low / 1e6 - 4.80).abs() < 0.1 && (ten.high / 1e6 - 18.39).abs() < 0.1, "{ten:?}");
        let hundred = sums(100, 1e6).estimate(2.0, 1.0);
        assert!((hundred.low / 5e5 - 81.4).abs() < 0.2 && (hundred.high / 5e5 - 121.6).abs() < 0.2, "{hundred:?}");
        let one = sums(1, 1e6).estimate(1.0, 1.0);
        assert!(one.low >= 0.0 && one.low < 1e5 && one.high > 5e6, "{one:?}");
    }

    #[test]
    fn what_was_sampled_whole_is_certain_and_losses_make_it_less_so() {
        let all = sums(50, 1.0).estimate(10.0, 1.0);
        assert_eq!((all.value, all.low, all.high), (5.0, 5.0, 5.0));
        let half = sums(50, 1.0).estimate(10.0, 2.0);
        assert!(half.value == 10.0 && half.low < 9.0 && half.high > 11.0, "{half:?}");
        assert_eq!(Sums::default().estimate(1.0, 1.0), Estimate::default());
        assert_eq!(sums(3, 1.0).estimate(0.0, 1.0), Estimate::default());
    }

    #[test]
    fn the_hottest_survive_when_there_are_too_many_keys() {
        let mut counted = Counted::default();
        for n in 0..3 * KEYS as u64 {
            counted.add(&Sample::new(Use::Hit, 1, n, &n.to_le_bytes()));
            if n % 100 == 0 {
                counted.add(&Sample::new(Use::Miss, 5, u64::MAX, b"hot"));
            }
        }
        assert!(counted.keys.len() <= KEYS);
        let hottest = counted.hottest(1.0, 1.0);
        assert_eq!(hottest.keys[0].key, b"hot");
        let expected = (3 * KEYS as u64).div_ceil(100) * 5;
        assert_eq!(hottest.keys[0].rate.value, expected as f64);
        assert!(hottest.keys[0].absent == expected as f64 && hottest.given_up >= KEYS as u64);
        assert!(hottest.given_up_rate >= 2.0);
    }
}
