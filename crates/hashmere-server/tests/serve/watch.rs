//! Promise: a watcher sees what memcached would show it; a slow one costs a bounded amount of memory and delays no
//! client.

use crate::support::{start, Client, Server, PATIENCE};
use hashmere_testkit::rng::Rng;
use std::time::Instant;

fn watch(server: &Server, kinds: &str) -> Client {
    let mut client = server.connect();
    client.send(format!("watch{kinds}\r\n").as_bytes());
    assert_eq!(client.until(b"\r\n").0, b"OK\r\n");
    client
}

/// Lines up to the one that has this in it.
fn lines(client: &mut Client, last: &str) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let (line, open) = client.until(b"\n");
        assert!(open, "the log ended: {lines:?}");
        let line = String::from_utf8(line).unwrap();
        if line.contains(last) {
            return lines;
        }
        lines.push(line);
    }
}

/// A line without what differs between two servers: time, number, connection, class, port; and with the hundreds of
/// seconds that an item has left, for a second may pass.
fn normal(line: &str) -> String {
    const OWN: &[&str] = &["ts", "gid", "cfd", "clsid", "rport"];
    let words = line.split_whitespace().filter(|word| !OWN.contains(&word.split('=').next().unwrap()));
    let round = |word: &str| match word.strip_prefix("ttl=").and_then(|left| left.parse::<i64>().ok()) {
        Some(left) if left > 0 => format!("ttl={}", (left + 99) / 100 * 100),
        _ => word.to_owned(),
    };
    words.map(round).collect::<Vec<_>>().join(" ")
}

fn store(rng: &mut Rng) -> String {
    let key = format!("k{}", rng.below(6));
    let value = "v".repeat(rng.below(40) as usize);
    let len = value.len();
    let ttl = ["0", "100", "2000"][rng.index(3)];
    match rng.below(9) {
        0..=2 => format!("set {key} 0 {ttl} {len}\r\n{value}\r\n"),
        3 => format!("add {key} 0 {ttl} {len}\r\n{value}\r\n"),
        4 => format!("replace {key} 0 {ttl} {len}\r\n{value}\r\n"),
        5 => format!("{} {key} 0 0 {len}\r\n{value}\r\n", ["append", "prepend"][rng.index(2)]),
        6 => format!("cas {key} 0 {ttl} {len} 99999999\r\n{value}\r\n"),
        7 => format!("ms {key} {len} T{ttl} {}\r\n{value}\r\n", ["", "ME", "MR"][rng.index(3)]),
        _ => format!("set {key} 0 0 2000000\r\n{}\r\ndelete {key}\r\n", "z".repeat(2_000_000)),
    }
}

fn fetch(rng: &mut Rng) -> String {
    let key = format!("k{}", rng.below(9));
    match rng.below(5) {
        0 | 1 => format!("get {key} k{} other\r\n", rng.below(9)),
        2 => format!("gets {key}\r\n"),
        3 => format!("gat 100 {key}\r\n"),
        _ => format!("mg {key} v\r\n"),
    }
}

#[test]
fn the_same_log_as_memcached() {
    let Some(theirs) = Server::memcached(&[]) else { return };
    let ours = start(&[]);
    let mut rng = Rng::for_test("watch");
    let stores: Vec<String> = (0..300).map(|_| store(&mut rng)).collect();
    let fetches: Vec<String> = (0..300).map(|_| fetch(&mut rng)).collect();
    let mut logs = [&theirs, &ours].map(|server| {
        let mut client = server.connect();
        let mut all = Vec::new();
        // In pieces: the lines of each are read before the next, for memcached leaves out what its buffer has no room
        // for.
        let mut piece = |log: &mut Client, requests: &[String], last: &str| {
            requests.iter().for_each(|request| drop(client.ask(request)));
            client.ask(last);
            all.extend(lines(log, "key=last"));
        };
        let mut log = watch(server, " mutations");
        stores.chunks(30).for_each(|requests| piece(&mut log, requests, "set last 0 0 1\r\nx\r\n"));
        // In memcached every lookup of an item is a fetch, also one within a write: so only reads are compared.
        let mut log = watch(server, "");
        fetches.chunks(30).for_each(|requests| piece(&mut log, requests, "get last\r\n"));
        all.iter().map(|line| normal(line)).collect::<Vec<_>>()
    });
    // A key that is too long for the cache has no more than its name in common.
    logs.iter_mut().flatten().filter(|line| line.contains("too_large")).for_each(|line| {
        *line = line.split(" ttl=").next().unwrap().to_string();
    });
    let [theirs, ours] = logs;
    // A line a request at least; how many more depends on the seed.
    assert!(theirs.len() >= 600, "{} lines", theirs.len());
    for (a, b) in theirs.iter().zip(&ours) {
        assert_eq!(a, b);
    }
    assert_eq!(theirs.len(), ours.len());
}

