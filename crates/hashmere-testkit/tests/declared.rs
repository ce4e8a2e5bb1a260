//! Promise: a pool, a log, a queue or a barrier of a size that cannot be is refused before anything is done for it, in
//! words that name what is wrong; the store has as many segments in use as before, and the file is as long and has as
//! much memory. Catches: sizes whose product overflows, room that is made before a size is looked at, or that a refusal
//! leaves behind.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Mode, Store};
use hashmere_engine::StoreHandle;
use hashmere_log::{Log, LogError, LogOptions};
use hashmere_queue::{Barrier, Pool, PoolOptions, QueueError, QueueOptions};
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{tiny, BASE};
use std::os::unix::fs::MetadataExt;

/// What a store has taken: segments by kind, length of the file and memory behind it.
fn taken(store: &Store) -> [u64; 7] {
    let (stats, file) = (store.stats(), std::fs::metadata(store.path()).unwrap());
    let segments =
        [stats.segments_total, stats.segments_free, stats.segments_log, stats.segments_region, stats.regions];
    let [total, free, log, region, regions] = segments;
    [total, free, log, region, regions, file.len(), file.blocks()]
}

/// A limit, and the text beside it.
fn around(limit: u64) -> [u64; 8] {
    [0, 1, limit - 1, limit, limit + 1, 1 << 48, 1 << 63, u64::MAX]
}

/// Stores that have room for some things and not for others. (Without a maximum, what is possible is made.)
fn stores(scratch: &Scratch) -> [Store; 3] {
    let max = BASE + (64 << 12);
    let small = |name: &str, mode| tiny().mode(mode).max_bytes(max).open(scratch.store(name)).unwrap();
    let stores = [
        small("strict", Mode::Strict),
        small("cache", Mode::Cache),
        tiny().durable().max_bytes(max).open(scratch.store("durable")).unwrap(),
    ];
    for store in &stores {
        (0..20u8).for_each(|i| assert!(store.set(&[i], b"value").is_ok()));
        // Whatever a first request makes for all later ones is there: the identity of this process, a writer.
        store.shared().client().unwrap();
    }
    stores
}

/// Nothing is left of what is refused; what is made is taken back. Which of both it was.
fn try_it<R, E: std::fmt::Display>(
    store: &Store,
    what: &str,
    make: impl FnOnce() -> Result<R, E>,
    code: fn(&E) -> i32,
) -> bool {
    let before = taken(store);
    match make() {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(taken(store), before, "{what}: {error}");
            // A size that cannot be, more than there may be, more than the file may have, no room, no memory.
            let known = [31, 33, 12, 62, 71];
            assert!(known.contains(&code(&error)), "{what}: {} {error}", code(&error));
            assert!(error.to_string().len() > 20, "{what}: {error}");
            false
        }
    }
}

fn pool(store: &Store, what: &str, options: &PoolOptions) -> bool {
    let made = try_it(store, what, || options.create(store, "pool").map(drop), QueueError::code);
    if made {
        assert!(Pool::remove(store, "pool").unwrap());
    }
    made
}

