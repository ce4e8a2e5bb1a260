//! Promise: a shared atomic counts exactly, whichever process is killed at whatever instruction; who waits for it
//! learns of a change by any process; a clear leaves it; what a set cannot have is refused and changes nothing.
//! Catches: additions that are lost or done twice, two atomics for one name, a waiter that sleeps on, a word of a
//! region that was removed, used by a forked child or through a read-only mapping.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store, WriteError};
use hashmere_engine::StoreHandle;
use hashmere_queue::{Atomic, Atomics, QueueError};
use hashmere_testkit::forked::{fork, wait};
use hashmere_testkit::limits::{times, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, worker};
use std::sync::atomic::Ordering;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(10);

fn store(name: &'static str) -> (Scratch, Store) {
    let scratch = Scratch::new(name);
    let store = Options::new().open(scratch.store("atomics")).unwrap();
    (scratch, store)
}

fn atomic(store: &Store, name: &str) -> Atomic {
    Atomics::open(store, "set").unwrap().atomic(name.as_bytes()).unwrap()
}

#[test]
fn what_each_operation_does() {
    let (_scratch, store) = store("atomics-operations");
    let (one, same, other) = (atomic(&store, "one"), atomic(&store, "one"), atomic(&store, "on"));
    assert_eq!((one.load().unwrap(), one.fetch_add(5).unwrap(), same.load().unwrap()), (0, 0, 5));
    assert_eq!((same.fetch_add(u64::MAX).unwrap(), one.fetch_add(u64::MAX - 4).unwrap()), (5, 4), "modulo 2^64");
    assert_eq!((one.load().unwrap(), one.swap(12).unwrap()), (u64::MAX, u64::MAX));
    assert_eq!((one.fetch_and(6).unwrap(), one.fetch_or(3).unwrap(), one.fetch_xor(5).unwrap()), (12, 4, 7));
    assert_eq!((one.load().unwrap(), one.store(9).unwrap(), one.load().unwrap()), (2, (), 9));
    assert_eq!((one.compare_exchange(8, 1).unwrap(), same.load().unwrap()), (9, 9));
    assert_eq!((one.compare_exchange(9, 1).unwrap(), same.load().unwrap()), (9, 1));
    same.word().unwrap().fetch_max(20, Ordering::SeqCst);
    same.notify().unwrap();
    assert_eq!((one.load().unwrap(), other.load().unwrap()), (20, 0));
    assert_eq!((one.wait(20, SHORT).unwrap(), one.wait(20, Duration::ZERO).unwrap()), (None, None));
    assert_eq!((one.wait(19, Duration::ZERO).unwrap(), one.wait(19, Duration::MAX).unwrap()), (Some(20), Some(20)));
    assert_eq!(store.len(), 0, "it is no key");
}

/// Each process counts its own steps in a word of its own, and then in two that all share. A killed one was between two
/// of its steps or within none.
#[test]
fn counts_are_exact_over_deaths() {
    let _watchdog = Watchdog::start("atomics-deaths");
    let (_scratch, store) = store("atomics-deaths");
    let mut rng = Rng::for_test("atomics-deaths");
    let path = store.path().display();
    let mut names = Vec::new();
    let mut start = || {
        names.push(format!("own {}", names.len()));
        let mut worker = Worker::start(worker!(), "atomic", &[&path, &"set", &names[names.len() - 1]]);
        worker.expect("ready");
        (worker, rng.below(3000))
    };
    let survivors = [start().0, start().0];
    let deaths = times(60);
    for _ in 0..deaths {
        let (victim, after) = start();
        std::thread::sleep(Duration::from_micros(after));
        victim.kill();
    }
    for (mut survivor, name) in survivors.into_iter().zip(["own 0", "own 1"]) {
        survivor.no_more();
        let steps: u64 = survivor.hear(LIMIT).strip_prefix("added ").unwrap().parse().unwrap();
        survivor.finish(LIMIT).ok("atomic");
        assert_eq!(atomic(&store, name).load().unwrap(), steps);
    }
    let own: u64 = names.iter().map(|name| atomic(&store, name).load().unwrap()).sum();
    let (added, exchanged) = (atomic(&store, "added").load().unwrap(), atomic(&store, "exchanged").load().unwrap());
    assert!(
        (own.saturating_sub(deaths)..=own).contains(&added),
        "{added} added in {own} steps, {deaths} of which may be half done"
    );
    assert!((added.saturating_sub(deaths)..=added).contains(&exchanged), "{exchanged} exchanged, {added} added");
    assert_clean(&store);
}

#[test]
fn a_waiter_is_woken_from_another_process() {
    let _watchdog = Watchdog::start("atomics-wake");
    let (_scratch, store) = store("atomics-wake");
    let word = atomic(&store, "word");
    let path = store.path().display();
    let mut waiters = [(); 2].map(|()| Worker::start(worker!(), "atomic-waiter", &[&path, &"set", &"word"]));
    waiters.iter_mut().for_each(|waiter| waiter.expect("ready"));
    for round in 1..=times(300) {
        word.fetch_add(1).unwrap();
        waiters.iter_mut().for_each(|waiter| waiter.expect(&format!("saw {round}")));
    }
    // A waiter that is killed holds up no other, and one that has changed the word need not have woken any.
    let [mut left, killed] = waiters;
    killed.kill();
    word.word().unwrap().store(9999, Ordering::SeqCst);
    left.expect("saw 9999");
    word.store(0).unwrap();
    left.expect("saw 0");
    left.finish(LIMIT).ok("atomic-waiter");
}

