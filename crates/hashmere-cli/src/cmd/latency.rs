//! `latency`: what an operation costs here and now.

use super::Outcome;
use crate::args::StoreArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::text::{self, grouped};
use clap::Args;
use hashmere::{Attributes, Cursor, Filter, Store, Ttl};
use hashmere_os::process;
use hdrhistogram::Histogram;
use serde_json::{json, Value};
use std::time::{Duration, Instant};

/// Measure what a get and, with --write, a set cost on this store here and now: percentiles and a histogram.
///
/// Gets read keys of the store, in the order of their hashes. Sets write keys that begin with `hashmere-latency:`,
/// which are deleted at the end and expire soon if that does not happen; a change feed has them too. Each operation is
/// timed by itself, and the time that the clock takes is in every figure.
#[derive(Args, Debug)]
pub struct Latency {
    #[command(flatten)]
    store: StoreArgs,
    /// How long to measure each operation
    #[arg(long = "for", value_name = "TIME", default_value = "3s", value_parser = text::parse_duration)]
    time: Duration,
    /// Also measure sets, on keys of its own
    #[arg(long)]
    write: bool,
    /// How many keys to go round
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    keys: u32,
    /// Bytes of the values that are set
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = text::parse_size, requires = "write")]
    value_bytes: u64,
    /// One JSON object
    #[arg(short, long)]
    json: bool,
}

/// Keys that are written begin so.
const SCRATCH: &str = "hashmere-latency:";
/// How long they live at least when nothing deletes them.
const SCRATCH_LIFE: Duration = Duration::from_secs(60);
/// Longer than this an operation does not take: it has timeouts.
const SLOWEST_NS: u64 = 600_000_000_000;

/// What was measured.
struct Measured {
    name: &'static str,
    times: Histogram<u64>,
    /// Gets that did not find their key: it was deleted, evicted or has expired since.
    misses: u64,
    seconds: f64,
}

impl Latency {
    /// Runs it.
    pub fn run(self) -> Outcome {
        process::catch_stop();
        let store = if self.write { self.store.writer()? } else { self.store.reader()? };
        let clock = clock_cost()?;
        let mut measured = Vec::new();
        let keys = some_keys(&store, self.keys as usize)?;
        if !keys.is_empty() {
            measured.push(gets(&store, &keys, self.time)?);
        } else if !self.write {
            return Err(Failure::Usage(format!(
                "{} has no keys to read; --write measures sets",
                store.path().display()
            )));
        }
        if self.write {
            measured.push(self.sets(&store)?);
        }
        let mut output = Output::new();
        if self.json {
            let all: Vec<Value> = measured.iter().map(as_json).collect();
            let path = store.path().to_string_lossy();
            output.line(json!({"path": path, "clock_ns": clock, "operations": all}).to_string())?;
        } else {
            output.line(format!("The clock takes {clock} ns, which are in every figure."))?;
            measured.iter().try_for_each(|one| write(one, &mut output))?;
        }
        output.finish()
    }

    fn sets(&self, store: &Store) -> Result<Measured, Failure> {
        let scratch = Scratch::new(store, self.keys);
        let length = usize::try_from(self.value_bytes).map_err(|_| Failure::Usage("too long a value".into()))?;
        let attributes = Attributes::NONE.ttl(Ttl::After(self.time + SCRATCH_LIFE));
        let mut value = vec![b'.'; length];
        let mut measured = Measured::new("set")?;
        let mut written = 0u64;
        measured.repeat(self.time, |n| {
            // So that no two values of a key are the same.
            written += 1;
            value.iter_mut().zip(written.to_le_bytes()).for_each(|(to, from)| *to = from);
            let key = &scratch.keys[n % scratch.keys.len()];
            let start = Instant::now();
            store.set_with(key, &value, attributes)?;
            Ok((start.elapsed(), true))
        })?;
        scratch.clear()?;
        Ok(measured)
    }
}

/// Keys that are written, and deleted when this is dropped.
struct Scratch<'a> {
    store: &'a Store,
    keys: Vec<Vec<u8>>,
}

impl Scratch<'_> {
    fn new(store: &Store, count: u32) -> Scratch<'_> {
        let pid = std::process::id();
        let keys = (0..count).map(|i| format!("{SCRATCH}{pid}:{i}").into_bytes()).collect();
        Scratch { store, keys }
    }

    fn clear(&self) -> Result<(), Failure> {
        self.keys.iter().try_for_each(|key| self.store.delete(key).map(|_| ()))?;
        Ok(())
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let _ = self.clear();
    }
}

