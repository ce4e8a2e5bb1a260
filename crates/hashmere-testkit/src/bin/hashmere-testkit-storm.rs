//! Kill storms for as long as you like: `hashmere-testkit-storm --minutes N [--seed S]`. Each storm of the run has a
//! new store and a seed of its own, printed before it begins; the first that breaks a promise ends the run with what
//! was broken.

use hashmere::Options;
use hashmere_testkit::rng::{mix, run_seed, Rng};
use hashmere_testkit::scratch::Scratch;
use std::time::{Duration, Instant};

/// How long each storm takes.
const STORM: Duration = Duration::from_secs(20);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mut minutes, mut seed) = (10.0, run_seed());
    match words[..] {
        // The storm starts this same program as its workers.
        ["mix", ..] => {
            hashmere_testkit::procs::die_with_parent();
            return hashmere_testkit::roles::run("mix", arguments[1..].to_vec());
        }
        _ => {
            for pair in words.chunks(2) {
                match pair {
                    ["--minutes", number] => minutes = number.parse().unwrap_or_else(|_| usage()),
                    ["--seed", number] => seed = number.parse().unwrap_or_else(|_| usage()),
                    _ => usage(),
                }
            }
        }
    }
    run(Duration::from_secs_f64(minutes * 60.0), seed);
}

fn run(time: Duration, seed: u64) {
    let program = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_else(|_| usage());
    let geometries = [hashmere_testkit::tiny(), Options::new(), hashmere_testkit::small()];
    let begin = Instant::now();
    let (mut storms, mut kills, mut stops, mut operations) = (0, 0, 0, 0);
    let mut longest = Duration::ZERO;
    for (number, options) in geometries.iter().cycle().enumerate() {
        let left = time.saturating_sub(begin.elapsed());
        if left.is_zero() {
            break;
        }
        let seed = if number == 0 { seed } else { mix(seed.wrapping_add(number as u64)) };
        println!("storm {number}: seed {seed}");
        let scratch = Scratch::new("storm");
        let rng = Rng::from_seed(seed);
        let report = hashmere_testkit::storm::storm(&program, &scratch, options, rng, STORM.min(left));
        kills += report.kills;
        stops += report.stops;
        operations += report.operations.0;
        longest = longest.max(report.after_death);
        storms += 1;
    }
    println!("{storms} storms, {kills} kills, {stops} stops, {operations} operations checked, nothing lost");
    println!("the longest that a survivor waited after a death: {:.1} ms", longest.as_secs_f64() * 1e3);
    println!("cases {} failures 0", kills as usize + stops);
}

fn usage() -> ! {
    eprintln!("usage: hashmere-testkit-storm --minutes N [--seed S]");
    std::process::exit(2);
}
