//! The known pitfalls of shared hash tables, each of which has sunk a system of this kind; one test each.
//! Further ones have a file of their own: `stopped` (locks stolen from a paused owner), `full` (SIGBUS), `collisions`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Change, Counter, Expected, Key, Options, Store, Update, WriteError};
use hashmere_testkit::limits::{lasting, queued_ns, Watchdog};
use hashmere_testkit::payload;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::threads::{Background, Gate};
use hashmere_testkit::{assert_clean, small, tiny, worker, BASE};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn stage(name: &'static str, options: Options) -> (Watchdog, Scratch, Store) {
    let watchdog = Watchdog::start(name);
    let scratch = Scratch::new(name);
    let store = options.open(scratch.store("trap")).unwrap();
    (watchdog, scratch, store)
}

/// Trap: two writers insert the same new key into two free slots.
#[test]
fn two_writers_of_a_new_key_do_not_make_two() {
    const ROUNDS: usize = 20_000;
    const THREADS: usize = 3;
    let (_watchdog, _scratch, store) = stage("trap-duplicate", tiny());
    let gate = Gate::new();
    let winners: Vec<AtomicU64> = (0..ROUNDS).map(|_| AtomicU64::new(0)).collect();
    let (end, rounds) = (Instant::now() + Duration::from_secs(20), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            // A handle of its own for each: nothing is shared but the file.
            let store = Options::new().open(store.path()).unwrap();
            let (gate, winners, rounds) = (&gate, &winners, &rounds);
            scope.spawn(move || {
                for (round, winner) in winners.iter().enumerate() {
                    let key = payload::key(round as u64);
                    if !gate.pass_before(end, THREADS, round) {
                        break;
                    }
                    rounds.store(round as u64 + 1, Ordering::Relaxed);
                    let won = match (round + thread) % 3 {
                        0 => store.set(&key, b"set").unwrap().created,
                        _ => store.add(&key, b"added", Attributes::NONE).unwrap().is_some(),
                    };
                    winner.fetch_add(u64::from(won), Ordering::Relaxed);
                }
            });
        }
    });
    let rounds = rounds.into_inner();
    let wrong = winners[..rounds as usize].iter().position(|winner| winner.load(Ordering::Relaxed) != 1);
    assert_eq!(wrong, None, "a key was not created exactly once");
    let mut keys: Vec<Vec<u8>> = store.keys().collect::<Result<_, _>>().unwrap();
    assert_eq!((store.len(), keys.len() as u64), (rounds, rounds));
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len() as u64, rounds, "a scan found a key twice");
    assert_clean(&store);
}

/// Trap: the bits of a slot return to what they were while a reader sleeps; a segment is reused under a reader.
#[test]
fn a_reader_that_sleeps_is_not_fooled_by_reuse() {
    let (_watchdog, _scratch, store) = stage("trap-aba", tiny().max_bytes(BASE + (64 << 10)));
    let mut rng = Rng::for_test("trap-aba");
    // Few keys in few segments of a small store: the same places are written again and again.
    let mut writer = Worker::start(worker!(), "hammer", &[&store.path().display(), &6, &"set"]);
    writer.expect("ready");
    let mut reader = Worker::start(worker!(), "reader", &[&store.path().display(), &6]);
    reader.expect("ready");
    let begin = Instant::now();
    // On a busy machine until places were reused.
    while begin.elapsed() < lasting(Duration::from_secs(3)) || store.stats().recycle_epoch <= 100 {
        std::thread::sleep(Duration::from_micros(rng.below(300)));
        reader.stop();
        // Long enough for the writer to go round the whole file.
        std::thread::sleep(Duration::from_micros(500 + rng.below(3000)));
        reader.go_on();
    }
    reader.no_more();
    println!("reader: {}", reader.hear(LIMIT));
    reader.finish(LIMIT).ok("the reader met a wrong value");
    writer.finish(LIMIT).ok("writer");
}

