//! `stats`: the general group, and what only this server has.

use super::counters::Totals;
use super::{put, Sink, VERSION};
use crate::server::{now_ms, Server};
use hashmere_os::process;
use std::sync::atomic::Ordering;

/// The numbers of a plain `stats`.
pub fn general(server: &Server, sink: &mut Sink<'_>) {
    process_numbers(server, sink);
    command_numbers(server, sink);
    let store = server.store.stats();
    let totals = Totals::of(&server.counters);
    put(sink, "limit_maxbytes", store.bytes_max);
    put(sink, "accepting_conns", u64::from(!server.stopping.load(Ordering::Relaxed)));
    put(sink, "listen_disabled_num", 0);
    put(sink, "time_in_listen_disabled_us", 0);
    put(sink, "threads", server.counters.len() as u64);
    put(sink, "conn_yields", totals.yields);
    put(sink, "hash_power_level", u64::from(store.index_slots.max(1).ilog2()));
    put(sink, "hash_bytes", store.segments_index * store.segment_bytes);
    put(sink, "hash_is_expanding", 0);
    for name in ["slab_reassign_rescues", "slab_reassign_chunk_rescues", "slab_reassign_evictions_nomem"] {
        put(sink, name, 0);
    }
    for name in ["slab_reassign_inline_reclaim", "slab_reassign_busy_items", "slab_reassign_busy_deletes"] {
        put(sink, name, 0);
    }
    put(sink, "slab_reassign_running", 0);
    put(sink, "slabs_moved", store.segments_cleaned);
    for name in ["lru_crawler_running", "lru_crawler_starts", "lru_maintainer_juggles"] {
        put(sink, name, 0);
    }
    put(sink, "malloc_fails", 0);
    let watch = server.watchers.figures();
    put(sink, "log_worker_dropped", 0);
    put(sink, "log_worker_written", watch.events);
    put(sink, "log_watcher_skipped", watch.skipped);
    put(sink, "log_watcher_sent", watch.sent);
    put(sink, "log_watchers", watch.watchers);
    put(sink, "unexpected_napi_ids", 0);
    put(sink, "round_robin_fallback", 0);
    put(sink, "bytes", store.bytes_live);
    put(sink, "curr_items", store.items);
    put(sink, "total_items", totals.stored);
    put(sink, "slab_global_page_pool", store.segments_free);
    put(sink, "expired_unfetched", 0);
    put(sink, "evicted_unfetched", 0);
    put(sink, "evicted_active", 0);
    put(sink, "evictions", store.evictions);
    put(sink, "reclaimed", store.expiries);
    for name in ["crawler_reclaimed", "crawler_items_checked", "lrutail_reflocked", "moves_to_cold", "moves_to_warm"] {
        put(sink, name, 0);
    }
    put(sink, "moves_within_lru", 0);
    put(sink, "direct_reclaims", 0);
    put(sink, "lru_bumps_dropped", 0);
}

fn process_numbers(server: &Server, sink: &mut Sink<'_>) {
    let totals = Totals::of(&server.counters);
    let usage = process::usage();
    let time = |time: std::time::Duration| format!("{}.{:06}", time.as_secs(), time.subsec_micros());
    put(sink, "pid", u64::from(process::pid()));
    put(sink, "uptime", server.started.elapsed().as_secs());
    put(sink, "time", now_ms() / 1000);
    sink("version", VERSION);
    sink("libevent", "none");
    put(sink, "pointer_size", 64);
    sink("rusage_user", &time(usage.user));
    sink("rusage_system", &time(usage.system));
    put(sink, "max_connections", server.config.connections as u64);
    put(sink, "curr_connections", server.open.load(Ordering::Relaxed) as u64);
    put(sink, "total_connections", totals.connections);
    put(sink, "rejected_connections", totals.rejected);
    put(sink, "connection_structures", server.open.load(Ordering::Relaxed) as u64);
    put(sink, "response_obj_oom", 0);
    put(sink, "response_obj_count", 0);
    put(sink, "response_obj_bytes", 0);
    put(sink, "read_buf_count", server.counters.len() as u64);
    put(sink, "read_buf_bytes", server.input.load(Ordering::Relaxed) as u64);
    put(sink, "read_buf_bytes_free", 0);
    put(sink, "read_buf_oom", 0);
    put(sink, "reserved_fds", 5 * server.counters.len() as u64);
}

