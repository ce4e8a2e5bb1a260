//! Queues, logs, the replica and hot keys as JSON, for the dashboard.

use super::json::Object;
use super::reply::{Answer, Refusal, JSON};
use crate::turn::Turn;
use hashmere_observe::{Estimate, HotKey, HotKeys, Hottest, Snapshot};
use serde_json::{json, Value};

/// Keys of each kind that are shown.
const HOTTEST: usize = 20;

/// What is in the pools: the length of each queue.
pub(super) fn pools(seen: &Snapshot) -> Vec<Value> {
    let pool = |pool: &hashmere_observe::PoolSnapshot| {
        let queues: Vec<Value> = pool
            .stats
            .queues
            .iter()
            .map(|queue| json!({"name": queue.name, "len": queue.len, "bound": queue.bound, "pushed": queue.pushed}))
            .collect();
        json!({"name": pool.name, "elements": pool.stats.elements, "held": pool.stats.held, "queues": queues})
    };
    seen.pools.iter().map(pool).collect()
}

/// What the logs have drained, lost and not drained yet.
pub(super) fn logs(seen: &Snapshot) -> Vec<Value> {
    let log = |log: &hashmere_observe::LogSnapshot| {
        json!({
            "name": log.name, "lines": log.stats.lines, "lost": log.stats.lost,
            "waiting_bytes": log.stats.waiting_bytes, "drainer": log.stats.drainer,
        })
    };
    seen.logs.iter().map(log).collect()
}

/// How far this store is behind the one that it follows.
pub(super) fn replica(seen: &Snapshot) -> Option<Value> {
    seen.replica.map(|replica| {
        json!({
            "phase": replica.phase.name(), "pid": replica.pid, "lag": replica.lag(), "lag_ms": replica.lag_ms,
            "changes": replica.changes,
        })
    })
}

/// Writes the whole reply to a question for hot keys.
pub(super) fn hot(turn: &mut Turn<'_>, answer: &Answer<'_>) -> Result<(), Refusal> {
    let server = turn.server;
    let hot = server.hot.ask(&server.store).map_err(|error| Refusal::new(503, error))?;
    let body = hot.map_or(json!({"seconds": 0}), |hot| of(&hot)).to_string();
    answer.whole(&mut turn.out.bytes, 200, JSON, body.as_bytes());
    Ok(())
}

fn of(hot: &HotKeys) -> Value {
    json!({
        "seconds": hot.seconds, "samples": hot.samples, "lost": hot.lost, "reads": hottest(&hot.reads),
        "writes": hottest(&hot.writes),
    })
}

fn hottest(hottest: &Hottest) -> Value {
    let keys: Vec<Value> = hottest.keys.iter().take(HOTTEST).map(key).collect();
    json!({"total": estimate(&hottest.total), "keys": keys})
}

fn key(hot: &HotKey) -> Value {
    let mut object = Object::new();
    super::json::put_bytes(&mut object, "key", &hot.key);
    object.insert("key_len".into(), hot.key_len.into());
    object.insert("rate".into(), estimate(&hot.rate));
    object.insert("share".into(), hot.share.into());
    object.insert("absent".into(), hot.absent.into());
    object.into()
}

fn estimate(estimate: &Estimate) -> Value {
    json!({"per_second": estimate.value, "low": estimate.low, "high": estimate.high, "samples": estimate.samples})
}
