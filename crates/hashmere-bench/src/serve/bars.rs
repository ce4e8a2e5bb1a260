//! Judges the lines that `bench/serve` collected: medians of all runs, and whether each aim is reached.

use crate::Outcome;
use std::collections::BTreeMap;

/// Requests a second, CPU time of a request, p50, p99; of the comparison with a local process the factor alone.
type Line = [f64; 4];

/// What was measured of one server and one job, run by run.
#[derive(Default)]
struct Runs(BTreeMap<(String, String), Vec<Line>>);

/// How the lines of our server begin, by its event loop.
const OURS: [&str; 2] = ["io_uring", "epoll"];

const RATE: usize = 0;
const CPU: usize = 1;
const P99: usize = 3;

impl Runs {
    fn read(text: &str) -> Runs {
        let mut runs = Runs::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let after = |word: &str| {
                let at = words.iter().position(|other| *other == word)?;
                words.get(at + 1)?.parse::<f64>().ok()
            };
            let found = match words[..] {
                [server, job, rate, "requests/s", cpu, ..] => {
                    let numbers = (rate.parse(), cpu.parse());
                    let (Ok(rate), Ok(cpu)) = numbers else { continue };
                    Some((server, job, [rate, cpu, after("p50").unwrap_or(0.0), after("p99").unwrap_or(0.0)]))
                }
                [server, "local", ..] => after("factor").map(|factor| (server, "local", [factor, 0.0, 0.0, 0.0])),
                _ => None,
            };
            if let Some((server, job, line)) = found {
                runs.0.entry((server.into(), job.into())).or_default().push(line);
            }
        }
        runs
    }

    fn median(&self, server: &str, job: &str, column: usize) -> Option<f64> {
        let lines = self.0.get(&(server.to_string(), job.to_string()))?;
        let mut values: Vec<f64> = lines.iter().map(|line| line[column]).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }
}

/// One aim: our median against another's.
struct Bar {
    job: &'static str,
    column: usize,
    other: &'static str,
    /// The most that ours may be as a multiple of the other's; for rates the least.
    factor: f64,
}

fn bars() -> Vec<Bar> {
    let bar = |job, column, other, factor| Bar { job, column, other, factor };
    let mut bars = Vec::new();
    for job in ["get", "set", "multi"] {
        bars.push(bar(job, CPU, "memcached", 0.67));
        bars.push(bar(job, RATE, "memcached", 1.0));
    }
    for job in ["get50", "set50", "get1000", "set1000"] {
        bars.push(bar(job, CPU, "memcached", 0.9));
        bars.push(bar(job, RATE, "memcached", 1.0));
        bars.push(bar(job, P99, "memcached", 1.0));
    }
    for job in ["get100", "set100"] {
        bars.push(bar(job, RATE, "redis", 1.0));
    }
    bars.push(bar("rounds", RATE, "memcached", 1.0));
    bars
}

fn verdict(is: bool) -> &'static str {
    if is {
        "PASS"
    } else {
        "FAIL"
    }
}

/// Prints medians and verdicts.
pub fn judge(file: &str) -> Outcome {
    let runs = Runs::read(&std::fs::read_to_string(file)?);
    println!("medians of {} runs", runs.0.values().map(Vec::len).max().unwrap_or(0));
    for (server, job) in runs.0.keys().filter(|(_, job)| job != "local") {
        let of = |column| runs.median(server, job, column).unwrap_or(0.0);
        let (rate, cpu, p50, p99) = (of(RATE), of(CPU), of(2), of(P99));
        println!(
            "{server:<10} {job:<8} {rate:>10.0} requests/s {cpu:>7.0} ns CPU   p50 {p50:>6.0} us   p99 {p99:>6.0} us"
        );
    }
    for (server, bar) in OURS.iter().flat_map(|server| bars().into_iter().map(move |bar| (*server, bar))) {
        let (what, least) = match bar.column {
            CPU => ("CPU time a request", false),
            RATE => ("requests a second", true),
            _ => ("p99", false),
        };
        let (Some(ours), Some(theirs)) =
            (runs.median(server, bar.job, bar.column), runs.median(bar.other, bar.job, bar.column))
        else {
            continue;
        };
        let ratio = ours / theirs.max(f64::MIN_POSITIVE);
        let (passes, sign) = if least { (ratio >= bar.factor, ">=") } else { (ratio <= bar.factor, "<=") };
        let (job, other, factor) = (bar.job, bar.other, bar.factor);
        println!("{} {server:<8} {job:<8} {what:<18} {ratio:>6.2}x {other}'s, aim {sign} {factor:.2}", verdict(passes));
    }
    if let Some(factor) = runs.median("io_uring", "local", 0) {
        println!("{} local    library over socket {factor:>6.0}x, aim >= 100", verdict(factor >= 100.0));
    }
    Ok(())
}
