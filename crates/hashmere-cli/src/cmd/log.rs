//! `log`: the log of a store on a terminal or in a file, and what else there is to do with it.

mod follow;

use super::Outcome;
use crate::args::StoreArgs;
use crate::failure::Failure;
use crate::output::{print_line, Output};
use clap::{Args, Subcommand, ValueEnum};
use hashmere_log::{Level, Log, LogError, LogOptions, OnFull, OnNoDrainer, RingStats, Value};
use serde_json::json;
use std::ffi::OsString;
use std::io::BufRead;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Follow the log of a store, or write to it.
///
/// Prints lines in the order of their time, and drains the log if no other process does. Lines that are filtered out
/// are taken from the log as well. It may be started before the store and the log are there. If the log is removed it
/// prints the rest and ends with error E76. A store called like one of the subcommands is written with a slash:
/// `./write`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct LogOf {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    follow: follow::Follow,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Log a line: the words, or each line of standard input if there are none
    Write(Write),
    /// Print the least important level that is wanted; or set it, for all processes at once
    Level {
        #[command(flatten)]
        log: LogArgs,
        /// The new one
        level: Option<LevelOrOff>,
    },
    /// Print sizes, and how many lines were drained, lost and cut off
    Stats {
        #[command(flatten)]
        log: LogArgs,
        /// One JSON object
        #[arg(short, long)]
        json: bool,
        /// Also the rings: the owner of each, and the bytes waiting in it
        #[arg(long)]
        rings: bool,
    },
    /// Print the names of all logs, one a line
    List(StoreArgs),
    /// Remove the log. Its space is free again when no process has it open
    Remove(LogArgs),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LevelOrOff {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LevelOrOff {
    fn level(self) -> Option<Level> {
        Level::from_number(self as u64)
    }
}

fn parse_level(text: &str) -> Result<Level, String> {
    text.parse().map_err(|error: LogError| error.to_string())
}

/// A log of a store.
#[derive(Args, Debug)]
struct LogArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Name of the log
    #[arg(long, default_value = "log")]
    name: String,
}

impl LogArgs {
    fn open(&self) -> Result<Log, Failure> {
        Log::open_existing(&self.store.writer()?, &self.name, LogOptions::new()).map_err(failed)
    }
}

fn failed(error: LogError) -> Failure {
    match &error {
        LogError::Output { source, .. } => match Failure::output(source) {
            Failure::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::error(error.code(), error.to_string()),
        },
        _ => Failure::error(error.code(), error.to_string()),
    }
}

/// What a full ring does.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FullArg {
    /// Wait for the drainer
    Block,
    /// Drop the line, and count it
    Drop,
    /// Give up the oldest lines, and count them
    Overwrite,
}

#[derive(Args, Debug)]
struct Write {
    #[command(flatten)]
    log: LogArgs,
    /// What to log; several words are put together with spaces
    text: Vec<OsString>,
    /// error, warn, info, debug or trace
    #[arg(short, long, default_value = "info", value_parser = parse_level)]
    level: Level,
    /// Add a field
    #[arg(short, long = "field", value_name = "KEY=VALUE")]
    fields: Vec<String>,
    /// Name of the process in the log
    #[arg(long, default_value = "hashmere")]
    tag: String,
    /// When the ring is full
    #[arg(long, value_enum, default_value = "block")]
    full: FullArg,
    /// When no process drains the log, leave the line there, instead of printing what there is
    #[arg(long)]
    keep: bool,
}

impl Write {
    fn run(self) -> Outcome {
        // What others see of this process is what the log calls it. It goes on without.
        let _ = std::fs::write("/proc/self/comm", &self.tag);
        let full = match self.full {
            FullArg::Block => OnFull::Block(Duration::from_secs(30)),
            FullArg::Drop => OnFull::Drop,
            FullArg::Overwrite => OnFull::Overwrite,
        };
        let absent = if self.keep { OnNoDrainer::Keep } else { OnNoDrainer::Stdout };
        let options = LogOptions::new().on_full(full).on_no_drainer(absent);
        let log = Log::open(&self.log.store.writer()?, &self.log.name, options).map_err(failed)?;
        let mut fields = Vec::new();
        for field in &self.fields {
            let Some((key, value)) = field.split_once('=') else {
                return Err(Failure::Usage(format!("a field is written KEY=VALUE, not {field:?}")));
            };
            fields.push((key, Value::from(value)));
        }
        let put = |text: &[u8]| log.line_fields(self.level, text, &fields).map(|_| ()).map_err(failed);
        if !self.text.is_empty() {
            let words: Vec<&[u8]> = self.text.iter().map(|word| word.as_bytes()).collect();
            return put(&words.join(&b' '));
        }
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let n = input.read_until(b'\n', &mut line).map_err(|e| Failure::io("read standard input", &e))?;
            if n == 0 {
                return Ok(());
            }
            put(line.strip_suffix(b"\n").unwrap_or(&line))?;
        }
    }
}

