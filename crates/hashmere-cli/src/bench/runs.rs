//! The measurements.

use super::Measured;
use crate::failure::{code, Failure};
use fastrand::Rng;
use hashmere::{Counter, Store};
use std::time::Instant;

const SEED: u64 = 1;
const BULK: usize = 100;

/// The decimal text of a number, without allocation.
struct Decimal {
    digits: [u8; 20],
    start: usize,
}

impl Decimal {
    fn of(mut number: u64) -> Decimal {
        let mut decimal = Decimal { digits: [b'0'; 20], start: 20 };
        while decimal.start == 20 || number > 0 {
            decimal.start -= 1;
            decimal.digits[decimal.start] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        decimal
    }
}

impl AsRef<[u8]> for Decimal {
    fn as_ref(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

fn wrong(name: &str, key: &[u8]) -> Failure {
    Failure::error(code::WRONG_VALUE, format!("{name}: key {} has a wrong value", String::from_utf8_lossy(key)))
}

/// Stores all keys once, in a scattered order.
pub fn fill(store: &Store, keys: u64, name: &'static str) -> Result<Measured, Failure> {
    // A step without a common divisor visits every number once.
    let mut step = (keys as f64 * 0.618) as u64 | 1;
    while gcd(step, keys) != 1 {
        step += 2;
    }
    let started = Instant::now();
    let mut number = 0;
    for _ in 0..keys {
        number = (number + step) % keys;
        let text = Decimal::of(number);
        store.set(text.as_ref(), text.as_ref())?;
    }
    let time = started.elapsed();
    match store.len() {
        count if count == keys => Ok(Measured { name, ops: keys, time }),
        count => Err(Failure::error(code::WRONG_VALUE, format!("{name}: {count} keys instead of {keys}"))),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// Sets a random key to its own text, gets it and compares; an operation is half of such a pair.
pub fn set_and_get(store: &Store, keys: u64, ops: u64) -> Result<Measured, Failure> {
    let name = "hot: set+get";
    let mut rng = Rng::with_seed(SEED);
    let mut value = Vec::new();
    let started = Instant::now();
    for _ in 0..ops.div_ceil(2) {
        let text = Decimal::of(rng.u64(..keys));
        let key = text.as_ref();
        store.set(key, key)?;
        if store.get_into(key, &mut value)?.is_none() || value != key {
            return Err(wrong(name, key));
        }
    }
    Ok(Measured { name, ops: ops.div_ceil(2) * 2, time: started.elapsed() })
}

/// Sets random keys.
pub fn set(store: &Store, keys: u64, ops: u64) -> Result<Measured, Failure> {
    let mut rng = Rng::with_seed(SEED);
    let started = Instant::now();
    for _ in 0..ops {
        let text = Decimal::of(rng.u64(..keys));
        store.set(text.as_ref(), text.as_ref())?;
    }
    Ok(Measured { name: "hot: set", ops, time: started.elapsed() })
}

/// Gets random keys.
pub fn get(store: &Store, keys: u64, ops: u64, name: &'static str) -> Result<Measured, Failure> {
    let mut rng = Rng::with_seed(SEED);
    let mut value = Vec::new();
    let started = Instant::now();
    for _ in 0..ops {
        let text = Decimal::of(rng.u64(..keys));
        let key = text.as_ref();
        if store.get_into(key, &mut value)?.is_none() || value != key {
            return Err(wrong(name, key));
        }
    }
    Ok(Measured { name, ops, time: started.elapsed() })
}

/// Gets random keys, many with one call.
pub fn get_many(store: &Store, keys: u64, ops: u64, name: &'static str) -> Result<Measured, Failure> {
    let mut rng = Rng::with_seed(SEED);
    let calls = ops.div_ceil(BULK as u64);
    let mut batch = Vec::with_capacity(BULK);
    let started = Instant::now();
    for _ in 0..calls {
        batch.clear();
        batch.extend((0..BULK).map(|_| Decimal::of(rng.u64(..keys))));
        let mut bad = None;
        store.get_many_with(&batch, |i, value| {
            if value != Some(batch[i].as_ref()) {
                bad = Some(i);
            }
        })?;
        if let Some(i) = bad {
            return Err(wrong(name, batch[i].as_ref()));
        }
    }
    Ok(Measured { name, ops: calls * BULK as u64, time: started.elapsed() })
}

/// Visits all pairs, some times over.
pub fn scan(store: &Store, keys: u64, rounds: u64, name: &'static str) -> Result<Measured, Failure> {
    let rounds = rounds.min(20);
    let started = Instant::now();
    for _ in 0..rounds {
        let mut seen = 0;
        for pair in store.iter() {
            let pair = pair?;
            if pair.key != pair.value {
                return Err(wrong(name, &pair.key));
            }
            seen += 1;
        }
        if seen != keys {
            return Err(Failure::error(code::WRONG_VALUE, format!("{name}: {seen} keys instead of {keys}")));
        }
    }
    Ok(Measured { name, ops: rounds * keys, time: started.elapsed() })
}

/// Adds to one counter.
pub fn incr(store: &Store, ops: u64) -> Result<Measured, Failure> {
    let name = "hot: incr, one counter";
    let key = b"bench:counter";
    let started = Instant::now();
    for _ in 0..ops {
        store.incr(key, 1, Counter::or_create(1))?;
    }
    let time = started.elapsed();
    if store.get(key)?.as_deref() != Some(ops.to_string().as_bytes()) {
        return Err(wrong(name, key));
    }
    Ok(Measured { name, ops, time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_text() {
        for number in [0, 7, 10, 9999, u64::MAX] {
            assert_eq!(Decimal::of(number).as_ref(), number.to_string().as_bytes());
        }
    }
}
