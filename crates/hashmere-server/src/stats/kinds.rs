//! `stats items`, `stats slabs`, `stats conns`. A store has no slabs; it shows as one class that holds everything.

use super::{put, Sink};
use crate::server::Server;
use std::sync::atomic::Ordering;

/// Items by class.
pub fn items(server: &Server, sink: &mut Sink<'_>) {
    let store = server.store.stats();
    let totals = super::counters::Totals::of(&server.counters);
    if store.items == 0 {
        return;
    }
    put(sink, "items:1:number", store.items);
    for name in ["hot", "warm", "cold", "temp"] {
        let number = if name == "cold" { store.items } else { 0 };
        put(sink, &format!("items:1:number_{name}"), number);
    }
    put(sink, "items:1:age_hot", 0);
    put(sink, "items:1:age_warm", 0);
    put(sink, "items:1:age", 0);
    put(sink, "items:1:mem_requested", store.bytes_live);
    put(sink, "items:1:evicted", store.evictions);
    for name in ["evicted_nonzero", "evicted_time", "outofmemory", "tailrepairs"] {
        put(sink, &format!("items:1:{name}"), 0);
    }
    put(sink, "items:1:reclaimed", store.expiries);
    for name in ["expired_unfetched", "evicted_unfetched", "evicted_active", "crawler_reclaimed"] {
        put(sink, &format!("items:1:{name}"), 0);
    }
    for name in ["crawler_items_checked", "lrutail_reflocked", "moves_to_cold", "moves_to_warm", "moves_within_lru"] {
        put(sink, &format!("items:1:{name}"), 0);
    }
    put(sink, "items:1:direct_reclaims", 0);
    for name in ["hot", "warm", "cold", "temp"] {
        put(sink, &format!("items:1:hits_to_{name}"), if name == "cold" { totals.get_hits } else { 0 });
    }
}

/// Memory by class: a chunk is eight bytes, a page is a segment.
pub fn slabs(server: &Server, sink: &mut Sink<'_>) {
    const CHUNK: u64 = 8;
    let store = server.store.stats();
    let totals = super::counters::Totals::of(&server.counters);
    let pages = store.segments_log + store.segments_large;
    let chunks = pages * store.segment_bytes / CHUNK;
    let used = store.bytes_live / CHUNK;
    if store.items > 0 {
        put(sink, "1:chunk_size", CHUNK);
        put(sink, "1:chunks_per_page", store.segment_bytes / CHUNK);
        put(sink, "1:total_pages", pages);
        put(sink, "1:total_chunks", chunks);
        put(sink, "1:used_chunks", used);
        put(sink, "1:free_chunks", chunks.saturating_sub(used));
        put(sink, "1:free_chunks_end", store.bytes_free / CHUNK);
        put(sink, "1:mem_requested", store.bytes_live);
        put(sink, "1:get_hits", totals.get_hits);
        put(sink, "1:cmd_set", totals.cmd_set);
        put(sink, "1:delete_hits", totals.delete_hits);
        put(sink, "1:incr_hits", totals.incr_hits);
        put(sink, "1:decr_hits", totals.decr_hits);
        put(sink, "1:cas_hits", totals.cas_hits);
        put(sink, "1:cas_badval", totals.cas_badval);
        put(sink, "1:touch_hits", totals.touch_hits);
    }
    put(sink, "active_slabs", u64::from(store.items > 0));
    put(sink, "total_malloced", store.bytes_allocated);
}

/// The sockets that listen, and open connections.
pub fn connections(server: &Server, sink: &mut Sink<'_>) {
    let now = crate::server::now_ms() / 1000;
    for peer in server.peers.list() {
        sink(&format!("{}:addr", peer.id), &peer.address);
        if !peer.listener.is_empty() {
            sink(&format!("{}:listen_addr", peer.id), &peer.listener);
        }
        sink(&format!("{}:state", peer.id), peer.state().name());
        let quiet = now.saturating_sub(peer.active.load(Ordering::Relaxed));
        put(sink, &format!("{}:secs_since_last_cmd", peer.id), quiet);
    }
}
