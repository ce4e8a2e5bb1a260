//! One system, one test, in this process; figures as `metric value` lines on standard output.

pub mod cache;
mod growth;
mod hot;
mod log;
mod million;
mod queue;
mod rate;
mod space;
mod transactions;

use crate::tables::{Foldhash, Fresh, Map, Memcached, Mere, Rapidhash, Table};
use crate::Outcome;
use std::path::PathBuf;

/// What this process is to measure.
pub struct Call {
    system: String,
    test: String,
    records: u32,
    operations: u64,
    folder: PathBuf,
    seed: u64,
}

/// Runs `work SYSTEM TEST RECORDS OPERATIONS FOLDER SEED`.
pub fn main(arguments: &[String]) -> Outcome {
    let [system, test, records, operations, folder, seed] = arguments else {
        return Err(crate::USAGE.into());
    };
    let call = Call {
        system: system.clone(),
        test: test.clone(),
        records: records.parse()?,
        operations: operations.parse()?,
        folder: folder.into(),
        seed: seed.parse()?,
    };
    match system.as_str() {
        "hashmere" if test.starts_with("queue-") => queue::run(&call),
        "hashmere" if test.starts_with("log") => log::run(&call),
        "hashmere" | "hashmere-singles" if test.starts_with("txn-") => transactions::run(&call),
        "crossbeam" | "rtrb" => queue::run_rival(&call),
        "hashmere" if test.starts_with("cache-") => cache::run(&call, &mut cache::store(&call)?),
        "memcached" if test.starts_with("cache-") => {
            cache::run(&call, &mut Memcached::start(&call.folder, call.records)?)
        }
        "hashmere" => mere(&call, None),
        "hashmere-expected" => mere(&call, Some(call.records.into())),
        "hashmap-rapidhash" => table(&call, &mut Map::<Rapidhash>::default()),
        "hashmap-foldhash" => table(&call, &mut Map::<Foldhash>::default()),
        "hashmap-fresh" => table(&call, &mut Fresh::<Rapidhash>::default()),
        "memcached" => table(&call, &mut Memcached::start(&call.folder, 1024)?),
        other => Err(format!("no such system: {other}").into()),
    }
}

/// The tests that any table can take.
fn table(call: &Call, table: &mut impl Table) -> Outcome {
    match call.test.as_str() {
        "w1" => hot::run(call, table),
        "w2" => million::run(call, table),
        "growth" => growth::run(call, table),
        "rate-get" | "rate-mixed" => {
            rate::fill(call, table)?;
            rate::run(call, table)
        }
        other => Err(format!("no such test of {}: {other}", call.system).into()),
    }
}

/// The tests of a store; those above among them.
fn mere(call: &Call, expected_items: Option<u64>) -> Outcome {
    let open = || Mere::open(&call.folder, expected_items);
    match call.test.as_str() {
        "w2" => million::run_store(call, &mut open()?),
        "fill" => rate::fill(call, &mut open()?),
        "rate-get" | "rate-mixed" => rate::run(call, &mut open()?),
        "empty" => space::empty(call),
        "open" => space::open(call),
        "shrink" => space::shrink(call, &mut open()?),
        _ => table(call, &mut open()?),
    }
}

fn say(metric: &str, value: f64) {
    println!("{metric} {value:.3}");
}
