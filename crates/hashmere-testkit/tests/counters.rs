//! Promise: 64-bit counters that wrap at 2^64 and floor at 0, read as decimal text, are created on request, refuse what
//! is no number, and add up over any number of processes; reference counts delete at zero.
//! Catches: lost increments, overflow handled wrongly, a text form that differs from the number.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Counter, Expiry, Options, Store, Ttl, WriteError};
use hashmere_testkit::limits::{wait_until, Watchdog};
use hashmere_testkit::payload;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{small, tiny, worker};
use std::time::Duration;

fn stage(name: &str) -> (Scratch, Store) {
    let scratch = Scratch::new(name);
    let store = small().open(scratch.store("counters")).unwrap();
    (scratch, store)
}

fn text(store: &Store, key: &[u8]) -> String {
    String::from_utf8(store.get(key).unwrap().unwrap()).unwrap()
}

const EXISTING: Counter = Counter::EXISTING;

#[test]
fn wraps_and_floors() {
    let (_scratch, store) = stage("counters-wrap");
    store.set(b"n", u64::MAX.to_string().as_bytes()).unwrap();
    assert_eq!(store.incr(b"n", 1, EXISTING).unwrap(), Some(0));
    assert_eq!(store.incr(b"n", u64::MAX, EXISTING).unwrap(), Some(u64::MAX));
    assert_eq!(text(&store, b"n"), "18446744073709551615");
    assert_eq!(store.incr(b"n", 11, EXISTING).unwrap(), Some(10));
    assert_eq!(text(&store, b"n"), "10");
    assert_eq!(store.decr(b"n", 9, EXISTING).unwrap(), Some(1));
    assert_eq!(text(&store, b"n"), "1");
    assert_eq!(store.decr(b"n", 2, EXISTING).unwrap(), Some(0));
    assert_eq!(store.decr(b"n", u64::MAX, EXISTING).unwrap(), Some(0));
    assert_eq!(store.incr_by(b"n", i64::MAX, EXISTING).unwrap(), Some(i64::MAX as u64));
    assert_eq!(store.incr_by(b"n", i64::MIN, EXISTING).unwrap(), Some(0));
    store.set(b"n", b"18446744073709551610").unwrap();
    assert_eq!(store.incr_by(b"n", 10, EXISTING).unwrap(), Some(4));
    assert_eq!(store.incr(b"n", 0, EXISTING).unwrap(), Some(4));
}

#[test]
fn every_length_of_text() {
    let (_scratch, store) = stage("counters-text");
    let steps = (0..20).flat_map(|digits: u32| [10u64.pow(digits), 1, u64::MAX, u64::MAX, 1]);
    let mut number = None::<u64>;
    for step in steps {
        let expected = number.map_or(step, |number| number.wrapping_add(step));
        number = store.incr(b"n", step, Counter::or_create(step)).unwrap();
        assert_eq!(number, Some(expected));
        let decimal = expected.to_string();
        assert_eq!(text(&store, b"n"), decimal);
        assert_eq!(store.metadata(b"n").unwrap().map(|meta| meta.value_len), Some(decimal.len() as u64));
        assert_eq!(*store.view(b"n").unwrap().unwrap(), *decimal.as_bytes());
        let pair = store.iter().next().unwrap().unwrap();
        assert_eq!(pair.value, decimal.as_bytes(), "through a scan");
    }
}

#[test]
fn a_missing_one_is_created_only_on_request() {
    let (_scratch, store) = stage("counters-create");
    assert_eq!(store.incr(b"n", 5, EXISTING).unwrap(), None);
    assert_eq!(store.decr(b"n", 5, EXISTING).unwrap(), None);
    assert_eq!(store.incr_by(b"n", -5, EXISTING).unwrap(), None);
    assert!(!store.contains_key(b"n").unwrap());
    let attributes = Attributes::NONE.flags(9).ttl(Ttl::After(Duration::from_secs(1000)));
    let created = Counter { initial: Some(100), attributes };
    assert_eq!(store.incr(b"n", 5, created).unwrap(), Some(100), "the delta is not applied to a new one");
    assert_eq!(store.incr(b"n", 5, created).unwrap(), Some(105));
    let item = store.get_item(b"n").unwrap().unwrap();
    assert_eq!((&item.value[..], item.metadata.flags), (&b"105"[..], 9));
    assert!(
        matches!(store.ttl(b"n").unwrap(), Some(Expiry { remaining: Some(time) }) if time > Duration::from_secs(900))
    );
    // An existing one keeps its own attributes.
    store.incr(b"n", 1, Counter { initial: Some(1), attributes: Attributes::NONE.flags(5) }).unwrap();
    assert_eq!(store.metadata(b"n").unwrap().unwrap().flags, 9);
    assert!(store.ttl(b"n").unwrap() != Some(Expiry { remaining: None }));
}

