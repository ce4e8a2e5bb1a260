//! Promise: a readers-writer lock has one writer or any number of readers, a semaphore no more holders than permits; a
//! killed process keeps neither, and its death is reported; a stopped one keeps what it holds and holds up no other
//! while it waits; who waits gets its turn. Catches: two writers, readers beside a writer, permits that are lost or
//! doubled, writers that starve.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store};
use hashmere_queue::{QueueError, RwLock, RwLockMode, Semaphore};
use hashmere_testkit::forked::{fork, wait};
use hashmere_testkit::limits::{times, SetOnDrop, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::worker;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const LONG: Duration = LIMIT;
const SHORT: Duration = Duration::from_millis(10);

fn store(name: &'static str) -> (Scratch, Store) {
    let scratch = Scratch::new(name);
    let store = Options::new().open(scratch.store("locks")).unwrap();
    (scratch, store)
}

/// Runs something in another thread.
fn elsewhere<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// What another thread can have at once: reading, writing.
fn free(lock: &RwLock) -> (bool, bool) {
    elsewhere(|| {
        let reads = lock.read(SHORT).unwrap().is_some();
        let writes = lock.write(SHORT).unwrap().is_some();
        (reads, writes)
    })
}

/// Killed at any moment, reading and writing: what a writer left half done is seen by none who is not told.
#[test]
fn a_readers_writer_lock_over_deaths() {
    let _watchdog = Watchdog::start("locks-rwlock");
    let (_scratch, store) = store("locks-rwlock");
    let mut rng = Rng::for_test("locks-rwlock");
    let path = store.path().display();
    let mut start = || {
        let mut worker = Worker::start(worker!(), "rwlock", &[&path, &"lock", &rng.below(1 << 40)]);
        worker.expect("ready");
        (worker, rng.below(5000))
    };
    let survivors = [start().0, start().0];
    for _ in 0..times(60) {
        let (victim, after) = start();
        std::thread::sleep(Duration::from_micros(after));
        victim.kill();
    }
    for mut survivor in survivors {
        survivor.no_more();
        let wrote: u64 = survivor.hear(LIMIT).strip_prefix("wrote ").unwrap().parse().unwrap();
        survivor.finish(LIMIT).ok("rwlock");
        assert!(wrote > 0, "it never got its turn to write");
    }
    let lock = RwLock::new(&store, b"lock").unwrap();
    drop(lock.write(LONG).unwrap().expect("it is free"));
    assert!(!store.contains_key(b"lock").unwrap(), "a writer clears up");
    store.set(b"lock", b"something else").unwrap();
    for mode in [RwLockMode::Read, RwLockMode::Write] {
        assert!(matches!(lock.waiter(mode).wait(LONG), Err(QueueError::Broken(_))));
    }
    store.delete(b"lock").unwrap();
    assert_eq!(free(&lock), (true, true), "a refusal leaves nothing behind");
}

/// A dead writer is reported to readers until a writer comes, a dead reader is not there any more.
#[test]
fn a_death_is_reported() {
    let _watchdog = Watchdog::start("locks-reported");
    let (_scratch, store) = store("locks-reported");
    let lock = RwLock::new(&store, b"lock").unwrap();
    let path = store.path().display();
    let start = |writes: bool| {
        let mut holder = Worker::start(worker!(), "rwlock-holder", &[&path, &"lock", &writes]);
        holder.expect("holding");
        holder
    };
    let (one, two) = (start(false), start(false));
    let mut pids: Vec<u32> = lock.readers().unwrap().iter().map(|holder| holder.pid).collect();
    pids.sort_unstable();
    let mut both = [one.pid(), two.pid()];
    both.sort_unstable();
    assert_eq!((&pids[..], lock.writer().unwrap()), (&both[..], None));
    assert_eq!(free(&lock), (true, false));
    one.kill();
    assert_eq!(lock.readers().unwrap().len(), 1, "the crashed one is found");
    two.kill();
    assert!(!lock.write(LONG).unwrap().unwrap().was_abandoned(), "readers leave nothing half done");
    let writer = start(true);
    assert_eq!(lock.writer().unwrap().map(|holder| holder.pid), Some(writer.pid()));
    assert_eq!(free(&lock), (false, false));
    // A stopped one keeps it.
    writer.stop();
    assert_eq!(free(&lock), (false, false));
    writer.kill();
    for _ in 0..2 {
        assert!(lock.read(LONG).unwrap().unwrap().was_abandoned());
        assert_eq!((lock.writer().unwrap(), lock.readers().unwrap()), (None, Vec::new()));
    }
    assert!(lock.write(LONG).unwrap().unwrap().was_abandoned());
    assert!(!lock.write(LONG).unwrap().unwrap().was_abandoned());
    assert!(!lock.read(LONG).unwrap().unwrap().was_abandoned());
}

#[test]
fn a_clear_releases_neither_readers_nor_writers() {
    let _watchdog = Watchdog::start("locks-clear");
    let (_scratch, store) = store("locks-clear");
    let again = Options::new().open(store.path()).unwrap();
    let (lock, same) = (RwLock::new(&store, b"lock").unwrap(), RwLock::new(&again, b"lock").unwrap());
    let semaphore = Semaphore::new(&store, b"two", 2).unwrap();
    for clear in [|store: &Store| store.clear().unwrap(), |store: &Store| assert!(store.delete(b"lock").unwrap())] {
        let (reader, _permit) = (same.read(LONG).unwrap().unwrap(), semaphore.acquire(LONG).unwrap().unwrap());
        clear(&store);
        assert_eq!((free(&lock), free(&same)), ((true, false), (true, false)));
        drop(reader);
        let writer = lock.write(LONG).unwrap().unwrap();
        clear(&again);
        assert_eq!((free(&lock), free(&same)), ((false, false), (false, false)));
        let _second = semaphore.acquire(LONG).unwrap().unwrap();
        assert!(elsewhere(|| semaphore.acquire(SHORT).unwrap().is_none()), "both permits are taken");
        drop(writer);
        assert_eq!((free(&lock), free(&same)), ((true, true), (true, true)));
    }
    assert!(!store.contains_key(b"lock").unwrap() && !store.contains_key(b"two").unwrap());
}

#[test]
fn who_would_wait_for_itself_is_refused() {
    let _watchdog = Watchdog::start("locks-twice");
    let (_scratch, store) = store("locks-twice");
    let lock = RwLock::new(&store, b"lock").unwrap();
    let same = RwLock::new(&store, b"lock").unwrap();
    for first in [RwLockMode::Read, RwLockMode::Write] {
        let held = lock.waiter(first).wait(LONG).unwrap().unwrap();
        for second in [RwLockMode::Read, RwLockMode::Write] {
            let error = same.waiter(second).wait(LONG).unwrap_err();
            assert_eq!(error.code(), 69);
            assert!(
                error.to_string().contains("the readers-writer lock \"lock\" was locked by this thread"),
                "{error}"
            );
            assert!(same.waiter(second).wait(Duration::ZERO).unwrap().is_none(), "it is held");
        }
        // A child holds nothing, and what its parent holds stays held when the child lets go of its copy.
        let mut copy = Some(held);
        wait(fork(|| {
            drop(copy.take());
            assert!(lock.write(SHORT).unwrap().is_none());
        }));
        assert!(!free(&lock).1, "the child let the parent's lock go");
        elsewhere(move || drop(copy));
        assert_eq!(free(&lock), (true, true));
    }
    let semaphore = Semaphore::new(&store, b"two", 2).unwrap();
    let one = semaphore.acquire(LONG).unwrap().unwrap();
    let two = semaphore.acquire(LONG).unwrap().expect("a thread may hold several");
    assert_eq!(semaphore.acquire(LONG).unwrap_err().code(), 69);
    assert!(semaphore.acquire(Duration::ZERO).unwrap().is_none());
    assert_eq!(semaphore.holders().unwrap().len(), 2);
    let other = Semaphore::new(&store, b"two", 3).unwrap();
    assert!(matches!(other.acquire(LONG), Err(QueueError::Broken(_))), "it has two permits");
    drop((one, two));
    assert!(other.acquire(LONG).unwrap().is_some(), "without holders it may get another number");
    for permits in [0, 1025] {
        assert!(matches!(Semaphore::new(&store, b"bad", permits), Err(QueueError::BadOption(_))));
    }
}

/// Readers that overlap all the time do not keep a writer out, nor writers a reader.
#[test]
fn neither_readers_nor_writers_starve() {
    let _watchdog = Watchdog::start("locks-starve");
    let (_scratch, store) = store("locks-starve");
    for (crowd, alone) in [(RwLockMode::Read, RwLockMode::Write), (RwLockMode::Write, RwLockMode::Read)] {
        let lock = RwLock::new(&store, b"lock").unwrap();
        let (done, got) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let _end = SetOnDrop(&done);
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let _held = lock.waiter(crowd).wait(LONG).unwrap().expect("its turn comes");
                        std::thread::sleep(Duration::from_millis(2));
                        got.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..5 {
                // The crowd is at it, and goes on behind each turn of the other.
                let before = got.load(Ordering::Relaxed);
                while got.load(Ordering::Relaxed) == before {
                    std::thread::yield_now();
                }
                drop(lock.waiter(alone).wait(LONG).unwrap().expect("its turn comes"));
            }
        });
    }
}

