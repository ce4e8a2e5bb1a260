//! Promise: the maximum of a store that exists can be made smaller and larger again, at opening or while it is in use,
//! and every process that has it open keeps to it at once. A cache drops what it must; a strict store loses nothing,
//! and refuses less than its data take. Memory is given back. Readers and writers go on. Catches: a cache that cannot
//! be opened with a smaller maximum, memory that stays, an index that leaves no room, keys lost from a strict store, a
//! refusal that changes something, room that does not come back.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Error, Mode, OpenError, Options, Store, WriteError};
use hashmere_testkit::files::allocated;
use hashmere_testkit::forked::{fork, wait};
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::payload;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, small, worker, BASE};
use std::sync::atomic::{AtomicBool, Ordering};

const MIB: u64 = 1 << 20;

fn set(store: &Store, number: u64, len: usize) -> Result<(), WriteError> {
    store.set(&payload::key(number), &payload::encode_len(number, len)).map(drop)
}

/// How many of these are there, each with its value.
fn there(store: &Store, numbers: std::ops::Range<u64>, len: usize) -> u64 {
    let mut found = 0;
    for number in numbers {
        if let Some(value) = store.get(&payload::key(number)).unwrap() {
            assert_eq!(value, payload::encode_len(number, len), "key {number}");
            found += 1;
        }
    }
    found
}

fn cache(max: u64) -> Options {
    small().mode(Mode::Cache).max_bytes(max)
}

fn assert_within(store: &Store, max: u64) {
    let stats = store.stats();
    assert_eq!(stats.bytes_max, max);
    let in_use = (stats.segments_total - stats.segments_offline) * stats.segment_bytes;
    assert!(in_use + BASE <= max, "{in_use} bytes in use of {max}");
    assert!(allocated(store.path()) <= max, "{} allocated", allocated(store.path()));
    assert_clean(store);
}

#[test]
fn a_cache_opened_with_less_evicts_for_all_processes_that_have_it_open() {
    let _watchdog = Watchdog::start("maximum-cache");
    let scratch = Scratch::new("maximum-cache");
    let path = scratch.store("cache");
    let store = cache(17 * MIB).open(&path).unwrap();
    (0..60_000).for_each(|number| set(&store, number, 200).unwrap());
    let before = there(&store, 0..60_000, 200);
    assert!(before > 35_000, "{before}");
    let mut other = Worker::start(worker!(), "shell", &[&path.display()]);
    other.expect("open");

    let smaller = cache(5 * MIB).open(&path).unwrap();
    assert_within(&smaller, 5 * MIB);
    let left = there(&smaller, 0..60_000, 200);
    assert!(left > 1000 && left == smaller.len(), "{left} of {before} are left");
    // Handles that were open before keep to it too.
    (0..30_000).for_each(|number| set(&store, number, 200).unwrap());
    for number in 0..200 {
        other.say(&format!("set other{number} {}", "o".repeat(1000)));
        other.expect("ok");
    }
    assert_within(&smaller, 5 * MIB);
    assert!(there(&smaller, 29_000..30_000, 200) > 500, "the newest are gone");
    smaller.set(b"large", &[7; 16_000]).unwrap();
    assert_eq!(store.get(b"large").unwrap().unwrap().len(), 16_000);

    let larger = cache(17 * MIB).open(&path).unwrap();
    (0..60_000).for_each(|number| set(&store, number, 200).unwrap());
    let again = there(&larger, 0..60_000, 200);
    assert!(again * 10 > before * 9, "room for {again}, at first for {before}");
    assert_within(&larger, 17 * MIB);
    other.finish(LIMIT).ok("shell");
}

#[test]
fn a_cache_whose_index_would_leave_no_room_starts_again() {
    let _watchdog = Watchdog::start("maximum-index");
    let scratch = Scratch::new("maximum-index");
    let store = cache(17 * MIB).open(scratch.store("cache")).unwrap();
    (0..150_000).for_each(|number| set(&store, number, 16).unwrap());
    store.set_max_bytes(2 * MIB).unwrap();
    (0..150_000).for_each(|number| set(&store, number, 16).unwrap());
    assert_within(&store, 2 * MIB);
    let left = there(&store, 0..150_000, 16);
    assert!(left > 4000, "only {left} keys fit");
    // Large values find their neighbours.
    store.set(b"large", &[7; 16_000]).unwrap();
    assert_eq!(store.get(b"large").unwrap().unwrap().len(), 16_000);
}

