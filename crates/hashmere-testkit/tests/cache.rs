//! Promise: a cache stays within its size forever, keeps what is used, and drops first what has expired.
//! Catches: growth beyond the limit, Full errors in cache mode, eviction of hot keys, live keys that go before expired
//! ones.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Mode, Options, Store, Ttl};
use hashmere_testkit::files::{allocated, apparent};
use hashmere_testkit::limits::{lasting, times, Watchdog};
use hashmere_testkit::payload;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, small, tiny, worker, BASE};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

const ROOM: u64 = 1 << 20;
const MAX: u64 = BASE + ROOM;
/// The maximum is rounded up to whole segments.
const ROUNDING: u64 = 8192;

fn cache(scratch: &Scratch) -> Store {
    small().max_bytes(MAX).mode(Mode::Cache).open(scratch.store("cache")).unwrap()
}

fn set(store: &Store, number: u64) {
    store.set(&payload::key(number), &payload::encode(number)).unwrap();
}

/// Whether the key is there; if so, with its value.
fn holds(store: &Store, number: u64) -> bool {
    match store.get(&payload::key(number)).unwrap() {
        Some(value) => {
            assert_eq!(payload::decode(&value), Ok(number), "a wrong value");
            true
        }
        None => false,
    }
}

/// As a cache is used: what is missing is stored. Whether it was there.
fn asks(store: &Store, number: u64) -> bool {
    let (key, value) = (payload::key(number), payload::encode_len(number, 200));
    match store.get(&key).unwrap() {
        Some(there) => {
            assert!(there == value, "a wrong value of {number}");
            true
        }
        None => {
            store.set(&key, &value).unwrap();
            false
        }
    }
}

/// Asks for other keys until one is evicted. Returns how many there was room for.
fn fill(store: &Store) -> u64 {
    let mut room = 0;
    while store.stats().evictions == 0 {
        asks(store, 1_000_000 + room);
        room += 1;
    }
    room
}

#[test]
fn stays_within_its_size_and_keeps_what_is_read() {
    let _watchdog = Watchdog::start("cache-hot");
    let scratch = Scratch::new("cache-hot");
    let store = cache(&scratch);
    let hot = 0..50;
    hot.clone().for_each(|number| set(&store, number));
    let (mut hits, mut reads) = (0, 0);
    for number in 100..100_000 {
        set(&store, number);
        assert!(holds(&store, number), "the newest key is gone at once");
        if number % 4 == 0 {
            let read = number / 4 % 50;
            reads += 1;
            if holds(&store, read) {
                hits += 1;
            } else {
                // As a cache is used: what is missing is fetched from elsewhere and stored.
                set(&store, read);
            }
        }
        if number % 1000 == 0 {
            assert!(apparent(store.path()) <= MAX + ROUNDING, "{} bytes at {number}", apparent(store.path()));
            assert!(allocated(store.path()) <= MAX + ROUNDING);
        }
    }
    let kept = hot.filter(|&number| holds(&store, number)).count();
    let old = (1000..2000).filter(|&number| holds(&store, number)).count();
    let count = store.len();
    println!("{hits} of {reads} hot reads hit; {kept} of 50 hot, {old} of 1000 old kept; {count} keys");
    assert!(kept >= 47 && hits * 100 >= reads * 95, "hot keys were evicted: {kept} of 50, {hits} of {reads}");
    assert!(old <= 100, "{old} of 1000 cold keys are still there");
    assert!(store.stats().evictions > 50_000);
    // The space is used, although the longest of these values take a segment each.
    let live = store.stats().bytes_live;
    assert!(live * 3 > ROOM, "a cache of {ROOM} bytes holds {live} bytes in {count} values");
    assert_clean(&store);
}

/// Keys that are asked for again and again, in a stream of many more that are asked for once.
#[test]
fn what_is_wanted_once_takes_nothing_with_it() {
    let _watchdog = Watchdog::start("cache-once");
    let scratch = Scratch::new("cache-once");
    let store = cache(&scratch);
    let room = fill(&store);
    store.clear().unwrap();
    let wanted = room / 2;
    let mut rng = Rng::for_test("cache-once");
    let (mut hits, mut asked) = (0, 0);
    for step in 0..40 * wanted {
        let hit = asks(&store, rng.below(wanted));
        if step >= 20 * wanted {
            asked += 1;
            hits += u64::from(hit);
        }
        asks(&store, 2_000_000 + step);
    }
    println!("room for {room}; {hits} of {asked} hits");
    assert!(hits * 100 >= asked * 90, "{hits} of {asked} requests for what is wanted again were hits");
    assert_clean(&store);
}

