//! Hot backup: how fast a copy is made, and what writers lose during it.
//!
//! One thread overwrites random keys of a store without pause, another makes backups one after the other, in turns with
//! pauses of the same length. Every copy is opened and compared with what a copy must be.

use crate::Outcome;
use hashmere::{Options, Store};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const VALUE: usize = 100;

/// What the writer shares with the one who watches.
#[derive(Default)]
struct Progress {
    writes: AtomicU64,
    stop: AtomicBool,
}

/// Runs `backup RECORDS ROUNDS FOLDER`, and prints `metric value` lines.
pub fn main(arguments: &[String]) -> Outcome {
    let [records, rounds, folder] = arguments else { return Err(crate::USAGE.into()) };
    let (records, rounds): (u64, u32) = (records.parse()?, rounds.parse()?);
    let folder = Path::new(folder);
    let store = Options::new().expected_items(records).open(folder.join("source.mere"))?;
    for key in 0..records {
        store.set(&key.to_le_bytes(), &value(key, 0))?;
    }
    let quiet = seconds(|| copy(&store, folder, records))?;
    println!("backup, no writer       {quiet:.2} s, {:.2} million records/s", records as f64 / quiet / 1e6);
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&store, records, &progress));
        let measured = watch(&store, folder, records, rounds, &progress);
        progress.stop.store(true, Ordering::Relaxed);
        writer.join().map_err(|_| "the writer panicked")??;
        measured
    })
}

fn watch(store: &Store, folder: &Path, records: u64, rounds: u32, progress: &Progress) -> Outcome {
    std::thread::sleep(Duration::from_millis(500));
    let before = rate_for(progress, Duration::from_secs(3))?;
    let (mut alone, mut during, mut took) = (0.0, 0.0, 0.0);
    for _ in 0..rounds {
        let (rate, seconds) = rate(progress, || copy(store, folder, records))?;
        during += rate;
        took += seconds;
        alone += rate_for(progress, Duration::from_secs_f64(seconds))?;
    }
    let (alone, during, took) = (alone / f64::from(rounds), during / f64::from(rounds), took / f64::from(rounds));
    println!("backup beside a writer  {took:.2} s, {:.2} million records/s", records as f64 / took / 1e6);
    println!("writes before backups   {:.2} million/s", before / 1e6);
    println!("writes between backups  {:.2} million/s", alone / 1e6);
    println!("writes during a backup  {:.2} million/s", during / 1e6);
    println!("slowed by the factor    {:.2} (before), {:.2} (between)", before / during, alone / during);
    let stats = store.stats();
    println!("store, live and file    {} MiB, {} MiB", stats.bytes_live >> 20, stats.bytes_file >> 20);
    Ok(())
}

/// The value of a key in a round: it says which it is, so that a wrong copy is seen.
fn value(key: u64, round: u64) -> [u8; VALUE] {
    let mut value = [round as u8; VALUE];
    value[..8].copy_from_slice(&key.to_le_bytes());
    value
}

fn write(store: &Store, records: u64, progress: &Progress) -> Result<(), hashmere::WriteError> {
    let mut random = 1u64;
    let mut writes = 0;
    while !progress.stop.load(Ordering::Relaxed) {
        for _ in 0..64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (random >> 33) % records;
            store.set(&key.to_le_bytes(), &value(key, writes))?;
            writes += 1;
        }
        progress.writes.store(writes, Ordering::Relaxed);
    }
    Ok(())
}

fn copy(store: &Store, folder: &Path, records: u64) -> Outcome {
    let path = folder.join("copy.mere");
    let report = store.backup(&path).replace(true).run()?;
    if report.items != records {
        return Err(format!("the copy has {} keys of {records}", report.items).into());
    }
    Ok(())
}

fn seconds(act: impl FnOnce() -> Outcome) -> Outcome<f64> {
    let start = Instant::now();
    act()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Writes a second while something is done, and how long that took.
fn rate(progress: &Progress, act: impl FnOnce() -> Outcome) -> Outcome<(f64, f64)> {
    let before = progress.writes.load(Ordering::Relaxed);
    let seconds = seconds(act)?;
    let writes = progress.writes.load(Ordering::Relaxed) - before;
    Ok((writes as f64 / seconds, seconds))
}

fn rate_for(progress: &Progress, time: Duration) -> Outcome<f64> {
    let measured = rate(progress, || {
        std::thread::sleep(time);
        Ok(())
    });
    Ok(measured?.0)
}
