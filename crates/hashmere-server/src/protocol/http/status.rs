//! The figures of the store and of the server as JSON.

use super::figures;
use super::json::Object;
use super::reply::{Answer, JSON};
use crate::metrics;
use crate::server::Server;
use crate::stats::counters::Totals;
use crate::turn::Turn;
use hashmere::{ClientStats, Mode, Stats};
use hashmere_engine::StoreHandle;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Writes the whole reply.
pub fn run(turn: &mut Turn<'_>, answer: &Answer<'_>) {
    let body = of(turn.server).to_string();
    answer.whole(&mut turn.out.bytes, 200, JSON, body.as_bytes());
}

fn of(server: &Server) -> Value {
    let recent = server.recent_stats();
    let stats = &recent.stats;
    let mut store = Object::new();
    store.insert("name".into(), metrics::name_of(&server.store).into());
    store.insert("path".into(), server.store.path().display().to_string().into());
    store.insert("mode".into(), if stats.mode == Mode::Cache { "cache" } else { "strict" }.into());
    for figure in metrics::STORE {
        store.insert(figure.name.into(), (figure.read)(stats).into());
    }
    let mut counters = Object::new();
    Totals::of(&server.counters).each(|name, _, value| drop(counters.insert(name.into(), value.into())));
    json!({
        "time_ms": recent.made_ms,
        "version": env!("CARGO_PKG_VERSION"),
        "write": server.config.http.write,
        "store": store,
        "processes": processes(stats),
        "regions": regions(server),
        "pools": figures::pools(&recent.seen),
        "logs": figures::logs(&recent.seen),
        "replica": figures::replica(&recent.seen),
        "lookups": recent.lookups.map(figures::lookups),
        "feed": stats.feed.map(|feed| json!({
            "position": feed.position, "oldest": feed.oldest, "bytes": feed.bytes, "values": feed.values,
            "streams": server.streams.figures().http_streams,
        })),
        "server": {
            "pid": hashmere_os::process::pid(),
            "uptime_s": server.started.elapsed().as_secs(),
            "connections": server.open.load(Ordering::Relaxed),
            "connections_max": server.config.connections,
            "counters": counters,
        },
    })
}

/// The processes that have the store open, each with what its threads did.
fn processes(stats: &Stats) -> Vec<Value> {
    let mut by_process: BTreeMap<(u32, &str, bool), Vec<&ClientStats>> = BTreeMap::new();
    for client in &stats.clients {
        by_process.entry((client.pid, &client.name, client.own)).or_default().push(client);
    }
    let shown = by_process.into_iter().map(|((pid, name, own), threads)| {
        let sum = |of: fn(&ClientStats) -> u64| threads.iter().map(|client| of(client)).fold(0u64, u64::wrapping_add);
        json!({
            "pid": pid, "name": name, "own": own, "threads": threads.len(),
            "since_ms": threads.iter().map(|client| client.since_ms).min(),
            "hits": sum(|client| client.hits), "misses": sum(|client| client.misses),
            "sets": sum(|client| client.sets), "deletes": sum(|client| client.deletes),
            "pins": sum(|client| client.pins),
        })
    });
    shown.collect()
}

/// Pools of queues, and logs.
fn regions(server: &Server) -> Vec<Value> {
    let regions = server.store.shared().regions();
    let shown = regions.iter().map(|region| {
        json!({
            "name": String::from_utf8_lossy(&region.name),
            "kind": metrics::kind_of(region.kind),
            "bytes": region.bytes_taken,
            "created_ms": region.created_ms,
        })
    });
    shown.collect()
}
