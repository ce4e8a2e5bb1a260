//! A snapshot as plain text: what `--once` prints.

use super::number::{bytes, percent, rate};
use super::view::store::stuck;
use crate::cmd::Outcome;
use crate::output::Output;
use crate::text::grouped;
use hashmere_observe::{Rates, SegmentUse, Snapshot};

/// Writes all that is known of a store.
pub fn write(now: &Snapshot, rates: &Rates, output: &mut Output) -> Outcome {
    let total = &rates.total;
    let mode = format!("{:?}", now.mode).to_lowercase();
    let durable = if now.durable { ", durable" } else { "" };
    output.line(format!("store      {} ({mode}{durable})", now.path.display()))?;
    output.line(format!("keys       {} ({}/s)", grouped(now.items), rate(rates.items)))?;
    output.line(format!(
        "reads      {}/s, {} hit, {}/s repeated",
        rate(total.reads()),
        percent(total.hit_ratio()),
        rate(total.retries)
    ))?;
    output.line(format!(
        "writes     {}/s sets, {}/s deletes; lock waits {}/s, {} taken over",
        rate(total.sets),
        rate(total.deletes),
        rate(total.lock_waits),
        grouped(now.totals.takeovers)
    ))?;
    output.line(format!(
        "cleaning   {}/s segments, {}/s records moved, {}/s evicted, {}/s expired",
        rate(total.cleaned),
        rate(total.moved),
        rate(total.evicted),
        rate(total.expired)
    ))?;
    let memory = &now.memory;
    output.line(format!(
        "memory     {} live, {} dead, {} index, {} regions, {} other, {} free; {} taken",
        bytes(memory.live),
        bytes(memory.dead),
        bytes(memory.index),
        bytes(memory.regions),
        bytes(memory.other),
        bytes(memory.free),
        bytes(memory.allocated)
    ))?;
    let uses = SegmentUse::ALL.into_iter().filter(|use_| now.segments.count(*use_) != 0);
    let uses: Vec<_> =
        uses.map(|use_| format!("{} {}", now.segments.count(use_), use_.name().replace('_', " "))).collect();
    output.line(format!(
        "segments   {} of {}: {}",
        now.segments.map.len(),
        bytes(now.segments.bytes),
        uses.join(", ")
    ))?;
    for line in objects(now, rates) {
        output.line(line)?;
    }
    for process in now.stuck_holders() {
        output.line(stuck(process))?;
    }
    output.line(format!("processes  {}", now.processes.len()))?;
    if !now.processes.is_empty() {
        let [pid, hit, miss, set, delete, wait] = ["pid", "hit/s", "miss/s", "set/s", "delete/s", "wait/s"];
        output.line(format!(
            "  {pid:>8} {hit:>8} {miss:>8} {set:>8} {delete:>8} {wait:>8} views threads state   command"
        ))?;
    }
    for (process, rates) in now.processes.iter().zip(&rates.processes) {
        output.line(format!(
            "  {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>5} {:>7} {:<7} {}",
            process.pid,
            rate(rates.hits),
            rate(rates.misses),
            rate(rates.sets),
            rate(rates.deletes),
            rate(rates.lock_waits),
            process.views(),
            process.slots.len(),
            process.state.name(),
            process.command
        ))?;
    }
    Ok(())
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
