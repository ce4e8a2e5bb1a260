//! Promise: a copy of a store that was in use is recognised: a volatile one is refused, a durable one rebuilt. Whatever
//! is no copy, or a copy of a closed store, is opened: under another name, after the death of its users, moved,
//! restored. Catches: a copy made by `cp`, torn or not, that is opened without a word; a store that is taken for its
//! own copy.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{OpenError, Options, Store};
use hashmere_format::header::{at, flag};
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::procs::Worker;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, payload, small, worker};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const KEYS: u64 = 300;

fn fill(store: &Store) {
    (0..KEYS).for_each(|number| assert!(store.set(&payload::key(number), &payload::encode(number)).is_ok()));
}

fn is_filled(store: &Store) {
    (0..KEYS).for_each(|number| {
        assert_eq!(store.get(&payload::key(number)).unwrap(), Some(payload::encode(number)), "key {number}");
    });
    assert_clean(store);
}

fn open(path: &Path) -> Store {
    Options::new().create(false).open(path).unwrap()
}

/// Opened in either way it is refused as a copy, and stays as it is.
fn is_refused(path: &Path) {
    let bytes = fs::read(path).unwrap();
    for options in [Options::new(), Options::new().read_only()] {
        let error = options.open(path).map(drop).unwrap_err();
        assert!(matches!(error, OpenError::NotCleanlyClosed { copied: true, .. }) && error.code() == 9, "{error:?}");
        assert!(error.to_string().contains("copy"), "{error}");
    }
    assert!(fs::read(path).unwrap() == bytes, "a refused file was changed");
}

#[test]
fn a_copy_of_an_open_store_is_refused() {
    let _watchdog = Watchdog::start("copies-open");
    let scratch = Scratch::new("copies-open");
    let (path, copy) = (scratch.store("store"), scratch.store("copy"));
    let store = small().open(&path).unwrap();
    fill(&store);
    fs::copy(&path, &copy).unwrap();
    is_refused(&copy);
    // A copy of the copy, which may have got the number of a file that is gone.
    fs::remove_file(&path).unwrap();
    drop(store);
    fs::copy(&copy, &path).unwrap();
    is_refused(&path);
    assert!(Store::remove(&copy).unwrap(), "what cannot be used can be removed");
    // On another file system.
    let other = std::env::temp_dir().join(format!("hashmere-copies-{}.mere", std::process::id()));
    fs::copy(&path, &other).unwrap();
    is_refused(&other);
    fs::remove_file(&other).unwrap();
}

/// The bytes of many moments.
#[test]
fn a_copy_that_is_made_while_others_write_is_refused() {
    let _watchdog = Watchdog::start("copies-torn");
    let scratch = Scratch::new("copies-torn");
    let (path, copy) = (scratch.store("store"), scratch.store("copy"));
    let store = small().open(&path).unwrap();
    fill(&store);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..KEYS).cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                store.set(&payload::key(number), &payload::encode(number)).unwrap();
            }
        });
        for _ in 0..20 {
            fs::copy(&path, &copy).unwrap();
            is_refused(&copy);
            fs::remove_file(&copy).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    is_filled(&store);
}

#[test]
fn a_copy_of_a_durable_store_is_rebuilt() {
    let _watchdog = Watchdog::start("copies-durable");
    let scratch = Scratch::new("copies-durable");
    let (path, copy) = (scratch.store("store"), scratch.store("copy"));
    let store = small().durable().open(&path).unwrap();
    fill(&store);
    store.sync().unwrap();
    fs::copy(&path, &copy).unwrap();
    let error = Options::new().read_only().open(&copy).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::NotCleanlyClosed { durable: true, copied: true, .. }), "{error:?}");
    let told = std::sync::Arc::new(AtomicBool::new(false));
    let tell = told.clone();
    let rebuilt = Options::new().on_recovery(move |_, _| tell.store(true, Ordering::Relaxed)).open(&copy).unwrap();
    assert!(told.load(Ordering::Relaxed), "opened as it was");
    is_filled(&rebuilt);
    // From now on it is a store of its own.
    rebuilt.set(b"key", b"value").unwrap();
    assert_eq!(open(&copy).get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(store.get(b"key").unwrap(), None);
    is_filled(&open(&path));
}

