//! Promise: a store starts small, grows as needed without a limit fixed at creation, stays bounded under endless
//! overwriting, and gives memory back after deletes while it is open.
//! Catches: leaked segments, space that only grows, deletes that free nothing, an absurd empty size.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store};
use hashmere_testkit::files::{allocated, apparent};
use hashmere_testkit::limits::{times, Watchdog};
use hashmere_testkit::payload;
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, small, tiny};

fn put_and_get(store: &Store, count: u64) {
    for number in 0..count {
        let stored = store.set(&payload::key(number), &payload::encode(number)).unwrap();
        assert!(stored.created, "key {number}");
        // What was just written and what was written long ago.
        for read in [number, number / 2, number / 1000] {
            assert_eq!(store.get(&payload::key(read)).unwrap(), Some(payload::encode(read)), "{read} at {number}");
        }
    }
    for number in 0..count {
        assert_eq!(store.get(&payload::key(number)).unwrap(), Some(payload::encode(number)), "key {number}");
    }
    assert_eq!(store.len(), count);
    assert_eq!(store.keys().count() as u64, count);
    assert_clean(store);
}

#[test]
fn from_a_few_kilobytes_with_every_key_readable_all_the_time() {
    let _watchdog = Watchdog::start("growth-tiny");
    let scratch = Scratch::new("growth-tiny");
    let store = tiny().open(scratch.store("grown")).unwrap();
    put_and_get(&store, 60_000);
    let stats = store.stats();
    assert!(stats.splits > 1000 && stats.index_depth > 5, "{stats:?}");
}

#[test]
fn in_the_default_geometry() {
    let _watchdog = Watchdog::start("growth-default");
    let scratch = Scratch::new("growth-default");
    let count = times(300_000);
    put_and_get(&Options::new().open(scratch.store("grown")).unwrap(), count);
}

#[test]
fn an_empty_store_costs_little() {
    let scratch = Scratch::new("growth-empty");
    let store = Options::new().open(scratch.store("empty")).unwrap();
    let (real, shown) = (allocated(store.path()), apparent(store.path()));
    println!("an empty store: {real} bytes allocated, {shown} apparent");
    assert!(real <= 128 << 10, "{real} bytes are allocated for an empty store");
    assert!(shown <= 2 << 20, "an empty store shows {shown} bytes");
}

#[test]
fn deletes_give_memory_back_without_reopening() {
    let _watchdog = Watchdog::start("growth-back");
    let scratch = Scratch::new("growth-back");
    let mut rng = Rng::for_test("growth-back");
    for (name, options) in [("default", Options::new()), ("small", small())] {
        let store = options.open(scratch.store(name)).unwrap();
        const COUNT: u64 = 150_000;
        for number in 0..COUNT {
            store.set(&payload::key(number), &payload::encode_len(number, 200)).unwrap();
        }
        let full = allocated(store.path());
        let mut order: Vec<u64> = (0..COUNT).collect();
        rng.shuffle(&mut order);
        let (deleted, left) = order.split_at(COUNT as usize / 10 * 9);
        deleted.iter().for_each(|&number| assert!(store.delete(&payload::key(number)).unwrap()));
        let by_itself = allocated(store.path());
        // A call does a bounded amount of work.
        for call in 0.. {
            assert!(call < 1000, "{name}: compact() always finds more");
            if store.compact().unwrap() == 0 {
                break;
            }
        }
        let cleaned = allocated(store.path());
        println!("{name}: {full} bytes full, {by_itself} after deletes, {cleaned} after compact");
        // A tenth is left; the index keeps its size.
        assert!(by_itself * 100 < full * 60, "{name}: deletes alone left {by_itself} of {full} bytes");
        assert!(cleaned * 100 < full * 30, "{name}: {cleaned} of {full} bytes are still allocated");
        for number in left {
            let found = store.get(&payload::key(*number)).unwrap();
            assert_eq!(found, Some(payload::encode_len(*number, 200)), "key {number}");
        }
        assert_clean(&store);
    }
}

#[test]
fn endless_overwriting_is_bounded() {
    let _watchdog = Watchdog::start("growth-overwrite");
    let scratch = Scratch::new("growth-overwrite");
    let mut rng = Rng::for_test("growth-overwrite");
    for (name, options) in [("tiny", tiny()), ("default", Options::new())] {
        let store = options.open(scratch.store(name)).unwrap();
        let mut write = |rounds: u64| {
            for round in 0..rounds {
                let number = rng.below(2000);
                store.set(&payload::key(number), &payload::encode_len(round, 300)).unwrap();
            }
            allocated(store.path())
        };
        let early = write(30_000);
        let more = times(300_000);
        let late = write(more);
        println!("{name}: {early} bytes after 30,000 writes, {late} after {more} more");
        let live = 2000 * 400;
        assert!(late < early * 13 / 10 + (1 << 20), "{name}: grows under overwriting: {early}, {late}");
        assert!(late < live * 4 + (2 << 20), "{name}: {late} bytes for {live} bytes of records");
        assert_clean(&store);
    }
}

#[test]
fn large_values_are_given_back_at_once() {
    let scratch = Scratch::new("growth-large");
    let store = Options::new().open(scratch.store("large")).unwrap();
    for round in 0..200 {
        store.set(b"large", &payload::encode_len(round, 3 << 20)).unwrap();
    }
    let used = allocated(store.path());
    assert!(used < 16 << 20, "{used} bytes for one value of 3 MiB that was overwritten 200 times");
    assert!(apparent(store.path()) < 64 << 20, "{} bytes apparent", apparent(store.path()));
}

#[test]
fn expected_items_save_the_splits() {
    let scratch = Scratch::new("growth-expected");
    let store = Options::new().expected_items(100_000).open(scratch.store("expected")).unwrap();
    let made = store.stats().splits;
    for number in 0..100_000 {
        store.set(&payload::key(number), b"v").unwrap();
    }
    let stats = store.stats();
    assert!(stats.splits <= made + 4, "{} splits although the size was known", stats.splits - made);
    assert_eq!(stats.items, 100_000);
}
