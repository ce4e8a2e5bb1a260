//! Two processes at once against one.

use super::bars::Bars;
use super::figures::{times, Figures};
use super::jobs::{Job, Jobs};
use super::plan::Plan;
use super::systems::*;
use super::together::{couple, gain_of, metric, together, COUPLES};
use crate::Outcome;

/// `HashMap`s that share nothing show what this machine can do at best.
const SYSTEMS: [System; 2] = [HASHMERE, HASH_MAP];
const TESTS: [(&str, &str); 2] = [("rate-get", "get"), ("rate-mixed", "mixed, 2 % sets")];

/// Measures and prints it.
pub fn report(plan: &Plan, jobs: &mut Jobs, bars: &mut Bars) -> Outcome {
    let records = plan.size(1_000_000, 50_000);
    let mut figures = Figures::default();
    let folder = jobs.new_folder()?;
    jobs.one(&Job { system: &HASHMERE, test: "fill", records, operations: 0 }, &folder, 1, &mut figures);
    // One and two follow each other at once, and the gain is that of such a couple, so that drift of the machine
    // cancels.
    let rounds = plan.runs * COUPLES;
    for round in 0..rounds {
        for (test, _) in TESTS {
            for system in &SYSTEMS {
                eprintln!("  {test} {}/{} {}", round + 1, rounds, system.label);
                let job = Job { system, test, records, operations: plan.size(1_000, 200) };
                if let Err(error) = couple(jobs, &job, &folder, round % 2 == 0, &mut figures) {
                    jobs.failed(format!("{test} of {}: {error}", system.label));
                }
            }
        }
    }
    // More processes than two, where the machine has the cores.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for round in 0..plan.runs {
        for processes in [4, 8, 16].into_iter().filter(|processes| *processes <= cores) {
            for ((test, _), system) in TESTS.into_iter().flat_map(|test| SYSTEMS.iter().map(move |one| (test, one))) {
                eprintln!("  {test} {}/{} {}, {processes} processes", round + 1, plan.runs, system.label);
                let job = Job { system, test, records, operations: plan.size(1_000, 200) };
                match together(jobs, &job, &folder, processes) {
                    Ok(rate) => figures.add(system.id, &metric(test, processes), rate),
                    Err(error) => jobs.failed(format!("{test} of {}: {error}", system.label)),
                }
            }
        }
    }
    std::fs::remove_dir_all(&folder)?;

    jobs.keep("scale", &figures);
    println!("\nScale  random keys of {records} records; million operations a second, all processes together");
    println!("  {:<44} {:<16} {:>6} {:>6} {:>7}  gain, range of the runs", "", "", "one", "two", "gain");
    for (test, words) in TESTS {
        for system in &SYSTEMS {
            let rate = |processes| figures.median(system, &metric(test, processes)).map(|rate| rate / 1e6);
            let label =
                if system.id == HASHMERE.id { system.label } else { "(private HashMaps: the machine's own limit)" };
            let show = |rate: Option<f64>| rate.map_or("-".to_string(), |rate| format!("{rate:.2}"));
            let gain = figures.median(system, &gain_of(test));
            let range = figures.range(system, &gain_of(test));
            println!("  {label:<44} {words:<16} {:>6} {:>6} {:>7}  {range}", show(rate(1)), show(rate(2)), times(gain));
            if system.id == HASHMERE.id {
                bars.at_least(&format!("Two processes / one: {words}"), 1.8, "x", gain);
            }
        }
    }
    Ok(())
}