#[test]
fn a_strict_store_shrinks_as_far_as_its_keys_allow() {
    let _watchdog = Watchdog::start("maximum-strict");
    let scratch = Scratch::new("maximum-strict");
    let path = scratch.store("strict");
    let store = small().max_bytes(17 * MIB).open(&path).unwrap();
    (0..35_000).for_each(|number| set(&store, number, 300).unwrap());
    let refused = Options::new().max_bytes(5 * MIB).remove_on_last_close(true).open(&path).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, OpenError::OptionMismatch { option: "max_bytes", .. }), "{refused:?}");
    assert!(text.contains("17825792") && text.contains("5242880") && text.contains("strict.mere"), "{text}");
    assert_eq!((store.stats().bytes_max, there(&store, 0..35_000, 300)), (17 * MIB, 35_000));

    // One key in ten stays: nine tenths of each segment are garbage.
    (0..35_000)
        .filter(|number| number % 10 != 0)
        .for_each(|number| assert!(store.delete(&payload::key(number)).unwrap()));
    let smaller = Options::new().max_bytes(5 * MIB).open(&path).unwrap();
    assert_within(&smaller, 5 * MIB);
    assert_eq!((there(&smaller, 0..35_000, 300), smaller.len()), (3500, 3500));
    let fits = (100_000..).take_while(|number| set(&store, *number, 300).is_ok()).count();
    assert!((1000..14_000).contains(&fits), "{fits}");
    assert_within(&smaller, 5 * MIB);

    let refused = smaller.set_max_bytes(4 * MIB).unwrap_err();
    assert!(matches!(refused, Error::Open(OpenError::OptionMismatch { .. })), "{refused:?}");
    assert_eq!(there(&smaller, 0..35_000, 300), 3500);
    smaller.set_max_bytes(17 * MIB).unwrap();
    let more = (200_000..).take_while(|number| set(&store, *number, 300).is_ok()).count();
    assert!(more > 25_000, "{more}");
    drop((store, smaller));
    assert!(path.exists(), "an open that was refused has it deleted");
    assert_eq!(there(&Options::new().open(&path).unwrap(), 0..35_000, 300), 3500);
}

#[test]
fn a_store_without_a_maximum_gets_one() {
    let _watchdog = Watchdog::start("maximum-none");
    let scratch = Scratch::new("maximum-none");
    let path = scratch.store("none");
    let store = small().open(&path).unwrap();
    (0..10_000).for_each(|number| set(&store, number, 300).unwrap());
    let text = Options::new().max_bytes(2 * MIB).open(&path).unwrap_err().to_string();
    assert!(text.contains("none") && text.contains("2097152"), "{text}");
    assert!(matches!(
        Options::new().max_bytes(1000).open(&path),
        Err(OpenError::BadOption { option: "max_bytes", .. })
    ));
    store.set_max_bytes(9 * MIB).unwrap();
    let fits = (100_000..).take_while(|number| set(&store, *number, 300).is_ok()).count();
    assert!(fits > 5000, "{fits}");
    assert_within(&store, 9 * MIB);
    // A read-only handle does not change it.
    let reader = Options::new().read_only().max_bytes(3 * MIB).open(&path).unwrap();
    assert_eq!((reader.stats().bytes_max, there(&reader, 0..10_000, 300)), (9 * MIB, 10_000));
    assert!(matches!(reader.set_max_bytes(3 * MIB), Err(Error::Write(WriteError::ReadOnly))));
}

#[test]
fn what_a_view_holds_back_goes_with_it() {
    let _watchdog = Watchdog::start("maximum-view");
    let scratch = Scratch::new("maximum-view");
    let store = cache(9 * MIB).open(scratch.store("cache")).unwrap();
    (0..20_000).for_each(|number| set(&store, number, 300).unwrap());
    let numbers: Vec<u64> =
        (0..20_000).filter(|n| store.contains_key(&payload::key(*n)).unwrap()).step_by(1500).collect();
    let views: Vec<_> = numbers.iter().filter_map(|n| Some((*n, store.view(&payload::key(*n)).unwrap()?))).collect();
    assert!(views.len() > 5, "{}", views.len());
    store.set_max_bytes(2 * MIB).unwrap();
    for (number, view) in &views {
        assert_eq!(**view, payload::encode_len(*number, 300)[..], "key {number}");
    }
    drop(views);
    (30_000..35_000).for_each(|number| set(&store, number, 300).unwrap());
    store.set_max_bytes(2 * MIB).unwrap();
    assert_within(&store, 2 * MIB);
}

#[test]
fn readers_and_writers_go_on_while_it_changes() {
    let _watchdog = Watchdog::start("maximum-concurrent");
    let scratch = Scratch::new("maximum-concurrent");
    let store = cache(9 * MIB).open(scratch.store("cache")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                for round in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    let number = thread * 1_000_000 + round % 35_000;
                    set(store, number, 200).unwrap();
                    there(store, number..number + 1, 200);
                }
            });
        }
        for round in 0..12 {
            store.set_max_bytes([2, 9, 4][round % 3] * MIB).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    store.set_max_bytes(2 * MIB).unwrap();
    assert_within(&store, 2 * MIB);
}

/// A child opens the store again: what it was opened with by its parent is not asked for again.
#[test]
fn a_forked_child_does_not_change_it_back() {
    let _watchdog = Watchdog::start("maximum-fork");
    let scratch = Scratch::new("maximum-fork");
    let store = cache(9 * MIB).open(scratch.store("cache")).unwrap();
    store.set_max_bytes(3 * MIB).unwrap();
    wait(fork(|| _ = store.set(b"of the child", b"1").unwrap()));
    assert_eq!(store.stats().bytes_max, 3 * MIB);
    assert!(store.contains_key(b"of the child").unwrap());
}