/// One that is stopped while it waits, with the turn, holds up the others for a moment only.
#[test]
fn a_stopped_waiter_is_passed_over() {
    let _watchdog = Watchdog::start("locks-stopped");
    let (_scratch, store) = store("locks-stopped");
    let lock = RwLock::new(&store, b"lock").unwrap();
    let held = lock.read(LONG).unwrap().unwrap();
    let mut waiter = Worker::start(worker!(), "rwlock-holder", &[&store.path().display(), &"lock", &true]);
    waiter.expect("waiting");
    // From when it has the turn, no reader passes it.
    while elsewhere(|| lock.read(Duration::ZERO).unwrap().is_some()) {}
    waiter.stop();
    drop(held);
    assert!(lock.write(LONG).unwrap().is_some());
    assert!(lock.read(LONG).unwrap().is_some());
    waiter.go_on();
    waiter.expect("holding");
    assert_eq!(free(&lock), (false, false));
}

/// Killed at any moment: no permit is lost, none is there twice.
#[test]
fn a_semaphore_over_deaths() {
    let _watchdog = Watchdog::start("locks-semaphore");
    let (_scratch, store) = store("locks-semaphore");
    let mut rng = Rng::for_test("locks-semaphore");
    let path = store.path().display();
    let start = || {
        let mut worker = Worker::start(worker!(), "semaphore", &[&path, &"two", &2]);
        worker.expect("ready");
        worker
    };
    let mut survivor = start();
    for _ in 0..times(60) {
        let victims = [start(), start()];
        std::thread::sleep(Duration::from_micros(rng.below(5000)));
        for victim in victims {
            victim.kill();
        }
    }
    survivor.no_more();
    assert!(survivor.hear(LIMIT).starts_with("took "));
    survivor.finish(LIMIT).ok("semaphore");
    let semaphore = Semaphore::new(&store, b"two", 2).unwrap();
    let held = [(); 2].map(|()| semaphore.acquire(LONG).unwrap().expect("no permit is lost"));
    assert!(elsewhere(|| semaphore.acquire(SHORT).unwrap().is_none()), "a permit too many");
    assert!(!held[1].was_abandoned(), "the first got that");
    drop(held);
    assert!(!store.contains_key(b"two").unwrap());
    // Never more than two at a time.
    let (inside, most) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let _held = semaphore.acquire(LONG).unwrap().unwrap();
                    most.fetch_max(1 + inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)), "{most:?} at a time");
}
