//! Promise: a view stays what it was while it is held, whatever happens to its key and its segment, in this process and
//! others, also when there are more views than pins, and when the store handle is gone.
//! Catches: segments recycled under a pin, pins dropped too early or never.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Counter, Options, Ttl, WriteBatch};
use hashmere_testkit::limits::{lasting, SetOnDrop, Watchdog};
use hashmere_testkit::payload;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, small, tiny, worker, BASE};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[test]
fn intact_while_its_key_is_overwritten_100_000_times() {
    let _watchdog = Watchdog::start("views-overwrite");
    let scratch = Scratch::new("views-overwrite");
    // Room for some forty segments: each is cleaned and used again thousands of times.
    let store = tiny().max_bytes(BASE + (160 << 10)).open(scratch.store("views")).unwrap();
    store.set(b"key", &payload::encode_len(0, 300)).unwrap();
    let view = store.view(b"key").unwrap().unwrap();
    let address = view.as_ptr();
    for round in 1..=100_000 {
        store.set(b"key", &payload::encode_len(round, 300)).unwrap();
        if round % 100 == 0 {
            assert_eq!(payload::decode_len(&view), Ok(0), "round {round}");
        }
    }
    assert!(view.is_zero_copy(), "a single view is zero-copy");
    assert_eq!(view.as_ptr(), address);
    assert_eq!(payload::decode_len(&view), Ok(0));
    assert_eq!(view.metadata().value_len, 300);
    assert!(store.stats().recycle_epoch > 1000, "{:?}", store.stats());
    store.delete(b"key").unwrap();
    store.compact().unwrap();
    assert_eq!(payload::decode_len(&view), Ok(0), "after its key was deleted");
    drop(view);
    store.compact().unwrap();
    assert_clean(&store);
}

#[test]
fn many_more_views_than_pins() {
    let _watchdog = Watchdog::start("views-many");
    let mut rng = Rng::for_test("views-many");
    let scratch = Scratch::new("views-many");
    let store = small().open(scratch.store("views")).unwrap();
    (0..500).for_each(|number| {
        store.set(&payload::key(number), &payload::encode(number)).unwrap();
    });
    let mut held = Vec::new();
    for round in 0..60_000 {
        let number = rng.below(500);
        let key = payload::key(number);
        if rng.chance(20) && held.len() < 300 {
            let expected = store.get(&key).unwrap().unwrap();
            // By the key, its UID or its id.
            let view = match rng.below(3) {
                0 => store.view(&key),
                1 => store.view(store.metadata(&key).unwrap().unwrap().uid),
                _ => store.view(store.id_of(&key).unwrap().unwrap()),
            };
            held.push((expected, view.unwrap().unwrap()));
        } else if rng.chance(15) && !held.is_empty() {
            let (expected, view) = held.swap_remove(rng.index(held.len()));
            assert_eq!(*view, expected[..], "round {round}");
        }
        store.set(&key, &payload::encode(round << 10 | number)).unwrap();
    }
    assert!(held.len() > 100);
    for (expected, view) in &held {
        assert_eq!(**view, expected[..]);
    }
    let bytes_held = store.stats().bytes_file;
    held.clear();
    store.compact().unwrap();
    // With no view left nothing keeps segments from being cleaned.
    (0..20_000).for_each(|round| {
        store.set(&payload::key(round % 500), &payload::encode(round)).unwrap();
    });
    assert!(store.stats().bytes_file <= bytes_held + (1 << 20), "pins are never given back");
    assert_clean(&store);
}

#[test]
fn outlives_its_store_handle_and_other_handles() {
    let _watchdog = Watchdog::start("views-outlive");
    let scratch = Scratch::new("views-outlive");
    let path = scratch.store("views");
    let store = tiny().open(&path).unwrap();
    store.set(b"key", b"the value that was viewed").unwrap();
    let view = store.view(b"key").unwrap().unwrap();
    drop(store);
    assert_eq!(&view[..], b"the value that was viewed");
    let again = Options::new().open(&path).unwrap();
    for round in 0..20_000 {
        again.set(b"key", &payload::encode(round)).unwrap();
    }
    assert_eq!(&view[..], b"the value that was viewed");
    drop(again);
    assert!(std::thread::spawn(move || view.to_vec()).join().unwrap() == b"the value that was viewed");
}

