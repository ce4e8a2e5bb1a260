//! Promise: a store that is to go with its last user is gone when that one has gone, however it went: at the latest
//! when the name is opened next. Catches: files that an exit without a close or a kill leaves behind for good, a store
//! that is removed while a process has it open, two openers that each find the other's new store.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{OpenError, Options, Store};
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::worker;
use nix::sys::signal::Signal;
use std::path::Path;

fn marked() -> Options {
    Options::new().remove_on_last_close(true)
}

/// A process that has the store open, with a key in it.
fn user(path: &Path, end: &str) -> Worker {
    let mut worker = Worker::start(worker!(), "last-close", &[&path.display(), &end]);
    worker.expect("open");
    worker
}

#[test]
fn an_exit_removes_it_and_a_death_leaves_nothing_to_the_next() {
    let _watchdog = Watchdog::start("last-close");
    let scratch = Scratch::new("last-close");
    let path = scratch.store("marked");
    let fresh = |options: Options, what: &str| {
        let store = options.open(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(store.len(), 0, "{what}: what it left is found");
        drop(store);
        // The mark went with the file.
        assert!(path.exists(), "{what}");
        assert!(Store::remove(&path).unwrap());
    };
    for end in ["close", "exit", "return"] {
        let mut worker = user(&path, end);
        worker.no_more();
        worker.finish(LIMIT).ok("last-close");
        assert!(!path.exists(), "{end} left it");
    }
    for end in ["_exit", "abort", "kill"] {
        let leave = || {
            let mut worker = user(&path, end);
            if end == "kill" {
                assert!(worker.kill().killed_by(Signal::SIGKILL));
            } else {
                worker.no_more();
                drop(worker.finish(LIMIT));
            }
            assert!(path.exists(), "no process was there to remove it");
        };
        leave();
        fresh(Options::new(), end);
        leave();
        fresh(Options::new().create_new(true), end);
        leave();
        for options in [Options::new().read_only(), Options::new().create(false)] {
            assert!(matches!(options.open(&path), Err(OpenError::NotFound { .. })), "{end}");
        }
        leave();
        assert!(Store::remove(&path).unwrap() && !path.exists(), "{end}");
        // Again under the mark: as if there had been none.
        leave();
        let store = marked().open(&path).unwrap();
        assert_eq!(store.len(), 0);
        drop(store);
        assert!(!path.exists());
    }
}

#[test]
fn it_stays_while_any_process_has_it_open() {
    let _watchdog = Watchdog::start("last-exit-stays");
    let scratch = Scratch::new("last-exit-stays");
    let path = scratch.store("marked");
    for end in ["exit", "_exit", "kill"] {
        let store = marked().open(&path).unwrap();
        let mut worker = user(&path, end);
        if end == "kill" {
            drop(worker.kill());
        } else {
            worker.no_more();
            drop(worker.finish(LIMIT));
        }
        assert!(path.exists(), "{end}");
        // A process that comes in between joins it, with whatever options.
        for options in [Options::new(), Options::new().create(false), Options::new().read_only()] {
            let joined = options.open(&path).unwrap();
            assert_eq!(joined.get(b"key").unwrap().as_deref(), Some(&b"value"[..]), "{end}");
        }
        assert!(matches!(Options::new().create_new(true).open(&path), Err(OpenError::AlreadyExists { .. })));
        assert!(path.exists(), "{end}");
        drop(store);
        assert!(!path.exists(), "{end}");
    }
    // A copy of one that is in use is not removed.
    let store = marked().open(&path).unwrap();
    let copy = scratch.store("copy");
    std::fs::copy(&path, &copy).unwrap();
    assert!(matches!(Options::new().open(&copy), Err(OpenError::NotCleanlyClosed { .. })));
    assert!(copy.exists());
    drop(store);
    // Not marked: nothing of this.
    let worker = Worker::start(worker!(), "last-close", &[&path.display(), &"plain"]);
    worker.finish(LIMIT).ok("last-close");
    assert_eq!(Options::new().open(&path).unwrap().len(), 1);
}

/// All that open at the same moment what a killed process left end up in the same store.
#[test]
fn who_open_it_at_once_meet_in_one_store() {
    let _watchdog = Watchdog::start("last-exit-race");
    let scratch = Scratch::new("last-exit-race");
    let path = scratch.store("marked");
    for round in 0..30 {
        drop(user(&path, "kill").kill());
        let gate = std::sync::Barrier::new(6);
        let stores: Vec<Store> = std::thread::scope(|scope| {
            let open = |n: u64| {
                let (gate, path) = (&gate, &path);
                scope.spawn(move || {
                    gate.wait();
                    let store = marked().open(path).unwrap();
                    store.set(&n.to_le_bytes(), b"v").unwrap();
                    store
                })
            };
            let openers: Vec<_> = (0..6).map(open).collect();
            openers.into_iter().map(|opener| opener.join().unwrap()).collect()
        });
        for store in &stores {
            assert_eq!(store.len(), 6, "round {round}: not all in one store, or the old one");
        }
        drop(stores);
        assert!(!path.exists());
    }
}
