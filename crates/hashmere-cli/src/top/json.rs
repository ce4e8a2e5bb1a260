//! A snapshot and its rates as JSON.

use hashmere_observe::{Figures, OperationRates, Process, Rates, SegmentUse, Snapshot};
use serde_json::{json, Map, Value};

/// All that is known of a store.
pub fn of(now: &Snapshot, rates: &Rates) -> Value {
    let memory = &now.memory;
    let uses: Map<String, Value> =
        SegmentUse::ALL.into_iter().map(|use_| (use_.name().to_string(), now.segments.count(use_).into())).collect();
    let processes: Vec<Value> = now.processes.iter().zip(&rates.processes).map(|(p, r)| process(p, r)).collect();
    json!({
        "path": now.path.to_string_lossy(), "name": now.name(), "taken_ms": now.taken_ms, "seconds": rates.seconds,
        "mode": format!("{:?}", now.mode).to_lowercase(), "durable": now.durable, "poisoned": now.poisoned,
        "no_space_since_ms": now.no_space_since_ms, "syncs": now.syncs, "clears": now.generation.saturating_sub(1),
        "items": now.items, "items_rate": rates.items,
        "memory": {
            "live": memory.live, "dead": memory.dead, "index": memory.index, "regions": memory.regions,
            "other": memory.other, "free": memory.free, "total": memory.total, "file": memory.file,
            "allocated": memory.allocated, "allocated_rate": rates.allocated, "max": memory.max,
        },
        "segment_bytes": now.segments.bytes, "segments": uses,
        "totals": figures(&now.totals), "rates": operations(&rates.total), "processes": processes,
        "pools": pools(now, rates), "logs": logs(now, rates),
        "feed": now.feed.map(|feed| json!({
            "number": feed.number, "position": feed.position, "oldest": feed.oldest, "bytes": feed.bytes,
            "values": feed.values, "rate": rates.feed,
        })),
        "replica": now.replica.map(|replica| json!({
            "phase": replica.phase.name(), "pid": replica.pid, "position": replica.position,
            "source_position": replica.source_position, "lag": replica.lag(), "lag_ms": replica.lag_ms,
            "changes": replica.changes, "rate": rates.replicated, "updated_ms": replica.updated_ms,
        })),
        "backup_pid": now.backup_pid,
    })
}

fn figures(f: &Figures) -> Value {
    json!({
        "hits": f.hits, "misses": f.misses, "sets": f.sets, "deletes": f.deletes, "lock_waits": f.lock_waits,
        "takeovers": f.takeovers, "splits": f.splits, "cleaned": f.cleaned, "moved": f.moved, "evicted": f.evicted,
        "expired": f.expired, "retries": f.retries,
    })
}

fn operations(r: &OperationRates) -> Value {
    json!({
        "hits": r.hits, "misses": r.misses, "sets": r.sets, "deletes": r.deletes, "lock_waits": r.lock_waits,
        "takeovers": r.takeovers, "splits": r.splits, "cleaned": r.cleaned, "moved": r.moved, "evicted": r.evicted,
        "expired": r.expired, "retries": r.retries, "hit_ratio": r.hit_ratio(),
    })
}

fn process(process: &Process, rates: &OperationRates) -> Value {
    let pins: Vec<Value> = process.pins.iter().map(|pin| json!({"segment": pin.segment, "views": pin.views})).collect();
    json!({
        "pid": process.pid, "name": process.name, "command": process.command, "state": process.state.name(),
        "since_ms": process.since_ms, "slots": process.slots, "busy": process.busy, "locks": process.locks,
        "transactions": process.transactions, "is_stuck_holder": process.is_stuck_holder(),
        "held_back": process.held_back(), "pins": pins, "totals": figures(&process.figures), "rates": operations(rates),
    })
}

fn pools(now: &Snapshot, rates: &Rates) -> Vec<Value> {
    let queue = |pool: &str, queue: &hashmere_queue::QueueStats| {
        let pushed = rates.pushed.get(&(pool.to_string(), queue.name.clone())).copied().unwrap_or(0.0);
        json!({
            "name": queue.name, "kind": format!("{:?}", queue.kind).to_lowercase(), "len": queue.len, "bound": queue.bound,
            "pushed": queue.pushed, "rate": pushed, "has_sleepers": queue.has_sleepers,
        })
    };
    let pool = |pool: &hashmere_observe::PoolSnapshot| {
        let stats = &pool.stats;
        let queues: Vec<Value> = stats.queues.iter().map(|one| queue(&pool.name, one)).collect();
        json!({
            "name": pool.name, "elements": stats.elements, "element_bytes": stats.element_bytes, "held": stats.held,
            "endpoints": stats.endpoints, "recovered": stats.recovered, "queues": queues,
        })
    };
    now.pools.iter().map(pool).collect()
}

fn logs(now: &Snapshot, rates: &Rates) -> Vec<Value> {
    let log = |log: &hashmere_observe::LogSnapshot| {
        let stats = &log.stats;
        let rate = |map: &std::collections::BTreeMap<String, f64>| map.get(&log.name).copied().unwrap_or(0.0);
        json!({
            "name": log.name, "lines": stats.lines, "lost": stats.lost, "waiting_bytes": stats.waiting_bytes,
            "undelivered_bytes": stats.undelivered_bytes, "rings_used": stats.rings_used, "drainer": stats.drainer,
            "rate": rate(&rates.lines), "lost_rate": rate(&rates.lost),
        })
    };
    now.logs.iter().map(log).collect()
}