/// What was wanted is not wanted any more: it goes.
#[test]
fn what_was_wanted_once_upon_a_time_goes() {
    let _watchdog = Watchdog::start("cache-stale");
    let scratch = Scratch::new("cache-stale");
    let store = cache(&scratch);
    let room = fill(&store);
    // Each phase has other keys, and asks for all of them in turn: more than are ever on probation.
    let wanted = room * 7 / 10;
    for phase in 0..8 {
        let keys = phase * 100_000..phase * 100_000 + wanted;
        let mut last = 0;
        for _ in 0..8 {
            last = keys.clone().filter(|&number| asks(&store, number)).count() as u64;
        }
        println!("phase {phase}: {last} of {wanted} hits in the last round");
        assert!(last * 10 >= wanted * 8, "phase {phase}: {last} of {wanted} hits in the eighth round");
    }
    assert_clean(&store);
}

#[test]
fn expired_go_before_live() {
    let _watchdog = Watchdog::start("cache-expired");
    let scratch = Scratch::new("cache-expired");
    let store = cache(&scratch);
    let value = |number| payload::encode_len(number, 500);
    let room = {
        let mut number = 1_000_000;
        while store.stats().evictions == 0 {
            store.set(&payload::key(number), &value(number)).unwrap();
            number += 1;
        }
        number - 1_000_000
    };
    store.clear().unwrap();
    store.compact().unwrap();
    // A third live and never read, a third about to expire, then new ones that need the place of a third.
    let (live, short, new) = (0..room / 3, 10_000..10_000 + room / 3, 20_000..20_000 + room / 3);
    for (live, short) in live.clone().zip(short) {
        let soon = Attributes::NONE.ttl(Ttl::After(Duration::from_millis(300)));
        store.set_with(&payload::key(short), &value(short), soon).unwrap();
        store.set(&payload::key(live), &value(live)).unwrap();
    }
    std::thread::sleep(Duration::from_millis(400));
    new.clone().for_each(|number| {
        store.set(&payload::key(number), &value(number)).unwrap();
    });
    let kept = live.clone().filter(|&number| store.contains_key(&payload::key(number)).unwrap()).count() as u64;
    let kept_new = new.filter(|&number| store.contains_key(&payload::key(number)).unwrap()).count() as u64;
    println!("room for {room}: {kept} of {} live and {kept_new} new kept", live.end);
    assert!(
        kept * 100 >= live.end * 95,
        "live keys were dropped while expired ones were there: {kept} of {}",
        live.end
    );
    assert!(kept_new * 100 >= (room / 3) * 95);
}

#[test]
fn never_full_and_odd_sizes() {
    let _watchdog = Watchdog::start("cache-odd");
    let mut rng = Rng::for_test("cache-odd");
    let scratch = Scratch::new("cache-odd");
    let store = cache(&scratch);
    for round in 0..20_000 {
        let key = payload::key(rng.below(500));
        let len = *rng.pick(&[0usize, 8, 100, 3000, 9000, 40_000]);
        let value = payload::encode_len(round, len.max(8));
        store.set(&key, &value).unwrap_or_else(|error| panic!("round {round}, {len} bytes: {error:?}"));
        assert!(store.get(&key).unwrap() == Some(value), "round {round}");
        if round % 500 == 0 {
            assert!(apparent(store.path()) <= MAX + ROUNDING);
        }
    }
    assert_clean(&store);
}

/// A value finds its row of segments although everything is in use: small records, long ones, what other writers have
/// open.
#[test]
fn a_long_value_makes_its_row() {
    let _watchdog = Watchdog::start("cache-rows");
    let mut rng = Rng::for_test("cache-rows");
    let scratch = Scratch::new("cache-rows");
    let store = tiny().max_bytes(MAX).mode(Mode::Cache).open(scratch.store("cache")).unwrap();
    let gate = Mutex::new(());
    std::thread::scope(|scope| {
        let closed = gate.lock().unwrap();
        // Eight writers that have a segment open, scattered over the file, and then do nothing any more.
        for writer in 0..8 {
            (0..400).for_each(|number| set(&store, writer * 400 + number));
            let (ready, written) = std::sync::mpsc::channel();
            let (store, gate) = (&store, &gate);
            scope.spawn(move || {
                set(store, 500_000 + writer);
                ready.send(()).unwrap();
                drop(gate.lock());
            });
            written.recv().unwrap();
        }
        (0..20_000).for_each(|number| set(&store, number));
        make_rows(&store, &mut rng);
        drop(closed);
    });
    assert!(apparent(store.path()) <= MAX + ROUNDING);
    assert_clean(&store);
}

