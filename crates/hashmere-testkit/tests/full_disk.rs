//! Promise: a store that meets the end of its file system lives within what it has: a request that is refused leaves
//! space as it was, deletes make room at once, a cache evicts instead and is as fast as at its own maximum, a refusal
//! is quick. Catches: segments without memory that count as free, a system call for each of them, space lost to a
//! failed request.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Mode, Options, Store, WriteError};
use hashmere_engine::StoreHandle;
use hashmere_testkit::files::{allocated, SmallDisk};
use hashmere_testkit::limits::{thread_cpu, times, Watchdog};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, assert_there, payload};
use std::path::Path;
use std::time::Duration;

const DISK: u64 = 32 << 20;
/// Of one that is full of short values.
const SMALL: u64 = 16 << 20;

fn set(store: &Store, number: u64, len: usize) -> Result<(), WriteError> {
    store.set(&payload::key(number), &payload::encode_len(number, len)).map(drop)
}

/// Stores numbers until the file system has no room; the first that was refused.
fn fill(store: &Store, len: usize) -> u64 {
    for number in 0.. {
        match set(store, number, len) {
            Ok(()) => assert!(number < 10_000_000, "never full"),
            Err(WriteError::NoSpace(_)) => return number,
            Err(error) => panic!("{error:?}"),
        }
    }
    unreachable!("it is full before that")
}

/// A request of this many bytes that the file system cannot have room for.
const TOO_MUCH: usize = 17 << 20;

fn refuse_large(store: &Store, path: &Path, round: u64) {
    let (before, stats) = (allocated(path), store.stats());
    let refused = match round % 3 {
        0 => store.set(b"large", &vec![1; TOO_MUCH]).map(drop),
        1 => store.reserve(b"large", TOO_MUCH as u64, Attributes::NONE).map(drop),
        _ => store.shared().create_region(1, b"pool", TOO_MUCH as u64, |_, _| ()).map(drop),
    };
    assert!(matches!(refused, Err(WriteError::NoSpace(_))), "round {round}: {refused:?}");
    // What it cleaned while it looked for room is given back, and one segment may have been filled since.
    let after = allocated(path);
    assert!(after <= before + stats.segment_bytes, "round {round}: {before} bytes, then {after}");
}

fn failed_large_requests_leave_room(path: &Path) {
    let mut rng = Rng::for_test("full-wedge");
    let store = Options::new().open(path).unwrap();
    let keys = 20_000;
    (0..keys).for_each(|number| set(&store, number, 1000).unwrap());
    for round in 0..12 {
        refuse_large(&store, path, round);
        for write in 0..times(10_000) {
            let done = set(&store, rng.below(keys), 1000);
            assert!(done.is_ok(), "round {round}, write {write}: {done:?}");
        }
        // As much as before goes in, and comes out again.
        if round % 4 == 3 {
            (0..keys * 9 / 10).for_each(|number| assert!(store.delete(&payload::key(number)).unwrap()));
            store.compact().unwrap();
            (0..keys * 9 / 10).for_each(|number| set(&store, number, 1000).unwrap());
        }
    }
    assert_there(&store, 0..keys, 1000);
    assert_clean(&store);
}

#[test]
fn failed_large_requests_leave_a_full_ext4_as_it_was() {
    let _watchdog = Watchdog::start("full-wedge-ext4");
    let scratch = Scratch::new("full-wedge-ext4");
    let Some(disk) = SmallDisk::ext4(scratch.path(), DISK) else { return };
    failed_large_requests_leave_room(&disk.path().join("full.mere"));
}

#[test]
fn failed_large_requests_leave_a_full_tmpfs_as_it_was() {
    let _watchdog = Watchdog::start("full-wedge-tmpfs");
    let scratch = Scratch::new("full-wedge-tmpfs");
    let Some(disk) = SmallDisk::mount(scratch.path(), DISK) else { return };
    failed_large_requests_leave_room(&disk.path().join("full.mere"));
}

/// Processor time of a part of the work, which a busy machine leaves as it is.
fn cost(act: impl FnOnce()) -> Duration {
    let before = thread_cpu();
    act();
    thread_cpu() - before
}

/// More values of 100 bytes than the file system has room for.
const MEETS: u64 = 125_000;
/// What is measured, behind that.
const EVICTING: u64 = 50_000;

