//! `stats`.

use super::Outcome;
use crate::args::StoreArgs;
use crate::output::Output;
use crate::text::{grouped, size};
use clap::Args;
use hashmere::Stats;
use serde_json::{json, Value};

/// Print statistics: sizes, fill, cleaning, and the activity of every process that has the store open.
#[derive(Args, Debug)]
pub struct StatsOf {
    #[command(flatten)]
    store: StoreArgs,
    /// One JSON object
    #[arg(short, long)]
    json: bool,
}

impl StatsOf {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let store = self.store.reader()?;
        let stats = store.stats();
        let mut output = Output::new();
        if self.json {
            output.line(to_json(&store.path().to_string_lossy(), &stats).to_string())?;
        } else {
            table(&store.path().to_string_lossy(), &stats, &mut output)?;
        }
        output.finish()
    }
}

fn mode(stats: &Stats) -> String {
    format!("{:?}", stats.mode).to_lowercase()
}

fn to_json(path: &str, stats: &Stats) -> Value {
    let clients: Vec<Value> = stats
        .clients
        .iter()
        .map(|c| {
            json!({
                "slot": c.slot, "pid": c.pid, "name": c.name, "since_ms": c.since_ms, "pins": c.pins,
                "hits": c.hits, "misses": c.misses, "sets": c.sets, "deletes": c.deletes,
            })
        })
        .collect();
    json!({
        "path": path, "mode": mode(stats), "items": stats.items,
        "bytes_live": stats.bytes_live, "bytes_dead": stats.bytes_dead, "bytes_free": stats.bytes_free,
        "bytes_file": stats.bytes_file, "bytes_allocated": stats.bytes_allocated, "bytes_max": stats.bytes_max,
        "no_space_since_ms": stats.no_space_since_ms,
        "segments_total": stats.segments_total, "segments_log": stats.segments_log,
        "segments_index": stats.segments_index, "segments_large": stats.segments_large,
        "segments_free": stats.segments_free, "regions": stats.regions, "segments_region": stats.segments_region, "segment_bytes": stats.segment_bytes,
        "feed": stats.feed.map(|feed| json!({
            "number": feed.number, "position": feed.position, "oldest": feed.oldest, "bytes": feed.bytes, "values": feed.values,
        })),
        "index_slots": stats.index_slots, "index_used": stats.index_used, "index_depth": stats.index_depth,
        "index_overflow": stats.index_overflow, "splits": stats.splits,
        "segments_cleaned": stats.segments_cleaned, "records_moved": stats.records_moved,
        "evictions": stats.evictions, "expiries": stats.expiries,
        "hits": stats.hits, "misses": stats.misses, "sets": stats.sets, "deletes": stats.deletes,
        "lock_waits": stats.lock_waits, "takeovers": stats.takeovers, "recycle_epoch": stats.recycle_epoch,
        "durable": stats.durable, "syncs": stats.syncs, "last_sync_ms": stats.last_sync_ms,
        "segments_waiting": stats.segments_waiting, "segments_offline": stats.segments_offline, "poisoned": stats.poisoned, "backup_pid": stats.backup_pid,
        "read_retries": stats.read_retries, "clears": stats.clears,
        "clients": clients,
    })
}

fn seconds_since(ms: u64) -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
    now.saturating_sub(u128::from(ms)) / 1000
}

fn syncs(stats: &Stats) -> String {
    let ago = seconds_since(stats.last_sync_ms);
    let state = if stats.poisoned { "; A FLUSH HAS FAILED: nothing is written any more" } else { "" };
    let waiting = grouped(stats.segments_waiting);
    format!("{}, the last {ago} s ago, {waiting} segments wait for the next{state}", grouped(stats.syncs))
}

/// `part` of `whole` in per cent.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "-".into()
    } else {
        format!("{:.1} %", part as f64 * 100.0 / whole as f64)
    }
}

fn table(path: &str, stats: &Stats, output: &mut Output) -> Outcome {
    let maximum = if stats.bytes_max == 0 { "no maximum".into() } else { format!("at most {}", size(stats.bytes_max)) };
    let rows = [
        ("store", format!("{path}, {}, {maximum}", mode(stats))),
        ("items", grouped(stats.items)),
        ("file", format!("{} allocated, {} apparent", size(stats.bytes_allocated), size(stats.bytes_file))),
        (
            "bytes",
            format!(
                "{} live, {} dead, {} free",
                size(stats.bytes_live),
                size(stats.bytes_dead),
                size(stats.bytes_free)
            ),
        ),
        (
            "segments",
            format!(
                "{}: {} log, {} index, {} large, {} free",
                grouped(stats.segments_total),
                grouped(stats.segments_log),
                grouped(stats.segments_index),
                grouped(stats.segments_large),
                grouped(stats.segments_free)
            ),
        ),
        (
            "index",
            format!(
                "{} of {} slots ({}), depth {}, {} splits, {} overflowed",
                grouped(stats.index_used),
                grouped(stats.index_slots),
                percent(stats.index_used, stats.index_slots),
                stats.index_depth,
                grouped(stats.splits),
                grouped(stats.index_overflow)
            ),
        ),
        (
            "cleaning",
            format!(
                "{} segments, {} records moved, {} evicted, {} expired",
                grouped(stats.segments_cleaned),
                grouped(stats.records_moved),
                grouped(stats.evictions),
                grouped(stats.expiries)
            ),
        ),
        (
            "reads",
            format!(
                "{} hits, {} misses ({})",
                grouped(stats.hits),
                grouped(stats.misses),
                percent(stats.hits, stats.hits.saturating_add(stats.misses))
            ),
        ),
        ("writes", format!("{} sets, {} deletes", grouped(stats.sets), grouped(stats.deletes))),
        ("locks", format!("{} waits, {} taken over", grouped(stats.lock_waits), grouped(stats.takeovers))),
    ];
    for (name, value) in rows {
        output.line(format!("{name:<10} {value}"))?;
    }
    if stats.durable {
        output.line(format!("syncs      {}", syncs(stats)))?;
    }
    if let Some(feed) = &stats.feed {
        let values = if feed.values { ", with values" } else { "" };
        let kept = grouped(feed.position - feed.oldest);
        output.line(format!(
            "feed       {}, {kept} changes kept of {}{values}",
            size(feed.bytes),
            grouped(feed.position)
        ))?;
    }
    if stats.no_space_since_ms != 0 {
        output.line(format!(
            "no space   the file system refused more memory {} s ago, and has not given any since",
            seconds_since(stats.no_space_since_ms)
        ))?;
    }
    if let Some(pid) = stats.backup_pid {
        output.line(format!("backup     under way, by pid {pid}"))?;
    }
    clients(stats, output)
}

fn clients(stats: &Stats, output: &mut Output) -> Outcome {
    output.line(format!("clients    {}", stats.clients.len()))?;
    if stats.clients.is_empty() {
        return Ok(());
    }
    let header = ["pid", "hits", "misses", "sets", "deletes"];
    let [pid, hits, misses, sets, deletes] = header;
    output.line(format!("  {pid:>10} {hits:>14} {misses:>14} {sets:>14} {deletes:>14}  name"))?;
    for c in &stats.clients {
        output.line(format!(
            "  {:>10} {:>14} {:>14} {:>14} {:>14}  {}",
            c.pid,
            grouped(c.hits),
            grouped(c.misses),
            grouped(c.sets),
            grouped(c.deletes),
            c.name
        ))?;
    }
    Ok(())
}
