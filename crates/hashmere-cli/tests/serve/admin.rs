//! Statistics, listings, flushing, limits and stopping.

use crate::support::Server;
use hashmere::Options;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

fn stats(text: &str) -> HashMap<String, String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("STAT "))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, value)| (name.into(), value.trim_end().into()))
        .collect()
}

/// What memcached_exporter and memcached-tool look for.
const READ_BY_EXPORTERS: &[&str] = &[
    "pid",
    "uptime",
    "time",
    "version",
    "rusage_user",
    "rusage_system",
    "max_connections",
    "curr_connections",
    "total_connections",
    "rejected_connections",
    "connection_structures",
    "cmd_get",
    "cmd_set",
    "cmd_flush",
    "cmd_touch",
    "get_hits",
    "get_misses",
    "get_expired",
    "get_flushed",
    "delete_misses",
    "delete_hits",
    "incr_misses",
    "incr_hits",
    "decr_misses",
    "decr_hits",
    "cas_misses",
    "cas_hits",
    "cas_badval",
    "touch_hits",
    "touch_misses",
    "auth_cmds",
    "auth_errors",
    "bytes_read",
    "bytes_written",
    "limit_maxbytes",
    "accepting_conns",
    "listen_disabled_num",
    "time_in_listen_disabled_us",
    "threads",
    "conn_yields",
    "hash_power_level",
    "hash_bytes",
    "hash_is_expanding",
    "slab_reassign_running",
    "slabs_moved",
    "lru_crawler_running",
    "lru_crawler_starts",
    "malloc_fails",
    "bytes",
    "curr_items",
    "total_items",
    "slab_global_page_pool",
    "expired_unfetched",
    "evicted_unfetched",
    "evicted_active",
    "evictions",
    "reclaimed",
    "crawler_reclaimed",
    "crawler_items_checked",
    "lrutail_reflocked",
    "moves_to_cold",
    "moves_to_warm",
    "moves_within_lru",
    "direct_reclaims",
    "lru_bumps_dropped",
    "read_buf_count",
    "read_buf_bytes",
    "response_obj_count",
    "idle_kicks",
    "store_too_large",
    "store_no_memory",
    "reserved_fds",
];

#[test]
fn every_number_that_is_read_elsewhere_is_there() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.ask("set a 0 0 1\r\n1\r\nget a b\r\nincr a 1\r\ndelete c\r\ntouch a 0\r\ncas a 0 0 1 5\r\nx\r\n");
    let general = stats(&client.ask("stats\r\n"));
    for name in READ_BY_EXPORTERS {
        assert!(general.contains_key(*name), "no {name}");
    }
    let is = |name: &str, value: &str| assert_eq!(general[name], value, "{name}");
    is("cmd_get", "2");
    is("get_hits", "1");
    is("get_misses", "1");
    is("incr_hits", "1");
    is("delete_misses", "1");
    is("touch_hits", "1");
    is("cas_badval", "1");
    is("curr_items", "1");
    is("curr_connections", "1");
    for group in ["settings", "items", "slabs", "sizes", "conns", "hashmere"] {
        let answer = client.ask(&format!("stats {group}\r\n"));
        assert!(answer.starts_with("STAT ") && answer.ends_with("END\r\n"), "{group}: {answer}");
    }
    assert_eq!(stats(&client.ask("stats items\r\n"))["items:1:number"], "1");
    assert_eq!(client.ask("stats reset\r\n"), "RESET\r\n");
    assert_eq!(stats(&client.ask("stats\r\n"))["cmd_get"], "0");
}

#[test]
fn local_traffic_is_told_from_socket_traffic() {
    let server = Server::start(&[]);
    let store = Options::new().existing_only().open(server.folder().join("memcached.mere")).unwrap();
    let mut client = server.connect();
    for i in 0..10 {
        store.set(format!("l{i}").as_bytes(), b"x").unwrap();
        store.get(format!("l{i}").as_bytes()).unwrap();
    }
    client.ask("set s 0 0 1\r\nx\r\nget s s s\r\n");
    let numbers = stats(&client.ask("stats hashmere\r\n"));
    let number = |name: &str| numbers[name].parse::<u64>().unwrap();
    assert_eq!((number("local_sets"), number("local_hits")), (10, 10));
    assert_eq!((number("socket_stored"), number("socket_hits")), (1, 3));
    assert_eq!(number("processes_other"), 1);
}

