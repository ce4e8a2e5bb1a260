//! `stats settings`.

use super::{put, Sink, VERSION};
use crate::config::Dialects;
use crate::server::Server;
use std::sync::atomic::Ordering;

/// What the server was told, under memcached's names.
pub fn settings(server: &Server, sink: &mut Sink<'_>) {
    let config = &server.config;
    let yes = |value: bool| if value { "yes" } else { "no" };
    put(sink, "maxbytes", server.store.stats().bytes_max);
    put(sink, "maxconns", config.connections as u64);
    put(sink, "tcpport", config.listen.first().map_or(0, |address| u64::from(address.port())));
    put(sink, "udpport", 0);
    let addresses: Vec<String> = config.listen.iter().map(|address| address.ip().to_string()).collect();
    sink("inter", &addresses.join(","));
    put(sink, "verbosity", u64::from(server.verbosity.load(Ordering::Relaxed)));
    put(sink, "oldest", 0);
    sink("evictions", if server.store.stats().mode == hashmere::Mode::Cache { "on" } else { "off" });
    sink("domain_socket", &config.unix.as_ref().map_or("NULL".into(), |path| path.display().to_string()));
    sink("umask", &format!("{:o}", config.unix_mode));
    sink("growth_factor", "1.00");
    put(sink, "chunk_size", 8);
    put(sink, "num_threads", config.threads as u64);
    put(sink, "num_threads_per_udp", 0);
    sink("stat_key_prefix", ":");
    sink("detail_enabled", "no");
    put(sink, "reqs_per_event", 0);
    sink("cas_enabled", yes(config.cas));
    put(sink, "tcp_backlog", config.backlog as u64);
    sink(
        "binding_protocol",
        match config.dialects {
            Dialects::Auto => "auto-negotiate",
            Dialects::Text => "ascii",
            Dialects::Binary => "binary",
        },
    );
    sink("auth_enabled_sasl", yes(config.sasl));
    sink("auth_enabled_ascii", &config.accounts.as_ref().map_or("no".into(), |path| path.display().to_string()));
    put(sink, "item_size_max", server.config.item_max);
    sink("maxconns_fast", "yes");
    put(sink, "hashpower_init", 0);
    for name in ["slab_reassign", "lru_crawler", "lru_maintainer_thread", "lru_segmented", "slab_chunk_max"] {
        sink(name, "no");
    }
    put(sink, "slab_automove", 0);
    put(sink, "idle_timeout", config.idle.map_or(0, |idle| idle.as_secs()));
    sink("flush_enabled", yes(config.may_flush));
    sink("dump_enabled", yes(config.may_dump));
    sink("watch_enabled", "no");
    sink("hash_algorithm", "rapidhash");
    sink("ssl_enabled", yes(config.tls.is_some()));
    sink("version", VERSION);
}