#[test]
fn intact_while_other_processes_write() {
    let _watchdog = Watchdog::start("views-processes");
    let scratch = Scratch::new("views-processes");
    let store = tiny().max_bytes(BASE + (256 << 10)).open(scratch.store("views")).unwrap();
    let path = store.path().display();
    let mut writer = Worker::start(worker!(), "hammer", &[&path, &20, &"set"]);
    writer.expect("ready");
    let begin = Instant::now();
    // By key, by UID and by id.
    let (mut views, mut zero_copy) = (0u64, [0u64; 3]);
    // A key that is overwritten keeps its id.
    let ids: Vec<_> = (0..20).map(|number| store.id_of(&payload::key(number)).unwrap().unwrap()).collect();
    // A view of what is overwritten right then may be a copy.
    while begin.elapsed() < lasting(Duration::from_secs(3)) || zero_copy.contains(&0) {
        let view = |number: usize| match number % 3 {
            0 => store.view(&payload::key(number as u64)),
            1 => store.view(ids[number].uid()),
            _ => store.view(ids[number]),
        };
        let held: Vec<_> = (0..20).map(|number| view(number).unwrap().unwrap()).collect();
        for _ in 0..20 {
            for (number, view) in held.iter().enumerate() {
                let tag =
                    payload::decode(view).unwrap_or_else(|problem| panic!("view {views} of key {number}: {problem}"));
                assert_eq!(tag & 0xffff, number as u64, "the value of another key");
            }
        }
        views += held.len() as u64;
        held.iter().enumerate().for_each(|(number, view)| zero_copy[number % 3] += u64::from(view.is_zero_copy()));
    }
    println!("{views} views, {zero_copy:?} of them zero-copy");
    writer.finish(LIMIT).ok("hammer");
    assert_clean(&store);
}

/// A killed process's pins are not kept forever, and a stopped one's hold back only what it pinned.
#[test]
fn pins_of_crashed_clients_are_lifted() {
    let _watchdog = Watchdog::start("views-dead");
    let scratch = Scratch::new("views-dead");
    let store = tiny().max_bytes(BASE + (64 << 10)).open(scratch.store("views")).unwrap();
    (0..20).for_each(|number| {
        store.set(&payload::key(number), &payload::encode_len(number, 500)).unwrap();
    });
    let path = store.path().display();
    for round in 0..20 {
        let mut viewer = Worker::start(worker!(), "viewer", &[&path, &20]);
        viewer.expect("holding");
        viewer.kill();
        for number in 0..200 {
            let value = payload::encode_len(number + round, 500);
            let result = store.set(&payload::key(number % 20), &value);
            assert!(result.is_ok(), "round {round}: killed readers hold the space: {result:?}");
        }
    }
    assert_clean(&store);
}

/// What a view says of its key: after each of these calls, for a value in place and for copies.
#[test]
fn a_view_says_whether_it_is_up_to_date() {
    let _watchdog = Watchdog::start("views-up-to-date");
    let scratch = Scratch::new("views-up-to-date");
    let store = small().open(scratch.store("views")).unwrap();
    let reader = Options::new().read_only().open(store.path()).unwrap();
    let long = payload::encode_len(1, 300);
    for value in [&long[..], b"short"] {
        let set = || {
            store.set(b"key", value).unwrap();
            let views = [store.view(b"key"), store.view(store.id_of(b"key").unwrap().unwrap()), reader.view(b"key")];
            views.map(|view| view.unwrap().unwrap())
        };
        type Act<'a> = &'a dyn Fn();
        let is = |what: &str, wanted: bool, act: Act<'_>| {
            let views = set();
            assert_eq!(views.each_ref().map(|view| view.is_zero_copy()), [value.len() > 8, value.len() > 8, false]);
            assert!(views.iter().all(|view| view.is_up_to_date().unwrap()), "before {what}");
            act();
            let found = views.each_ref().map(|view| view.is_up_to_date().unwrap());
            assert_eq!(found, [wanted; 3], "after {what}");
        };
        is("nothing", true, &|| ());
        is("the same value once more", false, &|| _ = store.set(b"key", value).unwrap());
        is("another value", false, &|| _ = store.set(b"key", b"another, which is longer").unwrap());
        is("a short value", false, &|| _ = store.set(b"key", b"1").unwrap());
        is("a delete", false, &|| assert!(store.delete(b"key").unwrap()));
        is("a delete and a set", false, &|| {
            store.delete(b"key").unwrap();
            store.set(b"key", value).unwrap();
        });
        is("a clear", false, &|| store.clear().unwrap());
        is("a clear and a set", false, &|| {
            store.clear().unwrap();
            store.set(b"key", value).unwrap();
        });
        is("a touch", true, &|| assert!(store.touch(b"key", Ttl::After(Duration::from_secs(1000))).unwrap()));
        is("a touch that ends it", false, &|| {
            assert!(store.touch(b"key", Ttl::At(1000)).unwrap());
        });
        is("a transaction of its key", false, &|| {
            store.write_batch(WriteBatch::new().set("key", value).set("other", "x")).unwrap();
        });
        is("a transaction that fails", true, &|| {
            let batch = WriteBatch::new().set("key", value).incr("key", 1, Counter::EXISTING).clone();
            assert!(store.write_batch(&batch).is_err());
        });
        is("other keys, for which the index splits", true, &|| {
            (0..20_000).for_each(|n| _ = store.set(&payload::key(n), b"value of another key").unwrap());
        });
        is("a move of its record", true, &|| {
            (0..20_000).for_each(|n| _ = store.delete(&payload::key(n)).unwrap());
            store.compact().unwrap();
        });
        // The same key again, until its record is where another was before.
        is("many more values", false, &|| {
            (0..5_000).for_each(|_| _ = store.set(b"key", value).unwrap());
        });
    }
    // Another process's view of a key that expires.
    store.set_with(b"key", &long, Attributes::NONE.ttl(Ttl::After(Duration::from_secs(1000)))).unwrap();
    let view = store.view(b"key").unwrap().unwrap();
    assert!(view.is_up_to_date().unwrap());
    store.touch(b"key", Ttl::At(1000)).unwrap();
    assert!(!view.is_up_to_date().unwrap());
    // It says so when the handle is gone, too.
    store.set(b"key", &long).unwrap();
    let view = store.view(b"key").unwrap().unwrap();
    drop((store, reader));
    assert!(view.is_up_to_date().unwrap());
}

