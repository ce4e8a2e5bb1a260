//! Statistics, listings, flushing, limits and stopping.

use crate::support::{start, start_on, Scratch, Server, PATIENCE};
use hashmere::Options;
use std::collections::HashMap;
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
    let server = start(&[]);
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

/// Names that a group of statistics has.
fn names(server: &Server, group: &str) -> Vec<String> {
    let mut client = server.connect();
    client.ask("set k 0 0 1\r\nx\r\nget k\r\n");
    let text = client.ask(&format!("stats {group}\r\n"));
    // One class of items is enough, whatever its number.
    let plain = |name: &str| name.replace("items:1:", "items:").trim_start_matches("1:").to_string();
    let mut names: Vec<String> = stats(&text).keys().map(|name| plain(name)).collect();
    names.sort();
    names
}

/// memcached_exporter, memcached-tool and dashboards ask for numbers by name.
#[test]
fn every_name_that_memcached_has_is_there() {
    let Some(theirs) = Server::memcached(&[]) else { return };
    let ours = start(&[]);
    for group in ["", "settings", "items", "slabs"] {
        let ours = names(&ours, group);
        let missing: Vec<String> = names(&theirs, group).into_iter().filter(|name| !ours.contains(name)).collect();
        assert!(missing.is_empty(), "stats {group} lacks {missing:?}");
    }
}

#[test]
fn local_and_socket_traffic_are_counted_apart() {
    let scratch = Scratch::new("serve");
    // What an earlier server and earlier processes did is neither: the next ones take over their places in the file.
    let first = start_on(&scratch, &[]);
    first.connect().ask(&"set s 0 0 1\r\nx\r\nget s none\r\n".repeat(20));
    let path = scratch.path().join("ns/memcached.mere");
    let open = || Options::new().create(false).open(&path).unwrap();
    let store = open();
    store.set(b"l", b"x").unwrap();
    drop(store);
    drop(first);
    let server = start_on(&scratch, &[]);
    let store = open();
    let mut client = server.connect();
    let mut check = |socket: [u64; 4], local: [u64; 4]| {
        let numbers = stats(&client.ask("stats hashmere\r\n"));
        let number = |name: &str| numbers[name].parse::<u64>().unwrap();
        let names = |who: &str, names: [&str; 4]| names.map(|name| number(&format!("{who}_{name}")));
        assert_eq!(names("socket", ["hits", "misses", "stored", "deletes"]), socket);
        assert_eq!(names("local", ["hits", "misses", "sets", "deletes"]), local);
        number("processes_other")
    };
    check([0; 4], [0; 4]);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let store = &store;
            scope.spawn(move || {
                for i in 0..100 {
                    let key = format!("l{thread}-{i}");
                    store.set(key.as_bytes(), b"x").unwrap();
                    store.get(key.as_bytes()).unwrap();
                    store.get(b"none").unwrap();
                }
                store.delete(format!("l{thread}-0").as_bytes()).unwrap();
            });
        }
        for i in 0..4 {
            let mut other = server.connect();
            scope.spawn(move || {
                other.ask(&format!("set s{i} 0 0 1\r\nx\r\n"));
                other.ask(&format!("get s{i} none s{i}\r\nmg s{i} v\r\nmg none v\r\n"));
                other.ask(&format!("delete s{i}\r\n"));
            });
        }
    });
    let socket = [12, 8, 4, 4];
    assert_eq!(check(socket, [300, 300, 300, 3]), 1);
    // Another process that comes and goes, also by a signal, is counted as well.
    drop(store);
    open().set(b"again", b"x").unwrap();
    check(socket, [300, 300, 301, 3]);
    assert_eq!(server.connect().ask("stats reset\r\n"), "RESET\r\n");
    assert_eq!(check([0; 4], [0; 4]), 0);
}

#[test]
fn keys_are_listed_and_deleted_by_prefix() {
    let server = start(&[]);
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
    let refusing = start(&["-X", "-F"]);
    let mut client = refusing.connect();
    assert!(client.ask("lru_crawler metadump all\r\nstats cachedump 1 1\r\nhashmere keys\r\n").contains("not allowed"));
    assert_eq!(client.ask("flush_all\r\n"), "CLIENT_ERROR flush_all not allowed\r\n");
}

