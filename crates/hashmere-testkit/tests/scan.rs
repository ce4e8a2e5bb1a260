//! Promise: a scan returns every key that exists during the whole of it exactly once, goes on from a plain number in
//! any process, and is not disturbed by growth, deletes and cleaning.
//! Catches: keys skipped or repeated by a split or by cleaning in mid-scan, wrong filters, a skewed random().
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Counter, Cursor, Filter, Key, Options, ReadError, Store, Update};
use hashmere_testkit::limits::{lasting, thread_cpu, Watchdog};
use hashmere_testkit::payload;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::threads::Background;
use hashmere_testkit::{small, tiny, worker};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

fn permanent(number: u64) -> Vec<u8> {
    format!("stays-{number}").into_bytes()
}

fn with_permanent(options: &Options, scratch: &Scratch, count: u64) -> Store {
    let store = options.open(scratch.store("scanned")).unwrap();
    (0..count).for_each(|number| {
        store.set(&permanent(number), &payload::encode(number)).unwrap();
    });
    store
}

/// Asserts that each of the permanent keys was seen exactly once, and every other key at most once.
fn assert_exactly_once(seen: &[Vec<u8>], count: u64) {
    let mut times: HashMap<&[u8], u32> = HashMap::new();
    seen.iter().for_each(|key| *times.entry(key).or_default() += 1);
    for number in 0..count {
        assert_eq!(times.get(&permanent(number)[..]), Some(&1), "permanent key {number}");
    }
    // A key that came and went and came again may be seen twice; one that was there once may not.
    let twice = times.iter().find(|(key, &times)| times > 1 && key.starts_with(b"once-"));
    assert_eq!(twice, None);
}

/// Multiplies the keys by a hundred while a scan is under way, in the same thread: the worst case is certain.
#[test]
fn growth_by_a_hundred_in_mid_scan() {
    let _watchdog = Watchdog::start("scan-growth");
    let mut rng = Rng::for_test("scan-growth");
    for options in [tiny(), small()] {
        for split_at in [0, 1, 57, 300, 599] {
            let scratch = Scratch::new("scan-growth");
            let store = with_permanent(&options, &scratch, 600);
            let mut seen = Vec::new();
            let mut scan = store.iter();
            (0..split_at).for_each(|_| seen.push(scan.next().unwrap().unwrap().key));
            for number in 0..60_000u64 {
                store.set(format!("once-{number}").as_bytes(), b"new").unwrap();
                if number % 100 == 0 {
                    seen.extend(scan.next().map(|pair| pair.unwrap().key));
                }
            }
            // And shrinks again in part, with cleaning.
            for number in (0..60_000u64).filter(|_| rng.chance(50)) {
                store.delete(format!("once-{number}").as_bytes()).unwrap();
            }
            store.compact().unwrap();
            seen.extend(scan.map(|pair| pair.unwrap().key));
            assert_exactly_once(&seen, 600);
        }
    }
}

#[test]
fn while_another_process_inserts_and_deletes() {
    let _watchdog = Watchdog::start("scan-beside");
    let scratch = Scratch::new("scan-beside");
    let store = with_permanent(&tiny(), &scratch, 1000);
    let mut workers: Vec<Worker> =
        (0..2).map(|_| Worker::start(worker!(), "hammer", &[&store.path().display(), &300, &"grow"])).collect();
    workers.iter_mut().for_each(|worker| worker.expect("ready"));
    let cleaned = store.clone();
    let clean = Background::repeat(move |_| {
        cleaned.compact().unwrap();
        std::thread::sleep(Duration::from_millis(1));
    });
    let begin = Instant::now();
    let mut scans = 0;
    while begin.elapsed() < lasting(Duration::from_secs(4)) {
        let seen: Vec<Vec<u8>> = store
            .iter()
            .map(|pair| {
                let pair = pair.unwrap();
                assert!(payload::decode(&pair.value).is_ok(), "a torn value of {:?}", pair.key);
                pair.key
            })
            .collect();
        assert_exactly_once(&seen, 1000);
        let listed = Mutex::new(Vec::new());
        let each = |pair: hashmere::Pair| listed.lock().unwrap().push(pair.key);
        store.parallel_scan(2, &Filter::all().keys_only(), each).unwrap();
        assert_exactly_once(&listed.into_inner().unwrap(), 1000);
        scans += 2;
    }
    println!("{scans} scans");
    assert!(clean.finish() > 0);
    workers.into_iter().for_each(|worker| drop(worker.finish(LIMIT).ok("hammer")));
}

