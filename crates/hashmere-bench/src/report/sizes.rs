//! What an operation costs, and a record takes, at each size of the table.

use super::bars::Bars;
use super::figures::{number, Figures};
use super::jobs::{Job, Jobs};
use super::plan::Plan;
use super::systems::*;
use crate::Outcome;

const SYSTEMS: [System; 5] = [HASHMERE, STASH, TINY, KYOTO_HASH, LMDB_BATCH];
/// Those that can be waited for at the largest size.
const LARGEST: [System; 3] = [HASHMERE, STASH, KYOTO_HASH];
/// A run reads at least as often: small tables are read again and again.
const READS: u64 = 1_000_000;

/// Measures and prints it.
pub fn report(plan: &Plan, jobs: &mut Jobs, _: &mut Bars) -> Outcome {
    // What the second workload measures anyway is not measured twice.
    let mut sizes = plan.size(vec![1_000, 10_000, 100_000, 1_000_000], vec![1_000, 10_000]);
    if plan.full {
        sizes.extend([100_000_000]);
    }
    let mut all = Figures::default();
    println!("\nSizes  records of 8 + 8 bytes, shuffled, then random gets; ns per operation");
    println!("  {:<34} {:>11} {:>8} {:>8} {:>8}", "", "records", "load", "get", "bytes");
    for records in sizes {
        let systems: &[System] = if records > 10_000_000 { &LARGEST } else { &SYSTEMS };
        let operations = u64::from(records).max(plan.size(READS, 10_000));
        let list: Vec<Job> = systems.iter().map(|system| Job { system, test: "w2", records, operations }).collect();
        let figures = if records > 1_000_000 { jobs.interleaved(&list)? } else { jobs.interleaved_short(&list)? };
        for system in systems.iter().filter(|system| jobs.can_run(system)) {
            for metric in ["load_ns", "get_ns", "bulk_ns", "bytes_per_record"] {
                for figure in figures.sorted(system, metric) {
                    all.add(system.id, &format!("{metric}@{records}"), figure);
                }
            }
            let show = |metric| number(figures.median(system, metric));
            println!(
                "  {:<34} {records:>11} {:>8} {:>8} {:>8}",
                system.label,
                show("load_ns"),
                show("get_ns"),
                show("bytes_per_record")
            );
        }
    }
    jobs.keep("sizes", &all);
    Ok(())
}