fn make_rows(store: &Store, rng: &mut Rng) {
    let stats = store.stats();
    // What stays where it is cuts the file into pieces: the index, the open segments of nine writers, the reserve. The
    // longest piece is at least as long as the mean.
    let fixed = stats.segments_index + 9 + 2;
    let row = (ROOM / 4096 - fixed) / (fixed + 1);
    println!("rows of {row} segments between {fixed} fixed ones");
    assert!(row >= 2, "{stats:?}");
    for round in 0..300 {
        let len = rng.below(row * 4096 - 64).max(8) as usize;
        let (key, value) = (payload::key(1_000_000 + round), payload::encode_len(round, len));
        store.set(&key, &value).unwrap_or_else(|error| panic!("round {round}, {len} bytes: {error:?}"));
        assert!(store.get(&key).unwrap() == Some(value), "round {round}");
        (0..20).for_each(|_| set(store, rng.below(20_000)));
    }
}

/// Eviction by several processes at once, in the smallest segments.
#[test]
fn several_processes_evict() {
    let _watchdog = Watchdog::start("cache-processes");
    let scratch = Scratch::new("cache-processes");
    let store = tiny().max_bytes(BASE + (512 << 10)).mode(Mode::Cache).open(scratch.store("cache")).unwrap();
    let path = store.path().display();
    let mut workers: Vec<Worker> =
        (0..3).map(|_| Worker::start(worker!(), "hammer", &[&path, &1500, &"grow"])).collect();
    workers.iter_mut().for_each(|worker| worker.expect("ready"));
    let begin = std::time::Instant::now();
    let mut seen = 0;
    while begin.elapsed() < lasting(Duration::from_secs(2)) || seen <= 1000 {
        for number in 0..1500 {
            if let Some(value) = store.get(&payload::key(number)).unwrap() {
                let tag = payload::decode(&value).unwrap();
                assert_eq!(tag & 0xffff, number, "the value of another key");
                seen += 1;
            }
        }
        assert!(apparent(store.path()) <= BASE + (512 << 10) + ROUNDING);
    }
    workers.into_iter().for_each(|worker| drop(worker.finish(LIMIT).ok("hammer")));
    assert_clean(&store);
}

#[test]
fn a_cache_needs_a_size() {
    let scratch = Scratch::new("cache-size");
    let path = scratch.store("cache");
    let error = Options::new().mode(Mode::Cache).open(&path).unwrap_err();
    assert!(matches!(error, hashmere::OpenError::BadOption { .. }), "{error:?}");
    assert!(!path.exists());
}

/// One of the smallest caches, filled by `threads` threads with values of up to this length.
fn fill_at_random(path: &Path, segments: u64, longest: u64, threads: u64, round: u64) {
    let options = Options::new().segment_bytes(4096).leaf_bytes([256, 512][round as usize % 2]).mode(Mode::Cache);
    // No process is stopped here: a writer that gets `Busy` did not wait long enough.
    let store = options.max_bytes(BASE + segments * 4096).busy_timeout(LIMIT).open(path).unwrap();
    let write = |thread: u64| {
        let mut rng = Rng::from_seed(round << 8 | thread);
        for write in 0..6000 / threads {
            let key = rng.below(1_000_000).to_string();
            let value = vec![b'v'; rng.below(longest) as usize];
            if rng.below(4) == 0 {
                let _ = store.get(key.as_bytes()).unwrap();
            }
            match store.set(key.as_bytes(), &value) {
                Ok(_) => {}
                Err(error) => {
                    let (len, stats) = (value.len(), store.stats());
                    panic!("{segments} segments, round {round}, write {write} of {len} bytes: {error}, {stats:?}");
                }
            }
        }
    };
    let write = &write;
    std::thread::scope(|scope| (0..threads).for_each(|thread| _ = scope.spawn(move || write(thread))));
    drop(store);
    std::fs::remove_file(path).unwrap();
}

/// Something can always go: where the index cannot grow, a record in the buckets of the key; where others write long
/// values, those.
#[test]
fn never_full() {
    let _watchdog = Watchdog::start("cache-never-full");
    let scratch = Scratch::new("cache-never-full");
    // Keys that are nearly all there is: the index takes more than half of the file, in pieces.
    for round in 0..times(60) {
        fill_at_random(&scratch.store(&format!("keys-{round}")), 64, 10, 1 + 7 * (round / 2 % 2), round);
    }
    for (segments, longest) in [(64, 1000), (64, 12_000), (24, 500), (12, 200)] {
        (0..8).for_each(|round| fill_at_random(&scratch.store("long"), segments, longest, 1, round));
    }
    // Rows of up to an eighth of the file, eight at a time.
    (0..4).for_each(|round| fill_at_random(&scratch.store("rows"), 64, 30_000, 8, round));
}
