//! Damaged files for as long as you like: `hashmere-kit-hostile [--minutes N] [--seed S] [--case C]`. Prints the case of each that
//! ended the process that opened it, which `--case C` tries again. `save CASE FILE` writes its file and prints the line that
//! `drive` (the process that opens it) reads on its standard input: for a debugger.

use hashmere_testkit::hostile::{drive, run, save};
use hashmere_testkit::rng::run_seed;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "drive") {
        drive();
        return ExitCode::SUCCESS;
    }
    if let [word, case, path] = &arguments[..] {
        if word != "save" {
            usage();
        }
        println!("{}", save(case.parse().unwrap_or_else(|_| usage()), Path::new(path)));
        return ExitCode::SUCCESS;
    }
    let (mut minutes, mut seed, mut only) = (1.0, run_seed(), None);
    for pair in arguments.chunks(2) {
        match pair {
            [name, number] if name == "--minutes" => minutes = number.parse().unwrap_or_else(|_| usage()),
            [name, number] if name == "--seed" => seed = number.parse().unwrap_or_else(|_| usage()),
            [name, number] if name == "--case" => only = Some(number.parse().unwrap_or_else(|_| usage())),
            _ => usage(),
        }
    }
    let program = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_else(|_| usage());
    println!("hostile files: seed {seed}");
    let summary = run(&program, seed, only, Duration::from_secs_f64(minutes * 60.0), 1);
    println!("cases {} failures {}", summary.cases, summary.failures.len());
    ExitCode::from(u8::from(!summary.failures.is_empty()))
}

fn usage() -> ! {
    eprintln!("usage: hashmere-kit-hostile [--minutes N] [--seed S] [--case C] | save C FILE");
    std::process::exit(2);
}