impl LogOf {
    /// Runs it.
    pub fn run(self) -> Outcome {
        match self.verb {
            Some(verb) => verb.run(),
            None => self.follow.run(),
        }
    }
}

impl Verb {
    fn run(self) -> Outcome {
        match self {
            Verb::Write(write) => write.run(),
            Verb::Level { log, level } => {
                let log = log.open()?;
                match level {
                    Some(level) => {
                        log.set_level(level.level());
                        Ok(())
                    }
                    None => {
                        let level = log.level().map_or("off".into(), |level| level.name().to_ascii_lowercase());
                        print_line(level)
                    }
                }
            }
            Verb::Stats { log, json, rings } => stats(&log.open()?, json, rings),
            Verb::List(store) => {
                let mut output = Output::new();
                Log::list(&store.reader()?).iter().try_for_each(|name| output.line(name))?;
                output.finish()
            }
            Verb::Remove(log) => {
                if Log::remove(&log.store.writer()?, &log.name).map_err(failed)? {
                    return Ok(());
                }
                Err(Failure::NotMet(format!("no log {:?}", log.name)))
            }
        }
    }
}

fn ring_object(ring: &RingStats) -> serde_json::Value {
    json!({
        "ring": ring.ring, "owned": ring.is_owned, "thread": ring.thread, "pid": ring.pid,
        "process": String::from_utf8_lossy(&ring.process), "waiting_bytes": ring.waiting_bytes, "unreported_drops": ring.unreported_drops,
    })
}

fn stats(log: &Log, json: bool, rings: bool) -> Outcome {
    let stats = log.stats().map_err(failed)?;
    let rings = if rings { log.rings().map_err(failed)? } else { Vec::new() };
    if json {
        let mut object = json!({
            "name": log.name(), "bytes": stats.bytes, "rings": stats.rings, "ring_bytes": stats.ring_bytes,
            "history_bytes": stats.history_bytes, "line_max": stats.line_max, "rings_used": stats.rings_used,
            "waiting_bytes": stats.waiting_bytes, "undelivered_bytes": stats.undelivered_bytes, "lines": stats.lines,
            "lost": stats.lost, "halves": stats.halves, "threads": stats.threads, "drainer": stats.drainer,
        });
        if !rings.is_empty() {
            object["ring"] = rings.iter().map(ring_object).collect();
        }
        return print_line(object.to_string());
    }
    let mut output = Output::new();
    let drainer = stats.drainer.map_or("no process drains it".into(), |pid| format!("process {pid} drains it"));
    output.line(format!(
        "{} bytes: a history of {}, {} rings of {}",
        stats.bytes, stats.history_bytes, stats.rings, stats.ring_bytes
    ))?;
    output.line(format!("{} rings in use, {} threads so far; {drainer}", stats.rings_used, stats.threads))?;
    output.line(format!("{} lines, {} lost, {} cut off by a death", stats.lines, stats.lost, stats.halves))?;
    output.line(format!("{} bytes wait in rings, {} for delivery", stats.waiting_bytes, stats.undelivered_bytes))?;
    for ring in rings {
        let (name, has) = (String::from_utf8_lossy(&ring.process), if ring.is_owned { "has" } else { "had" });
        output.line(format!(
            "ring {}: {name}[{}] thread {} {has} it; {} bytes wait, {} lost lines are not told yet",
            ring.ring, ring.pid, ring.thread, ring.waiting_bytes, ring.unreported_drops
        ))?;
    }
    output.finish()
}
