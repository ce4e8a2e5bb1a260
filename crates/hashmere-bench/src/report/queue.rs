//! W4: queues between two processes, beside queues between two threads.

use super::bars::Bars;
use super::figures::{number, ratio};
use super::jobs::{Job, Jobs};
use super::plan::Plan;
use super::systems::{CROSSBEAM, HASHMERE, RTRB};
use crate::Outcome;

/// What SharedHashFile reached on this kind of machine, in batches of 1,000: million moves a second and process.
const SHARED_HASH_FILE: f64 = 120.0;
/// Elements under way in the test one by one.
const FEW: u32 = 1024;

/// Measures and prints it.
pub fn report(plan: &Plan, jobs: &mut Jobs, bars: &mut Bars) -> Outcome {
    let milliseconds = plan.size(1000, 50);
    let job = |system, test, records| Job { system, test, records, operations: milliseconds };
    let figures = jobs.interleaved(&[
        job(&HASHMERE, "queue-batch", plan.size(100_000, 5_000)),
        job(&HASHMERE, "queue-mpmc", FEW),
        job(&HASHMERE, "queue-spsc", FEW),
        job(&CROSSBEAM, "queue-single", FEW),
        job(&RTRB, "queue-single", FEW),
        job(&HASHMERE, "queue-delay", 4),
    ])?;
    let ours = |metric| figures.median(&HASHMERE, metric);
    let range = |metric| figures.range(&HASHMERE, metric);
    println!("\nW4  elements of 4 KiB between two processes, each on a core; million moves (pull and push) a second and process");
    for (text, metric) in [
        ("batches of 1,000, alone", "batch_alone_mps"),
        ("batches of 1,000, the other process moving too", "batch_beside_mps"),
        ("  the other process meanwhile", "batch_peer_mps"),
        ("one by one, MPMC", "mpmc_mps"),
        ("one by one, SPSC", "spsc_mps"),
    ] {
        println!("  {text:<50} {:>8}  {}", number(ours(metric)), range(metric));
    }
    for system in [&CROSSBEAM, &RTRB] {
        let median = figures.median(system, "single_mps");
        println!("  {:<50} {:>8}  {}", system.label, number(median), figures.range(system, "single_mps"));
    }
    println!("One way, ns, median: there and back in half to a receiver that spins, sent to woken to one that sleeps");
    for (text, metric) in [
        ("a word in one cache line", "line_ns"),
        ("an element, MPMC", "spin_ns"),
        ("an element, SPSC", "spin_spsc_ns"),
        ("an element with 8 bytes written and read, MPMC", "spin_payload_ns"),
        ("a bare futex, to a sleeper", "futex_ns"),
        ("an element, to a sleeper", "sleep_ns"),
    ] {
        println!("  {text:<50} {:>8}  {}", number(ours(metric)), range(metric));
    }
    let moves = |metric| ours(metric).map(|moves| moves / SHARED_HASH_FILE);
    bars.at_least("W4 batched moves, alone / SharedHashFile (120 M/s)", 2.0, "x", moves("batch_alone_mps"));
    bars.at_least("W4 batched moves, both moving / SharedHashFile (120 M/s)", 2.0, "x", moves("batch_beside_mps"));
    let rival = |system| figures.median(system, "single_mps");
    bars.at_least("W4 single moves, MPMC / ArrayQueue", 1.0, "x", ratio(ours("mpmc_mps"), rival(&CROSSBEAM)));
    bars.at_most("W4 single moves, rtrb / SPSC", 1.5, "x", ratio(rival(&RTRB), ours("spsc_mps")));
    let latency = |metric| ratio(ours(metric), ours("line_ns"));
    bars.at_most("W4 one way to a spinning receiver / cache line", 1.5, "x", latency("spin_ns"));
    bars.at_most("W4 the same with a payload", 1.5, "x", latency("spin_payload_ns"));
    bars.at_most("W4 one way to a sleeping receiver / bare futex", 1.3, "x", ratio(ours("sleep_ns"), ours("futex_ns")));
    Ok(())
}
