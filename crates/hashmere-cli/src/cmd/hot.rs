//! `hot`: which keys are read and written most.

use super::Outcome;
use crate::args::StoreArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::text::{self, grouped};
use crate::top::number::rate;
use clap::Args;
use hashmere_observe::{Estimate, HotKey, HotKeys, Hottest, Sampler};
use hashmere_os::process;
use serde_json::{json, Value};
use std::time::Duration;

/// Show the keys that are read and written most, by sampling what the processes that use the store do.
///
/// The store is opened for writing: each process that has it open samples some of its operations, a thousand a second
/// at most, until this ends or is killed. Rates are estimates; LOW and HIGH are the bounds between which a rate lies
/// with a probability of 95 %. Reads are those of values, hits and misses; writes are sets and deletes. Processes that
/// have the store open read-only are not seen.
#[derive(Args, Debug)]
pub struct Hot {
    #[command(flatten)]
    store: StoreArgs,
    /// How long to sample
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = text::parse_duration)]
    time: Duration,
    /// How many keys are printed, of reads and of writes each
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Only reads
    #[arg(long, conflicts_with = "writes")]
    reads: bool,
    /// Only writes
    #[arg(long)]
    writes: bool,
    /// One JSON object
    #[arg(short, long)]
    json: bool,
}

/// The longest time: what is remembered of a key is of the whole time.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Hot {
    /// Runs it.
    pub fn run(self) -> Outcome {
        if self.time.is_zero() || self.time > LONGEST {
            return Err(Failure::Usage("--for takes a time above 0, of at most 24h".into()));
        }
        process::catch_stop();
        let store = self.store.writer()?;
        let mut sampler = Sampler::start(&store)?;
        sampler.poll_for(self.time, process::is_asked_to_stop)?;
        let hot = sampler.hot_keys();
        // It is off before anything is printed.
        drop(sampler);
        let mut output = Output::new();
        if self.json {
            output.line(self.as_json(&store.path().to_string_lossy(), &hot).to_string())?;
        } else {
            self.write(&hot, &mut output)?;
        }
        output.finish()
    }

    /// What is asked for: a name, what is absent there, and the keys.
    fn kinds<'h>(&self, hot: &'h HotKeys) -> Vec<(&'static str, &'static str, &'h Hottest)> {
        let mut kinds = Vec::new();
        if !self.writes {
            kinds.push(("reads", "misses", &hot.reads));
        }
        if !self.reads {
            kinds.push(("writes", "deletes", &hot.writes));
        }
        kinds
    }

    fn as_json(&self, path: &str, hot: &HotKeys) -> Value {
        let mut all = json!({"path": path, "seconds": hot.seconds, "samples": hot.samples, "lost": hot.lost});
        for (name, absent, hottest) in self.kinds(hot) {
            let keys: Vec<Value> = hottest.keys.iter().take(self.limit as usize).map(|key| one(key, absent)).collect();
            all[name] = json!({
                "total": estimate(&hottest.total), "keys_seen": hottest.keys.len(), "keys_given_up": hottest.given_up,
                "given_up_rate": hottest.given_up_rate, "keys": keys,
            });
        }
        all
    }

    fn write(&self, hot: &HotKeys, output: &mut Output) -> Outcome {
        let lost = if hot.lost == 0 { String::new() } else { format!(" ({} were lost)", grouped(hot.lost)) };
        output.line(format!("{:.1} s, {}{lost}", hot.seconds, text::plural(hot.samples, "sample")))?;
        for (name, absent, hottest) in self.kinds(hot) {
            output.line("")?;
            let Estimate { value, low, high, .. } = hottest.total;
            output.line(format!("{name}: {}/s ({} to {})", rate(value), rate(low), rate(high)))?;
            if hottest.keys.is_empty() {
                continue;
            }
            let heads = [&format!("{}/S", name.to_uppercase()), "LOW", "HIGH", "SHARE", &absent.to_uppercase()];
            let [each, low, high, share, absent] = heads;
            output.line(format!("{each:>9} {low:>7} {high:>7} {share:>7} {absent:>8}  KEY"))?;
            for key in hottest.keys.iter().take(self.limit as usize) {
                output.line(row(key))?;
            }
            if hottest.given_up > 0 {
                output.line(format!(
                    "{} with fewer were given up; what is listed may be too low by {}/s",
                    text::plural(hottest.given_up, "key"),
                    rate(hottest.given_up_rate)
                ))?;
            }
        }
        Ok(())
    }
}

fn row(key: &HotKey) -> String {
    let Estimate { value, low, high, .. } = key.rate;
    let absent = if value > 0.0 { key.absent * 100.0 / value } else { 0.0 };
    let (share, shown) = (key.share * 100.0, shown(key));
    format!("{:>9} {:>7} {:>7} {share:>5.1} % {absent:>6.1} %  {shown}", rate(value), rate(low), rate(high))
}

/// A key, as far as its samples have it.
fn shown(key: &HotKey) -> String {
    let name = text::escaped(&key.key);
    if key.is_whole() {
        name
    } else {
        format!("{name}... ({} bytes)", key.key_len)
    }
}

fn one(key: &HotKey, absent: &str) -> Value {
    json!({
        "key": text::escaped(&key.key), "key_len": key.key_len, "is_whole": key.is_whole(),
        "rate": estimate(&key.rate), "share": key.share, absent: key.absent,
    })
}

fn estimate(estimate: &Estimate) -> Value {
    json!({
        "per_second": estimate.value, "low": estimate.low, "high": estimate.high, "samples": estimate.samples,
    })
}
