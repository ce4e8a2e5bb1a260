//! Lines of `watch` about connections and evictions.

use super::{CONNECTIONS, EVICTIONS};
use crate::peers::Peer;
use crate::server::{now_ms, Server};
use hashmere_engine::StoreHandle;
use std::io::Write;

/// A connection was opened.
pub fn opened(server: &Server, worker: usize, peer: &Peer) {
    connection(server, worker, peer, "conn_new", None);
}

/// A connection is closed, for this reason.
pub fn closed(server: &Server, worker: usize, peer: &Peer, reason: &str) {
    connection(server, worker, peer, "conn_close", Some(reason));
}

fn connection(server: &Server, worker: usize, peer: &Peer, event: &str, reason: Option<&str>) {
    if !server.watchers.wants(CONNECTIONS) {
        return;
    }
    server.watchers.send(CONNECTIONS, Some(worker), |line| {
        let (ip, port, transport) = peer.parts();
        // Writing to a vector does not fail.
        let _ = write!(line, "{event} rip={ip} rport={port} transport={transport}");
        if let Some(reason) = reason {
            let _ = write!(line, " reason={reason}");
        }
        let _ = write!(line, " cfd={}", peer.id);
    });
}

/// Sends watchers the evictions of this process since the last call. `noting`: whether the store records them for this
/// event loop.
pub fn evictions(server: &Server, worker: usize, noting: &mut bool) {
    let wanted = server.watchers.wants(EVICTIONS);
    if !wanted && !*noting {
        return;
    }
    let engine = server.store.shared().engine();
    if wanted != *noting {
        engine.record_evictions(wanted);
        *noting = wanted;
    }
    for evicted in engine.drain_evictions() {
        server.watchers.send(EVICTIONS, Some(worker), |line| {
            let now = now_ms();
            let seen = server.access.lookup(evicted.uid);
            let ttl = evicted.expires_at_ms.map_or(-1, |at| (at / 1000) as i64 - (now / 1000) as i64);
            line.extend_from_slice(b"eviction");
            super::key(&evicted.key, line);
            let fetched = if seen.fetched { "yes" } else { "no" };
            let idle = (now / 1000).saturating_sub(seen.last);
            let _ = write!(line, " fetch={fetched} ttl={ttl} la={idle} clsid=1 size={}", evicted.value_len);
        });
    }
}
