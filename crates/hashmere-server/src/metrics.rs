//! Metrics in Prometheus' text format over HTTP, on threads of their own.

use crate::http;
use crate::server::Server;
use crate::stats;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// Opens the socket.
pub fn open(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| format!("cannot serve metrics on {address}: {error}"))
}

/// Answers until the process ends.
pub fn start(listener: TcpListener, server: Arc<Server>) -> Result<(), String> {
    let teller = server.clone();
    let answer = move |path: &[u8]| match path {
        b"/metrics" | b"/" => ("200 OK", text(&server)),
        _ => ("404 Not Found", "see /metrics\n".into()),
    };
    let failed = move |error| teller.log(2, || format!("metrics: {error}"));
    let thread = std::thread::Builder::new().name("metrics".into());
    let thread = thread.spawn(move || http::serve(&listener, answer, failed));
    thread.map(|_| ()).map_err(|error| format!("cannot serve metrics: {error}"))
}

/// Groups of statistics, with what their numbers are called.
const GROUPS: &[(&[u8], &str)] = &[
    (b"", "hashmere_"),
    (b"hashmere", "hashmere_store_"),
    (b"items", "hashmere_items_"),
    (b"slabs", "hashmere_slabs_"),
    (b"settings", "hashmere_settings_"),
];

/// Every number of the statistics. Switches are numbers, too.
pub fn text(server: &Server) -> String {
    let mut text = String::from("# TYPE hashmere_up gauge\nhashmere_up 1\n");
    for (group, prefix) in GROUPS {
        stats::group(server, group, None, &mut |name, value| {
            let value = match value {
                "yes" | "on" => "1",
                "no" | "off" => "0",
                other => other,
            };
            if value.parse::<f64>().is_ok() {
                // There is one class.
                let name = name.trim_start_matches("items:").trim_start_matches("1:");
                let kind = if *group == b"settings" || is_gauge(name) { "gauge" } else { "counter" };
                // Writing to a string does not fail.
                let _ = writeln!(text, "# TYPE {prefix}{name} {kind}\n{prefix}{name} {value}");
            }
        });
    }
    text
}

fn is_gauge(name: &str) -> bool {
    const GAUGES: &[&str] = &["pid", "time", "uptime", "threads", "items", "bytes", "clients", "pointer_size"];
    const PARTS: &[&str] = &["curr_", "max_", "_max", "limit_", "bytes_live", "bytes_dead", "bytes_free", "bytes_file"];
    const MORE: &[&str] =
        &["bytes_allocated", "accepting", "hash_", "structures", "processes_", "read_buf", "reserved", "log_watchers"];
    const FEEDS: &[&str] = &[
        "feed_enabled",
        "feed_values",
        "feed_bytes",
        "feed_streams",
        "_lag",
        "_live",
        "_running",
        "_copied",
        "_updated",
    ];
    const CLASS: &[&str] = &["number", "age", "chunk", "pages", "mem_requested", "active_slabs", "total_malloced"];
    GAUGES.contains(&name) || PARTS.iter().chain(MORE).chain(FEEDS).chain(CLASS).any(|part| name.contains(part))
}
