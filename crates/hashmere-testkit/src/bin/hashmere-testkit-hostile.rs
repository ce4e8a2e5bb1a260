//! Hostile files for as long as you like: `hashmere-testkit-hostile [--minutes N] [--seed S] [--keep FOLDER] [--only
//! damaged|scribbled]`. Half of the time files are damaged before they are opened, half of the time while they are in
//! use. Prints each case that ended the process that opened its file, keeps the file, and says how to try it again.

use hashmere_testkit::hostile::{drive, run, Manner};
use hashmere_testkit::rng::run_seed;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "drive") {
        drive();
        return ExitCode::SUCCESS;
    }
    let (mut minutes, mut seed, mut keep) = (1.0, run_seed(), std::env::temp_dir());
    let mut manners = vec![Manner::Damaged, Manner::Scribbled];
    for pair in arguments.chunks(2) {
        match pair {
            [name, number] if name == "--minutes" => minutes = number.parse().unwrap_or_else(|_| usage()),
            [name, number] if name == "--seed" => seed = number.parse().unwrap_or_else(|_| usage()),
            [name, folder] if name == "--keep" => keep = PathBuf::from(folder),
            [name, manner] if name == "--only" => {
                manners.retain(|known| format!("{known:?}").eq_ignore_ascii_case(manner));
            }
            _ => usage(),
        }
    }
    let program = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_else(|_| usage());
    println!("hostile files: seed {seed}");
    let time = Duration::from_secs_f64(minutes * 60.0 / manners.len().max(1) as f64);
    let (mut cases, mut failures) = (0, 0);
    for manner in manners {
        let summary = run(&program, manner, seed, &keep, time, 1);
        println!("{manner:?}: {} files, {} failures", summary.cases, summary.failures.len());
        cases += summary.cases;
        failures += summary.failures.len();
    }
    println!("cases {cases} failures {failures}");
    ExitCode::from(u8::from(failures != 0 || cases == 0))
}

fn usage() -> ! {
    eprintln!("usage: hashmere-testkit-hostile [--minutes N] [--seed S] [--keep FOLDER] [--only damaged|scribbled]");
    std::process::exit(2);
}
