//! What an observer says of a store is what was done in it.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store, Ttl};
use hashmere_observe::{Observer, Process, ProcessState, SegmentUse, Snapshot};
use hashmere_queue::{PoolOptions, QueueOptions};
use hashmere_testkit::forked::fork;
use hashmere_testkit::scratch::Scratch;
use std::process::Command;
use std::time::{Duration, Instant};

/// Far longer than anything takes here.
const LIMIT: Duration = Duration::from_secs(120);

fn key(i: u64) -> Vec<u8> {
    format!("key:{i}").into_bytes()
}

/// Waits until a snapshot is as it should be.
#[track_caller]
fn until(observer: &Observer, is_so: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let start = Instant::now();
    loop {
        let now = observer.snapshot();
        if is_so(&now) {
            return now;
        }
        assert!(start.elapsed() < LIMIT, "not within {LIMIT:?}: {now:#?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn operations_are_counted_to_one() {
    let scratch = Scratch::new("observe");
    let store = Store::open(scratch.store("s")).unwrap();
    let observer = Observer::open(store.path()).unwrap();
    let before = observer.snapshot();
    (0..1000).for_each(|i| assert!(store.set(&key(i), b"value").is_ok()));
    (0..700).for_each(|i| assert!(store.get(&key(i)).unwrap().is_some()));
    (0..300).for_each(|i| assert!(store.get(&key(5000 + i)).unwrap().is_none()));
    (0..50).for_each(|i| assert!(store.delete(&key(i)).unwrap()));
    let now = observer.snapshot();
    let done = now.totals.with(before.totals, u64::wrapping_sub);
    assert_eq!((done.sets, done.hits, done.misses, done.deletes), (1000, 700, 300, 50));
    assert_eq!((done.takeovers, done.evicted, done.expired), (0, 0, 0));
    assert_eq!((now.items, now.hit_ratio()), (950, Some(0.7)));

    let rates = now.since(&before);
    let count = |rate: f64| (rate * rates.seconds).round() as u64;
    assert_eq!((count(rates.total.sets), count(rates.total.hits), count(rates.total.misses)), (1000, 700, 300));
    assert_eq!(count(rates.items), 950);
    assert!((rates.total.hit_ratio().unwrap() - 0.7).abs() < 1e-9);
    assert_eq!(now.processes.len(), 1);
    let process = &now.processes[0];
    assert_eq!((process.pid, process.state), (std::process::id(), ProcessState::Running));
    assert!(process.command.contains("observe"), "{}", process.command);
    assert_eq!(count(rates.processes[0].operations()), 2050);
    // Nothing is done between two snapshots of a store at rest, not even by the observer.
    let later = observer.snapshot();
    assert_eq!((later.totals, later.items, later.since(&now).total.operations()), (now.totals, now.items, 0.0));
    assert_eq!(now.since(&now).processes.len(), 1);
}

#[test]
fn memory_and_segments_add_up() {
    let scratch = Scratch::new("observe");
    let store = Options::new().segment_bytes(16 << 10).open(scratch.store("s")).unwrap();
    PoolOptions::new(10, 24).open(&store, "jobs").unwrap();
    let observer = Observer::of(store.clone());
    for round in 0..3 {
        (0..2000).for_each(|i| assert!(store.set(&key(i), &[round; 100]).is_ok()));
        store.set(b"large", &vec![round; 100_000]).unwrap();
        let now = observer.snapshot();
        let memory = now.memory;
        let parts = [memory.live, memory.dead, memory.index, memory.regions, memory.other, memory.free];
        assert_eq!(parts.iter().sum::<u64>(), memory.total, "{memory:?}");
        assert_eq!(memory.total, now.segments.map.len() as u64 * (16 << 10));
        let stats = store.stats();
        assert_eq!((memory.live, memory.dead), (stats.bytes_live, stats.bytes_dead));
        assert_eq!(now.segments.count(SegmentUse::Index), stats.segments_index);
        assert_eq!(now.segments.count(SegmentUse::Region), stats.segments_region);
        assert_eq!(now.segments.count(SegmentUse::Large), stats.segments_large);
        assert_eq!(now.segments.count(SegmentUse::Free), stats.segments_free);
        assert!(now.segments.count(SegmentUse::Large) >= 7 && memory.live > 300_000, "{now:?}");
    }
}

#[test]
fn queues_logs_and_the_feed_are_seen_read_only() {
    let scratch = Scratch::new("observe");
    let store = Options::new().feed(1 << 20).open(scratch.store("s")).unwrap();
    let pool = PoolOptions::new(10, 24).max_queues(4).open(&store, "jobs").unwrap();
    let todo = pool.queue_with("todo", QueueOptions::new().bound(6)).unwrap();
    let log = hashmere_log::Log::open(&store, "events", hashmere_log::LogOptions::default()).unwrap();
    let observer = Observer::open(store.path()).unwrap();
    assert!(observer.store().is_read_only());
    let before = observer.snapshot();
    let mut endpoint = pool.endpoint().unwrap();
    endpoint.pop_many(pool.free(), 5).unwrap();
    endpoint.push_many(&todo, 3).unwrap();
    (0..20).for_each(|i| assert!(store.set(&key(i), b"value").is_ok()));
    log.line(hashmere_log::Level::Info, "a line").unwrap();
    let now = observer.snapshot();
    let (seen, stats) = (&now.pools[0], pool.stats());
    assert_eq!((seen.name.as_str(), seen.stats.held, seen.stats.endpoints), ("jobs", stats.held, stats.endpoints));
    assert_eq!(seen.stats.held, 2);
    let lens: Vec<_> = seen.stats.queues.iter().map(|q| (q.name.as_str(), q.len, q.bound)).collect();
    assert_eq!(lens, [("free", 5, 10), ("todo", 3, 6)]);
    let rates = now.since(&before);
    let count = |rate: f64| (rate * rates.seconds).round() as u64;
    assert_eq!(count(rates.pushed[&("jobs".to_string(), "todo".to_string())]), 3);
    assert_eq!(count(rates.feed), 20);
    let (seen, stats) = (&now.logs[0], log.stats().unwrap());
    assert_eq!((seen.name.as_str(), seen.stats.threads, seen.stats.rings_used), ("events", 1, 1));
    assert_eq!((seen.stats.lines, seen.stats.waiting_bytes), (stats.lines, stats.waiting_bytes));
    assert!(now.feed.is_some() && now.replica.is_none());
    // What is removed is seen no more.
    drop(endpoint);
    drop((todo, pool));
    hashmere_queue::Pool::remove(&store, "jobs").unwrap();
    assert!(observer.snapshot().pools.is_empty());
}

/// A child that holds a view of a key until it is killed.
fn holder(store: &Store) -> u32 {
    let (path, ready) = (store.path().to_path_buf(), b"ready");
    let child = fork(|| {
        let store = Store::open(&path).unwrap();
        let _view = store.view(b"held").unwrap().unwrap();
        store.set(ready, b"").unwrap();
        loop {
            std::thread::sleep(LIMIT);
        }
    });
    let start = Instant::now();
    while !store.contains_key(ready).unwrap() {
        assert!(start.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(1));
    }
    child.as_raw() as u32
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_stopped_process_is_named_with_what_it_holds_back() {
    let scratch = Scratch::new("observe");
    let store = Options::new().segment_bytes(64 << 10).open(scratch.store("s")).unwrap();
    store.set(b"held", &[7; 40_000]).unwrap();
    let observer = Observer::open(store.path()).unwrap();
    let pid = holder(&store);
    let process = move |now: &Snapshot| now.processes.iter().find(|p| p.pid == pid).cloned();
    let state = |now: &Snapshot| process(now).map(|p| p.state);
    let now = until(&observer, |now| state(now) == Some(ProcessState::Running));
    assert_eq!(process(&now).unwrap().views(), 1);
    assert_eq!(now.stuck_holders().count(), 0);

    signal("-STOP", pid);
    let now = until(&observer, |now| state(now) == Some(ProcessState::Stopped));
    let stuck: Vec<&Process> = now.stuck_holders().collect();
    assert_eq!((stuck.len(), stuck[0].pid, stuck[0].held_back()), (1, pid, 0));
    // What it holds is moved from under it, and then the segment cannot be free.
    store.delete(b"held").unwrap();
    (0..3000).for_each(|i| assert!(store.set(&key(i), &[1; 100]).is_ok()));
    (0..3000).for_each(|i| assert!(store.delete(&key(i)).is_ok()));
    store.compact().unwrap();
    let now = observer.snapshot();
    assert_eq!(process(&now).unwrap().held_back(), 1, "{now:#?}");
    assert_eq!(now.segments.map[process(&now).unwrap().pins[0].segment as usize], SegmentUse::PendingFree);

    signal("-KILL", pid);
    let now = until(&observer, |now| state(now) == Some(ProcessState::Crashed));
    assert_eq!(now.stuck_holders().count(), 1);
    // The next that looks after crashed processes repairs it.
    store.compact().unwrap();
    assert_eq!(process(&observer.snapshot()), None);
}

#[test]
fn evictions_and_expiry_are_told_apart() {
    let scratch = Scratch::new("observe");
    let options = Options::new().mode(hashmere::Mode::Cache).max_bytes(4 << 20).segment_bytes(64 << 10);
    let store = options.open(scratch.store("s")).unwrap();
    let observer = Observer::open(store.path()).unwrap();
    (0..20_000).for_each(|i| assert!(store.set(&key(i), &[1; 400]).is_ok()));
    let now = observer.snapshot();
    assert!(now.totals.evicted > 1000 && now.totals.expired == 0, "{:?}", now.totals);
    assert_eq!(now.totals.evicted, 20_000 - now.items);
    let attributes = hashmere::Attributes::NONE.ttl(Ttl::After(Duration::from_millis(1)));
    (0..100).for_each(|i| assert!(store.set_with(&key(100_000 + i), b"soon gone", attributes).is_ok()));
    std::thread::sleep(Duration::from_millis(5));
    store.compact().unwrap();
    assert_eq!(observer.snapshot().totals.expired, 100);
}

#[test]
fn a_store_that_another_one_took_the_place_of_is_removed() {
    let scratch = Scratch::new("observe");
    let store = Store::open(scratch.store("s")).unwrap();
    let observer = Observer::open(store.path()).unwrap();
    assert!(!observer.is_removed());
    Store::remove(store.path()).unwrap();
    assert!(observer.is_removed());
    let _other = Store::open(store.path()).unwrap();
    assert!(observer.is_removed());
    // It still gives figures: those of the file that it has.
    store.set(b"key", b"value").unwrap();
    assert_eq!(observer.snapshot().items, 1);
}

#[test]
fn damage_makes_wrong_figures_and_nothing_worse() {
    let scratch = Scratch::new("observe");
    let store = Options::new().segment_bytes(16 << 10).feed(1 << 20).open(scratch.store("s")).unwrap();
    let pool = PoolOptions::new(10, 24).open(&store, "jobs").unwrap();
    (0..200).for_each(|i| assert!(store.set(&key(i), &[1; 100]).is_ok()));
    let observer = Observer::open(store.path()).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(store.path()).unwrap();
    let words = file.metadata().unwrap().len() / 8;
    drop((pool, store));
    let mut rng = hashmere_testkit::rng::Rng::for_test("observe damage");
    let mut next = || rng.word();
    let mut before = observer.snapshot();
    for _ in 0..2000 {
        // Half of them in the header, the segment table and the first client records, which an observer reads most of.
        let place = next();
        let word = match place % 4 {
            0 => (place >> 8) % 64,
            1 => (64 << 10) / 8 + (place >> 8) % 1024,
            2 => (320 << 10) / 8 + (place >> 8) % 256,
            _ => (place >> 8) % words,
        };
        let value = if place & 16 == 0 { next() } else { next() >> 40 };
        std::os::unix::fs::FileExt::write_all_at(&file, &value.to_le_bytes(), word * 8).unwrap();
        let now = observer.snapshot();
        std::hint::black_box((now.since(&before), now.stuck_holders().count(), now.segments.condensed(80)));
        before = now;
    }
}
