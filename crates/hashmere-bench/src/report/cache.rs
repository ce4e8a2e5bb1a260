//! W6: what a cache of a given memory answers, of keys that are asked for by Zipf's law.

use super::bars::Bars;
use super::figures::{ratio, Figures};
use super::jobs::{Job, Jobs};
use super::plan::Plan;
use super::systems::*;
use crate::work::cache::{perfect, LAWS};
use crate::Outcome;

const SYSTEMS: [System; 2] = [HASHMERE, MEMCACHED];

/// Measures and prints it.
pub fn report(plan: &Plan, jobs: &mut Jobs, bars: &mut Bars) -> Outcome {
    let megabytes: &[u32] = if plan.full { &[16, 32, 64, 128] } else { &[64] };
    let requests = plan.size(6_000_000, 200_000);
    let mut all = Figures::default();
    println!("\nW6  hits of {requests} requests after as many, in percent; keys and values as bench/README.md says");
    println!("  {:<44} {:>6} {:>7} {:>7}", "", "Zipf", "MiB", "hits");
    for (name, law) in LAWS {
        for &megabytes in megabytes {
            // A hit ratio does not depend on the hour: it is measured once.
            let folder = jobs.new_folder()?;
            let test = if law == LAWS[0].1 { "cache-99" } else { "cache-80" };
            let metric = format!("hits@{name}@{megabytes}");
            let mut figures = Figures::default();
            for system in &SYSTEMS {
                if !jobs.can_run(system) {
                    continue;
                }
                eprintln!("  {test} {megabytes} MiB {}", system.label);
                jobs.one(&Job { system, test, records: megabytes, operations: requests }, &folder, 1, &mut figures);
            }
            figures.add(PERFECT.id, "hits_percent", perfect(law, megabytes));
            for system in SYSTEMS.iter().chain([&PERFECT]) {
                let Some(hits) = figures.median(system, "hits_percent") else { continue };
                all.add(system.id, &metric, hits);
                println!("  {:<44} {name:>6} {megabytes:>7} {hits:>7.2}", system.label);
            }
            std::fs::remove_dir_all(&folder)?;
            let misses = |system| figures.median(system, "hits_percent").map(|hits| 100.0 - hits);
            let of_ours = ratio(misses(&HASHMERE), misses(&MEMCACHED));
            if of_ours.is_some() {
                bars.at_most(&format!("W6 misses / memcached, Zipf {name}, {megabytes} MiB"), 0.8, "x", of_ours);
            }
        }
    }
    jobs.keep("cache", &all);
    Ok(())
}