#[test]
fn what_is_no_number_is_refused_and_stays() {
    let (_scratch, store) = stage("counters-nan");
    let texts: [&[u8]; 12] = [
        b"",
        b"abc",
        b"12a",
        b"-1",
        b"1.5",
        b"0x10",
        b"18446744073709551616",
        b"99999999999999999999",
        b"1 2",
        b"123456789012345678901",
        b"\0",
        b"\xff1",
    ];
    for value in texts {
        store.set(b"n", value).unwrap();
        let before = store.metadata(b"n").unwrap();
        for result in [
            store.incr(b"n", 1, Counter::or_create(0)),
            store.decr(b"n", 1, Counter::or_create(0)),
            store.incr_by(b"n", 1, Counter::or_create(0)),
            store.inc_ref(b"n").map(Some),
            store.dec_ref(b"n"),
        ] {
            assert!(matches!(result, Err(WriteError::NotANumber)), "{value:?}: {result:?}");
        }
        assert_eq!(store.get(b"n").unwrap().as_deref(), Some(value));
        assert_eq!(store.metadata(b"n").unwrap(), before);
    }
}

#[test]
fn a_counter_is_an_ordinary_value_otherwise() {
    let (_scratch, store) = stage("counters-plain");
    store.incr(b"n", 1, Counter::or_create(41)).unwrap();
    store.append(b"n", b"7").unwrap();
    assert_eq!(store.incr(b"n", 1, EXISTING).unwrap(), Some(418));
    store.set(b"n", b"text").unwrap();
    store.set(b"n", b"5").unwrap();
    assert_eq!(store.incr(b"n", 1, EXISTING).unwrap(), Some(6));
    assert_eq!(store.take(b"n").unwrap().as_deref(), Some(&b"6"[..]));
}

#[test]
fn reference_counts_delete_at_zero() {
    let (_scratch, store) = stage("counters-refs");
    assert_eq!(store.dec_ref(b"r").unwrap(), None);
    for number in 1..=5 {
        assert_eq!(store.inc_ref(b"r").unwrap(), number);
    }
    assert_eq!(text(&store, b"r"), "5");
    for number in (0..5).rev() {
        assert_eq!(store.dec_ref(b"r").unwrap(), Some(number));
    }
    assert!(!store.contains_key(b"r").unwrap());
    assert_eq!(store.len(), 0);
}

/// Of those who release at once, exactly one sees the zero.
#[test]
fn exactly_one_sees_the_last_reference_go() {
    let _watchdog = Watchdog::start("counters-last");
    let scratch = Scratch::new("counters-last");
    let store = tiny().open(scratch.store("counters")).unwrap();
    let gate = hashmere_testkit::threads::Gate::new();
    let zeros = std::sync::atomic::AtomicU64::new(0);
    const ROUNDS: usize = 3000;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let store = Options::new().open(store.path()).unwrap();
                for round in 0..ROUNDS {
                    let key = payload::key(round as u64);
                    store.inc_ref(&key).unwrap();
                    gate.pass(3, round);
                    let last = store.dec_ref(&key).unwrap() == Some(0);
                    zeros.fetch_add(u64::from(last), std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(zeros.into_inner(), ROUNDS as u64);
    assert_eq!(store.len(), 0);
}

#[test]
fn eight_processes_add_up() {
    let _watchdog = Watchdog::start("counters-eight");
    let scratch = Scratch::new("counters-eight");
    let store = tiny().open(scratch.store("counters")).unwrap();
    let path = store.path().display();
    let mut workers: Vec<Worker> = (0..8).map(|_| Worker::start(worker!(), "hammer", &[&path, &5, &"incr"])).collect();
    workers.iter_mut().for_each(|worker| worker.expect("ready"));
    std::thread::sleep(Duration::from_secs(2));
    let first = || text(&store, &payload::key(0)).parse::<u64>().unwrap();
    wait_until("they have counted for a while", LIMIT, || first() > 1000);
    let mut total = 0;
    for mut worker in workers {
        worker.no_more();
        total += worker.hear(LIMIT).strip_prefix("added ").unwrap().parse::<u64>().unwrap();
        worker.finish(LIMIT).ok("hammer");
    }
    for key in 0..5 {
        assert_eq!(text(&store, &payload::key(key)), total.to_string(), "counter {key}");
    }
}