#[test]
fn keys_are_listed_and_deleted_by_prefix() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let sets: String = (0..5000).map(|i| format!("set {}:{i} 0 0 1 noreply\r\nx\r\n", ["a", "b"][i % 2])).collect();
    client.ask(&sets);
    assert_eq!(client.ask("lru_crawler metadump all\r\n").matches("key=").count(), 5000);
    assert_eq!(client.ask("hashmere keys a:\r\n").matches("KEY a%3A").count(), 2500);
    assert_eq!(client.ask("hashmere keys a: 7\r\n").matches("KEY").count(), 7);
    assert_eq!(client.ask("stats cachedump 1 9\r\n").matches("ITEM ").count(), 9);
    assert_eq!(client.ask("hashmere delete a:\r\n"), "DELETED 2500\r\n");
    assert_eq!(client.ask("hashmere keys a:\r\n"), "END\r\n");
    assert_eq!(stats(&client.ask("stats\r\n"))["curr_items"], "2500");
    let refusing = Server::start(&["-X", "-F"]);
    let mut client = refusing.connect();
    assert!(client.ask("lru_crawler metadump all\r\nstats cachedump 1 1\r\nhashmere keys\r\n").contains("not allowed"));
    assert_eq!(client.ask("flush_all\r\n"), "CLIENT_ERROR flush_all not allowed\r\n");
}

#[test]
fn flushing_later_spares_nothing_but_what_comes_after() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    assert_eq!(
        client.ask("set a 0 0 1\r\nx\r\nflush_all\r\nset b 0 0 1\r\ny\r\nget a b\r\n"),
        "STORED\r\nOK\r\nSTORED\r\nVALUE b 0 1\r\ny\r\nEND\r\n"
    );
    assert_eq!(client.ask("flush_all 1\r\nget b\r\n"), "OK\r\nVALUE b 0 1\r\ny\r\nEND\r\n");
    let deadline = Instant::now() + Duration::from_secs(10);
    while client.ask("get b\r\n") != "END\r\n" {
        assert!(Instant::now() < deadline, "it was never flushed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.ask("set c 0 0 1\r\nz\r\nget c\r\n"), "STORED\r\nVALUE c 0 1\r\nz\r\nEND\r\n");
}

#[test]
fn limits_hold_and_refusals_leave_the_stream_whole() {
    let server = Server::start(&["-I", "1k", "-c", "2"]);
    let mut client = server.connect();
    let big = "x".repeat(5000);
    assert_eq!(client.ask("set k 0 0 1\r\nx\r\n"), "STORED\r\n");
    assert_eq!(
        client.ask(&format!("set k 0 0 5000\r\n{big}\r\nget k\r\n")),
        "SERVER_ERROR object too large for cache\r\nEND\r\n"
    );
    assert_eq!(client.ask(&format!("ms k 5000\r\n{big}\r\nmn\r\n")), "SERVER_ERROR object too large for cache\r\n");
    assert_eq!(client.until(b"MN\r\n").0, b"MN\r\n");
    let _second = server.connect();
    let mut third = server.connect();
    assert_eq!(third.until(b"\r\n").0, b"ERROR Too many open connections\r\n");
    assert!(!third.until(b"more").1, "the third connection stayed open");
}

#[test]
fn stopping_answers_what_was_asked() {
    let mut server = Server::start(&["-A"]);
    let mut client = server.connect();
    assert_eq!(client.ask("shutdown bogus\r\n"), "CLIENT_ERROR invalid shutdown mode\r\n");
    client.send(&b"set k 0 0 1\r\nx\r\n".repeat(1000));
    server.signal("TERM");
    let (answers, _) = client.until(b"never");
    assert_eq!(answers, b"STORED\r\n".repeat(1000));
    assert!(server.child.wait().unwrap().success());
    let mut other = Server::start(&["-A"]);
    other.connect().send(b"shutdown\r\n");
    assert!(other.child.wait().unwrap().success());
}

#[test]
fn metrics_are_served_over_http() {
    let port = crate::support::free_port();
    let server = Server::start(&["--metrics", &format!("127.0.0.1:{port}")]);
    server.connect().ask("set k 0 0 1\r\nx\r\nget k\r\n");
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for line in
        ["hashmere_get_hits 1", "hashmere_cmd_set 1", "hashmere_curr_items 1", "# TYPE hashmere_curr_items gauge"]
    {
        assert!(answer.lines().any(|other| other == line), "no {line}");
    }
}
