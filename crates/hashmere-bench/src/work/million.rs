//! W2: many small records in shuffled order, then random gets one by one and in bulk; and what they take.

use super::{say, Call};
use crate::machine::{blocks_in, resident_bytes};
use crate::tables::{bulk_matches, must_hold, Mere, Table};
use crate::workload::{eight_digits, shuffled, Random};
use crate::Outcome;
use std::time::Instant;

/// Keys in a bulk get.
const BULK: usize = 32;

/// Runs it on any table.
pub fn run<T: Table>(call: &Call, table: &mut T) -> Outcome {
    let order = shuffled(call.records, call.seed);
    let resident = resident_bytes();
    let start = Instant::now();
    for &n in &order {
        let text = eight_digits(n);
        table.set(&text, &text)?;
    }
    say("load_ns", start.elapsed().as_nanos() as f64 / f64::from(call.records));
    let bytes = match blocks_in(&call.folder) {
        0 => resident_bytes().saturating_sub(resident),
        bytes => bytes,
    };
    say("bytes_per_record", bytes as f64 / f64::from(call.records));
    let mut random = Random(call.seed + 1);
    let start = Instant::now();
    for _ in 0..call.operations {
        let text = eight_digits(random.below(call.records.into()) as u32);
        must_hold(table, &text, &text)?;
    }
    say("get_ns", start.elapsed().as_nanos() as f64 / call.operations as f64);
    Ok(())
}

/// Runs it on a store, which has a bulk get.
pub fn run_store(call: &Call, mere: &mut Mere) -> Outcome {
    run(call, mere)?;
    let mut random = Random(call.seed + 2);
    let (mut numbers, mut keys) = ([0; BULK], Vec::with_capacity(BULK));
    let rounds = call.operations / BULK as u64;
    let start = Instant::now();
    for _ in 0..rounds {
        numbers.fill_with(|| random.below(call.records.into()) as u32);
        if !bulk_matches(&mere.store, &numbers, &mut keys)? {
            return Err("wrong or missing value in a bulk get".into());
        }
    }
    say("bulk_ns", start.elapsed().as_nanos() as f64 / (rounds * BULK as u64) as f64);
    if mere.store.len() != u64::from(call.records) {
        return Err(format!("count says {}", mere.store.len()).into());
    }
    Ok(())
}