/// What is said to be up to date was so at a moment of the call, whatever others do: writes, transactions, splits,
/// moves, clears.
#[test]
fn what_is_said_to_be_up_to_date_is() {
    let _watchdog = Watchdog::start("views-current");
    let seed = Rng::for_test("views-current").word();
    let scratch = Scratch::new("views-current");
    let store = tiny().max_bytes(BASE + (1 << 20)).open(scratch.store("views")).unwrap();
    let (begun, done, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    store.set(b"key", &payload::encode_len(0, 100)).unwrap();
    let (mut said, mut denied) = (0u64, 0u64);
    std::thread::scope(|scope| {
        let _end = SetOnDrop(&over);
        scope.spawn(|| {
            let mut rng = Rng::from_seed(seed);
            for write in 1.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                begun.store(write, Ordering::SeqCst);
                let value = payload::encode_len(write, 20 + rng.below(200) as usize);
                match rng.below(50) {
                    0 => {
                        store.clear().unwrap();
                        store.set(b"key", &value).unwrap();
                    }
                    1 => assert!(store.delete(b"key").unwrap() && store.set(b"key", &value).is_ok()),
                    2..=20 => _ = store.write_batch(WriteBatch::new().set("key", &value).set("other", "x")).unwrap(),
                    _ => _ = store.set(b"key", &value).unwrap(),
                }
                done.store(write, Ordering::SeqCst);
                if rng.chance(10) {
                    std::thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            let mut rng = Rng::from_seed(seed ^ 1);
            while !over.load(Ordering::Relaxed) {
                let key = payload::key(rng.below(2000));
                if rng.chance(30) {
                    store.delete(&key).unwrap();
                } else {
                    store.set(&key, &payload::encode(7)).unwrap();
                }
                if rng.below(2000) == 0 {
                    store.compact().unwrap();
                }
            }
        });
        let end = Instant::now() + lasting(Duration::from_secs(3));
        while Instant::now() < end || said < 1000 || denied < 1000 {
            let Some(view) = store.view(b"key").unwrap() else { continue };
            let write = payload::decode_len(&view).unwrap();
            loop {
                let before = done.load(Ordering::SeqCst);
                let is_up_to_date = view.is_up_to_date().unwrap();
                let after = begun.load(Ordering::SeqCst);
                if is_up_to_date {
                    assert!(before <= write, "{write} is said to be there when {before} was written");
                    said += 1;
                } else {
                    assert!(after > write, "{write} is said to be gone when {after} was not begun");
                    denied += 1;
                    break;
                }
            }
        }
    });
    println!("said to be so {said} times, denied {denied} times");
    assert_clean(&store);
}
