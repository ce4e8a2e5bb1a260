//! An observer: what a snapshot takes of its own process, and what it takes of a process that reads.
//!
//! A process that reads takes turns alone, with an observer that looks ten times a second, and while its keys are
//! sampled; what the observer says of it is compared with what it says itself.

use crate::Outcome;
use hashmere::{Options, Store};
use hashmere_observe::{Observer, Sampler};
use hashmere_os::process::usage;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Snapshots whose time is measured.
const SNAPSHOTS: u32 = 100;
/// Turns of the reader, of each kind.
const TURNS: usize = 5;
/// What an observer waits between two looks while it is measured what it costs a reader: ten times as often as `top`.
const INTERVAL: Duration = Duration::from_millis(100);

/// Runs `observe RECORDS SECONDS FOLDER`, and prints `metric value` lines.
pub fn main(arguments: &[String]) -> Outcome {
    match arguments {
        [verb, file, records, seconds] if verb == "reader" => read(file, records.parse()?, seconds.parse()?),
        [verb, file] if verb == "sampler" => sample(file),
        [records, seconds, folder] => measure(records.parse()?, seconds.parse()?, Path::new(folder)),
        _ => Err(crate::USAGE.into()),
    }
}

fn measure(records: u64, seconds: f64, folder: &Path) -> Outcome {
    let file = folder.join("observed.mere");
    let store = Options::new().expected_items(records).open(&file)?;
    for key in 0..records {
        store.set(&key.to_le_bytes(), &key.to_le_bytes())?;
    }
    let observer = Observer::open(&file)?;
    let first = observer.snapshot();
    if first.items != records || first.totals.sets != records {
        return Err(format!("{} items and {} sets are seen, not {records}", first.items, first.totals.sets).into());
    }
    let before = usage();
    for _ in 0..SNAPSHOTS {
        std::hint::black_box(observer.snapshot());
    }
    let now = usage();
    let time = (now.user + now.system).saturating_sub(before.user + before.system) / SNAPSHOTS;
    println!("records {records}");
    println!("segments {}", first.segments.map.len());
    println!("snapshot_us {:.1}", time.as_secs_f64() * 1e6);
    println!("percent_of_a_core_at_one_a_second {:.4}", time.as_secs_f64() * 100.0);
    // What a dashboard and a scrape ask for.
    let before = usage();
    for _ in 0..SNAPSHOTS {
        std::hint::black_box(store.stats());
    }
    let now = usage();
    let time = (now.user + now.system).saturating_sub(before.user + before.system) / SNAPSHOTS;
    println!("stats_us {:.1}", time.as_secs_f64() * 1e6);
    println!("stats_percent_of_a_core_at_one_a_second {:.4}", time.as_secs_f64() * 100.0);

    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (watched, rates) in [Watched::No, Watched::ByLooks, Watched::BySamples].into_iter().zip(&mut rates) {
            rates.push(turn(&observer, &store, records, seconds, watched)?);
        }
    }
    let [alone, observed, sampled] = rates.map(|mut rates: Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    println!("reads_a_second {alone:.0}");
    println!("reads_a_second_observed {observed:.0}");
    println!("reads_a_second_sampled {sampled:.0}");
    println!("observed_to_alone {:.4}", observed / alone);
    println!("sampled_to_alone {:.4}", sampled / alone);
    drop(store);
    Store::remove(&file)?;
    Ok(())
}

/// How a reading process is watched.
#[derive(Clone, Copy, PartialEq)]
enum Watched {
    No,
    ByLooks,
    BySamples,
}

/// Samples a store until its standard input ends: for `bench/budget`, which counts one process only.
fn sample(file: &str) -> Outcome {
    let store = Options::new().create(false).open(file)?;
    let mut sampler = Sampler::start(&store)?;
    println!("on");
    let (ended, end) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        drop(ended);
    });
    while end.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
        std::thread::sleep(hashmere_observe::POLL);
        sampler.poll()?;
    }
    Ok(())
}

/// Reads a second of a reading process.
fn turn(observer: &Observer, store: &Store, records: u64, seconds: f64, watched: Watched) -> Outcome<f64> {
    let file = observer.store().path();
    let before = observer.snapshot();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["observe", "reader"])
        .arg(file)
        .args([records.to_string(), seconds.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let pid = child.id();
    let output = child.stdout.take().ok_or("no output of the reader")?;
    let mut seen = 0.0f64;
    let mut last = before.clone();
    let is_observed = watched == Watched::ByLooks;
    if watched == Watched::BySamples {
        let mut sampler = Sampler::start(store)?;
        while child.try_wait()?.is_none() {
            std::thread::sleep(hashmere_observe::POLL);
            sampler.poll()?;
        }
        let hot = sampler.hot_keys();
        if hot.samples == 0 || hot.reads.total.value == 0.0 {
            return Err("nothing was sampled".into());
        }
    }
    while is_observed && child.try_wait()?.is_none() {
        std::thread::sleep(INTERVAL);
        let now = observer.snapshot();
        let rates = now.since(&last);
        let of_reader = now.processes.iter().zip(&rates.processes).find(|(process, _)| process.pid == pid);
        seen += of_reader.map_or(0.0, |(_, rate)| rate.hits * rates.seconds);
        last = now;
    }
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    if !child.wait()?.success() {
        return Err("the reader failed".into());
    }
    let (reads, took) = line.trim().split_once(' ').ok_or("the reader said nothing")?;
    let reads: u64 = reads.parse()?;
    let counted = observer.snapshot().totals.hits - before.totals.hits;
    // What the last look missed, because the reader had closed the store by then, is not in `seen`.
    if counted != reads || is_observed && seen.round() as u64 > reads {
        return Err(format!("the reader read {reads} times, {counted} are counted and {seen} were seen").into());
    }
    Ok(reads as f64 / took.parse::<f64>()?)
}

/// The process that reads: all keys in a scattered order, each value compared.
fn read(file: &str, records: u64, seconds: f64) -> Outcome {
    let store = Options::new().create(false).open(file)?;
    let mut value = Vec::new();
    let (mut reads, start) = (0u64, Instant::now());
    while reads == 0 || start.elapsed().as_secs_f64() < seconds {
        for _ in 0..10_000 {
            let key = (reads.wrapping_mul(0x9E37_79B9_7F4A_7C15) % records).to_le_bytes();
            value.clear();
            if store.get_into(&key, &mut value)?.is_none() || value != key {
                return Err("a wrong value".into());
            }
            reads += 1;
        }
    }
    println!("{reads} {}", start.elapsed().as_secs_f64());
    Ok(())
}
