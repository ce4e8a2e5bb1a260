//! The change feed: what it costs a set, and how fast a consumer follows two writing processes.
//!
//! Stores without a feed, with one and with one that keeps values take turns, so that their ratio holds when the
//! machine changes. A consumer checks each change against what its writer set: nothing is missing, nothing twice, each
//! writer's in its order.

use crate::Outcome;
use hashmere::{Options, Store};
use hashmere_feed::{Event, Feed, FeedOptions, FeedStart};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FEED: u64 = 256 << 20;
/// Sets of one turn.
const TURN: u64 = 200_000;

/// Runs `feed ROUNDS CHANGES FOLDER`, and prints `metric value` lines.
pub fn main(arguments: &[String]) -> Outcome {
    match arguments {
        [verb, file, writer, changes] if verb == "writer" => write(file, writer.parse()?, changes.parse()?),
        [rounds, changes, folder] => {
            let (rounds, changes, folder) = (rounds.parse()?, changes.parse()?, Path::new(folder));
            for (what, keys, len) in [
                ("10,000 keys, 8 bytes (in place)", 10_000, 8),
                ("10,000 keys, 16 bytes", 10_000, 16),
                ("1,000,000 keys, 16 bytes", 1_000_000, 16),
            ] {
                cost(what, keys, len, rounds, folder)?;
            }
            for values in [false, true] {
                follow(changes, values, folder)?;
            }
            Ok(())
        }
        _ => Err(crate::USAGE.into()),
    }
}

fn cost(what: &str, keys: u64, len: usize, rounds: usize, folder: &Path) -> Outcome {
    let open = |name: &str, options: Options| -> Outcome<Store> {
        let store = options.expected_items(keys).open(folder.join(name))?;
        for key in 0..keys {
            store.set(&key.to_le_bytes(), &value(key, 0, len))?;
        }
        Ok(store)
    };
    let stores = [
        open("off.mere", Options::new())?,
        open("on.mere", Options::new().feed(FEED))?,
        open("values.mere", Options::new().feed(FEED).feed_values(true))?,
    ];
    let mut times = vec![Vec::new(); stores.len()];
    let mut random = 1u64;
    for round in 0..rounds as u64 + 1 {
        for (store, times) in stores.iter().zip(&mut times) {
            let start = Instant::now();
            for _ in 0..TURN {
                let key = next(&mut random) % keys;
                store.set(&key.to_le_bytes(), &value(key, round, len))?;
            }
            // The first one warms up.
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e9 / TURN as f64);
            }
        }
    }
    for store in &stores {
        let last = store.get(&0u64.to_le_bytes())?.ok_or("a key is missing")?;
        if last.get(..8) != Some(&value(0, u64::from(last[7]), len)[..8]) {
            return Err("a value is wrong".into());
        }
        store.clear()?;
    }
    let ratios = |n: usize| median(times[n].iter().zip(&times[0]).map(|(on, off)| on / off).collect());
    println!("{what}: set {:.1} ns; with a feed {:.1} ns", median(times[0].clone()), median(times[1].clone()));
    println!("  a feed        {:.2} times a set without", ratios(1));
    println!("  and values    {:.2} times", ratios(2));
    for name in ["off.mere", "on.mere", "values.mere"] {
        Store::remove(folder.join(name))?;
    }
    Ok(())
}

/// Two processes write at full speed, and this one follows.
fn follow(changes: u64, values: bool, folder: &Path) -> Outcome {
    let file = folder.join("followed.mere");
    let store = Options::new().feed(FEED).feed_values(values).open(&file)?;
    let mut feed = Feed::open(&store, FeedStart::Now, FeedOptions::new().values(values))?;
    let program = std::env::current_exe()?;
    let start = Instant::now();
    let writers: Vec<_> = (0..2u64)
        .map(|writer| {
            let mut command = Command::new(&program);
            command.args(["feed", "writer"]).arg(&file).arg(writer.to_string()).arg(changes.to_string());
            command.stdin(Stdio::null()).spawn()
        })
        .collect::<Result<_, _>>()?;
    let mut seen = [0u64; 2];
    let (mut resets, mut lag) = (0, 0);
    while seen.iter().any(|seen| *seen < changes) {
        let batch = feed.next_batch(4096, Duration::from_secs(60))?;
        if batch.is_empty() {
            return Err(format!("nothing came for a minute, after {seen:?} changes").into());
        }
        lag = lag.max(feed.lag());
        for event in batch {
            let Event::Change(change) = event else {
                resets += 1;
                continue;
            };
            let writer = usize::from(change.key[0]);
            let number = seen[writer];
            if change.key[8..] != (number % KEYS).to_le_bytes() {
                return Err(format!("writer {writer}: {:?} comes as change {number}", change.key).into());
            }
            if values && change.value.bytes() != Some(&number.to_le_bytes()) {
                return Err(format!("writer {writer}: {:?} is the value of change {number}", change.value).into());
            }
            seen[writer] += 1;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    for mut writer in writers {
        if !writer.wait()?.success() {
            return Err("a writer failed".into());
        }
    }
    let rate = 2.0 * changes as f64 / seconds / 1e6;
    println!("two writers and a consumer{}: {rate:.2} M changes/s", if values { ", with values" } else { "" });
    println!("  {resets} resets, at most {lag} positions behind");
    drop((feed, store));
    Store::remove(file)?;
    if resets > 0 {
        return Err("the consumer was overtaken".into());
    }
    Ok(())
}

/// Keys of one writer.
const KEYS: u64 = 50_000;

fn write(file: &str, writer: u64, changes: u64) -> Outcome {
    let store = Options::new().create(false).open(file)?;
    let mut key = [0; 16];
    key[..8].copy_from_slice(&writer.to_le_bytes());
    for number in 0..changes {
        key[8..].copy_from_slice(&(number % KEYS).to_le_bytes());
        store.set(&key, &number.to_le_bytes())?;
    }
    Ok(())
}

fn value(key: u64, round: u64, len: usize) -> Vec<u8> {
    let mut value = vec![round as u8; len];
    value[..7].copy_from_slice(&key.to_le_bytes()[..7]);
    value[7] = round as u8;
    value
}

fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *random >> 33
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}
