//! The longest single set.

use super::bars::Bars;
use super::figures::number;
use super::jobs::{Job, Jobs};
use super::plan::Plan;
use super::systems::*;
use crate::Outcome;

/// The bar, which is for an idle machine.
const LIMIT_MS: f64 = 1.0;
const SYSTEMS: [System; 3] = [HASHMERE, HASHMERE_EXPECTED, HASH_MAP];

/// Measures and prints it.
pub fn report(plan: &Plan, jobs: &mut Jobs, bars: &mut Bars) -> Outcome {
    let records = plan.size(10_000_000, 200_000);
    let list: Vec<Job> = SYSTEMS.iter().map(|system| Job { system, test: "growth", records, operations: 0 }).collect();
    let figures = jobs.interleaved(&list)?;
    jobs.keep("growth", &figures);
    println!("\nGrowth  each single set from 0 to {records} records, microseconds");
    println!(
        "  {:<44} {:>6} {:>6} {:>7} {:>8} {:>9} {:>8} {:>9}  max, range of the runs",
        "", "p50", "p99", "p99.9", "max", "on a core", "> 1 ms", "idle max"
    );
    for system in &SYSTEMS {
        let show = |metric| number(figures.median(system, metric));
        println!(
            "  {:<44} {:>6} {:>6} {:>7} {:>8} {:>9} {:>8} {:>9}  {}",
            system.label,
            show("p50_us"),
            show("p99_us"),
            show("p999_us"),
            show("max_us"),
            show("core_max_us"),
            show("core_above_1ms"),
            show("idle_max_us"),
            figures.range(system, "max_us"),
        );
    }
    println!("  on a core: the longest in time that the thread had a core, and how many took over 1 ms of that");
    println!("  idle max: the longest step of a loop that only reads the clocks, for as long, in the same process");
    let ms = |metric| figures.median(&HASHMERE, metric).map(|us| us / 1e3);
    if ms("idle_max_us").is_some_and(|idle| idle < LIMIT_MS) {
        bars.below("Longest set while growing", LIMIT_MS, " ms", ms("max_us"));
    } else {
        bars.below(
            "Longest set while growing, on a core (the machine is not idle)",
            LIMIT_MS,
            " ms",
            ms("core_max_us"),
        );
    }
    Ok(())
}