fn command_numbers(server: &Server, sink: &mut Sink<'_>) {
    let totals = Totals::of(&server.counters);
    put(sink, "cmd_get", totals.cmd_get);
    put(sink, "cmd_set", totals.cmd_set);
    put(sink, "cmd_flush", totals.cmd_flush);
    put(sink, "cmd_touch", totals.cmd_touch);
    put(sink, "cmd_meta", totals.cmd_meta);
    put(sink, "get_hits", totals.get_hits);
    put(sink, "get_misses", totals.get_misses);
    put(sink, "get_expired", totals.get_expired);
    put(sink, "get_flushed", totals.get_flushed);
    put(sink, "delete_misses", totals.delete_misses);
    put(sink, "delete_hits", totals.delete_hits);
    put(sink, "incr_misses", totals.incr_misses);
    put(sink, "incr_hits", totals.incr_hits);
    put(sink, "decr_misses", totals.decr_misses);
    put(sink, "decr_hits", totals.decr_hits);
    put(sink, "cas_misses", totals.cas_misses);
    put(sink, "cas_hits", totals.cas_hits);
    put(sink, "cas_badval", totals.cas_badval);
    put(sink, "touch_hits", totals.touch_hits);
    put(sink, "touch_misses", totals.touch_misses);
    put(sink, "store_too_large", totals.too_large);
    put(sink, "store_no_memory", totals.no_memory);
    put(sink, "auth_cmds", totals.auth_cmds);
    put(sink, "auth_errors", totals.auth_errors);
    put(sink, "idle_kicks", totals.idle_kicks);
    put(sink, "bytes_read", totals.bytes_read);
    put(sink, "bytes_written", totals.bytes_written);
}

/// `stats hashmere`: the store, and the traffic of local processes apart from that over sockets.
pub fn hashmere(server: &Server, sink: &mut Sink<'_>) {
    let store = server.store.stats();
    let totals = Totals::of(&server.counters);
    let path = server.store.path().display().to_string();
    sink("store", &path);
    sink("mode", if store.mode == hashmere::Mode::Cache { "cache" } else { "strict" });
    sink("event_loop", server.config.event_loop.name());
    put(sink, "items", store.items);
    put(sink, "bytes_live", store.bytes_live);
    put(sink, "bytes_dead", store.bytes_dead);
    put(sink, "bytes_free", store.bytes_free);
    put(sink, "bytes_file", store.bytes_file);
    put(sink, "bytes_allocated", store.bytes_allocated);
    put(sink, "bytes_max", store.bytes_max);
    put(sink, "no_space_since_ms", store.no_space_since_ms);
    put(sink, "clients", store.clients.len() as u64);
    put(sink, "processes_other", other_processes(&store));
    put(sink, "socket_gets", totals.cmd_get);
    put(sink, "socket_hits", totals.get_hits);
    put(sink, "socket_misses", totals.get_misses);
    put(sink, "socket_stored", totals.stored);
    put(sink, "socket_deletes", totals.delete_hits);
    put(sink, "lease_grants", totals.lease_grants);
    put(sink, "lease_waits", totals.lease_waits);
    put(sink, "lease_stale", totals.lease_stale);
    let others = server.others(&store);
    put(sink, "local_hits", others.hits);
    put(sink, "local_misses", others.misses);
    put(sink, "local_sets", others.sets);
    put(sink, "local_deletes", others.deletes);
    put(sink, "expiries", store.expiries);
    put(sink, "evictions", store.evictions);
    put(sink, "lock_waits", store.lock_waits);
    put(sink, "takeovers", store.takeovers);
}

fn other_processes(store: &hashmere::Stats) -> u64 {
    let mut pids: Vec<u32> = store.clients.iter().filter(|client| !client.own).map(|client| client.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids.len() as u64
}
