//! What a store takes when it is empty, what opening a full one costs, what deleting gives back.

use super::{say, Call};
use crate::machine::blocks_in;
use crate::tables::{must_hold, store_file, Mere, Table};
use crate::workload::{eight_digits, shuffled};
use crate::Outcome;
use hashmere::Options;
use std::fs;
use std::time::{Duration, Instant};

/// A new store: bytes allocated, and the size that `ls` shows.
pub fn empty(call: &Call) -> Outcome {
    let mut mere = Mere::open(&call.folder, None)?;
    say("empty_allocated", blocks_in(&call.folder) as f64);
    say("empty_apparent", fs::metadata(store_file(&call.folder))?.len() as f64);
    mere.set(b"key", b"value")?;
    say("one_record_allocated", blocks_in(&call.folder) as f64);
    Ok(())
}

/// Opening an existing store, once in this process, and the first get after it.
pub fn open(call: &Call) -> Outcome {
    let start = Instant::now();
    let store = Options::new().create(false).open(store_file(&call.folder))?;
    let opened = start.elapsed();
    let key = eight_digits(call.seed as u32 % call.records);
    let value = store.get(&key)?;
    say("first_get_us", (start.elapsed() - opened).as_nanos() as f64 / 1e3);
    if value.as_deref() != Some(&key) {
        return Err("wrong or missing value after opening".into());
    }
    say("open_us", opened.as_nanos() as f64 / 1e3);
    Ok(())
}

/// Loads, deletes nine tenths, and sees what the file gives back while it stays open.
pub fn shrink(call: &Call, mere: &mut Mere) -> Outcome {
    let order = shuffled(call.records, call.seed);
    for &n in &order {
        let text = eight_digits(n);
        mere.set(&text, &text)?;
    }
    let blocks = |metric| say(metric, blocks_in(&call.folder) as f64);
    blocks("full_bytes");
    let (gone, kept) = order.split_at(order.len() / 10 * 9);
    let start = Instant::now();
    for &n in gone {
        if !mere.store.delete(&eight_digits(n))? {
            return Err(format!("{n} was not there to delete").into());
        }
    }
    say("delete_ns", start.elapsed().as_nanos() as f64 / gone.len() as f64);
    blocks("deleted_bytes");
    std::thread::sleep(Duration::from_millis(500));
    let start = Instant::now();
    mere.store.compact()?;
    say("compact_ms", start.elapsed().as_secs_f64() * 1e3);
    blocks("maintained_bytes");
    for &n in kept {
        let text = eight_digits(n);
        must_hold(mere, &text, &text)?;
    }
    for &n in gone {
        if mere.store.contains_key(&eight_digits(n))? {
            return Err(format!("{n} is back after its deletion").into());
        }
    }
    Ok(())
}
