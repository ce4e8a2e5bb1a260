//! Promise: pools come and go at run time while the keys of the same store are in full use, and `check` looks on.
//! Catches: a region laid over records or the other way round, room that is not free after a drop, a `check` that takes
//! a pool for damage, operations of queues that disturb keys.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store};
use hashmere_queue::{Endpoint, Kind, Pool, PoolOptions, QueueError, QueueOptions};
use hashmere_testkit::assert_clean;
use hashmere_testkit::limits::{lasting, thread_cpu, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::threads::Background;
use hashmere_testkit::worker;
use std::time::{Duration, Instant};

const KEYS: u64 = 400;

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// A value that says whose it is, of 24 to 3,000 bytes.
fn value(number: u64, round: u64) -> Vec<u8> {
    let mut value = [number, round, number ^ round].map(u64::to_le_bytes).concat();
    value.resize(24 + (number * 977 + round * 31) as usize % 3000, number as u8);
    value
}

fn assert_whole(number: u64, bytes: &[u8]) {
    let round = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
    assert_eq!(bytes, value(number, round), "key {number} of round {round}");
}

/// Sets, deletes and reads its keys; no other process writes them.
fn use_keys(store: Store, mut rng: Rng) -> Background {
    let mut now: Vec<Option<u64>> = vec![None; KEYS as usize];
    Background::repeat(move |round| {
        let number = rng.below(KEYS);
        let was = now[number as usize];
        let found = store.get(&key(number)).unwrap();
        assert_eq!(found, was.map(|round| value(number, round)), "key {number}");
        now[number as usize] = if rng.chance(20) {
            assert_eq!(store.delete(&key(number)).unwrap(), was.is_some());
            None
        } else {
            store.set(&key(number), &value(number, round)).unwrap();
            Some(round)
        };
    })
}

/// Scans them, and looks the store over.
fn look_on(store: Store) -> Background {
    Background::repeat(move |round| {
        for item in store.iter() {
            let pair = item.unwrap();
            if let Some(number) = pair.key.strip_prefix(b"key ") {
                assert_whole(std::str::from_utf8(number).unwrap().parse().unwrap(), &pair.value);
            }
        }
        if round % 4 == 0 {
            assert_clean(&store);
        }
    })
}

/// Fills every element with its number, moves all of them round, and looks at each.
fn use_pool(pool: &Pool, endpoint: &mut Endpoint, kind: Kind) {
    let queue = pool.queue_with("used", QueueOptions::new().kind(kind)).unwrap();
    let mut moved = 0;
    while moved < pool.elements() {
        let n = endpoint.pop_many(pool.free(), 100).unwrap();
        for i in 0..n {
            endpoint.batch_mut(i).fill((moved + i) as u8);
        }
        assert_eq!(endpoint.push_many(&queue, n).unwrap(), n);
        moved += n;
    }
    let mut seen = 0;
    while let Some(element) = endpoint.pop(&queue).unwrap() {
        assert!(element.iter().all(|byte| *byte == seen as u8), "element {seen} is not what it was");
        seen += 1;
        assert!(element.push(pool.free()).unwrap().is_none());
    }
    assert_eq!(seen, pool.elements());
}

/// What is queued, what is in an endpoint and which client holds it: none of it is a key.
#[test]
fn a_clear_leaves_pools_as_they_are() {
    let _watchdog = Watchdog::start("pools-clear");
    let scratch = Scratch::new("pools-clear");
    let store = Options::new().open(scratch.store("pools")).unwrap();
    let again = Options::new().open(store.path()).unwrap();
    let pool = PoolOptions::new(8, 16).create(&store, "pool").unwrap();
    let queue = pool.queue("a").unwrap();
    let endpoint = pool.endpoint().unwrap();
    for n in 0..3 {
        let mut element = endpoint.pop(pool.free()).unwrap().expect("a free one");
        element.fill(n);
        assert!(element.push(&queue).unwrap().is_none());
    }
    let held = endpoint.pop(&queue).unwrap().expect("the first");
    for round in 0..20 {
        store.set(b"key", b"value").unwrap();
        if round % 2 == 0 { &store } else { &again }.clear().unwrap();
        assert_eq!(store.len(), 0, "round {round}");
    }
    assert!(held.iter().all(|byte| *byte == 0));
    assert!(held.push(&queue).unwrap().is_none());
    for n in [1, 2, 0] {
        let element = endpoint.pop(&queue).unwrap().expect("it was queued");
        assert!(element.iter().all(|byte| *byte == n), "not element {n}");
        assert!(element.push(pool.free()).unwrap().is_none());
    }
    assert!(endpoint.pop(&queue).unwrap().is_none() && Pool::open(&again, "pool").unwrap().stats().held == 0);
    assert_clean(&store);
}

#[test]
fn pools_come_and_go_beside_keys_in_use() {
    let time = lasting(Duration::from_secs(5));
    let _watchdog = Watchdog::start("pools");
    let scratch = Scratch::new("pools");
    let mut rng = Rng::for_test("pools");
    let store = Options::new().max_bytes(64 << 20).open(scratch.store("pools")).unwrap();
    let path = store.path().display();
    let (keys, looks) = (use_keys(store.clone(), Rng::from_seed(rng.word())), look_on(store.clone()));
    let kinds = [Kind::Mpmc, Kind::Mpsc, Kind::Spsc];
    let (begin, mut made, mut kept) = (Instant::now(), 0, Vec::new());
    while begin.elapsed() < time || made <= 3 || keys.rounds() <= 100 || looks.rounds() <= 1 {
        let name = format!("pool {}", rng.below(6));
        let (elements, bytes) = (16 + rng.below(500), 16 + rng.below(3000));
        let Ok(pool) = PoolOptions::new(elements, bytes).create(&store, &name) else {
            assert!(Pool::remove(&store, &name).unwrap(), "it is there already");
            continue;
        };
        made += 1;
        let kind = kinds[rng.index(3)];
        let mut endpoint = pool.endpoint().unwrap();
        use_pool(&pool, &mut endpoint, kind);
        match rng.below(4) {
            // Dropped while it is open, and used on.
            0 => {
                assert!(Pool::remove(&store, &name).unwrap());
                assert!(matches!(pool.endpoint(), Err(QueueError::Removed)));
                use_pool(&pool, &mut endpoint, kind);
                drop(endpoint);
                kept.push(pool);
                kept.truncate(2);
            }
            // Used by a process that is killed.
            1 => {
                drop(endpoint);
                let worker = Worker::start(worker!(), "queue", &[&path, &name, &rng.word(), &"free", &"b"]);
                std::thread::sleep(Duration::from_micros(rng.below(30_000)));
                worker.kill();
                pool.recover().unwrap();
                assert_eq!(pool.stats().held, 0);
                assert!(Pool::remove(&store, &name).unwrap());
            }
            // Used by one that ends, and left where it is.
            2 => {
                let worker = Worker::start(worker!(), "queue", &[&path, &name, &rng.word(), &"free", &"b"]);
                worker.finish(LIMIT).ok("queue");
                assert_eq!(pool.stats().held, 0);
            }
            _ => assert!(Pool::remove(&store, &name).unwrap()),
        }
    }
    let (writes, looked) = (keys.finish(), looks.finish());
    println!("pools: {made} pools beside {writes} operations, {looked} scans");
    kept.clear();
    for name in Pool::list(&store) {
        assert!(Pool::remove(&store, &name).unwrap());
    }
    store.compact().unwrap();
    assert_eq!(store.stats().regions, 0);
    let report = store.check();
    assert!(report.is_clean(), "{:#?}", report.problems);
}

#[test]
fn what_cannot_be_is_refused_at_once_and_says_why() {
    let _watchdog = Watchdog::start("pools-refused");
    let scratch = Scratch::new("pools-refused");
    let store = Options::new().open(scratch.store("pools")).unwrap();
    for name in ["", "a\0b", &"x".repeat(129)] {
        let errors = [
            Pool::open(&store, name).unwrap_err(),
            Pool::remove(&store, name).unwrap_err(),
            PoolOptions::new(4, 8).open(&store, name).unwrap_err(),
            PoolOptions::new(4, 8).create(&store, name).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.code() == 62), "{errors:?}");
    }
    // Nothing has so much room, and nothing is tried to find out.
    let begin = thread_cpu();
    let error = PoolOptions::new(1 << 31, 64).create(&store, "large").unwrap_err();
    assert!(matches!(error, QueueError::NoRoom { .. }) && matches!(error.code(), 12 | 31), "{error}");
    assert!(error.to_string().contains("in one piece are needed"), "{error}");
    let took = thread_cpu() - begin;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(store.stats().bytes_allocated < 8 << 20);
    PoolOptions::new(4, 8).create(&store, "small").unwrap();
}