/// Trap: a put that deletes and then inserts shows a gap to readers.
#[test]
fn no_write_shows_a_gap() {
    let (_watchdog, _scratch, store) = stage("trap-gap", tiny());
    store.set(b"n", b"0").unwrap();
    store.set(b"v", b"start").unwrap();
    let writer = store.clone();
    let other = store.clone();
    let write = Background::repeat(move |round| {
        let value = payload::encode(round);
        match round % 6 {
            0 => drop(writer.set(b"v", &value).unwrap()),
            1 => drop(writer.replace(b"v", &value, Attributes::NONE).unwrap().unwrap()),
            2 => drop(writer.append(b"v", b"tail").unwrap().unwrap()),
            3 => drop(writer.update_with(b"v", |_| Update::Set(value.clone())).unwrap()),
            4 => {
                let version = writer.metadata(b"v").unwrap().unwrap().version;
                let change = Change::Set(&value);
                writer.cas(b"v", Expected::Version(version), change).unwrap();
            }
            _ => drop(writer.incr(b"n", 1, Counter::EXISTING).unwrap().unwrap()),
        }
    });
    // Splits, cleaning and deletes of neighbours at the same time.
    let churn = Background::repeat(move |round| {
        let key = payload::key(round / 2 % 3000);
        if round % 2 == 0 {
            other.set(&key, &payload::encode(round)).unwrap();
        } else if round / 6000 % 2 == 1 {
            other.delete(&key).unwrap();
        }
        if round % 5000 == 0 {
            other.compact().unwrap();
        }
    });
    let begin = Instant::now();
    let mut reads = 0;
    while begin.elapsed() < lasting(Duration::from_secs(3)) {
        assert!(store.get(b"v").unwrap().is_some(), "a gap after {reads} reads");
        assert!(store.contains_key(b"n").unwrap(), "a gap in a counter after {reads} reads");
        assert!(store.view(b"v").unwrap().is_some(), "a gap in a view after {reads} reads");
        assert!(store.get_many(&[b"v", b"n"]).unwrap().iter().all(Option::is_some), "a gap in a bulk read");
        reads += 1;
    }
    println!("{reads} reads, {} writes, {} others", write.finish(), churn.finish());
}

/// Trap: a replace that fails half-way loses the old value.
#[test]
fn a_failed_write_leaves_the_old_value() {
    let (_watchdog, _scratch, store) = stage("trap-replace", small().max_bytes(BASE + (256 << 10)));
    let attributes = Attributes::NONE.flags(77);
    store.set_with(b"key", b"old value", attributes).unwrap();
    let before = store.get_item(b"key").unwrap().unwrap();
    let too_long = vec![7; 300 << 10];
    let full = |result: Result<(), WriteError>| assert!(matches!(result, Err(WriteError::Full { .. })), "{result:?}");
    full(store.set(b"key", &too_long).map(drop));
    full(store.replace(b"key", &too_long, Attributes::NONE).map(drop));
    full(store.append(b"key", &too_long).map(drop));
    full(store.prepend(b"key", &too_long).map(drop));
    full(store.update_with(b"key", |_| Update::Set(too_long.clone())).map(drop));
    full(store.cas(b"key", Expected::Version(before.metadata.version), Change::Set(&too_long)).map(drop));
    full(store.set(before.metadata.uid, &too_long).map(drop));
    full(store.set_many(&[(b"key", &too_long)]).map(drop));
    full(store.reserve(b"key", too_long.len() as u64, Attributes::NONE).map(drop));
    let result = store.incr(b"key", 1, Counter::or_create(0));
    assert!(matches!(result, Err(WriteError::NotANumber)), "{result:?}");
    drop(store.reserve(b"key", 100, Attributes::NONE).unwrap());
    assert_eq!(store.get_item(b"key").unwrap().unwrap(), before);
    assert_eq!(store.len(), 1);
    assert_clean(&store);
}

/// Trap: comparing only lengths or hashes returns another key's value.
#[test]
fn same_hash_and_length_but_another_key() {
    let (_watchdog, _scratch, store) = stage("trap-compare", tiny());
    store.set(Key::with_hash(b"abcdefgh", 9), b"first").unwrap();
    assert_eq!(store.get(Key::with_hash(b"abcdefgi", 9)).unwrap(), None);
    assert_eq!(store.get(Key::with_hash(b"Abcdefgh", 9)).unwrap(), None);
    assert_eq!(store.get(Key::with_hash(b"abcdefgh", 8)).unwrap(), None, "with another hash it is not this key");
    assert!(!store.delete(Key::with_hash(b"abcdefgi", 9)).unwrap());
    store.set(Key::with_hash(b"abcdefgi", 9), b"second").unwrap();
    assert_eq!(store.get(Key::with_hash(b"abcdefgh", 9)).unwrap().as_deref(), Some(&b"first"[..]));
    assert_eq!(store.get(Key::with_hash(b"abcdefgi", 9)).unwrap().as_deref(), Some(&b"second"[..]));
    assert_eq!(store.len(), 2);
}

