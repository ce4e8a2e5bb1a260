//! What the machine is and what it does today: its name, its memory, and the cost of the things that every table is
//! made of. Absolute times move between days by a factor of two on a shared host; these lines tell which day it is.

use crate::workload::Random;
use crate::Outcome;
use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Bytes of this process in memory.
pub fn resident_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Bytes that the files of a folder really take.
pub fn blocks_in(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| entry.metadata().ok())
        .filter(|meta| meta.is_file())
        .map(|meta| meta.blocks() * 512)
        .sum()
}

/// The machine in words, and its costs of today.
pub fn describe() -> String {
    let cpu = field(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default(), "model name");
    let memory = field(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{cores} x {cpu}, memory {memory}, Linux {}, load before {}\n\
         today: dependent load 1 MiB {:.1}, 16 MiB {:.1}, 256 MiB {:.0} ns; uncontended atomic add {:.1} ns; clock {:.0} ns\n",
        kernel.trim(),
        load(),
        dependent_load_ns(1 << 20),
        dependent_load_ns(16 << 20),
        dependent_load_ns(256 << 20),
        atomic_add_ns(),
        clock_ns(),
    )
}

/// Today, as `YYYY-MM-DD`.
pub fn date() -> Outcome<String> {
    said("date", &["+%Y-%m-%d"])
}

/// The commit of the working tree, with a plus if it has changes.
pub fn commit() -> Outcome<String> {
    let commit = said("git", &["rev-parse", "--short=10", "HEAD"])?;
    // What benchmarks write is not what they measure.
    let changed = said("git", &["status", "--porcelain", "--untracked-files=no", "--", "crates", "bench/peers"])?;
    Ok(if changed.is_empty() { commit } else { commit + "+" })
}

/// The versions of the peers that are Debian packages.
pub fn versions() -> BTreeMap<String, String> {
    ["liblmdb-dev", "libkyotocabinet-dev", "libtkrzw-dev", "libsqlite3-dev", "libspdlog-dev", "memcached"]
        .into_iter()
        .filter_map(|name| Some((name.to_string(), said("dpkg-query", &["-W", "-f", "${Version}", name]).ok()?)))
        .collect()
}

/// What a program prints.
fn said(program: &str, arguments: &[&str]) -> Outcome<String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_string())
}

/// How many processes wanted a core, over the last minute.
pub fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or("?").to_string()
}

fn field(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_once(':').map_or("?", |(_, value)| value).trim().to_string()
}

/// A walk round one random cycle through a block of memory.
fn dependent_load_ns(bytes: usize) -> f64 {
    const LINE: usize = 16;
    let lines = bytes / 64;
    let mut order: Vec<usize> = (0..lines).collect();
    let mut random = Random(1);
    for i in (1..lines).rev() {
        // Sattolo: one cycle through all.
        order.swap(i, random.below(i as u64) as usize);
    }
    let mut memory = vec![0u32; lines * LINE];
    for (line, &next) in order.iter().enumerate() {
        memory[line * LINE] = (next * LINE) as u32;
    }
    let mut at = 0;
    let steps = 2_000_000;
    let start = Instant::now();
    for _ in 0..steps {
        at = memory[at as usize];
    }
    black_box(at);
    start.elapsed().as_nanos() as f64 / f64::from(steps)
}

fn atomic_add_ns() -> f64 {
    let counter = AtomicU64::new(0);
    let start = Instant::now();
    for _ in 0..2_000_000 {
        black_box(&counter).fetch_add(1, Ordering::Relaxed);
    }
    start.elapsed().as_nanos() as f64 / 2e6
}

fn clock_ns() -> f64 {
    let start = Instant::now();
    for _ in 0..1_000_000 {
        black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64 / 1e6
}
