//! W6: a cache that is asked for keys by Zipf's law, and filled with what it did not have.

use super::{say, Call};
use crate::tables::{Cached, Mere};
use crate::workload::{eight_digits, Random};
use crate::Outcome;

/// Keys that are asked for.
const KEYS: u32 = 2_000_000;
/// Bytes of a value.
const VALUE: usize = 100;
/// Exponents of Zipf's law, and what they are called.
pub const LAWS: [(&str, f64); 2] = [("0.99", 0.99), ("0.8", 0.8)];

/// Draws ranks by Zipf's law: the more often the smaller.
struct Zipf {
    /// How often one of the ranks up to each is drawn.
    up_to: Vec<f64>,
}

impl Zipf {
    fn new(exponent: f64) -> Zipf {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=KEYS)
            .map(|rank| {
                sum += f64::from(rank).powf(-exponent);
                sum
            })
            .collect();
        up_to.iter_mut().for_each(|part| *part /= sum);
        Zipf { up_to }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        let share = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        self.up_to.partition_point(|part| *part < share).min(KEYS as usize - 1) as u32
    }
}

/// The key of a rank: neighbours in rank are not neighbours in number.
fn key_of(rank: u32) -> [u8; 8] {
    // Both have no common divisor, so this is a permutation.
    eight_digits((u64::from(rank) * 1_299_709 % u64::from(KEYS)) as u32)
}

/// The value of a key: its text again and again.
fn value_of(key: [u8; 8]) -> [u8; VALUE] {
    std::array::from_fn(|i| key[i % key.len()])
}

/// Percent of hits of a cache that keeps the most frequent keys, and stores nothing but keys and values.
pub fn perfect(exponent: f64, megabytes: u32) -> f64 {
    let room = (u64::from(megabytes) << 20) / (VALUE as u64 + 8);
    100.0 * Zipf::new(exponent).up_to[(room.min(u64::from(KEYS)) as usize).saturating_sub(1)]
}

/// Runs it on a cache: as many requests to fill it, then those that count.
pub fn run(call: &Call, cache: &mut impl Cached) -> Outcome {
    let exponent = LAWS[usize::from(call.test != "cache-99")].1;
    let (zipf, mut random) = (Zipf::new(exponent), Random(call.seed));
    let mut found = Vec::with_capacity(VALUE);
    let mut hits = 0;
    for request in 0..2 * call.operations {
        let key = key_of(zipf.draw(&mut random));
        let value = value_of(key);
        if cache.find(&key, &mut found)? {
            if found != value {
                return Err(format!("a wrong value of {}", String::from_utf8_lossy(&key)).into());
            }
            hits += u64::from(request >= call.operations);
        } else {
            cache.set(&key, &value)?;
        }
    }
    say("hits_percent", 100.0 * hits as f64 / call.operations as f64);
    Ok(())
}

/// Opens a store in cache mode; the records of the call are its megabytes.
pub fn store(call: &Call) -> Outcome<Mere> {
    Mere::open_cache(&call.folder, u64::from(call.records) << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_drawn_by_the_law() {
        let (zipf, mut random) = (Zipf::new(0.99), Random(1));
        let first = (0..100_000).filter(|_| zipf.draw(&mut random) == 0).count() as f64;
        assert!((first / 1e5 - zipf.up_to[0]).abs() < 0.005, "{first} of 100,000, expected {}", zipf.up_to[0]);
        let mut keys: Vec<_> = (0..KEYS).map(key_of).collect();
        keys.sort_unstable();
        assert!(keys.iter().enumerate().all(|(n, key)| *key == eight_digits(n as u32)));
        assert!(perfect(0.99, 64) > perfect(0.8, 64) && perfect(0.8, 100_000) > 99.9);
    }
}