/// Trap: closing any descriptor of a file drops the process's classic locks on it, and then others take it for dead.
#[test]
fn closing_a_second_handle_does_not_end_the_first() {
    let (_watchdog, _scratch, store) = stage("trap-close", tiny());
    store.set(b"viewed", b"must not change").unwrap();
    let view = store.view(b"viewed").unwrap().unwrap();
    drop(Options::new().open(store.path()).unwrap());
    drop(std::fs::File::open(store.path()).unwrap());
    drop(std::fs::OpenOptions::new().read(true).write(true).open(store.path()).unwrap());
    // Others look for dead clients and clean what those had pinned.
    let path = store.path().display();
    let mut other = Worker::start(worker!(), "hammer", &[&path, &50, &"grow"]);
    other.expect("ready");
    for _ in 0..50 {
        let mut visitor = Worker::start(worker!(), "shell", &[&path]);
        visitor.expect("open");
        visitor.say("set viewed other");
        visitor.expect("ok");
        visitor.say("pids");
        let pids = visitor.hear(LIMIT);
        assert!(
            pids.split(' ').any(|pid| pid == std::process::id().to_string()),
            "not among the live processes: {pids}"
        );
        visitor.finish(LIMIT).ok("visitor");
    }
    other.finish(LIMIT).ok("hammer");
    assert_eq!(&view[..], b"must not change");
    store.set(b"after", b"still works").unwrap();
    assert_eq!(store.get(b"viewed").unwrap().as_deref(), Some(&b"other"[..]));
}

/// Trap: reading statistics, listing keys or clearing stops everything.
#[test]
fn listing_statistics_and_clearing_stop_no_other_client() {
    const TRIES: u32 = 8;
    let (_watchdog, _scratch, store) = stage("trap-statistics", Options::new());
    let mut slowest = Vec::new();
    // A writer may have waited for a lock whose holder waited for a processor: that passes, a store that stops does
    // not.
    for _ in 0..TRIES {
        let (listing, clearing) = slowest_write_beside(&store);
        if listing < Duration::from_millis(300) && clearing < Duration::from_millis(300) {
            return;
        }
        slowest.push((listing, clearing));
    }
    panic!("each time some write waited while all keys were listed, or while they were cleared: {slowest:?}");
}

/// How long the slowest write of another handle waits while this one lists a store, and while it clears it; without
/// what the writer itself waited for a processor.
fn slowest_write_beside(store: &Store) -> (Duration, Duration) {
    for number in 0..200_000 {
        store.set(&payload::key(number), b"some value").unwrap();
    }
    let worst = Arc::new(AtomicU64::new(0));
    let (writer, slowest) = (Options::new().open(store.path()).unwrap(), Arc::clone(&worst));
    let write = Background::repeat(move |round| {
        let (begin, queued) = (Instant::now(), queued_ns());
        writer.set(&payload::key(1_000_000 + round % 1000), b"written beside").unwrap();
        let waited = (begin.elapsed().as_nanos() as u64).saturating_sub(queued_ns() - queued);
        slowest.fetch_max(waited / 1000, Ordering::Relaxed);
    });
    let slowest = |what: &str| {
        let time = Duration::from_micros(worst.swap(0, Ordering::Relaxed));
        println!("slowest write {what}: {time:?}");
        time
    };
    // A scan that is held half-way, statistics and a check hold no writer up.
    let mut scan = store.iter();
    assert!(scan.by_ref().take(1000).all(|pair| pair.is_ok()));
    slowest("before");
    let (begin, before) = (Instant::now(), write.rounds());
    while begin.elapsed() < Duration::from_millis(500) || write.rounds() < before + 1000 {
        store.stats();
    }
    assert!(scan.all(|pair| pair.is_ok()));
    let listing = slowest("while listing");
    store.clear().unwrap();
    (listing, slowest("while clearing 200,000 keys"))
}

/// A reader sees all of what a clear removes, or nothing of it, within one call.
#[test]
fn clear_is_all_or_nothing_within_one_call() {
    let (_watchdog, _scratch, store) = stage("trap-clear", small());
    let keys: Vec<Vec<u8>> = (0..64).map(payload::key).collect();
    for round in 0..300 {
        let pairs: Vec<_> = keys.iter().map(|key| (key, b"here")).collect();
        store.set_many(&pairs).unwrap();
        let cleared = store.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || cleared.clear().unwrap());
            loop {
                let found = store.get_many(&keys).unwrap().iter().filter(|value| value.is_some()).count();
                assert!(found == 0 || found == keys.len(), "round {round}: a call saw {found} of {}", keys.len());
                if found == 0 {
                    break;
                }
            }
        });
        assert_eq!(store.len(), 0);
    }
}