/// Keys of the store: those of the lowest hashes, which is as good as at random.
fn some_keys(store: &Store, most: usize) -> Result<Vec<Vec<u8>>, Failure> {
    let scan = store.scan(Cursor::START, Filter::all().keys_only());
    // A key that was stored with a hash of the caller's is not found without it.
    let found = scan.filter(|pair| pair.as_ref().map_or(true, |pair| pair.supplied_hash.is_none())).take(most);
    Ok(found.map(|pair| pair.map(|pair| pair.key)).collect::<Result<_, _>>()?)
}

fn gets(store: &Store, keys: &[Vec<u8>], time: Duration) -> Result<Measured, Failure> {
    let mut measured = Measured::new("get")?;
    let mut value = Vec::new();
    measured.repeat(time, |n| {
        value.clear();
        let start = Instant::now();
        let found = store.get_into(&keys[n % keys.len()], &mut value)?;
        Ok((start.elapsed(), found.is_some()))
    })?;
    Ok(measured)
}

/// What two readings of the clock are apart, in nanoseconds: the median of many.
fn clock_cost() -> Result<u64, Failure> {
    let mut measured = Measured::new("clock")?;
    for _ in 0..10_000 {
        let start = Instant::now();
        measured.times.saturating_record(start.elapsed().as_nanos() as u64);
    }
    Ok(measured.times.value_at_quantile(0.5))
}

impl Measured {
    fn new(name: &'static str) -> Result<Measured, Failure> {
        let times = Histogram::new_with_bounds(1, SLOWEST_NS, 3)
            .map_err(|e| Failure::error(crate::failure::code::IO, format!("cannot make a histogram: {e}")))?;
        Ok(Measured { name, times, misses: 0, seconds: 0.0 })
    }

    /// Does something again and again, for this time or until the user asks to stop. It gives how long it took, and
    /// whether it found what it should.
    fn repeat(
        &mut self,
        time: Duration,
        mut act: impl FnMut(usize) -> Result<(Duration, bool), Failure>,
    ) -> Result<(), Failure> {
        // The end is looked at now and then only.
        const ROUND: usize = 64;
        let begin = Instant::now();
        let mut n = 0;
        while n == 0 || begin.elapsed() < time && !process::is_asked_to_stop() {
            for _ in 0..ROUND {
                let (took, found) = act(n)?;
                self.times.saturating_record((took.as_nanos() as u64).max(1));
                self.misses += u64::from(!found);
                n += 1;
            }
        }
        self.seconds = begin.elapsed().as_secs_f64();
        Ok(())
    }
}

const PERCENTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("p99_99", 0.9999), ("max", 1.0)];

/// The histogram in powers of two: the upper bound of each, and how many.
fn powers(times: &Histogram<u64>) -> Vec<(u64, u64)> {
    let mut counts = [0u64; 64];
    for one in times.iter_recorded() {
        let power = one.value_iterated_to().max(1).next_power_of_two().trailing_zeros();
        counts[power.min(63) as usize] += one.count_since_last_iteration();
    }
    counts.into_iter().enumerate().filter(|(_, n)| *n != 0).map(|(power, n)| (1 << power, n)).collect()
}

fn as_json(measured: &Measured) -> Value {
    let times = &measured.times;
    let mut json = json!({
        "name": measured.name, "count": times.len(), "misses": measured.misses, "seconds": measured.seconds,
        "mean_ns": times.mean(), "min_ns": times.min(),
        "histogram": powers(times).iter().map(|(to, n)| json!({"to_ns": to, "count": n})).collect::<Vec<_>>(),
    });
    for (name, quantile) in PERCENTILES {
        json[format!("{name}_ns")] = times.value_at_quantile(quantile).into();
    }
    json
}

/// A time for people.
fn time(ns: u64) -> String {
    match ns {
        0..=9_999 => format!("{ns} ns"),
        10_000..=9_999_999 => format!("{} us", ns / 1_000),
        _ => format!("{} ms", ns / 1_000_000),
    }
}

fn write(measured: &Measured, output: &mut Output) -> Outcome {
    let times = &measured.times;
    let misses = if measured.misses == 0 { String::new() } else { format!(", {} misses", grouped(measured.misses)) };
    output.line("")?;
    output.line(format!(
        "{}  {} in {:.1} s, mean {}{misses}",
        measured.name,
        grouped(times.len()),
        measured.seconds,
        time(times.mean() as u64)
    ))?;
    for (name, quantile) in PERCENTILES {
        output.line(format!("  {:<7} {:>10}", name.replace('_', "."), time(times.value_at_quantile(quantile))))?;
    }
    let powers = powers(times);
    let most = powers.iter().map(|(_, n)| *n).max().unwrap_or(1);
    for (to, n) in powers {
        let stars = (n as f64 / most as f64 * 40.0).ceil() as usize;
        output.line(format!("  up to {:>8} {:>14}  {}", time(to), grouped(n), "*".repeat(stars)))?;
    }
    Ok(())
}
