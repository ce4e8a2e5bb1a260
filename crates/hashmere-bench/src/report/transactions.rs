//! Transactions: beside as many single sets, LMDB and SQLite; from one process and from two.

use super::bars::Bars;
use super::figures::{ratio, times, Figures};
use super::jobs::{Job, Jobs};
use super::plan::Plan;
use super::systems::{System, HASHMERE, LMDB_TRANSACTIONS, SINGLES, SQLITE};
use super::together::{couple, gain_of, metric, COUPLES};
use crate::Outcome;
use std::path::{Path, PathBuf};

const OF_SETS: [&System; 4] = [&HASHMERE, &SINGLES, &LMDB_TRANSACTIONS, &SQLITE];
const OF_BANK: [&System; 3] = [&HASHMERE, &LMDB_TRANSACTIONS, &SQLITE];
const SETS: [(&str, &str); 2] = [("txn-2", "2 sets"), ("txn-10", "10 sets")];
const BANK: &str = "txn-bank";

/// Measures and prints it.
pub fn report(plan: &Plan, jobs: &mut Jobs, bars: &mut Bars) -> Outcome {
    let (records, accounts) = (plan.size(300_000, 20_000), 10_000);
    let mut figures = Figures::default();
    let length = plan.size(600, 100);
    let rounds = plan.runs * if plan.quick { 1 } else { COUPLES };
    for system in OF_SETS {
        if !jobs.can_run(system) {
            continue;
        }
        let folder = filled(jobs, system, "txn-fill", records, &mut figures)?;
        for round in 0..rounds {
            for (test, _) in SETS {
                let job = Job { system, test, records, operations: length };
                one_couple(jobs, &job, &folder, (round, rounds), &mut figures);
            }
        }
        std::fs::remove_dir_all(&folder)?;
    }
    for system in OF_BANK {
        if !jobs.can_run(system) {
            continue;
        }
        let folder = filled(jobs, system, "txn-fill-bank", accounts, &mut figures)?;
        for round in 0..rounds {
            let job = Job { system, test: BANK, records: accounts, operations: length };
            one_couple(jobs, &job, &folder, (round, rounds), &mut figures);
        }
        let check = Job { system, test: "txn-check-bank", records: accounts, operations: 0 };
        jobs.one(&check, &folder, 1, &mut figures);
        std::fs::remove_dir_all(&folder)?;
    }
    jobs.keep("transactions", &figures);

    println!("\nTransactions  thousand a second, all processes together; every value is read back and compared");
    println!("  {:<44} {:>8} {:>8} {:>7}  gain, range of the runs", "", "one", "two", "gain");
    let show = |systems: &[&System], test: &str| {
        for system in systems {
            let rate = |processes| {
                let rate = figures.median(system, &metric(test, processes));
                rate.map_or("-".to_string(), |rate| format!("{:.1}", rate / 1e3))
            };
            let gain = times(figures.median(system, &gain_of(test)));
            let range = figures.range(system, &gain_of(test));
            println!("    {:<42} {:>8} {:>8} {gain:>7}  {range}", system.label, rate(1), rate(2));
        }
    };
    for (test, words) in SETS {
        println!("  {words} of {records} records of 8 + 20 bytes, each process its own half");
        show(&OF_SETS, test);
    }
    println!("  a transfer between two of {accounts} accounts, of all processes");
    show(&OF_BANK, BANK);

    let rate = |system: &System, test: &str, processes| figures.median(system, &metric(test, processes));
    for (test, words) in SETS {
        let time = ratio(rate(&SINGLES, test, 1), rate(&HASHMERE, test, 1));
        bars.at_most(&format!("Transaction of {words} / as many single sets"), 1.6, "x", time);
        for peer in [&LMDB_TRANSACTIONS, &SQLITE].into_iter().filter(|peer| jobs.can_run(peer)) {
            let name = peer.label.split(',').next().unwrap_or_default();
            for (processes, many) in [(1, "one process"), (2, "two processes")] {
                let gain = ratio(rate(&HASHMERE, test, processes), rate(peer, test, processes));
                bars.at_least(&format!("Transactions of {words} / {name}, {many}"), 5.0, "x", gain);
            }
        }
        let gain = figures.median(&HASHMERE, &gain_of(test));
        bars.at_least(&format!("Transactions of {words}: two processes / one"), 1.7, "x", gain);
    }
    if jobs.can_run(&LMDB_TRANSACTIONS) {
        let gain = ratio(rate(&HASHMERE, BANK, 2), rate(&LMDB_TRANSACTIONS, BANK, 2));
        bars.at_least("Transfers of two processes / LMDB", 10.0, "x", gain);
    }
    Ok(())
}

/// A folder with a store that a test has filled.
fn filled(
    jobs: &mut Jobs,
    system: &System,
    test: &'static str,
    records: u32,
    figures: &mut Figures,
) -> Outcome<PathBuf> {
    let folder = jobs.new_folder()?;
    jobs.one(&Job { system, test, records, operations: 0 }, &folder, 1, figures);
    Ok(folder)
}

fn one_couple(jobs: &mut Jobs, job: &Job, folder: &Path, (round, rounds): (usize, usize), figures: &mut Figures) {
    eprintln!("  {} {}/{rounds} {}", job.test, round + 1, job.system.label);
    if let Err(error) = couple(jobs, job, folder, round % 2 == 0, figures) {
        jobs.failed(format!("{} of {}: {error}", job.test, job.system.label));
    }
}
