//! Promise: what a client sets over the socket is what local processes read, and the other way round: value, flags,
//! expiry, version, counter. Catches: two copies of the truth.

use crate::support::{start, Server};
use hashmere::{Attributes, CasOutcome, Change, Counter, Expected, Options, Store, Ttl, Version};
use std::time::{Duration, Instant};

fn store(server: &Server) -> Store {
    Options::new().create(false).open(server.folder().join("memcached.mere")).unwrap()
}

#[test]
fn one_truth_for_both_sides() {
    let server = start(&[]);
    let (store, mut client) = (store(&server), server.connect());
    assert_eq!(client.ask("set k 42 100 5\r\nhello\r\n"), "STORED\r\n");
    let item = store.get_item(b"k").unwrap().unwrap();
    assert_eq!((&item.value[..], item.metadata.flags), (&b"hello"[..], 42));
    assert!(
        matches!(store.ttl(b"k").unwrap(), Some(hashmere::Expiry { remaining: Some(left) }) if left <= Duration::from_secs(100))
    );
    assert_eq!(client.ask("gets k\r\n"), format!("VALUE k 42 5 {}\r\nhello\r\nEND\r\n", item.metadata.version.0));

    let changed = store.cas(b"k", Expected::Version(item.metadata.version), Change::Set(b"local")).unwrap();
    let CasOutcome::Stored(stored) = changed else { panic!("{changed:?}") };
    assert_eq!(client.ask(&format!("cas k 0 0 1 {}\r\nx\r\n", item.metadata.version.0)), "EXISTS\r\n");
    assert_eq!(client.ask(&format!("cas k 0 0 6 {}\r\nremote\r\n", stored.version.0)), "STORED\r\n");
    assert_eq!(store.get(b"k").unwrap().unwrap(), b"remote");
    assert_eq!(
        store.cas(b"k", Expected::Version(stored.version), Change::Remove).unwrap(),
        CasOutcome::Mismatch(Version(store.metadata(b"k").unwrap().unwrap().version.0))
    );

    store.incr(b"n", 5, Counter::or_create(10)).unwrap();
    assert_eq!(client.ask("incr n 7\r\n"), "17\r\n");
    assert_eq!(store.incr(b"n", 1, Counter::EXISTING).unwrap(), Some(18));
    assert_eq!(client.ask("decr n 10\r\nget n\r\n"), "8\r\nVALUE n 0 2\r\n8 \r\nEND\r\n");
    assert_eq!(store.incr(b"n", 1, Counter::EXISTING).unwrap(), Some(9));

    // Longer and longer, until the answer came before its time was over.
    for ms in (0..).map(|n| 150 << n) {
        let begin = Instant::now();
        let short = Attributes { flags: 1, ttl: Ttl::After(Duration::from_millis(ms)), ..Attributes::NONE };
        store.set_with(b"short", b"x", short).unwrap();
        let answer = client.ask("get short\r\n");
        if begin.elapsed() < Duration::from_millis(ms / 2) {
            assert_eq!(answer, "VALUE short 1 1\r\nx\r\nEND\r\n");
            break;
        }
    }
    while store.contains_key(b"short").unwrap() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(client.ask("get short\r\n"), "END\r\n");
    store.clear().unwrap();
    assert_eq!(client.ask("get k n\r\n"), "END\r\n");
}

#[test]
fn counters_from_both_sides_add_up() {
    const EACH: u64 = 3000;
    let server = start(&[]);
    let store = store(&server);
    store.set(b"n", b"0").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    assert!(store.incr(b"n", 1, Counter::EXISTING).unwrap().is_some(), "the number was not there");
                }
            });
            scope.spawn(|| {
                let mut client = server.connect();
                for _ in 0..EACH / 100 {
                    let answers = client.ask(&"incr n 1\r\n".repeat(100));
                    assert_eq!(answers.lines().filter(|line| line.parse::<u64>().is_ok()).count(), 100, "{answers}");
                }
            });
        }
    });
    assert_eq!(store.get(b"n").unwrap().unwrap(), (4 * EACH).to_string().as_bytes());
}

#[test]
fn a_long_value_that_is_being_read_stays_what_it_was() {
    let server = start(&["-I", "8m", "-m", "256"]);
    let store = store(&server);
    let (old, new) = (vec![b'o'; 6 << 20], vec![b'n'; 6 << 20]);
    store.set(b"long", &old).unwrap();
    let mut client = server.connect();
    client.send(b"get long\r\n");
    // The server has begun to send: the socket takes less than this value.
    let mut got = client.exactly(1000);
    for _ in 0..50 {
        store.set(b"long", &new).unwrap();
    }
    got.extend(client.exactly(b"VALUE long 0 6291456\r\n".len() + old.len() + 7 - 1000));
    assert!(got[22..22 + old.len()] == old[..], "the value changed while it was sent");
    assert!(got.ends_with(b"\r\nEND\r\n"));
    drop(got);
    client.send(b"get long\r\n");
    let got = client.exactly(22 + new.len() + 7);
    assert!(got[22..22 + new.len()] == new[..]);
}