fn cache_at(path: &Path, max: u64) -> (Duration, hashmere::Stats) {
    let store = Options::new().mode(Mode::Cache).max_bytes(max).open(path).unwrap();
    (0..MEETS).for_each(|number| set(&store, number, 100).unwrap());
    let cost = cost(|| (MEETS..MEETS + EVICTING).for_each(|number| set(&store, number, 100).unwrap()));
    assert_clean(&store);
    (cost, store.stats())
}

/// Clients that come later write as well: for 64 there is memory.
#[test]
fn others_join_on_a_full_file_system() {
    let _watchdog = Watchdog::start("full-join");
    let scratch = Scratch::new("full-join");
    let Some(disk) = SmallDisk::mount(scratch.path(), DISK) else { return };
    let store = Options::new().mode(Mode::Cache).max_bytes(1 << 30).open(disk.path().join("cache.mere")).unwrap();
    (0..300_000).for_each(|number| set(&store, number, 100).unwrap());
    std::fs::write(disk.path().join("filler"), vec![1; DISK as usize]).unwrap_err();
    let write = |from: u64| (from..from + 3000).for_each(|number| set(&store, number, 100).unwrap());
    let write = &write;
    std::thread::scope(|scope| (1..=40).for_each(|thread| _ = scope.spawn(move || write(thread << 32))));
    assert_clean(&store);
}

/// Most of what it had cost was one `fallocate` after another: 2,000 times as much.
#[test]
fn a_cache_lives_within_a_full_file_system_at_full_speed() {
    let _watchdog = Watchdog::start("full-cache");
    let scratch = Scratch::new("full-cache");
    let Some(disk) = SmallDisk::mount(scratch.path(), SMALL) else { return };
    let path = disk.path().join("cache.mere");
    let (own, stats) = cache_at(&path, SMALL - (2 << 20));
    assert!(stats.evictions > EVICTING && stats.no_space_since_ms == 0, "{stats:?}");
    std::fs::remove_file(&path).unwrap();
    let (ends, stats) = cache_at(&path, 1 << 30);
    assert!(stats.evictions > EVICTING && stats.no_space_since_ms != 0, "{stats:?}");
    println!("{EVICTING} sets of 100 bytes: {own:?} of processor time at its own maximum, {ends:?} at the disk's");
    assert!(ends < 8 * own, "{ends:?} at the end of the file system, {own:?} at its own maximum");
}

/// It was half a second of processor time for each.
#[test]
fn a_refusal_is_quick() {
    let _watchdog = Watchdog::start("full-quick");
    let scratch = Scratch::new("full-quick");
    for mount in [SmallDisk::mount, SmallDisk::ext4] {
        let Some(disk) = mount(scratch.path(), DISK) else { continue };
        let store = Options::new().open(disk.path().join("full.mere")).unwrap();
        let count = fill(&store, 1000);
        let cost = cost(|| {
            for number in count..count + 200 {
                let refused = set(&store, number, 1000);
                assert!(matches!(refused, Err(WriteError::NoSpace(_))), "{refused:?}");
            }
        });
        println!("200 refusals: {cost:?} of processor time");
        assert!(cost < Duration::from_secs(4), "200 refusals cost {cost:?} of processor time");
        assert_there(&store, 0..count, 1000);
        assert_clean(&store);
        assert_ne!(store.stats().no_space_since_ms, 0);
        drop(store);
        drop(disk);
        std::fs::remove_dir(scratch.path().join("disk")).unwrap();
    }
}

/// As under a maximum of its own.
#[test]
fn one_delete_makes_room_for_one_set() {
    let _watchdog = Watchdog::start("full-one");
    let scratch = Scratch::new("full-one");
    let Some(disk) = SmallDisk::mount(scratch.path(), SMALL) else { return };
    for len in [5000, 1000, 100] {
        let path = disk.path().join("full.mere");
        let store = Options::new().open(&path).unwrap();
        let count = fill(&store, len);
        let mut deleted = 0;
        for number in 0..count {
            assert!(store.delete(&payload::key(number)).unwrap());
            deleted += 1;
            match set(&store, count, len) {
                Ok(()) => break,
                Err(WriteError::NoSpace(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        println!("{count} values of {len} bytes; {deleted} deleted before one fitted");
        assert!(deleted <= 2, "{deleted} of {count} values of {len} bytes had to go before one fitted");
        assert_there(&store, deleted..=count, len);
        assert_clean(&store);
        drop(store);
        std::fs::remove_file(&path).unwrap();
    }
}
