//! `big`: what takes the room.

use super::{shown, Outcome};
use crate::args::StoreArgs;
use crate::output::{progress_bar, Output};
use crate::text::{grouped, size};
use clap::Args;
use hashmere::Cursor;
use hashmere_observe::{BigKeys, BigKeysOptions, Line, Summary};
use hashmere_os::process;
use serde_json::{json, Value};

/// Show what takes the room: the largest keys, histograms of sizes and remaining TTLs, bytes by key prefix.
///
/// Goes through all keys, in memory that does not grow with their number. Writers are not stopped; keys that come or go
/// during it are counted or not. A run that is interrupted prints what it has counted, and a cursor on standard error:
/// `--from` goes on there, and counts the rest. Bytes are those of key and value.
#[derive(Args, Debug)]
pub struct Big {
    #[command(flatten)]
    store: StoreArgs,
    /// How many of the largest keys, and of the prefixes on each level, are printed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    top: u16,
    /// Characters at which a key has prefixes
    #[arg(long, value_name = "CHARS", default_value = ":/")]
    separators: String,
    /// How many levels of prefixes are distinguished
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    depth: u8,
    /// Only keys that begin with this
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Go on where a former run ended
    #[arg(long, value_name = "CURSOR")]
    from: Option<u64>,
    /// End after N keys, and print the cursor
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// One JSON object
    #[arg(short, long)]
    json: bool,
}

/// Places of the index between two looks at whether the user asked to stop.
const STRETCH: usize = 4096;

impl Big {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        process::catch_stop();
        let store = self.store.reader()?;
        let mut keys = BigKeys::new(&BigKeysOptions {
            top: self.top.into(),
            separators: self.separators.as_bytes().to_vec(),
            depth: self.depth.into(),
            prefix: self.prefix.as_deref().unwrap_or_default().as_bytes().to_vec(),
            from: self.from.map_or(Cursor::START, Cursor),
        });
        let bar = progress_bar(store.len(), quiet);
        let limit = self.limit.unwrap_or(u64::MAX);
        while keys.cursor().is_some() && keys.summary().keys() < limit && !process::is_asked_to_stop() {
            keys.step(&store, STRETCH, limit)?;
            bar.set_position(keys.summary().keys());
        }
        bar.finish_and_clear();
        let (summary, cursor) = (keys.summary(), keys.cursor().map(|cursor| cursor.0));
        let mut output = Output::new();
        if self.json {
            output.line(self.as_json(&store.path().to_string_lossy(), summary, cursor).to_string())?;
        } else {
            self.write(summary, &mut output)?;
        }
        output.finish()?;
        if let Some(cursor) = cursor {
            eprintln!("hashmere: not all keys were counted; `--from {cursor}` counts the rest");
        }
        Ok(())
    }

    fn as_json(&self, path: &str, summary: &Summary, cursor: Option<u64>) -> Value {
        let largest: Vec<Value> = summary
            .largest()
            .iter()
            .map(|one| json!({"key": text(&one.key), "value_len": one.value_len, "bytes": one.bytes}))
            .collect();
        let sizes: Vec<Value> = summary
            .sizes()
            .map(|(to, count)| json!({"value_len_to": to, "keys": count.keys, "bytes": count.bytes}))
            .collect();
        let ttls: Vec<Value> = summary
            .ttls()
            .map(|(bound, count)| json!({"remaining": bound, "keys": count.keys, "bytes": count.bytes}))
            .collect();
        let prefixes: Vec<Value> = summary
            .prefixes(self.top.into())
            .iter()
            .map(|line| {
                let prefix = line.prefix.as_deref().map(text);
                json!({"prefix": prefix, "level": line.level, "keys": line.count.keys, "bytes": line.count.bytes})
            })
            .collect();
        json!({
            "path": path, "keys": summary.keys(), "bytes": summary.total().bytes, "from": self.from, "cursor": cursor,
            "largest": largest, "sizes": sizes, "ttls": ttls, "prefixes": prefixes,
        })
    }

    fn write(&self, summary: &Summary, output: &mut Output) -> Outcome {
        let total = summary.total();
        output.line(format!("{}, {} in keys and values", crate::text::plural(total.keys, "key"), size(total.bytes)))?;
        if total.keys == 0 {
            return Ok(());
        }
        let share = |bytes: u64| bytes as f64 * 100.0 / total.bytes.max(1) as f64;
        output.line("")?;
        output.line(format!("{:<16} {:>14} {:>12} {:>7}", "LENGTH OF VALUE", "KEYS", "BYTES", "SHARE"))?;
        for (to, count) in summary.sizes() {
            let label = format!("up to {}", size(to));
            output.line(row(&label, count.keys, count.bytes, share(count.bytes)))?;
        }
        output.line("")?;
        output.line(format!("{:<16} {:>14} {:>12} {:>7}", "EXPIRES WITHIN", "KEYS", "BYTES", "SHARE"))?;
        for (label, count) in summary.ttls() {
            output.line(row(label, count.keys, count.bytes, share(count.bytes)))?;
        }
        output.line("")?;
        output.line(format!("{:>12}  LARGEST KEYS", "BYTES"))?;
        for one in summary.largest() {
            output.line(format!("{:>12}  {}", size(one.bytes), shown(&one.key)))?;
        }
        output.line("")?;
        output.line(format!("{:>14} {:>12} {:>7}  PREFIX", "KEYS", "BYTES", "SHARE"))?;
        for Line { prefix, level, count } in summary.prefixes(self.top.into()) {
            let name = prefix.as_deref().map_or_else(|| "(other)".to_string(), shown);
            output.line(format!(
                "{:>14} {:>12} {:>5.1} %  {}{name}",
                grouped(count.keys),
                size(count.bytes),
                share(count.bytes),
                "  ".repeat(level)
            ))?;
        }
        Ok(())
    }
}

fn row(label: &str, keys: u64, bytes: u64, share: f64) -> String {
    format!("{label:<16} {:>14} {:>12} {share:>5.1} %", grouped(keys), size(bytes))
}

/// A key in JSON: escaped as everywhere in the command.
fn text(key: &[u8]) -> String {
    crate::text::escaped(key)
}