#[test]
fn pools_of_any_size() {
    let _watchdog = Watchdog::start("sizes-pools");
    let scratch = Scratch::new("sizes-pools");
    for store in stores(&scratch) {
        let (mut made, mut refused) = (0, 0);
        let mut each = |what: &str, limit: u64, options: &dyn Fn(u64) -> PoolOptions| {
            for size in around(limit) {
                match pool(&store, &format!("{what} {size}"), &options(size)) {
                    true => made += 1,
                    false => refused += 1,
                }
            }
        };
        let few = || PoolOptions::new(8, 8).max_endpoints(2).batch(2).max_queues(2);
        each("elements", 1 << 31, &|n| PoolOptions::new(n, 8).max_endpoints(2).batch(2));
        each("elements of the longest", 1 << 31, &|n| PoolOptions::new(n, u32::MAX.into()).max_endpoints(2).batch(2));
        each("bytes", u32::MAX.into(), &|n| PoolOptions::new(8, n).max_endpoints(2).batch(2));
        each("bytes of the most", u32::MAX.into(), &|n| PoolOptions::new(1 << 31, n).max_endpoints(2).batch(2));
        each("queues", 1 << 12, &|n| few().max_queues(n));
        each("endpoints", 1 << 12, &|n| few().max_endpoints(n));
        each("batch", 1 << 20, &|n| few().batch(n));
        each("all", 1 << 12, &|n| PoolOptions::new(n, n).max_endpoints(n).batch(n).max_queues(n));
        println!("{made} made, {refused} refused");
        assert!(made >= 6 && refused >= 40);
        // What there is room for, and what there can be none for.
        let one = |bytes: u64| {
            pool(&store, "one element", &PoolOptions::new(1, bytes).max_endpoints(1).batch(1).max_queues(1))
        };
        assert_eq!([50_000, 100_000, 64 << 12, 100 << 12].map(one), [true, true, false, false]);
    }
}

#[test]
fn logs_of_any_size() {
    let _watchdog = Watchdog::start("sizes-logs");
    let scratch = Scratch::new("sizes-logs");
    for store in stores(&scratch) {
        let (mut made, mut refused) = (0, 0);
        let mut each = |what: &str, limit: u64, options: &dyn Fn(u64) -> LogOptions| {
            for size in around(limit) {
                let open = || Log::open(&store, "log", options(size)).map(drop);
                if try_it(&store, &format!("{what} {size}"), open, LogError::code) {
                    assert!(Log::remove(&store, "log").unwrap());
                    made += 1;
                } else {
                    refused += 1;
                }
            }
        };
        let few = || LogOptions::new().rings(1).ring_bytes(4096).history_bytes(4096);
        each("rings", 1024, &|n| few().rings(n));
        each("rings of the longest", 1024, &|n| few().rings(n).ring_bytes(32 << 20));
        each("bytes of a ring", 32 << 20, &|n| few().ring_bytes(n));
        each("history", 1 << 40, &|n| few().history_bytes(n));
        each("all", 1024, &|n| few().rings(n).ring_bytes(n).history_bytes(n));
        println!("{made} made, {refused} refused");
        assert!(made >= 4 && refused >= 25);
    }
}

#[test]
fn queues_and_barriers_of_any_size() {
    let _watchdog = Watchdog::start("sizes-queues");
    let scratch = Scratch::new("sizes-queues");
    let store = tiny().max_bytes(BASE + (64 << 12)).open(scratch.store("strict")).unwrap();
    let pool = PoolOptions::new(8, 8).max_queues(16).max_endpoints(2).batch(2).create(&store, "pool").unwrap();
    for bound in around(8) {
        let (before, queues) = (taken(&store), pool.queues().len());
        let made = pool.queue_with(&format!("q{bound}"), QueueOptions::new().bound(bound));
        assert_eq!(made.is_ok(), bound > 0, "{bound}: {made:?}");
        assert_eq!(pool.queues().len(), queues + usize::from(bound > 0));
        assert_eq!(taken(&store), before, "a queue needs nothing but its pool");
        if let Ok(queue) = made {
            assert_eq!(queue.bound(), bound.min(8));
        }
    }
    // What an endpoint is asked for at a time is bounded by its batch.
    let mut endpoint = pool.endpoint().unwrap();
    for max in around(2) {
        let popped = endpoint.pop_many(pool.free(), max).unwrap();
        assert_eq!(popped, max.min(2));
        assert_eq!(endpoint.push_many(pool.free(), u64::MAX).unwrap(), popped);
    }
    store.shared().client().unwrap();
    for size in around(1 << 32) {
        let joined = try_it(
            &store,
            &format!("barrier of {size}"),
            || Barrier::join(&store, b"barrier", size).map(drop),
            QueueError::code,
        );
        assert_eq!(joined, (1..=1 << 32).contains(&size), "barrier of {size}");
        store.delete(b"barrier").unwrap();
    }
}
