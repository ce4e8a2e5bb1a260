//! Promise: at its maximum size, on a full file system, at a file size limit or where a process can map no more, a
//! strict store refuses a write with an error, keeps everything that was there, and has room again after deletes. No
//! process is killed by a signal. Catches: SIGBUS at first touch, SIGXFSZ, a failed replace that loses the old value,
//! space lost in each cycle.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Mode, OpenError, Options, Store, WriteError};
use hashmere_testkit::files::{allocated, apparent, SmallDisk};
use hashmere_testkit::limits::{times, Watchdog};
use hashmere_testkit::payload;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, assert_there, small, tiny, worker, BASE};
use nix::sys::signal::Signal;

/// What the caller has, and the maximum that gives it.
const ROOM: u64 = 1 << 20;
const MAX: u64 = BASE + ROOM;

/// Stores numbers from `from` on with values of this length until the store is full; the first that was refused.
fn fill(store: &Store, from: u64, len: usize) -> u64 {
    for number in from.. {
        match store.set(&payload::key(number), &payload::encode_len(number, len)) {
            Ok(_) => assert!(number < 1_000_000, "never full"),
            Err(WriteError::Full { max_bytes }) => {
                assert!((MAX..MAX + 8192).contains(&max_bytes), "{max_bytes}");
                return number;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    unreachable!("it is full before that")
}

#[test]
fn full_again_and_again() {
    let _watchdog = Watchdog::start("full-cycles");
    let scratch = Scratch::new("full-cycles");
    let path = scratch.store("full");
    let store = small().max_bytes(MAX).open(&path).unwrap();
    let mut first_count = 0;
    for cycle in 0..times(30) as usize {
        let len = [100, 1000, 30][cycle % 3];
        let count = fill(&store, 0, len);
        assert_there(&store, 0..count, len);
        assert_eq!(store.len(), count);
        assert_eq!(store.get(&payload::key(count)).unwrap(), None, "the refused key");
        if cycle % 3 == 0 {
            first_count = if cycle == 0 { count } else { first_count };
            assert!(count * 10 >= first_count * 9, "cycle {cycle}: room for {count}, at first for {first_count}");
        }
        // A fair part of the file is the caller's.
        let bytes: u64 = (0..count).map(|number| payload::key(number).len() as u64 + len as u64).sum();
        assert!(bytes * 100 > ROOM * 65, "{bytes} bytes in {count} values of {len} are all that goes into {ROOM}");
        assert!(apparent(&path) <= MAX + 8192 && allocated(&path) <= MAX + 8192, "beyond the maximum");
        for number in 0..count {
            assert!(store.delete(&payload::key(number)).unwrap(), "key {number}");
        }
        assert_eq!(store.len(), 0);
    }
    assert_clean(&store);
}

#[test]
fn refused_overwrite_keeps_the_old_value() {
    let _watchdog = Watchdog::start("full-overwrite");
    let mut rng = Rng::for_test("full-overwrite");
    let scratch = Scratch::new("full-overwrite");
    let store = small().max_bytes(MAX).open(scratch.store("full")).unwrap();
    let count = fill(&store, 0, 200);
    let mut refused = 0;
    for _ in 0..2000 {
        let number = rng.below(count);
        let key = payload::key(number);
        let before = store.get_item(&key).unwrap().unwrap();
        // Replacing by a longer value, in each of the ways there are.
        let longer = payload::encode_len(number, 20_000);
        let result = match rng.below(4) {
            0 => store.set(&key, &longer).map(drop),
            1 => store.append(&key, &longer).map(drop),
            2 => store.update_with(&key, |_| hashmere::Update::Set(longer.clone())).map(drop),
            _ => store.reserve(&key, 20_000, Attributes::NONE).map(drop),
        };
        match result {
            Ok(()) if store.get_item(&key).unwrap().unwrap() == before => {} // an abandoned reservation
            Ok(()) => {
                store.set(&key, &payload::encode_len(number, 200)).unwrap();
            }
            Err(WriteError::Full { .. }) => {
                refused += 1;
                assert_eq!(store.get_item(&key).unwrap().unwrap(), before, "a refused write changed key {number}");
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(refused > 100, "{refused} refused: this test is about refusal");
    assert_there(&store, 0..count, 200);
    assert_eq!(store.len(), count);
    assert_clean(&store);
}

/// In a full store, values of the same length can still be replaced once a little is deleted, forever.
#[test]
fn a_nearly_full_store_can_be_written_for_ever() {
    let _watchdog = Watchdog::start("full-nearly");
    let mut rng = Rng::for_test("full-nearly");
    let scratch = Scratch::new("full-nearly");
    let store = small().max_bytes(MAX).open(scratch.store("full")).unwrap();
    let count = fill(&store, 0, 100);
    let left = count * 8 / 10;
    (left..count).for_each(|number| assert!(store.delete(&payload::key(number)).unwrap()));
    for round in 0..times(50_000) {
        let number = rng.below(left);
        let result = store.set(&payload::key(number), &payload::encode_len(number, 100));
        assert!(result.is_ok(), "round {round}: {result:?} at 80 % of {count} records");
    }
    assert_there(&store, 0..left, 100);
}

/// Values of all lengths up to 100 KB, in segments of the default length: most of what a full store has is theirs.
#[test]
fn long_values_fill_a_store() {
    let _watchdog = Watchdog::start("full-long");
    let mut rng = Rng::for_test("full-long");
    let scratch = Scratch::new("full-long");
    for (longest, share) in [(20_000, 90), (100_000, 80), (200_000, 65)] {
        let path = scratch.store("full");
        let room = 64 << 20;
        let store = Options::new().max_bytes(BASE + room).open(&path).unwrap();
        let mut bytes = 0;
        for number in 0u64.. {
            let len = rng.below(longest) as usize;
            if store.set(&payload::key(number), &payload::encode_len(number, len)).is_err() {
                break;
            }
            bytes += len as u64;
        }
        println!("values of up to {longest}: {} % of the room are theirs", bytes * 100 / room);
        assert!(bytes * 100 >= room * share, "{bytes} bytes of values of up to {longest} fill {room} bytes");
        assert_clean(&store);
        drop(store);
        std::fs::remove_file(&path).unwrap();
    }
}

/// What is free at the end of the file and what the file may still grow by are one row.
#[test]
fn a_long_value_takes_what_is_free_and_what_the_file_has_not_got_yet() {
    let scratch = Scratch::new("full-row");
    let path = scratch.store("full");
    for mode in [Mode::Strict, Mode::Cache] {
        let store = tiny().mode(mode).max_bytes(BASE + 64 * 4096).open(&path).unwrap();
        store.set(b"first", &payload::encode_len(1, 25 * 4096)).unwrap();
        assert!(store.delete(b"first").unwrap());
        // More than either of them.
        let value = payload::encode_len(2, 45 * 4096);
        store.set(b"second", &value).unwrap();
        assert_eq!(store.get(b"second").unwrap().unwrap(), value);
        assert_clean(&store);
        drop(store);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn raising_the_maximum_makes_room() {
    let scratch = Scratch::new("full-raise");
    let path = scratch.store("full");
    let store = small().max_bytes(MAX).open(&path).unwrap();
    let count = fill(&store, 0, 500);
    let raised = Options::new().max_bytes(BASE + 4 * ROOM).open(&path).unwrap();
    for number in count..2 * count {
        // Also through the handle that was opened with the smaller maximum.
        let store = if number % 2 == 0 { &store } else { &raised };
        store.set(&payload::key(number), &payload::encode_len(number, 500)).unwrap();
    }
    assert_there(&store, 0..2 * count, 500);
}

/// Runs it; each time around it must have met this error, and gone on.
fn run_filler(worker: Worker, code: i32) {
    let ended = worker.finish(LIMIT);
    assert!(!ended.killed_by(Signal::SIGBUS) && !ended.killed_by(Signal::SIGXFSZ), "{ended:?}");
    let lines = ended.ok("fill");
    let full = lines.iter().filter(|line| **line == format!("full {code}")).count();
    assert!(full == 3 && lines.last().map(String::as_str) == Some("end"), "{lines:?}");
}

#[test]
fn full_file_system() {
    let _watchdog = Watchdog::start("full-disk");
    let scratch = Scratch::new("full-disk");
    let Some(disk) = SmallDisk::mount(scratch.path(), 3 << 20) else { return };
    let path = disk.path().join("full.mere");
    run_filler(Worker::start(worker!(), "fill", &[&path.display(), &1000, &0, &0]), 12);
    assert!(Options::new().create(false).open(&path).unwrap().check().is_clean());
}

/// Another tenant takes the space: what is already stored can still be read, overwritten in place or refused cleanly.
#[test]
fn file_system_filled_by_another_process() {
    let _watchdog = Watchdog::start("full-tenant");
    let scratch = Scratch::new("full-tenant");
    let Some(disk) = SmallDisk::mount(scratch.path(), 8 << 20) else { return };
    let store = Options::new().open(disk.path().join("full.mere")).unwrap();
    for number in 0..1000 {
        store.set(&payload::key(number), &payload::encode_len(number, 300)).unwrap();
    }
    let filler = disk.path().join("filler");
    let error = std::fs::write(&filler, vec![1; 16 << 20]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    let mut refused = 0;
    for _ in 0..3 {
        for number in 0..1000 {
            match store.set(&payload::key(number), &payload::encode_len(number, 300)) {
                Ok(_) => {}
                Err(WriteError::NoSpace(_)) => refused += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_there(&store, 0..1000, 300);
    }
    assert!(refused > 0, "this test is about refusal");
    std::fs::remove_file(&filler).unwrap();
    store.set(b"after", &[1; 100_000]).unwrap();
    assert_there(&store, 0..1000, 300);
    assert_clean(&store);
}

/// Where another tenant has taken all the space, deletes make room as they do in a store at its maximum: what is left
/// can be overwritten forever, within the memory that the store has.
#[test]
fn deletes_make_room_on_a_full_file_system() {
    let _watchdog = Watchdog::start("full-cleaning");
    let mut rng = Rng::for_test("full-cleaning");
    let scratch = Scratch::new("full-cleaning");
    let Some(disk) = SmallDisk::mount(scratch.path(), 8 << 20) else { return };
    for segment_bytes in [8 << 10, 32 << 10, 64 << 10] {
        let path = disk.path().join("full.mere");
        let store = Options::new().segment_bytes(segment_bytes).leaf_bytes(1024).open(&path).unwrap();
        (0..4000).for_each(|number| _ = store.set(&payload::key(number), &payload::encode_len(number, 300)).unwrap());
        let filler = disk.path().join("filler");
        std::fs::write(&filler, vec![1; 16 << 20]).unwrap_err();
        let before = allocated(&path);
        (3000..4000).for_each(|number| assert!(store.delete(&payload::key(number)).unwrap()));
        for round in 0..times(30_000) {
            let number = rng.below(3000);
            let result = store.set(&payload::key(number), &payload::encode_len(number, 300));
            assert!(result.is_ok(), "round {round}, segments of {segment_bytes}: {result:?}");
        }
        assert_there(&store, 0..3000, 300);
        // It may give memory back and take it again, but there is no other.
        assert!(allocated(&path) <= before + 8192, "{} bytes, {before} before", allocated(&path));
        assert_clean(&store);
        std::fs::remove_file(&filler).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn no_room_to_create() {
    let scratch = Scratch::new("full-create");
    let Some(disk) = SmallDisk::mount(scratch.path(), 16 << 10) else { return };
    let path = disk.path().join("full.mere");
    let error = Options::new().open(&path).unwrap_err();
    assert!(matches!(error, OpenError::NoSpace { .. }), "{error:?}");
    assert!(!path.exists(), "a half-made file has a name");
}

/// What a process cannot map it says so of; others go on where it could not.
#[test]
fn memory_limit() {
    let _watchdog = Watchdog::start("full-memory");
    let scratch = Scratch::new("full-memory");
    let path = scratch.store("full");
    run_filler(Worker::start(worker!(), "fill", &[&path.display(), &4000, &0, &(256 << 20)]), 13);
    let store = Options::new().create(false).open(&path).unwrap();
    store.set(b"far too long", &vec![1; 1 << 28]).unwrap();
    assert!(store.check().is_clean());
    drop(store);
    // A file for which it has no addresses it says it cannot open; so it does when there is no room for anything.
    for bytes in [256 << 20, 8 << 20] {
        let worker = Worker::start(worker!(), "fill", &[&path.display(), &1000, &0, &bytes]);
        let lines = worker.finish(LIMIT).ok("fill");
        assert_eq!(lines, ["open 13"]);
    }
}

#[test]
fn file_size_limit() {
    let _watchdog = Watchdog::start("full-limit");
    let scratch = Scratch::new("full-limit");
    run_filler(Worker::start(worker!(), "fill", &[&scratch.store("full").display(), &1000, &(6 << 20), &0]), 12);
    let tiny_limit = Worker::start(worker!(), "fill", &[&scratch.store("none").display(), &1000, &4096, &0]);
    let ended = tiny_limit.finish(LIMIT);
    assert!(!ended.killed_by(Signal::SIGXFSZ), "{ended:?}");
    assert_eq!(ended.ok("fill"), ["open 12"], "creating below a tiny file size limit");
}