/// Two threads that answer each other: whichever is about to sleep when the other changes the word sees that.
#[test]
fn no_wake_is_lost() {
    let _watchdog = Watchdog::start("atomics-ping-pong");
    let (_scratch, store) = store("atomics-ping-pong");
    const ROUNDS: u64 = 3000;
    let ball = atomic(&store, "ball");
    std::thread::scope(|scope| {
        for player in 0..2 {
            let ball = ball.clone();
            scope.spawn(move || {
                let mut seen = 0;
                loop {
                    if seen >= ROUNDS {
                        return;
                    }
                    if seen % 2 == player {
                        assert_eq!(ball.compare_exchange(seen, seen + 1).unwrap(), seen);
                    }
                    seen = ball.wait(seen, LIMIT).unwrap().expect("the other one answers");
                }
            });
        }
    });
    assert_eq!(ball.load().unwrap(), ROUNDS);
}

/// Who makes the same atomics at once has the same ones.
#[test]
fn a_name_is_one_atomic_for_all() {
    let _watchdog = Watchdog::start("atomics-names");
    let (_scratch, store) = store("atomics-names");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = Options::new().open(store.path()).unwrap();
                for number in 0..100 {
                    atomic(&store, &format!("atomic {number}")).fetch_add(1).unwrap();
                }
            });
        }
    });
    for number in 0..100 {
        assert_eq!(atomic(&store, &format!("atomic {number}")).load().unwrap(), 4, "atomic {number}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let (_scratch, store) = store("atomics-limits");
    let refused = |result: Result<(), QueueError>, text: &str| {
        let error = result.unwrap_err();
        assert!(matches!(error, QueueError::BadOption(_)) && error.to_string().contains(text), "{error}");
    };
    for name in ["", &"x".repeat(129), "a\0b"] {
        refused(Atomics::open(&store, name).map(drop), "1 to 128 bytes");
        refused(Atomics::remove(&store, name).map(drop), "1 to 128 bytes");
    }
    assert!(store.shared().regions().is_empty(), "nothing was made");
    for name in ["x", &"x".repeat(128)] {
        let set = Atomics::open(&store, name).unwrap();
        for name in ["", &"x".repeat(57), "a\0b"] {
            refused(set.atomic(name.as_bytes()).map(drop), "1 to 56 bytes");
        }
        // Every place there is, and not one more; those that are there are found all the same.
        for number in 0..1024 {
            set.atomic(format!("{number:056}").as_bytes()).unwrap().store(number).unwrap();
        }
        for _ in 0..2 {
            let error = set.atomic(b"x").unwrap_err();
            assert!(matches!(error, QueueError::TooMany(_)) && error.code() == 63, "{error}");
        }
        for number in [0, 1, 1023] {
            assert_eq!(set.atomic(format!("{number:056}").as_bytes()).unwrap().load().unwrap(), number);
        }
    }
    assert_clean(&store);
}

#[test]
fn clear_leaves_them_and_remove_takes_their_name() {
    let _watchdog = Watchdog::start("atomics-clear");
    let (scratch, store) = store("atomics-clear");
    let flag = atomic(&store, "flag");
    flag.store(7).unwrap();
    store.set(b"key", b"value").unwrap();
    store.clear().unwrap();
    assert_eq!((flag.load().unwrap(), atomic(&store, "flag").load().unwrap()), (7, 7));
    store.backup(scratch.store("copy")).run().unwrap();
    let copy = Options::new().open(scratch.store("copy")).unwrap();
    assert_eq!(atomic(&copy, "flag").load().unwrap(), 0, "a backup does not copy it");
    let set = Atomics::open(&store, "set").unwrap();
    let waiter = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| flag.wait(7, LIMIT));
        assert!(Atomics::remove(&store, "set").unwrap() && !Atomics::remove(&store, "set").unwrap());
        waiter.join().unwrap()
    });
    assert!(matches!(waiter, Err(QueueError::Removed)), "{waiter:?}");
    assert!(matches!(set.atomic(b"flag"), Err(QueueError::Removed)));
    // Who has it open can use it. The next one of the name is another, and begins with zeros, in old room too.
    assert_eq!((flag.fetch_add(1).unwrap(), atomic(&store, "flag").load().unwrap()), (7, 0));
    drop((flag, set));
    for round in 0..20 {
        let again = atomic(&store, "flag");
        assert_eq!(again.swap(u64::MAX).unwrap(), 0, "round {round}");
        Atomics::remove(&store, "set").unwrap();
    }
    assert_clean(&store);
}

#[test]
fn a_read_only_handle_opens_none() {
    let (_scratch, store) = store("atomics-read-only");
    let flag = atomic(&store, "flag");
    let reader = Options::new().read_only().open(store.path()).unwrap();
    for name in ["set", "none"] {
        let error = Atomics::open(&reader, name).unwrap_err();
        assert_eq!(error.code(), WriteError::ReadOnly.code(), "{error}");
        assert_eq!(Atomics::remove(&reader, name).unwrap_err().code(), WriteError::ReadOnly.code());
    }
    assert_eq!(flag.load().unwrap(), 0);
}

#[test]
fn a_forked_child_opens_them_again() {
    let (_scratch, store) = store("atomics-fork");
    let (set, flag) = (Atomics::open(&store, "set").unwrap(), atomic(&store, "flag"));
    let child = fork(|| {
        let refused = [
            flag.load().map(drop),
            flag.store(1),
            flag.compare_exchange(0, 1).map(drop),
            flag.wait(1, Duration::ZERO).map(drop),
            flag.notify(),
            flag.word().map(drop),
            set.atomic(b"flag").map(drop),
        ];
        assert!(refused.iter().all(|result| matches!(result, Err(QueueError::Forked))), "{refused:?}");
        atomic(&store, "flag").fetch_add(3).unwrap();
    });
    wait(child);
    assert_eq!(flag.load().unwrap(), 3);
}
