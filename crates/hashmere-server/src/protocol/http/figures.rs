//! Queues, logs, the replica, hot and big keys as JSON, for the dashboard.

use super::head::Head;
use super::json::Object;
use super::reply::{Answer, Refusal, JSON};
use crate::asked::TOP;
use crate::turn::Turn;
use hashmere_observe::{
    BigKeys, Count, Estimate, HotKey, HotKeys, Hottest, Large, Line, LookupTimes, Snapshot, TailLine,
};
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

/// What look-ups of keys took.
pub(super) fn lookups(times: LookupTimes) -> Value {
    json!({
        "count": times.count, "p50_ns": times.p50_ns, "p90_ns": times.p90_ns, "p99_ns": times.p99_ns,
        "max_ns": times.max_ns, "clock_ns": times.clock_ns,
    })
}

/// Writes the whole reply to a question for what takes the room. With `new` the keys are counted from the first on,
/// with `details` the reply says more than how far that is.
pub(super) fn big(turn: &mut Turn<'_>, head: &Head<'_>, answer: &Answer<'_>) -> Result<(), Refusal> {
    let server = turn.server;
    let (again, detailed) = (head.query_value("new")?.is_some(), head.query_value("details")?.is_some());
    let items = server.store.len();
    let show = |keys: &BigKeys| {
        let (summary, done) = (keys.summary(), keys.cursor().is_none());
        let mut shown = Object::new();
        shown.insert("done".into(), done.into());
        shown.insert("items".into(), items.into());
        shown.insert("keys".into(), summary.keys().into());
        shown.insert("bytes".into(), summary.total().bytes.into());
        if done || detailed {
            shown.insert("largest".into(), summary.largest().iter().map(large).collect());
            let size = |(to, count): (u64, Count)| json!({"to": to, "keys": count.keys, "bytes": count.bytes});
            shown.insert("sizes".into(), summary.sizes().map(size).collect());
            shown.insert("prefixes".into(), summary.prefixes(TOP).iter().map(prefix).collect());
        }
        Value::from(shown).to_string()
    };
    let body = server.counting.ask(&server.store, again, show).map_err(|error| Refusal::new(500, error.to_string()))?;
    answer.whole(&mut turn.out.bytes, 200, JSON, body.as_bytes());
    Ok(())
}

fn large(large: &Large) -> Value {
    let mut object = Object::new();
    super::json::put_bytes(&mut object, "key", &large.key);
    object.insert("bytes".into(), large.bytes.into());
    object.insert("value_len".into(), large.value_len.into());
    object.into()
}

fn prefix(line: &Line) -> Value {
    let mut object = Object::new();
    if let Some(prefix) = &line.prefix {
        super::json::put_bytes(&mut object, "prefix", prefix);
    }
    object.insert("level".into(), line.level.into());
    object.insert("keys".into(), line.count.keys.into());
    object.insert("bytes".into(), line.count.bytes.into());
    object.into()
}

/// Writes the whole reply to a question for the last lines of a log: those behind the position `after`.
pub(super) fn log(turn: &mut Turn<'_>, head: &Head<'_>, answer: &Answer<'_>) -> Result<(), Refusal> {
    const NOT_FOUND: i32 = 70;
    let server = turn.server;
    let name = head.query_value("name")?.ok_or_else(|| Refusal::new(400, "`name` is the name of a log"))?;
    let name = String::from_utf8(name).map_err(|_| Refusal::new(400, "`name` is not UTF-8"))?;
    let after = head.query_number("after")?;
    let shown = server.tails.ask(&server.store, &name, |tail| {
        // As text: the numbers of JSON are exact up to 2^53 in many languages.
        let line = |line: &TailLine| match serde_json::from_slice::<Value>(&line.json) {
            Ok(text) => json!({"position": line.position.to_string(), "line": text}),
            Err(_) => json!({"position": line.position.to_string(), "line": null}),
        };
        json!({"lines": tail.lines(after).map(line).collect::<Vec<_>>(), "missed_bytes": tail.missed_bytes()})
    });
    let body = shown.map_err(|(code, text)| Refusal::new(if code == NOT_FOUND { 404 } else { 503 }, text))?;
    answer.whole(&mut turn.out.bytes, 200, JSON, body.to_string().as_bytes());
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