#[test]
fn copies_of_closed_stores_are_stores() {
    let _watchdog = Watchdog::start("copies-closed");
    let scratch = Scratch::new("copies-closed");
    for options in [small(), small().durable()] {
        let (path, copy) = (scratch.store("store"), scratch.store("copy"));
        fill(&options.open(&path).unwrap());
        fs::copy(&path, &copy).unwrap();
        is_filled(&Options::new().read_only().open(&copy).unwrap());
        is_filled(&open(&copy));
        // Moved to another file system and back.
        let other = std::env::temp_dir().join(format!("hashmere-moved-{}.mere", std::process::id()));
        fs::copy(&copy, &other).unwrap();
        fs::remove_file(&copy).unwrap();
        is_filled(&open(&other));
        fs::copy(&other, &copy).unwrap();
        fs::remove_file(&other).unwrap();
        is_filled(&open(&copy));
        [path, copy].iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}

#[test]
fn a_store_in_use_is_the_same_under_every_name() {
    let _watchdog = Watchdog::start("copies-names");
    let scratch = Scratch::new("copies-names");
    let (path, link, moved) = (scratch.store("store"), scratch.store("link"), scratch.store("moved"));
    let store = small().open(&path).unwrap();
    fill(&store);
    fs::hard_link(&path, &link).unwrap();
    is_filled(&open(&link));
    fs::rename(&path, &moved).unwrap();
    is_filled(&open(&moved));
    let folder = scratch.path().join("folder");
    std::os::unix::fs::symlink(scratch.path(), &folder).unwrap();
    let through = open(&folder.join("moved.mere"));
    through.set(b"key", b"value").unwrap();
    assert_eq!(store.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// They died with it, and nothing was copied: the file is whole.
#[test]
fn after_the_death_of_its_users_it_is_the_same() {
    let _watchdog = Watchdog::start("copies-dead");
    let scratch = Scratch::new("copies-dead");
    let (path, moved, copy) = (scratch.store("store"), scratch.store("moved"), scratch.store("copy"));
    fill(&small().open(&path).unwrap());
    for round in 0..3 {
        let mut worker = Worker::start(worker!(), "crowd", &[&path.display(), &1]);
        worker.expect("ready");
        worker.kill();
        fs::copy(&path, &copy).unwrap();
        is_refused(&copy);
        fs::rename(&path, &moved).unwrap();
        is_filled(&open(&moved));
        fs::rename(&moved, &path).unwrap();
        println!("round {round}");
    }
}

/// Killed while it opened a store that had been closed: the words of the header one after the other.
#[test]
fn killed_on_the_way_to_having_it_open() {
    let scratch = Scratch::new("copies-opening");
    let path = scratch.store("store");
    for options in [small(), small().durable()] {
        fill(&options.open(&path).unwrap());
        let closed = fs::read(&path).unwrap();
        let status = u64::from_le_bytes(closed[at::STATUS as usize..][..8].try_into().unwrap());
        assert!(status & flag::CLEAN != 0);
        // Of another machine, or another boot.
        let foreign = [(at::BOOT_LO, 1), (at::BOOT_HI, 2), (at::FILE, 3)];
        let store = open(&path);
        let now = fs::read(&path).unwrap();
        drop(store);
        for done in 0..=foreign.len() {
            fs::write(&path, &closed).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            for (i, (word, other)) in foreign.iter().enumerate() {
                let ours = u64::from_le_bytes(now[*word as usize..][..8].try_into().unwrap());
                let value = if i < done { ours } else { *other };
                file.write_all_at(&u64::to_le_bytes(value), *word).unwrap();
            }
            is_filled(&open(&path));
        }
        fs::remove_file(&path).unwrap();
    }
}