#[test]
fn connections_come_and_go() {
    let Some(theirs) = Server::memcached(&[]) else { return };
    let ours = start(&[]);
    let logs = [&theirs, &ours].map(|server| {
        let mut log = watch(server, " connevents");
        let mut client = server.connect();
        client.send(b"quit\r\n");
        assert!(!client.until(b"never").1);
        let mut all = Vec::new();
        while !all.iter().any(|line: &String| line.contains("conn_close")) {
            all.push(normal(&String::from_utf8(log.until(b"\n").0).unwrap()));
        }
        all
    });
    assert_eq!(logs[0], logs[1]);
    assert_eq!(logs[1].last().unwrap(), "type=conn_close rip=127.0.0.1 transport=tcp reason=normal");
}

#[test]
fn deletions_and_evictions() {
    let server = start(&["-m", "8", "-o", "access_times"]);
    let mut client = server.connect();
    let mut log = watch(&server, " deletions evictions");
    client.ask("set a 0 0 4\r\nabcd\r\ndelete a\r\nset b 0 0 2\r\nab\r\nmd b\r\ndelete none\r\n");
    assert!(String::from_utf8(log.until(b"\n").0).unwrap().ends_with("type=deleted key=a cmd=delete clsid=1 size=4\n"));
    assert!(String::from_utf8(log.until(b"\n").0).unwrap().ends_with("type=deleted key=b cmd=md clsid=1 size=2\n"));
    let value = "v".repeat(1000);
    client.ask("set first 0 1000 1\r\nx\r\nget first\r\n");
    for i in 0..30_000 {
        client.send(format!("set e{i} 0 0 1000 noreply\r\n{value}\r\n").as_bytes());
    }
    let mut evicted = lines(&mut log, "size=1000");
    let line = evicted.pop().unwrap_or_default() + &String::from_utf8(log.until(b"\n").0).unwrap();
    let words: Vec<&str> = line.lines().last().unwrap().split_whitespace().collect();
    assert!(words.contains(&"type=eviction") && words.contains(&"clsid=1"), "{line}");
    assert!(words.contains(&"fetch=no") && words.contains(&"ttl=-1"), "{line}");
    let key = words.iter().find_map(|word| word.strip_prefix("key=")).unwrap();
    assert_eq!(client.ask(&format!("get {key}\r\n")), "END\r\n");
}

#[test]
fn a_watcher_that_never_reads() {
    let server = start(&[]);
    let mut client = server.connect();
    client.ask("set k 0 0 1\r\nx\r\n");
    let before = server.memory("RssAnon:");
    let mut slow: Vec<Client> = (0..10).map(|_| watch(&server, " fetchers")).collect();
    let requests = "get k k k k k k k k\r\n".repeat(100);
    for _ in 0..500 {
        client.ask(&requests);
    }
    // Per watcher 256 KiB of lines and as much on the way; the buffer grows by doubling.
    let grown = server.memory("RssAnon:").saturating_sub(before);
    assert!(grown < 10 * (1 << 20) + (16 << 20), "memory grew by {grown}");
    let stats = client.ask("stats\r\n");
    assert!(stats.contains("STAT log_watchers 10\r\n") && !stats.contains("STAT log_watcher_skipped 0\r\n"), "{stats}");
    // One that reads again gets the number of the lines that it missed.
    let deadline = Instant::now() + PATIENCE;
    while !slow[0].until(b"\n").0.starts_with(b"skipped=") {
        assert!(Instant::now() < deadline);
        client.send(b"get k\r\n");
    }
    drop(slow);
    while !client.ask("stats\r\n").contains("STAT log_watchers 0\r\n") {
        assert!(Instant::now() < deadline, "watchers that are gone are still counted");
    }
}

#[test]
fn refusals_and_limits() {
    let server = start(&[]);
    let mut client = server.connect();
    assert_eq!(client.ask("watch bogus\r\nwatch fetchers bogus\r\n"), "ERROR\r\nERROR\r\n");
    let all: Vec<Client> = (0..20).map(|_| watch(&server, " sysevents proxyreqs rawcmds")).collect();
    assert_eq!(client.ask("watch\r\n"), "WATCHER_TOO_MANY log watcher limit reached\r\n");
    drop(all);
    let refusing = start(&["-W"]);
    assert_eq!(refusing.connect().ask("watch\r\n"), "CLIENT_ERROR watch commands not allowed\r\n");
}
