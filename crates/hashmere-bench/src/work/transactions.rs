//! Transactions of 2 and of 10 sets, and transfers between accounts, as many as go in a fixed time; see `rate` for how
//! several processes begin at one moment. `bench/peers/transactions.hh` has the same for the peers.

use super::rate::wait_for_start;
use super::{say, Call};
use crate::workload::{eight_digits, Random};
use crate::Outcome;
use hashmere::{Store, WriteBatch, WriteError};
use std::time::{Duration, Instant};

/// What is in each account at first.
const START: u64 = 1000;

/// A test: the store is filled once, and looked through once at the end.
pub fn run(call: &Call) -> Outcome {
    let store = Store::open(call.folder.join("transactions.mere"))?;
    match call.test.as_str() {
        "txn-fill" => fill(call, &store),
        "txn-fill-bank" => fill_bank(call, &store),
        "txn-2" => sets(call, &store, 2),
        "txn-10" => sets(call, &store, 10),
        "txn-bank" => bank(call, &store),
        "txn-check-bank" => check_bank(call, &store),
        other => Err(format!("no such test of transactions: {other}").into()),
    }
}

/// The value that a key gets: it begins with the key.
fn value(key: [u8; 8], number: u64) -> [u8; 20] {
    let mut value = [b'0'; 20];
    value[..8].copy_from_slice(&key);
    value[12..].copy_from_slice(&eight_digits((number % 100_000_000) as u32));
    value
}

fn fill(call: &Call, store: &Store) -> Outcome {
    for n in 0..call.records {
        let key = eight_digits(n);
        store.set(&key, &value(key, 0))?;
    }
    Ok(())
}

/// Calls `once` for as long as the call says, from the common start on; how often in a second.
fn timed(call: &Call, mut once: impl FnMut(u64) -> Outcome) -> Outcome {
    let length = Duration::from_millis(call.operations);
    wait_for_start()?;
    let (start, mut done) = (Instant::now(), 0);
    let elapsed = loop {
        for _ in 0..64 {
            once(done)?;
            done += 1;
        }
        let elapsed = start.elapsed();
        if elapsed >= length {
            break elapsed;
        }
    };
    say("ops_per_s", done as f64 / elapsed.as_secs_f64());
    Ok(())
}

/// Each process has every other key.
fn sets(call: &Call, store: &Store, width: u64) -> Outcome {
    let own = |n: u64| eight_digits((2 * n + call.seed % 2) as u32);
    let half = u64::from(call.records / 2);
    let mut random = Random(call.seed);
    let mut batch = WriteBatch::new();
    let is_single = call.system == "hashmere-singles";
    timed(call, |number| {
        if is_single {
            for _ in 0..width {
                let key = own(random.below(half));
                store.set(&key, &value(key, number))?;
            }
            return Ok(());
        }
        batch.clear();
        for _ in 0..width {
            let key = own(random.below(half));
            batch.set(key, value(key, number));
        }
        match store.write_batch(&batch)?.len() as u64 == width {
            true => Ok(()),
            false => Err("a result for each operation".into()),
        }
    })?;
    for key in (0..half).map(own) {
        let found = store.get(&key)?;
        if !found.as_ref().is_some_and(|found| found.len() == 20 && found.starts_with(&key)) {
            return Err(format!("wrong value of {}: {found:?}", String::from_utf8_lossy(&key)).into());
        }
    }
    Ok(())
}

fn fill_bank(call: &Call, store: &Store) -> Outcome {
    for n in 0..call.records {
        store.set(&eight_digits(n), &eight_digits(START as u32))?;
    }
    Ok(())
}

fn amount_of(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok().filter(|text| text.len() == 8)?.parse().ok()
}

/// Moves 1 to 9 from one account to another, if they are there.
fn bank(call: &Call, store: &Store) -> Outcome {
    let mut random = Random(call.seed);
    let accounts = u64::from(call.records);
    let mut buffer = Vec::new();
    timed(call, |number| {
        let from = random.below(accounts);
        let to = (from + 1 + random.below(accounts - 1)) % accounts;
        let (from, to) = (eight_digits(from as u32), eight_digits(to as u32));
        let amount = 1 + number % 9;
        let were_numbers = store.transaction(|t| -> Result<bool, WriteError> {
            let there = t.get_into(from, &mut buffer)?.and_then(|_| amount_of(&buffer));
            let other = t.get_into(to, &mut buffer)?.and_then(|_| amount_of(&buffer));
            let (Some(there), Some(other)) = (there, other) else { return Ok(false) };
            if there >= amount {
                t.set(from, eight_digits((there - amount) as u32))?;
                t.set(to, eight_digits((other + amount) as u32))?;
            }
            Ok(true)
        })?;
        match were_numbers {
            true => Ok(()),
            false => Err("an account holds no amount".into()),
        }
    })
}

fn check_bank(call: &Call, store: &Store) -> Outcome {
    let mut sum = 0;
    for n in 0..call.records {
        let value = store.get(&eight_digits(n))?;
        sum += value.as_deref().and_then(amount_of).ok_or("an account holds no amount")?;
    }
    match sum == START * u64::from(call.records) {
        true => Ok(()),
        false => Err(format!("the sum of all accounts is {sum}").into()),
    }
}
