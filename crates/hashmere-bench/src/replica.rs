//! Replica lag: how long after a set the replica has it, while a writer sets at a steady rate.
//!
//! Three processes: a writer, `Replicator` in its own, and this one, which looks at the replica. Each value says which
//! set of its key it is and when that was. This process reads random keys of the replica all the time: a value must be
//! one that its writer made for this key, and never older than one before. One key is set once in a hundred sets and
//! watched; the lag is the age of its value when that is seen first. At the end every key is compared with the source.

use crate::Outcome;
use hashmere::{Options, Store};
use hashmere_os::clock;
use hashmere_replica::{Replicator, ORIGIN};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FEED: u64 = 256 << 20;
/// One set in this number is of the key that is watched.
const WATCHED: u64 = 100;

/// Runs `replica RATE SECONDS KEYS FOLDER`, and prints figures.
pub fn main(arguments: &[String]) -> Outcome {
    match arguments {
        [verb, from, rate, seconds, keys] if verb == "writer" => {
            write(from, rate.parse()?, seconds.parse()?, keys.parse()?)
        }
        [verb, from, to] if verb == "replicator" => replicate(from, to),
        [rate, seconds, keys, folder] => measure(rate.parse()?, seconds.parse()?, keys.parse()?, Path::new(folder)),
        _ => Err(crate::USAGE.into()),
    }
}

/// The value of a set: its number, its key, and when it was.
fn value(number: u64, key: u64) -> [u8; 24] {
    let mut value = [0; 24];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value[8..16].copy_from_slice(&key.to_le_bytes());
    value[16..].copy_from_slice(&(clock::monotonic().as_nanos() as u64).to_le_bytes());
    value
}

/// Number and time of a value, which is of this key.
fn parse(value: &[u8], key: u64) -> Outcome<(u64, u64)> {
    let word = |n: usize| value.get(8 * n..8 * n + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    match (word(0), word(1), word(2), value.len()) {
        (Some(number), Some(of), Some(at), 24) if of == key => Ok((number, at)),
        _ => Err(format!("the replica has {value:?} for key {key}").into()),
    }
}

/// Key 0 is the watched one.
fn key_of(number: u64, keys: u64) -> u64 {
    if number % WATCHED == 0 {
        0
    } else {
        1 + number % (keys - 1)
    }
}

fn measure(rate: u64, seconds: u64, keys: u64, folder: &Path) -> Outcome {
    let (source, target) = (folder.join("source.mere"), folder.join("replica.mere"));
    let from = Options::new().feed(FEED).feed_values(true).expected_items(keys).open(&source)?;
    let to = Options::new().expected_items(keys).open(&target)?;
    for key in 0..keys {
        from.set(&key.to_le_bytes(), &value(0, key))?;
    }
    let program = std::env::current_exe()?;
    let start = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("replica").args(arguments).stdin(Stdio::piped()).stdout(Stdio::inherit());
        command.spawn()
    };
    let text = |path: &Path| path.display().to_string();
    let mut replicator = start(&["replicator", &text(&source), &text(&target)])?;
    let begin = Instant::now();
    while hashmere_replica::status(&to)?.is_none_or(|status| status.phase.name() != "live") {
        if begin.elapsed() > Duration::from_secs(60) {
            return Err("the first copy takes more than a minute".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("first copy of {keys} keys    {:.2} s", begin.elapsed().as_secs_f64());
    let mut writer = start(&["writer", &text(&source), &rate.to_string(), &seconds.to_string(), &keys.to_string()])?;
    let lags = watch(&to, &mut writer, keys)?;
    drop(replicator.stdin.take());
    if !replicator.wait()?.success() {
        return Err("the replicator failed".into());
    }
    print(lags)?;
    compare(&from, &to, keys)
}

/// Lags of the watched key in nanoseconds: age of each value when it is seen first.
fn watch(to: &Store, writer: &mut std::process::Child, keys: u64) -> Outcome<Vec<u64>> {
    let (mut lags, mut last, mut random, mut looks) = (Vec::new(), 0, 1u64, 0u64);
    let mut seen = vec![0u64; keys as usize];
    loop {
        let found = to.get(&0u64.to_le_bytes())?.ok_or("the watched key is missing")?;
        let (number, at) = parse(&found, 0)?;
        if number < last {
            return Err(format!("the replica went back from set {last} to {number}").into());
        }
        if number > last {
            lags.push((clock::monotonic().as_nanos() as u64).saturating_sub(at));
            last = number;
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = 1 + (random >> 33) % (keys - 1);
        let found = to.get(&key.to_le_bytes())?.ok_or("a key is missing")?;
        let number = parse(&found, key)?.0;
        let before = std::mem::replace(&mut seen[key as usize], number);
        if number < before || number != 0 && key_of(number, keys) != key {
            return Err(format!("key {key} of the replica has set {number} after {before}").into());
        }
        looks += 1;
        if looks % 64 == 0 {
            if let Some(status) = writer.try_wait()? {
                return if status.success() { Ok(lags) } else { Err("the writer failed".into()) };
            }
        }
        // The machine has few cores: this one only looks.
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn print(mut lags: Vec<u64>) -> Outcome {
    lags.sort_unstable();
    let last = lags.len().checked_sub(1).ok_or("nothing arrived")?;
    let at = |share: f64| lags[(last as f64 * share) as usize] as f64 / 1e6;
    println!(
        "lag, {} values seen first    p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, longest {:.2} ms",
        lags.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    Ok(())
}

/// Every key and value.
fn compare(from: &Store, to: &Store, keys: u64) -> Outcome {
    for key in 0..keys {
        let (source, replica) = (from.get(&key.to_le_bytes())?, to.get(&key.to_le_bytes())?);
        if source != replica {
            return Err(format!("key {key} is {source:?} in the source and {replica:?} in the replica").into());
        }
    }
    if from.len() != keys || to.len() != keys {
        return Err(format!("{} and {} keys of {keys}", from.len(), to.len()).into());
    }
    println!("{keys} keys are equal");
    Ok(())
}

/// Sets at this rate: in turns of a millisecond, late ones without a pause.
fn write(from: &str, rate: u64, seconds: u64, keys: u64) -> Outcome {
    let store = Options::new().create(false).open(from)?;
    let (begin, all) = (Instant::now(), rate * seconds);
    let mut number = 1;
    while number <= all {
        let due = (begin.elapsed().as_secs_f64() * rate as f64) as u64;
        while number <= due.min(all) {
            let key = key_of(number, keys);
            store.set(&key.to_le_bytes(), &value(number, key))?;
            number += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("writer    {:.0} sets/s for {seconds} s", all as f64 / begin.elapsed().as_secs_f64());
    Ok(())
}

/// Follows until standard input is closed.
fn replicate(from: &str, to: &str) -> Outcome {
    let from = Options::new().create(false).open(from)?;
    let to = Options::new().create(false).origin(ORIGIN).open(to)?;
    let mut replicator = Replicator::open(&from, &to)?;
    let (sender, closed) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::read_to_string(std::io::stdin());
        drop(sender);
    });
    loop {
        let is_last = matches!(closed.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
        if !replicator.step(Duration::from_millis(20))? && is_last {
            return Ok(());
        }
    }
}
