//! A snapshot as plain text: what `--once` prints.

use super::number::{bytes, percent, rate};
use super::objects::{objects, stuck};
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