#[test]
fn resumable_from_a_number_in_another_process() {
    let _watchdog = Watchdog::start("scan-resume");
    let scratch = Scratch::new("scan-resume");
    let store = with_permanent(&tiny(), &scratch, 1000);
    let mut seen = Vec::new();
    let mut cursor = Cursor::START;
    for turn in 0..10_000u64 {
        if turn % 3 == 0 {
            // A new process continues where this one stopped.
            let mut other = Worker::start(worker!(), "shell", &[&store.path().display(), &"existing"]);
            other.expect("open");
            other.say(&format!("scan {} 37", cursor.0));
            let end = loop {
                let line = other.hear(LIMIT);
                match line.split_once(' ') {
                    Some(("key", key)) => seen.push(key.as_bytes().to_vec()),
                    Some(("cursor", number)) => {
                        cursor = Cursor(number.parse().unwrap());
                        break false;
                    }
                    _ => break true,
                }
            };
            other.finish(LIMIT).ok("shell");
            if end {
                break;
            }
        } else {
            let mut scan = store.scan(cursor, Filter::all());
            seen.extend(scan.by_ref().take(5).map(|pair| pair.unwrap().key));
            let Some(next) = scan.cursor() else { break };
            cursor = next;
        }
        // Growth between the turns, for a time.
        let growth = if turn < 60 { 200 } else { 0 };
        (0..growth).for_each(|n| {
            store.set(format!("once-{turn}-{n}").as_bytes(), b"x").unwrap();
        });
        assert!(turn < 9_999, "the scan does not end");
    }
    assert_exactly_once(&seen, 1000);
}

#[test]
fn prefix_glob_and_keys_only() {
    let scratch = Scratch::new("scan-filter");
    let store = with_permanent(&small(), &scratch, 3000);
    (0..500u64).for_each(|n| {
        store.set(format!("user:{n}:name").as_bytes(), b"v").unwrap();
    });
    store.set(b"", b"empty").unwrap();
    store.set(b"we*rd[key]?", b"special").unwrap();
    let keys = |filter: Filter| -> HashSet<Vec<u8>> {
        let found: Vec<_> = store.scan(Cursor::START, filter).map(|pair| pair.unwrap()).collect();
        let keys: HashSet<Vec<u8>> = found.iter().map(|pair| pair.key.clone()).collect();
        assert_eq!(keys.len(), found.len(), "a key twice");
        keys
    };
    assert_eq!(keys(Filter::all()).len(), 3502);
    assert_eq!(keys(Filter::all().prefix("user:")).len(), 500);
    assert_eq!(keys(Filter::all().prefix("user:49:")).len(), 1);
    assert_eq!(keys(Filter::all().prefix("zzz")).len(), 0);
    assert_eq!(keys(Filter::all().prefix("")).len(), 3502);
    assert_eq!(keys(Filter::all().glob("user:*:name").unwrap()).len(), 500);
    assert_eq!(keys(Filter::all().glob("user:?:name").unwrap()).len(), 10);
    assert_eq!(keys(Filter::all().glob("user:[1-3]?:*").unwrap()).len(), 30);
    assert_eq!(keys(Filter::all().glob("user:[!1-3]:*").unwrap()).len(), 7);
    assert_eq!(keys(Filter::all().glob("we\\*rd\\[key\\]\\?").unwrap()).len(), 1);
    assert_eq!(keys(Filter::all().glob("").unwrap()).len(), 1);
    assert_eq!(keys(Filter::all().glob("*").unwrap()).len(), 3502);
    assert_eq!(keys(Filter::all().prefix("user:").glob("*9:name").unwrap()).len(), 50);
    for malformed in ["[a", "user:[", "[9-0]", "a\\"] {
        let refused = Filter::all().glob(malformed);
        assert!(matches!(&refused, Err(error) if error.code() == 24), "{malformed}: {refused:?}");
    }
    for pair in store.scan(Cursor::START, Filter::all().keys_only()) {
        let pair = pair.unwrap();
        assert!(pair.value.is_empty() && store.metadata(&pair.key).unwrap() == Some(pair.metadata));
    }
}

