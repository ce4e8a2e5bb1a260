//! Lines of text about a store that the screen and `--once` share.

use super::number::{bytes, rate};
use crate::text::grouped;
use hashmere_observe::{Process, Rates, Snapshot};

/// What a process that is stopped or has crashed holds.
pub fn stuck(process: &Process) -> String {
    let mut holds = Vec::new();
    if process.locks != 0 {
        holds.push(crate::text::plural(process.locks, "lock"));
    }
    if process.transactions != 0 {
        holds.push("a transaction".into());
    }
    if process.busy != 0 && holds.is_empty() {
        holds.push("an operation under way".into());
    }
    if process.views() != 0 {
        holds.push(crate::text::plural(process.views(), "view"));
    }
    let state = process.state.name().to_uppercase();
    format!("{state}: pid {} ({}) holds {}", process.pid, process.command, holds.join(", "))
}

/// What is in a store besides keys, one a line: queues, logs, feed, replica, backup.
pub fn objects(now: &Snapshot, rates: &Rates) -> Vec<String> {
    let mut lines = Vec::new();
    for pool in &now.pools {
        for queue in &pool.stats.queues {
            let pushed = rates.pushed.get(&(pool.name.clone(), queue.name.clone())).copied().unwrap_or(0.0);
            let sleeps = if queue.has_sleepers { ", waited for" } else { "" };
            lines.push(format!(
                "queue      {}/{}: {} of {}, {}/s pushed{sleeps}",
                pool.name,
                queue.name,
                grouped(queue.len),
                grouped(queue.bound),
                rate(pushed)
            ));
        }
        if pool.stats.held != 0 || pool.stats.recovered != 0 {
            lines.push(format!(
                "pool       {}: {} held by {} endpoints, {} recovered",
                pool.name,
                grouped(pool.stats.held),
                pool.stats.endpoints,
                grouped(pool.stats.recovered)
            ));
        }
    }
    for log in &now.logs {
        let by_name = |map: &std::collections::BTreeMap<String, f64>| map.get(&log.name).copied().unwrap_or(0.0);
        let drainer = log.stats.drainer.map_or("NO DRAINER".into(), |pid| format!("drained by pid {pid}"));
        lines.push(format!(
            "log        {}: {}/s lines, {}/s lost, {} waiting, {} undelivered, {drainer}",
            log.name,
            rate(by_name(&rates.lines)),
            rate(by_name(&rates.lost)),
            bytes(log.stats.waiting_bytes),
            bytes(log.stats.undelivered_bytes)
        ));
    }
    if let Some(feed) = &now.feed {
        let values = if feed.values { ", with values" } else { "" };
        lines.push(format!(
            "feed       {}/s changes, {} kept in {}{values}",
            rate(rates.feed),
            grouped(feed.position.saturating_sub(feed.oldest)),
            bytes(feed.bytes)
        ));
    }
    if let Some(replica) = &now.replica {
        let by = replica.pid.map_or("NO REPLICATOR".into(), |pid| format!("by pid {pid}"));
        lines.push(format!(
            "replica    {}, {} changes behind ({} ms), {}/s applied, {by}",
            replica.phase.name(),
            grouped(replica.lag()),
            replica.lag_ms,
            rate(rates.replicated)
        ));
    }
    if let Some(pid) = now.backup_pid {
        lines.push(format!("backup     by pid {pid}"));
    }
    lines
}
