//! `stats settings`.

use super::{put, Sink, VERSION};
use crate::config::{Address, Protocol};
use crate::server::Server;
use std::sync::atomic::Ordering;

/// The options of the server, under memcached's names.
pub fn settings(server: &Server, sink: &mut Sink<'_>) {
    let config = &server.config;
    let yes = |value: bool| if value { "yes" } else { "no" };
    put(sink, "maxbytes", server.store.stats().bytes_max);
    put(sink, "maxconns", config.connections as u64);
    let (mut tcp, mut unix) = (Vec::new(), None);
    for endpoint in config.for_memcached() {
        match &endpoint.address {
            Address::Tcp(address) => tcp.push(address),
            Address::Unix(path) => unix = Some(path),
        }
    }
    put(sink, "tcpport", tcp.first().map_or(0, |address| u64::from(address.port())));
    put(sink, "udpport", 0);
    let addresses: Vec<String> = tcp.iter().map(|address| address.ip().to_string()).collect();
    sink("inter", &addresses.join(","));
    put(sink, "verbosity", u64::from(server.verbosity.load(Ordering::Relaxed)));
    put(sink, "oldest", 0);
    sink("evictions", if server.store.stats().mode == hashmere::Mode::Cache { "on" } else { "off" });
    sink("domain_socket", &unix.map_or("NULL".into(), |path| path.display().to_string()));
    sink("umask", &format!("{:o}", config.unix_mode));
    sink("growth_factor", "1.00");
    put(sink, "chunk_size", 8);
    put(sink, "num_threads", config.threads as u64);
    put(sink, "num_threads_per_udp", 0);
    sink("event_loop", config.event_loop.name());
    sink("stat_key_prefix", &char::from(server.detail.delimiter).to_string());
    sink("detail_enabled", yes(server.detail.is_on()));
    put(sink, "reqs_per_event", 0);
    sink("cas_enabled", yes(config.cas));
    put(sink, "tcp_backlog", config.backlog as u64);
    sink(
        "binding_protocol",
        match config.for_memcached().next().map_or(config.inherited_protocol, |endpoint| endpoint.protocol) {
            Protocol::Text => "ascii",
            Protocol::Binary => "binary",
            _ => "auto-negotiate",
        },
    );
    sink("auth_enabled_sasl", yes(config.sasl));
    sink("auth_enabled_ascii", &config.accounts.as_ref().map_or("no".into(), |path| path.display().to_string()));
    put(sink, "item_size_max", server.config.item_max);
    sink("maxconns_fast", "yes");
    put(sink, "hashpower_init", 0);
    sink("shutdown_command", yes(config.may_shutdown));
    absent(sink);
    put(sink, "idle_timeout", config.idle.map_or(0, |idle| idle.as_secs()));
    put(sink, "lease_time", config.lease_time);
    sink("flush_enabled", yes(config.may_flush));
    sink("dump_enabled", yes(config.may_dump));
    sink("watch_enabled", yes(config.may_watch));
    sink("hash_algorithm", "rapidhash");
    sink("ssl_enabled", yes(config.tls.is_some()));
    tls(server, sink);
    sink("version", VERSION);
}

/// Settings of memcached's slabs, lists, hash table and second storage: dashboards ask for them by name.
fn absent(sink: &mut Sink<'_>) {
    const OFF: &[&str] =
        &["slab_reassign", "lru_crawler", "lru_maintainer_thread", "lru_segmented", "temp_lru", "track_sizes"];
    const ZERO: &[&str] = &[
        "slab_automove",
        "slab_automove_window",
        "slab_chunk_max",
        "lru_crawler_sleep",
        "lru_crawler_tocrawl",
        "tail_repair_time",
        "hot_lru_pct",
        "warm_lru_pct",
        "temporary_ttl",
        "worker_logbuf_size",
        "read_buf_mem_limit",
        "ext_item_size",
        "ext_item_age",
        "ext_low_ttl",
        "ext_recache_rate",
        "ext_wbuf_size",
        "ext_compact_under",
        "ext_drop_under",
        "ext_max_sleep",
    ];
    const FRACTION: &[&str] =
        &["slab_automove_ratio", "slab_automove_freeratio", "hot_max_factor", "warm_max_factor", "ext_max_frag"];
    OFF.iter().for_each(|name| sink(name, "no"));
    ZERO.iter().for_each(|name| put(sink, name, 0));
    FRACTION.iter().for_each(|name| sink(name, "0.00"));
    sink("inline_ascii_response", "no");
    sink("ext_drop_unread", "no");
    put(sink, "watcher_logbuf_size", crate::watch::PENDING_MAX as u64);
    sink("num_napi_ids", "(null)");
    sink("memory_file", "(null)");
}

fn tls(server: &Server, sink: &mut Sink<'_>) {
    let files = server.config.tls.as_ref();
    let shown = |path: Option<&std::path::PathBuf>| path.map_or("(null)".into(), |path| path.display().to_string());
    sink("ssl_chain_cert", &shown(files.map(|files| &files.chain)));
    sink("ssl_key", &shown(files.map(|files| &files.key)));
    let clients = files.and_then(|files| files.clients.as_ref());
    put(sink, "ssl_verify_mode", if clients.is_some() { 2 } else { 0 });
    put(sink, "ssl_keyformat", 1);
    sink("ssl_ciphers", "NULL");
    sink("ssl_ca_cert", &clients.map_or("NULL".into(), |path| path.display().to_string()));
    put(sink, "ssl_wbuf_size", 65536);
    sink("ssl_session_cache", "no");
    sink("ssl_kernel_tls", "no");
    sink("ssl_min_version", "tlsv1.2");
}