#[test]
fn random_is_roughly_uniform() {
    const KEYS: u64 = 50;
    const DRAWS: u64 = 20_000;
    let scratch = Scratch::new("scan-random");
    let store = with_permanent(&small(), &scratch, KEYS);
    let mut times: HashMap<Vec<u8>, u64> = HashMap::new();
    (0..DRAWS).for_each(|_| *times.entry(store.random().unwrap().unwrap().key).or_default() += 1);
    let (least, most) = (times.values().min().unwrap(), times.values().max().unwrap());
    println!("{} of {KEYS} keys drawn, {least} to {most} times", times.len());
    assert_eq!(times.len() as u64, KEYS, "keys that are never drawn");
    assert!(*least * 4 > DRAWS / KEYS && *most < 4 * DRAWS / KEYS, "{least} to {most} of {}", DRAWS / KEYS);
    store.clear().unwrap();
    assert_eq!(store.random().unwrap(), None);
}

#[test]
fn empty_store_and_wrong_cursors() {
    let scratch = Scratch::new("scan-empty");
    let store = tiny().open(scratch.store("scanned")).unwrap();
    assert!(store.iter().next().is_none() && store.keys().next().is_none());
    store.set(b"a", b"b").unwrap();
    let mut rng = Rng::for_test("scan-empty");
    // Whatever the number: an error or some part of the keys, and an end.
    for _ in 0..2000 {
        let bits = rng.below(64);
        for pair in store.scan(Cursor(rng.word() >> bits), Filter::all()) {
            match pair {
                Ok(pair) => assert_eq!(pair.key, b"a"),
                Err(ReadError::BadCursor) => break,
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

/// A new store is one leaf of some 3,600 places, nearly all of them empty.
#[test]
fn empty_places_cost_little() {
    const CALLS: u32 = 200;
    let scratch = Scratch::new("scan-empty-places");
    let store = Options::new().open(scratch.store("scanned")).unwrap();
    // Processor time of one call, which a busy machine leaves nearly as it is.
    let cost = |act: &dyn Fn()| {
        let round = || {
            let before = thread_cpu();
            (0..CALLS).for_each(|_| act());
            (thread_cpu() - before) / CALLS
        };
        (0..5).map(|_| round()).min().unwrap()
    };
    let get = cost(&|| (0..100).for_each(|_| drop(store.get(b"one").unwrap()))) / 100;
    let empty = cost(&|| assert!(store.keys().next().is_none()));
    store.set(b"one", b"record").unwrap();
    let keys = cost(&|| assert_eq!(store.keys().count(), 1));
    let random = cost(&|| assert!(store.random().unwrap().is_some()));
    println!("a get {get:?}; keys of an empty store {empty:?}, of one record {keys:?}; a random pair {random:?}");
    for (what, cost) in [("keys of an empty store", empty), ("keys of one record", keys), ("a random pair", random)] {
        assert!(cost < get * 1000, "{what}: {cost:?}, a get {get:?}");
    }
}

/// Each part is a scan of its own, with growth by a hundred in the middle of all of them.
#[test]
fn parts_share_the_keys_while_the_store_grows() {
    let _watchdog = Watchdog::start("scan-parts");
    let mut rng = Rng::for_test("scan-parts");
    for parts in [1, 2, 3, 7, 64] {
        let scratch = Scratch::new("scan-parts");
        let store = with_permanent(&tiny(), &scratch, 600);
        // Each goes on from a number now and then, as another process would.
        let mut cursors = vec![Some(Cursor::START); parts as usize];
        let mut seen = Vec::new();
        let mut grown = 0u64;
        while cursors.iter().any(Option::is_some) {
            let part = rng.below(u64::from(parts)) as u32;
            let Some(cursor) = cursors[part as usize] else { continue };
            let mut scan = store.scan(cursor, Filter::all().part(part, parts).unwrap().keys_only());
            let wanted = rng.below(40) as usize;
            let found: Vec<_> = scan.by_ref().take(wanted).map(|pair| pair.unwrap().key).collect();
            cursors[part as usize] = if found.len() < wanted { None } else { scan.cursor() };
            seen.extend(found);
            for _ in 0..if grown < 20_000 { 400 } else { 0 } {
                grown += 1;
                store.set(format!("once-{grown}").as_bytes(), b"new").unwrap();
            }
        }
        assert_exactly_once(&seen, 600);
    }
}

#[test]
fn processes_share_a_scan_beside_writers() {
    const PARTS: usize = 3;
    let _watchdog = Watchdog::start("scan-shared");
    let scratch = Scratch::new("scan-shared");
    let store = with_permanent(&tiny(), &scratch, 1000);
    let mut writer = Worker::start(worker!(), "hammer", &[&store.path().display(), &300, &"grow"]);
    writer.expect("ready");
    let mut workers: Vec<Worker> = (0..PARTS)
        .map(|_| {
            let mut worker = Worker::start(worker!(), "shell", &[&store.path().display(), &"existing"]);
            worker.expect("open");
            worker
        })
        .collect();
    let mut seen = Vec::new();
    let mut cursors = [Some(0u64); PARTS];
    while cursors.iter().any(Option::is_some) {
        for (part, worker) in workers.iter_mut().enumerate() {
            let Some(cursor) = cursors[part] else { continue };
            worker.say(&format!("part {part} {PARTS} {cursor} 50"));
            cursors[part] = loop {
                let line = worker.hear(LIMIT);
                match line.split_once(' ') {
                    Some(("key", key)) => seen.push(key.as_bytes().to_vec()),
                    Some(("cursor", number)) => break Some(number.parse().unwrap()),
                    _ => break None,
                }
            };
        }
    }
    assert_exactly_once(&seen, 1000);
    workers.into_iter().for_each(|worker| drop(worker.finish(LIMIT).ok("shell")));
    writer.finish(LIMIT).ok("hammer");
}

#[test]
fn parts_that_do_not_exist_are_refused() {
    for (index, count) in [(0, 0), (1, 1), (8, 8), (0, 65_537), (u32::MAX, u32::MAX)] {
        let refused = Filter::all().part(index, count);
        assert!(matches!(&refused, Err(error) if error.code() == 25), "{index}/{count}: {refused:?}");
    }
    let scratch = Scratch::new("scan-many-parts");
    let store = with_permanent(&tiny(), &scratch, 300);
    // More parts than hashes of the overflow tree in an entry: most are empty, and none is seen twice.
    let keys = |part| store.scan(Cursor::START, Filter::all().part(part, 65_536).unwrap().keys_only());
    let seen: Vec<_> = (0..65_536).flat_map(keys).map(|pair| pair.unwrap().key).collect();
    assert_exactly_once(&seen, 300);
    // A cursor of another part leads to this one's keys, or to none; never to those of others.
    let mine: HashSet<_> =
        store.scan(Cursor::START, Filter::all().part(1, 4).unwrap()).map(|p| p.unwrap().key).collect();
    for pair in store.iter() {
        let cursor = store.cursor_of(&pair.unwrap().key).unwrap().unwrap();
        let found = store.scan(cursor, Filter::all().part(1, 4).unwrap());
        assert!(found.map(|pair| pair.unwrap().key).all(|key| mine.contains(&key)));
    }
}

#[test]
fn a_scan_begins_at_a_key() {
    let _watchdog = Watchdog::start("scan-from");
    for options in [tiny(), small()] {
        let scratch = Scratch::new("scan-from");
        let store = with_permanent(&options, &scratch, 700);
        store.set(Key::with_hash(b"hashed", 9), b"x").unwrap();
        let order: Vec<Vec<u8>> = store.keys().map(|key| key.unwrap()).collect();
        for (place, key) in order.iter().enumerate().filter(|(place, key)| place % 29 == 0 || *key == b"hashed") {
            let by = if key == b"hashed" { Key::with_hash(key, 9) } else { Key::Bytes(key) };
            let cursor = store.cursor_of(by).unwrap().unwrap();
            let rest: Vec<_> = store.scan(cursor, Filter::all()).map(|pair| pair.unwrap().key).collect();
            assert_eq!(rest, order[place..], "from {}", String::from_utf8_lossy(key));
            assert_eq!(store.cursor_of(store.id_of(by).unwrap().unwrap()).unwrap(), Some(cursor));
        }
        assert_eq!(store.cursor_of(b"absent").unwrap(), None);
        // The number stays good while the store grows: the key is still the first, and the end is reached.
        let cursor = store.cursor_of(&order[300]).unwrap().unwrap();
        (0..20_000u64).for_each(|n| assert!(store.set(format!("once-{n}").as_bytes(), b"new").unwrap().created));
        let rest: Vec<_> = store.scan(cursor, Filter::all()).map(|pair| pair.unwrap().key).collect();
        assert_eq!(rest[0], order[300]);
        let unique: HashSet<_> = rest.iter().collect();
        assert_eq!(unique.len(), rest.len(), "a key twice");
        // And when the key is gone.
        store.delete(&order[300]).unwrap();
        let after: Vec<_> = store.scan(cursor, Filter::all()).map(|pair| pair.unwrap().key).collect();
        assert_eq!(after, rest[1..]);
    }
}

#[test]
fn regular_expressions() {
    let scratch = Scratch::new("scan-regex");
    let store = tiny().open(scratch.store("scanned")).unwrap();
    for key in ["user:1", "user:22", "User:3", "user:x", "grün", "a\nb", ""] {
        store.set(key, b"v").unwrap();
    }
    store.set(b"\xff\xfe", b"v").unwrap();
    let count = |regex: &str| store.scan(Cursor::START, Filter::all().regex(regex).unwrap()).count();
    for (regex, keys) in [
        ("", 8),
        (r"^user:\d+$", 2),
        (r"(?i)^user:\d$", 2),
        ("ser", 4),
        ("^gr.n$", 1),
        (r"(?-u)^\xff.$", 1),
        ("^a.b$", 0),
        ("(?s)^a.b$", 1),
        ("^$", 1),
    ] {
        assert_eq!(count(regex), keys, "{regex}");
    }
    assert_eq!(store.scan(Cursor::START, Filter::all().regex(r"\d").unwrap().prefix("u")).count(), 2);
    for (malformed, why) in [
        ("a(", "unclosed group"),
        (r"(a)\1", "backreferences"),
        ("(?=a)", "look-around"),
        (r"(\w{1000}){1000}", "size limit"),
    ] {
        let refused = Filter::all().regex(malformed);
        assert!(matches!(&refused, Err(error) if error.code() == 24 && error.to_string().contains(why)), "{refused:?}");
    }
    // Ten thousand bytes, and an expression that others take exponential time for.
    store.set(&"a".repeat(10_000), b"v").unwrap();
    assert_eq!(count("^(a+)+b$"), 0);
}

/// Every key gets its thousand exactly once, whatever other threads count and add.
#[test]
fn a_visitor_of_all_keys_changes_each_once_beside_writers() {
    const KEYS: u64 = 400;
    let _watchdog = Watchdog::start("scan-each");
    let scratch = Scratch::new("scan-each");
    let store = tiny().open(scratch.store("scanned")).unwrap();
    let key = |n: u64| format!("count-{n}").into_bytes();
    (0..KEYS).for_each(|n| assert!(store.set(&key(n), b"0").unwrap().created));
    store.set(Key::with_hash(b"hashed", 5), b"0").unwrap();
    let counted = AtomicU64::new(0);
    let other = store.clone();
    let beside = Background::repeat(move |turn| {
        other.incr(&key(turn % KEYS), 1, Counter::EXISTING).unwrap();
        other.set(format!("once-{turn}").as_bytes(), b"other").unwrap();
    });
    let changed = store
        .update_each(Filter::all().glob("[ch][oa]*").unwrap(), |key, item| {
            assert!(key.starts_with(b"count-") || key == b"hashed");
            counted.fetch_add(1, Ordering::Relaxed);
            let number: u64 = std::str::from_utf8(&item.value).unwrap().parse().unwrap();
            Update::Set((number + 1_000_000_000).to_string().into_bytes())
        })
        .unwrap();
    let turns = beside.finish();
    assert_eq!(changed, KEYS + 1);
    assert!(counted.into_inner() > KEYS);
    let all: u64 = store
        .scan(Cursor::START, Filter::all().prefix("count-"))
        .map(|pair| String::from_utf8(pair.unwrap().value).unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(all, KEYS * 1_000_000_000 + turns);
    assert_eq!(store.get(Key::with_hash(b"hashed", 5)).unwrap().unwrap(), b"1000000000");
    // Keep and remove; an expired key is not visited.
    store.set_with(b"gone", b"x", Attributes { ttl: hashmere::Ttl::At(1), ..Attributes::NONE }).unwrap();
    let removed = store.update_each(Filter::all(), |key, _| match key.starts_with(b"count-") {
        true => Update::Keep,
        false => Update::Remove,
    });
    assert_eq!((removed.unwrap() > 0, store.len_exact().unwrap()), (true, KEYS));
    // A visitor that writes the key that it is asked about is refused, as that of `update_with`.
    let refused = store.update_each(Filter::all(), |key, _| {
        assert!(store.set(key, b"own").is_err());
        Update::Keep
    });
    assert_eq!(refused.unwrap(), 0);
}
