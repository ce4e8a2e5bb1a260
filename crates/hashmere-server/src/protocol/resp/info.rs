//! `INFO`, `TIME`, and the `HELP` of what is about keys.

use super::auth::VERSION;
use super::command::help_of;
use super::parse::Args;
use super::state::{Client, Step};
use crate::server::{now_ms, Server};
use crate::stats::counters::Totals;
use crate::turn::Turn;
use hashmere::Mode;
use hashmere_os::process;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A section: its name, and what writes it.
type Section = (&'static str, fn(&Server, &mut String));

/// The sections, in the order of Redis.
const SECTIONS: &[Section] = &[
    ("Server", of_server),
    ("Clients", of_clients),
    ("Memory", of_memory),
    ("Persistence", of_persistence),
    ("Stats", of_stats),
    ("Replication", of_replication),
    ("CPU", of_cpu),
    ("Modules", |_, _| {}),
    ("Errorstats", |_, _| {}),
    ("Cluster", |_, out| put(out, "cluster_enabled", 0)),
    ("Keyspace", of_keyspace),
];

fn put(out: &mut String, name: &str, value: impl std::fmt::Display) {
    // Writing to a string does not fail.
    let _ = write!(out, "{name}:{value}\r\n");
}

fn of_server(server: &Server, out: &mut String) {
    let uptime = server.started.elapsed().as_secs();
    put(out, "redis_version", VERSION);
    put(out, "redis_mode", "standalone");
    put(out, "hashmere_version", env!("CARGO_PKG_VERSION"));
    put(out, "hashmere_store", server.store.path().display());
    put(out, "os", "Linux");
    put(out, "arch_bits", 64);
    put(out, "multiplexing_api", "epoll");
    put(out, "process_id", process::pid());
    put(out, "server_time_usec", now_ms() * 1000);
    put(out, "uptime_in_seconds", uptime);
    put(out, "uptime_in_days", uptime / 86_400);
    put(out, "io_threads_active", u8::from(server.counters.len() > 1));
}

fn of_clients(server: &Server, out: &mut String) {
    put(out, "connected_clients", server.open.load(Ordering::Relaxed));
    put(out, "maxclients", server.config.connections);
    put(out, "blocked_clients", 0);
    put(out, "pubsub_clients", server.resp.hub.subscribers());
}

fn of_memory(server: &Server, out: &mut String) {
    let store = server.store.stats();
    put(out, "used_memory", store.bytes_live + store.bytes_dead);
    put(out, "used_memory_dataset", store.bytes_live);
    put(out, "used_memory_rss", store.bytes_allocated);
    put(out, "maxmemory", store.bytes_max);
    put(out, "maxmemory_policy", if store.mode == Mode::Cache { "allkeys-lru" } else { "noeviction" });
    put(out, "mem_allocator", "hashmere");
}

fn of_persistence(_: &Server, out: &mut String) {
    // There is nothing to load and nothing to save: the store is a file.
    for name in ["loading", "rdb_bgsave_in_progress", "aof_enabled", "aof_rewrite_in_progress"] {
        put(out, name, 0);
    }
}

fn of_stats(server: &Server, out: &mut String) {
    let (store, totals) = (server.store.stats(), Totals::of(&server.counters));
    put(out, "total_connections_received", totals.connections);
    put(out, "total_commands_processed", totals.commands);
    put(out, "total_net_input_bytes", totals.bytes_read);
    put(out, "total_net_output_bytes", totals.bytes_written);
    put(out, "rejected_connections", totals.rejected);
    put(out, "expired_keys", store.expiries);
    put(out, "evicted_keys", store.evictions);
    put(out, "keyspace_hits", totals.get_hits);
    put(out, "keyspace_misses", totals.get_misses);
    put(out, "pubsub_channels", server.resp.hub.channels(None).len());
    put(out, "pubsub_patterns", server.resp.hub.patterns());
    let others = server.others(&store);
    put(out, "local_hits", others.hits);
    put(out, "local_misses", others.misses);
    put(out, "local_sets", others.sets);
    put(out, "local_deletes", others.deletes);
}

fn of_replication(_: &Server, out: &mut String) {
    put(out, "role", "master");
    put(out, "connected_slaves", 0);
}

fn of_cpu(_: &Server, out: &mut String) {
    let usage = process::usage();
    let seconds = |time: Duration| format!("{}.{:06}", time.as_secs(), time.subsec_micros());
    put(out, "used_cpu_sys", seconds(usage.system));
    put(out, "used_cpu_user", seconds(usage.user));
}

fn of_keyspace(server: &Server, out: &mut String) {
    let keys = server.store.len();
    if keys > 0 {
        put(out, "db0", format_args!("keys={keys},expires=0,avg_ttl=0"));
    }
}

/// `INFO [section ...]`.
pub fn info(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let all = args.count() == 1
        || args.from(1).any(|word| {
            let word = word.to_ascii_lowercase();
            matches!(word.as_slice(), b"all" | b"default" | b"everything")
        });
    let mut text = String::new();
    for (name, write) in SECTIONS {
        if all || args.from(1).any(|word| word.eq_ignore_ascii_case(name.as_bytes())) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            // Writing to a string does not fail.
            let _ = write!(text, "# {name}\r\n");
            write(turn.server, &mut text);
        }
    }
    client.reply_to(turn).verbatim(&text);
    Step::Done
}

/// `TIME`.
pub fn time(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let reply = &mut client.reply_to(turn);
    reply.array(2);
    reply.bulk(since.as_secs().to_string().as_bytes());
    reply.bulk(since.subsec_micros().to_string().as_bytes());
    Step::Done
}

/// `MEMORY HELP`.
pub fn memory_help(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    help_of(client, turn, "memory");
    Step::Done
}

/// `OBJECT HELP`.
pub fn object_help(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    help_of(client, turn, "object");
    Step::Done
}
