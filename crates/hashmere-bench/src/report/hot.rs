//! W1.

use super::bars::Bars;
use super::figures::{number, ratio, times};
use super::jobs::{Job, Jobs};
use super::plan::Plan;
use super::systems::*;
use crate::Outcome;

const SYSTEMS: [System; 12] = [
    HASHMERE,
    HASH_MAP,
    HASH_MAP_FOLDHASH,
    HASH_MAP_FRESH,
    CACHE,
    STASH,
    TINY,
    KYOTO_HASH,
    TKRZW_HASH,
    LMDB_BATCH,
    LMDB_SINGLE,
    MEMCACHED,
];

/// Measures and prints it.
pub fn report(plan: &Plan, jobs: &mut Jobs, bars: &mut Bars) -> Outcome {
    let operations = plan.size(2_000_000, 100_000);
    let list: Vec<Job> = SYSTEMS
        .iter()
        .map(|system| {
            // A hundredth for memcached, which is a hundred times as slow.
            let operations = if *system.id == *MEMCACHED.id { operations / 100 } else { operations };
            Job { system, test: "w1", records: 10_000, operations }
        })
        .collect();
    let figures = jobs.interleaved_short(&list)?;
    jobs.keep("w1", &figures);
    let pair = |system| figures.median(system, "pair_ns");
    println!("\nW1  10,000 hot keys, {operations} x (set, get and compare); ns per operation");
    println!("  {:<44} {:>8} {:>8} {:>8} {:>9}  set+get, range of the runs", "", "set+get", "set", "get", "Hashmere");
    for system in SYSTEMS.iter().filter(|system| jobs.can_run(system)) {
        println!(
            "  {:<44} {:>8} {:>8} {:>8} {:>9}  {}",
            system.label,
            number(pair(system)),
            number(figures.median(system, "set_ns")),
            number(figures.median(system, "get_ns")),
            times(ratio(pair(system), pair(&HASHMERE))),
            figures.range(system, "pair_ns"),
        );
    }
    let inserting = ratio(pair(&HASHMERE), pair(&HASH_MAP_FRESH));
    bars.at_most("W1 time of set+get / HashMap with the same hash, by insert", 3.0, "x", inserting);
    let in_place = ratio(pair(&HASHMERE), pair(&HASH_MAP));
    bars.at_most("W1 time of set+get / HashMap with the same hash, updated in place", 1.4, "x", in_place);
    if plan.peers.is_some() {
        let fastest = [CACHE, STASH, TINY].iter().filter_map(pair).min_by(f64::total_cmp);
        let speed = ratio(fastest, pair(&HASHMERE));
        bars.at_least("W1 speed / fastest of Kyoto CacheDB, StashDB and Tkrzw TinyDBM", 1.6, "x", speed);
    }
    for system in SYSTEMS.iter().filter(|system| system.kind == Kind::SharesOrPersists && jobs.can_run(system)) {
        bars.above(&format!("W1 speed / {}", system.label), 1.0, "x", ratio(pair(system), pair(&HASHMERE)));
    }
    Ok(())
}
