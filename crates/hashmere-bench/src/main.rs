//! The benchmark of Hashmere: its workloads, its peers, its bars. `bench/run` builds and starts it; `bench/README.md`
//! says what each figure means.
//!
//! ```text
//! hashmere-bench report ...                                         runs everything, prints one report
//! hashmere-bench document RESULTS FOLDER                            writes docs/performance.md and its plots
//! hashmere-bench check BEFORE NOW                                   whether ratios to the peers became worse
//! hashmere-bench work SYSTEM TEST RECORDS OPERATIONS FOLDER SEED    one system, one test, in this process
//! hashmere-bench budget OPERATION COUNT RECORDS FOLDER              a plain loop to count instructions in
//! hashmere-bench cluster load|draw ...                              what scripts/cluster runs
//! hashmere-bench backup RECORDS ROUNDS FOLDER                       backups beside a writer
//! hashmere-bench replica RATE SECONDS KEYS FOLDER               how far a replica is behind a steady writer
//! hashmere-bench feed ROUNDS CHANGES FOLDER                         the change feed: its cost, and following it
//! hashmere-bench observe RECORDS SECONDS FOLDER                     what an observer costs, and costs others
//! ```
//! The report starts every measurement as a process of its own (`work`, or a program of `bench/peers` with the same
//! arguments) and reads `metric value` lines from it.
#![forbid(unsafe_code)]

mod backup;
mod budget;
mod check;
mod cluster;
mod document;
mod feed;
mod machine;
mod observe;
mod replica;
mod report;
mod results;
mod serve;
mod tables;
mod work;
mod workload;

use std::error::Error;
use std::process::ExitCode;

/// What anything here returns: a failure ends the program with its text.
type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const USAGE: &str =
    "usage: hashmere-bench report [--quick] [--full] [--only GROUP,...] [--runs N] [--no-peers] [--strict]
                             [--json FILE] --peers FOLDER --folder FOLDER
       hashmere-bench document RESULTS FOLDER
       hashmere-bench check BEFORE NOW
       hashmere-bench work SYSTEM TEST RECORDS OPERATIONS FOLDER SEED
       hashmere-bench budget none|get|miss|view|bulk|set|incr|churn COUNT RECORDS FOLDER
       hashmere-bench backup RECORDS ROUNDS FOLDER
       hashmere-bench feed ROUNDS CHANGES FOLDER
       hashmere-bench cluster load NAME ADDRESS KEYS SECONDS RATE FILE [MS SIGNAL PIDFILE ADDRESS]...
       hashmere-bench cluster draw PICTURE TITLE FILE...
       hashmere-bench observe RECORDS SECONDS FOLDER
       hashmere-bench replica RATE SECONDS KEYS FOLDER
       hashmere-bench serve PID ADDRESS SECONDS [JOB...]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (verb, rest) = match arguments.split_first() {
        Some((verb, rest)) => (verb.as_str(), rest),
        None => ("", arguments.as_slice()),
    };
    let outcome = match verb {
        "report" => report::main(rest),
        "document" => document::main(rest).map(|()| true),
        "check" => check::main(rest),
        "work" => work::main(rest).map(|()| true),
        "cluster" => cluster::main(rest),
        "serve" => serve::main(rest).map(|()| true),
        "backup" => backup::main(rest).map(|()| true),
        "replica" => replica::main(rest).map(|()| true),
        "observe" => observe::main(rest).map(|()| true),
        "feed" => feed::main(rest).map(|()| true),
        "budget" => budget::main(rest).map(|()| true),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("hashmere-bench: {error}");
            ExitCode::from(2)
        }
    }
}
