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
    let figures = jobs.interleaved_short(&[
        job(&HASHMERE, "queue-batch", plan.size(100_000, 5_000)),
        job(&HASHMERE, "queue-mpmc", FEW),
        job(&HASHMERE, "queue-spsc", FEW),
        job(&CROSSBEAM, "queue-single", FEW),
        job(&RTRB, "queue-single", FEW),
        job(&HASHMERE, "queue-delay", 4),
        job(&HASHMERE, "queue-apart", 4),
        job(&RTRB, "queue-delay", 4),
    ])?;
    jobs.keep("queue", &figures);
    let ours = |metric| figures.median(&HASHMERE, metric);
    let range = |metric| figures.range(&HASHMERE, metric);
    println!("\nW4  elements of 4 KiB between two processes, each on a core; million moves (pop and push) a second and process");
    for (text, metric) in [
        ("batches of 1,000, alone", "batch_alone_mps"),
        ("batches of 1,000, the other process moving too", "batch_beside_mps"),
        ("  of the other process", "batch_peer_mps"),
        ("one by one, MPMC, alone", "mpmc_alone_mps"),
        ("one by one, SPSC, alone", "spsc_alone_mps"),
        ("one by one, MPMC, the other process moving too", "mpmc_mps"),
        ("one by one, SPSC, the other process moving too", "spsc_mps"),
    ] {
        println!("  {text:<50} {:>8}  {}", number(ours(metric)), range(metric));
    }
    for system in [&CROSSBEAM, &RTRB] {
        let median = figures.median(system, "single_mps");
        println!("  {:<50} {:>8}  {}", system.label, number(median), figures.range(system, "single_mps"));
    }
    println!("One way, ns, median of figures: sent at random moments to a receiver that spins");
    let print = |rows: &[(&str, &'static str)]| {
        for (text, metric) in rows {
            println!("  {text:<50} {:>8}  {}", number(ours(metric)), range(metric));
        }
    };
    print(&[
        ("a word in a cache line", "apart_line_ns"),
        ("an element, MPMC", "apart_ns"),
        ("an element, SPSC", "apart_spsc_ns"),
        ("an element with 8 bytes written and read, MPMC", "apart_payload_ns"),
    ]);
    println!("There and back at once, half of it");
    print(&[
        ("a word, to and fro in one cache line", "line_ns"),
        ("a word, in a cache line for each direction", "lines_ns"),
        ("an element, MPMC", "spin_ns"),
        ("an element, SPSC", "spin_spsc_ns"),
        ("an element with 8 bytes written and read, MPMC", "spin_payload_ns"),
    ]);
    let rtrb = figures.median(&RTRB, "spin_ns");
    println!("  {:<50} {:>8}  {}", RTRB.label, number(rtrb), figures.range(&RTRB, "spin_ns"));
    println!("Sent to woken, to a receiver that sleeps");
    print(&[("a bare futex", "futex_ns"), ("an element", "sleep_ns")]);
    let moves = |metric| ours(metric).map(|moves| moves / SHARED_HASH_FILE);
    bars.at_least("W4 batched moves, alone / SharedHashFile (120 M/s)", 2.0, "x", moves("batch_alone_mps"));
    bars.at_least("W4 batched moves, both moving / SharedHashFile (120 M/s)", 2.0, "x", moves("batch_beside_mps"));
    let rival = |system| figures.median(system, "single_mps");
    bars.at_least("W4 single moves, MPMC / ArrayQueue", 1.0, "x", ratio(ours("mpmc_mps"), rival(&CROSSBEAM)));
    bars.at_most("W4 single moves, rtrb / SPSC", 1.3, "x", ratio(rival(&RTRB), ours("spsc_mps")));
    let apart = |metric| ratio(ours(metric), ours("apart_line_ns"));
    bars.at_most("W4 one way to a spinning receiver, MPMC / a cache line", 1.5, "x", apart("apart_ns"));
    bars.at_most("W4 the same, SPSC", 1.5, "x", apart("apart_spsc_ns"));
    bars.at_most("W4 the same, MPMC with a payload", 1.5, "x", apart("apart_payload_ns"));
    let at_once = |metric| ratio(ours(metric), ours("lines_ns"));
    bars.at_most("W4 there and back at once, MPMC / two cache lines", 1.5, "x", at_once("spin_ns"));
    bars.at_most("W4 the same, SPSC / rtrb", 1.0, "x", ratio(ours("spin_spsc_ns"), rtrb));
    bars.at_most("W4 one way to a sleeping receiver / bare futex", 1.3, "x", ratio(ours("sleep_ns"), ours("futex_ns")));
    Ok(())
}
