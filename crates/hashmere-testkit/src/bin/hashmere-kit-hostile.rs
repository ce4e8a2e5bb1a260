//! Damaged files for as long as you like: `hashmere-kit-hostile [--minutes N] [--seed S] [--keep FOLDER]`. Prints each case that
//! ended the process that opened its file, keeps the file, and says how to try it again.

use hashmere_testkit::hostile::{drive, run};
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
    for pair in arguments.chunks(2) {
        match pair {
            [name, number] if name == "--minutes" => minutes = number.parse().unwrap_or_else(|_| usage()),
            [name, number] if name == "--seed" => seed = number.parse().unwrap_or_else(|_| usage()),
            [name, folder] if name == "--keep" => keep = PathBuf::from(folder),
            _ => usage(),
        }
    }
    let program = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_else(|_| usage());
    println!("hostile files: seed {seed}");
    let summary = run(&program, seed, &keep, Duration::from_secs_f64(minutes * 60.0), 1);
    println!("cases {} failures {}", summary.cases, summary.failures.len());
    ExitCode::from(u8::from(!summary.failures.is_empty()))
}

fn usage() -> ! {
    eprintln!("usage: hashmere-kit-hostile [--minutes N] [--seed S] [--keep FOLDER]");
    std::process::exit(2);
}