#[test]
fn flushing_later_spares_nothing_but_what_comes_after() {
    let server = start(&[]);
    let mut client = server.connect();
    assert_eq!(
        client.ask("set a 0 0 1\r\nx\r\nflush_all\r\nset b 0 0 1\r\ny\r\nget a b\r\n"),
        "STORED\r\nOK\r\nSTORED\r\nVALUE b 0 1\r\ny\r\nEND\r\n"
    );
    // Later than the answer comes, however busy the machine is.
    for seconds in [1, 5, 30, 200] {
        let begin = Instant::now();
        let answer = client.ask(&format!("set b 0 0 1\r\ny\r\nflush_all {seconds}\r\nget b\r\n"));
        if begin.elapsed() < Duration::from_secs(seconds) / 2 {
            assert_eq!(answer, "STORED\r\nOK\r\nVALUE b 0 1\r\ny\r\nEND\r\n");
            break;
        }
    }
    let deadline = Instant::now() + 2 * PATIENCE;
    while client.ask("get b\r\n") != "END\r\n" {
        assert!(Instant::now() < deadline, "it was never flushed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.ask("set c 0 0 1\r\nz\r\nget c\r\n"), "STORED\r\nVALUE c 0 1\r\nz\r\nEND\r\n");
}

#[test]
fn limits_hold_and_refusals_leave_the_stream_whole() {
    let server = start(&["-I", "1k", "-c", "2"]);
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
    let mut server = start(&["-A"]);
    let mut client = server.connect();
    assert_eq!(client.ask("shutdown bogus\r\n"), "CLIENT_ERROR invalid shutdown mode\r\n");
    client.send(&b"set k 0 0 1\r\nx\r\n".repeat(1000));
    server.signal("TERM");
    let (answers, _) = client.until(b"never");
    assert_eq!(answers, b"STORED\r\n".repeat(1000));
    assert!(server.child.wait().unwrap().success());
    let mut other = start(&["-A"]);
    other.connect().send(b"shutdown\r\n");
    assert!(other.child.wait().unwrap().success());
}

/// Catches a server that keeps its memory when its limit is lowered, and other answers than memcached's.
#[test]
fn the_limit_goes_down_and_up() {
    let server = start(&["-m", "24"]);
    let mut client = server.connect();
    let value = "v".repeat(1000);
    let mut fill = || {
        for batch in 0..20 {
            let sets = (0..1000).map(|n| format!("set k{} 0 0 1000\r\n{value}\r\n", 1000 * batch + n));
            assert_eq!(client.ask(&sets.collect::<String>()), "STORED\r\n".repeat(1000));
        }
    };
    fill();
    let mut asker = server.connect();
    let limit = |asker: &mut crate::support::Client| {
        stats(&asker.ask("stats\r\n"))["limit_maxbytes"].parse::<u64>().unwrap() >> 20
    };
    assert_eq!((asker.ask("cache_memlimit 9\r\n").as_str(), limit(&mut asker)), ("OK\r\n", 9));
    let store = Options::new().read_only().open(server.folder().join("memcached.mere")).unwrap();
    let start = Instant::now();
    while store.stats().bytes_allocated > 9 << 20 {
        assert!(start.elapsed() < PATIENCE, "{:?}", store.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
    fill();
    assert!(store.stats().bytes_allocated <= 9 << 20 && store.len() > 4000, "{:?}", store.stats());
    assert_eq!((asker.ask("cache_memlimit 24\r\n").as_str(), limit(&mut asker)), ("OK\r\n", 24));
    fill();
    assert!(store.len() > 12_000, "{}", store.len());
    let Some(theirs) = Server::memcached(&[]) else { return };
    let mut theirs = theirs.connect();
    for words in ["", " 7", " 7 noreply", " x", " 64", " 64 noreply", " 1000000001", " 8 more"] {
        let request = format!("cache_memlimit{words}\r\n");
        assert_eq!(asker.ask(&request), theirs.ask(&request), "{words}");
    }
}
