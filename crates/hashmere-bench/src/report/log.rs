//! The log: what a call costs the caller, beside spdlog's asynchronous logger; four processes at once.

use super::bars::Bars;
use super::figures::{number, ratio};
use super::jobs::{Job, Jobs};
use super::plan::Plan;
use super::systems::{HASHMERE, SPDLOG};
use crate::Outcome;

/// Lines in a burst: less than either system holds.
const BURST: u32 = 1000;

/// Measures and prints it.
pub fn report(plan: &Plan, jobs: &mut Jobs, bars: &mut Bars) -> Outcome {
    let bursts = plan.size(300, 10);
    let job = |system, test| Job { system, test, records: BURST, operations: bursts };
    let figures = jobs.interleaved_short(&[job(&HASHMERE, "log"), job(&SPDLOG, "log"), job(&HASHMERE, "log-four")])?;
    jobs.keep("log", &figures);
    println!("\nLog  ns a line; every line is read back from the file and compared");
    for (text, metric) in [
        ("a call, a line of 36 bytes as it is", "line_ns"),
        ("a call, the same formatted", "format_ns"),
        ("many lines in one go, up to the file", "sustained_ns"),
    ] {
        println!("  {text}");
        for system in [&HASHMERE, &SPDLOG] {
            let median = number(figures.median(system, metric));
            println!("    {:<48} {median:>8}  {}", system.label, figures.range(system, metric));
        }
    }
    for (text, metric) in
        [("four processes at once, up to the file", "four_ns"), ("lines out of the order of time", "disorder")]
    {
        println!("  {text:<50} {:>8}  {}", number(figures.median(&HASHMERE, metric)), figures.range(&HASHMERE, metric));
    }
    let ours = |metric| figures.median(&HASHMERE, metric);
    bars.at_most("Log call of a short line, ns", 100.0, "", ours("line_ns"));
    for (text, metric) in [("Log call / spdlog", "line_ns"), ("Log call, formatted / spdlog", "format_ns")] {
        bars.at_most(text, 1.0, "x", ratio(ours(metric), figures.median(&SPDLOG, metric)));
    }
    bars.at_most("Log of four processes: lines out of order", 0.0, "", ours("disorder"));
    Ok(())
}
