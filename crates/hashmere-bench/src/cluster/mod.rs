//! What `scripts/cluster` needs of a program: load on a cluster while one of its servers is killed or restarted, every
//! value verified, and a picture of the hit ratio and the errors over time.
//!
//! ```text
//! cluster load NAME ADDRESS KEYS SECONDS RATE FILE [MS SIGNAL PIDFILE ADDRESS]...
//! cluster draw PICTURE TITLE FILE...
//! ```
//! `load` first stores every key. An event sends a signal to the process whose id is in a file, and waits until its
//! successor answers at the address.

mod client;
mod event;
mod load;
mod timeline;

use crate::Outcome;
use event::Event;
use serde::{Deserialize, Serialize};
use std::fs;

/// Milliseconds of one entry of a run.
const BUCKET_MS: u64 = 20;

/// What clients saw within a short time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Bucket {
    /// Keys asked for.
    gets: u32,
    /// Values that came.
    hits: u32,
    /// Keys that were not there.
    misses: u32,
    /// Gets and sets that were answered with an error, or not at all.
    errors: u32,
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    /// What was running.
    name: String,
    /// When and where, in words.
    machine: String,
    keys: usize,
    /// Requests a second that were asked for.
    rate: u64,
    buckets: Vec<Bucket>,
    events: Vec<event::Happened>,
    /// Values that were neither what was acknowledged last nor what was tried after that.
    wrong: u64,
    /// Keys that were not there, or could not be read, when all was read again at the end.
    lost: u64,
}

/// Runs `cluster ...`; false if a value was wrong.
pub fn main(arguments: &[String]) -> Outcome<bool> {
    let (verb, rest) = arguments.split_first().ok_or(crate::USAGE)?;
    match (verb.as_str(), rest) {
        ("load", [name, address, keys, seconds, rate, file, events @ ..]) => {
            let events = events.chunks(4).map(Event::read).collect::<Outcome<Vec<_>>>()?;
            let plan = load::Plan { address: address.clone(), keys: keys.parse()?, rate: rate.parse()? };
            let run = load::run(name, &plan, seconds.parse()?, &events)?;
            println!("{}", summary(&run));
            fs::write(file, serde_json::to_string(&run)? + "\n")?;
            Ok(run.wrong == 0)
        }
        ("draw", [picture, title, files @ ..]) if !files.is_empty() => {
            let texts = files.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
            fs::write(picture, timeline::svg(title, &read(&texts.concat())?))?;
            Ok(true)
        }
        _ => Err(crate::USAGE.into()),
    }
}

/// The runs of a file, one a line.
fn read(text: &str) -> Outcome<Vec<Run>> {
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// A line for each thing that happened.
fn summary(run: &Run) -> String {
    let sum = |of: fn(&Bucket) -> u32| run.buckets.iter().map(|bucket| u64::from(of(bucket))).sum::<u64>();
    let mut text = format!(
        "{}: {} gets, {} hits, {} misses, {} errors; {} values wrong, {} of {} keys lost",
        run.name,
        sum(|bucket| bucket.gets),
        sum(|bucket| bucket.hits),
        sum(|bucket| bucket.misses),
        sum(|bucket| bucket.errors),
        run.wrong,
        run.lost,
        run.keys
    );
    for event in &run.events {
        let (server, cluster) = (event.answered_ms, run.errors_end(event.at_ms) - event.at_ms as f64);
        text += &format!(
            "\n  {} at {:.1} s: the server answers after {server:.1} ms with {} of {} keys; the last error {cluster:.0} ms after",
            event.signal,
            event.at_ms as f64 / 1000.0,
            event.warm,
            event.asked,
        );
    }
    text
}

impl Run {
    /// The end of the last bucket with an error between an event and the next.
    fn errors_end(&self, at_ms: u64) -> f64 {
        let next = self.events.iter().map(|event| event.at_ms).find(|next| *next > at_ms).unwrap_or(u64::MAX);
        let within = |bucket: usize| (at_ms..next).contains(&((bucket as u64 + 1) * BUCKET_MS));
        let last = (0..self.buckets.len()).rev().find(|at| within(*at) && self.buckets[*at].errors > 0);
        last.map_or(at_ms as f64, |bucket| (bucket as u64 + 1) as f64 * BUCKET_MS as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The pictures in the repository are what the results beside them say.
    #[test]
    fn the_pictures_are_those_of_the_results() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (name, title) in [("kill", "One of three servers killed"), ("rolling", "Three servers restarted in turn")] {
            let text = fs::read_to_string(root.join(format!("bench/results/cluster-{name}.json"))).unwrap();
            let runs = read(&text).unwrap();
            let there = fs::read_to_string(root.join(format!("docs/performance/cluster-{name}.svg"))).unwrap();
            assert!(
                there == timeline::svg(title, &runs),
                "docs/performance/cluster-{name}.svg: scripts/cluster --save"
            );
            assert!(runs.iter().all(|run| run.wrong == 0), "{name}");
            assert!(runs.iter().all(|run| run.name != "Hashmere" || run.lost == 0), "{name}");
        }
    }
}
