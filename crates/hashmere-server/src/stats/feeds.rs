//! Part of `stats hashmere`: the changes that the store keeps and who follows them here, and how far it is if it is a
//! replica.

use super::{put, Sink};
use crate::server::{now_ms, Server};
use hashmere_replica::ReplicaPhase;

/// The store's feed, and its streams to clients of this server.
pub fn feed(server: &Server, sink: &mut Sink<'_>) {
    let yes = |value: bool| if value { "yes" } else { "no" };
    let info = hashmere_feed::info(&server.store);
    sink("feed_enabled", yes(info.is_some()));
    if let Some(info) = info {
        sink("feed_values", yes(info.values));
        put(sink, "feed_bytes", info.bytes);
        put(sink, "feed_oldest", info.oldest);
        put(sink, "feed_position", info.position);
    }
    let figures = server.streams.figures();
    put(sink, "feed_streams", figures.streams);
    put(sink, "feed_events", figures.events);
}

/// How far the store is behind the one that it follows, or followed.
pub fn replica(server: &Server, sink: &mut Sink<'_>) {
    // A place that cannot be looked up is none: the rest of the figures is given all the same.
    let Ok(Some(status)) = hashmere_replica::status(&server.store) else { return };
    let yes = |value: bool| if value { "yes" } else { "no" };
    sink("replica_running", yes(status.pid.is_some()));
    sink("replica_live", yes(status.phase == ReplicaPhase::Live));
    put(sink, "replica_position", status.position);
    put(sink, "replica_source_position", status.source_position);
    put(sink, "replica_lag", status.lag());
    put(sink, "replica_lag_ms", status.lag_ms_at(now_ms()));
    put(sink, "replica_changes", status.changes);
    put(sink, "replica_copied", status.copied);
    put(sink, "replica_updated_ms", status.updated_ms);
}
