//! W2.

use super::bars::Bars;
use super::figures::{number, ratio, times};
use super::jobs::{Job, Jobs};
use super::plan::Plan;
use super::systems::*;
use crate::Outcome;

const SYSTEMS: [System; 7] = [HASHMERE, HASHMERE_EXPECTED, LMDB_BATCH, STASH, KYOTO_HASH, TINY, TKRZW_HASH];

/// Measures and prints it.
pub fn report(plan: &Plan, jobs: &mut Jobs, bars: &mut Bars) -> Outcome {
    let records = plan.size(10_000_000, 100_000);
    let list: Vec<Job> =
        SYSTEMS.iter().map(|system| Job { system, test: "w2", records, operations: records.into() }).collect();
    let figures = jobs.interleaved(&list)?;
    jobs.keep("w2", &figures);
    let get = |system| figures.median(system, "get_ns");
    println!("\nW2  {records} records of 8 + 8 bytes, shuffled, then as many random gets; ns per operation");
    println!(
        "  {:<34} {:>7} {:>11} {:>8} {:>12} {:>7}  random get, range of the runs",
        "", "load", "random get", "Hashmere", "in bulks: key", "bytes"
    );
    for system in SYSTEMS.iter().filter(|system| jobs.can_run(system)) {
        println!(
            "  {:<34} {:>7} {:>11} {:>8} {:>12} {:>7}  {}",
            system.label,
            number(figures.median(system, "load_ns")),
            number(get(system)),
            times(ratio(get(system), get(&HASHMERE))),
            number(figures.median(system, "bulk_ns")),
            number(figures.median(system, "bytes_per_record")),
            figures.range(system, "get_ns"),
        );
    }
    println!("  bytes: blocks of the files, or growth of the process for what is not in files, by records; payload 16");
    let ours = |metric| figures.median(&HASHMERE, metric);
    if plan.peers.is_some() {
        let peers = || SYSTEMS.iter().filter(|system| system.is_peer());
        let fastest = |metric| peers().filter_map(|peer| figures.median(peer, metric)).min_by(f64::total_cmp);
        let speed = |metric| ratio(fastest(metric), ours(metric));
        bars.at_least("W2 speed of a random get / fastest of LMDB, Kyoto, Tkrzw", 2.2, "x", speed("get_ns"));
        bars.at_least("W2 speed of a set / fastest of them", 1.5, "x", speed("load_ns"));
        let bytes = ratio(ours("bytes_per_record"), figures.median(&STASH, "bytes_per_record"));
        bars.below("W2 bytes a record / Kyoto StashDB", 1.0, "x", bytes);
    }
    bars.at_most("W2 time of a key in a bulk get / random get", 0.25, "x", ratio(ours("bulk_ns"), ours("get_ns")));
    bars.at_most("W2 bytes a record, all included", 35.0, " B", ours("bytes_per_record"));
    Ok(())
}
