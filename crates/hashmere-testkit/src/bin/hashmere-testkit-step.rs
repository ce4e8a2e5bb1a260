//! Kills each operation behind each of its machine instructions: `hashmere-testkit-step [--deaths N] [--stops N]
//! [PART-OF-NAME...]`. With `--hold SECONDS` each is stopped inside a critical section for so long instead.
//! Prints what was tried of each, and fails if a promise was broken. It starts itself as the process that dies.

use hashmere_testkit::rng::Rng;
use hashmere_testkit::step::{
    hold, run, run_queue, work, work_queue, Counts, Effort, Held, HELD, QUEUE_SCENARIOS, SCENARIOS,
};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// What a full run tries of each operation.
const FULL: Effort = Effort { deaths: u64::MAX, walk: true, stops: 100 };

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["work", name, argument, path] = words[..] {
        if let Some(scenario) = QUEUE_SCENARIOS.iter().find(|scenario| scenario.name == name) {
            work_queue(scenario, Path::new(path));
            return ExitCode::SUCCESS;
        }
        let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
        work(scenario.unwrap_or_else(|| usage()), number(argument), Path::new(path));
        return ExitCode::SUCCESS;
    }
    let mut effort = FULL;
    let mut names = Vec::new();
    let mut rest = words.into_iter();
    while let Some(word) = rest.next() {
        match word {
            "--deaths" => effort.deaths = number(rest.next().unwrap_or_else(|| usage())),
            "--hold" => return hold_all(number(rest.next().unwrap_or_else(|| usage()))),
            "--stops" => effort.stops = number(rest.next().unwrap_or_else(|| usage())),
            _ if word.starts_with('-') => usage(),
            name => names.push(name),
        }
    }
    run_all(&|name| names.is_empty() || names.iter().any(|part| name.contains(part)), effort)
}

fn run_all(is_chosen: &dyn Fn(&str) -> bool, effort: Effort) -> ExitCode {
    let program = own_program();
    let mut rng = Rng::for_test("step");
    println!("operation            instructions   deaths   walked   states  stops longest wait failures");
    let (mut cases, mut failures) = (0, 0);
    let mut count = |counts: Counts| {
        print_one(&counts);
        cases += counts.deaths + counts.walked + counts.stops;
        failures += counts.failures.values().map(|(times, _)| times).sum::<u64>();
    };
    for scenario in SCENARIOS.iter().filter(|scenario| is_chosen(scenario.name)) {
        count(run(&program, scenario, effort, &mut rng));
    }
    for scenario in QUEUE_SCENARIOS.iter().filter(|scenario| is_chosen(scenario.name)) {
        count(run_queue(&program, scenario, effort, &mut rng));
    }
    println!("cases {cases} failures {failures}");
    ExitCode::from(u8::from(failures != 0))
}

fn print_one(counts: &Counts) {
    let Counts { name, instructions, deaths, walked, states, stops, longest_wait, failures } = counts;
    let wait = format!("{:.1} ms", longest_wait.as_secs_f64() * 1e3);
    let broken: u64 = failures.values().map(|(times, _)| times).sum();
    println!("{name:<20} {instructions:>12} {deaths:>8} {walked:>8} {states:>8} {stops:>6} {wait:>12} {broken}");
    for (text, (times, at)) in failures {
        println!("    {text} ({times} times, first behind instruction {at})");
    }
}

fn hold_all(seconds: u64) -> ExitCode {
    let program = own_program();
    let mut rng = Rng::for_test("hold");
    println!("stopped inside                 reads    median   longest   (alone: median   longest)    writes refused");
    let mut failures = 0;
    for scenario in &SCENARIOS[..HELD] {
        match hold(&program, scenario, Duration::from_secs(seconds), &mut rng) {
            Ok(Held {
                refusal,
                reads: [(reads, median, longest), (_, alone, alone_longest)],
                writes: (writes, refused),
            }) => {
                let [longest, alone_longest] = [longest, alone_longest].map(|nanoseconds| nanoseconds / 1000);
                println!(
                    "{:<24} {reads:>11} {median:>6} ns {longest:>6} us {alone:>15} ns {alone_longest:>6} us {writes:>10} {refused:>7}",
                    scenario.name
                );
                println!("    {refusal}");
            }
            Err(text) => {
                failures += 1;
                println!("{}: {text}", scenario.name);
            }
        }
    }
    println!("cases {HELD} failures {failures}");
    ExitCode::from(u8::from(failures != 0))
}

fn own_program() -> String {
    std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_else(|_| usage())
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| usage())
}

fn usage() -> ! {
    eprintln!("usage: hashmere-testkit-step [--hold SECONDS | [--deaths N] [--stops N] [PART-OF-NAME...]]");
    std::process::exit(2);
}
