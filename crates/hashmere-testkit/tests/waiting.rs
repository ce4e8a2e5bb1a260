//! Promise: who waits for a key learns of its change from any process; a mutex, a lease and a barrier are not kept by a
//! killed process. Catches: lost wake-ups, locks that a dead process keeps, values computed twice, barriers that wait
//! for killed processes.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store, WaitAnyOutcome, WaitOutcome, WriteError};
use hashmere_queue::{once, once_holder, Barrier, Mutex, QueueError};
use hashmere_testkit::forked::{fork, wait};
use hashmere_testkit::limits::{times, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::worker;
use std::time::{Duration, Instant};

const LONG: Duration = LIMIT;

fn store(name: &'static str) -> (Scratch, Store) {
    let scratch = Scratch::new(name);
    let store = Options::new().open(scratch.store("waiting")).unwrap();
    (scratch, store)
}

#[test]
fn a_change_wakes_its_waiters() {
    let _watchdog = Watchdog::start("waiting-change");
    let (_scratch, store) = store("waiting-change");
    let set = store.set(b"key", b"1").unwrap().version;
    assert_eq!(store.wait(b"key", Some(set), Duration::from_millis(5)).unwrap(), WaitOutcome::TimedOut);
    assert_eq!(store.wait(b"key", None, LONG).unwrap(), WaitOutcome::Changed(set), "it is there already");
    for i in 0..50u64 {
        let other = store.clone();
        let seen = store.metadata(b"key").unwrap().map(|meta| meta.version);
        let begin = Instant::now();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(i % 7));
            other.set(b"other", b"x").unwrap();
            if i % 2 == 0 {
                other.delete(b"key").unwrap();
            } else {
                other.incr(b"key", 1, hashmere::Counter::or_create(1)).unwrap();
            }
        });
        match store.wait(b"key", seen, LONG).unwrap() {
            WaitOutcome::Changed(now) => assert_ne!(Some(now), seen),
            WaitOutcome::Removed => assert!(seen.is_some()),
            WaitOutcome::TimedOut => panic!("it was changed"),
        }
        assert!(begin.elapsed() < LONG / 2, "it was not woken");
        writer.join().unwrap();
    }
    let seen =
        [(&b"a"[..], None), (&b"b"[..], None), (&b"key"[..], store.metadata(b"key").unwrap().map(|m| m.version))];
    let other = store.clone();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        other.set(b"b", b"1").unwrap();
    });
    assert!(matches!(store.wait_any(&seen, LONG).unwrap(), WaitAnyOutcome::Changed(1, _)));
    writer.join().unwrap();
    let b = store.metadata(b"b").unwrap().unwrap().version;
    let other = store.clone();
    let clearer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        other.clear().unwrap();
    });
    assert_eq!(store.wait(b"b", Some(b), LONG).unwrap(), WaitOutcome::Removed, "cleared");
    clearer.join().unwrap();
    assert!(store.wait_any(&[], LONG).is_err());
    let reader = Options::new().read_only().open(store.path()).unwrap();
    assert!(matches!(reader.wait(b"b", None, LONG), Err(hashmere::Error::Write(WriteError::ReadOnly))));
}

/// Killed while they hold it, or not: no other is inside at the same time, none waits forever.
#[test]
fn a_mutex_is_free_after_the_death_of_its_holder() {
    let _watchdog = Watchdog::start("waiting-mutex");
    let (_scratch, store) = store("waiting-mutex");
    let mut rng = Rng::for_test("waiting-mutex");
    let path = store.path().display();
    let start = || {
        let mut worker = Worker::start(worker!(), "mutex", &[&path, &"lock", &"counter"]);
        worker.expect("ready");
        worker
    };
    let mut survivor = start();
    for _ in 0..times(60) {
        let victim = start();
        std::thread::sleep(Duration::from_micros(rng.below(5000)));
        victim.kill();
    }
    survivor.no_more();
    let added: u64 = survivor.hear(LIMIT).strip_prefix("added ").unwrap().parse().unwrap();
    survivor.finish(LIMIT).ok("mutex");
    let total: u64 = String::from_utf8(store.get(b"counter").unwrap().unwrap()).unwrap().parse().unwrap();
    assert!(total >= added, "{total} after {added} by the survivor alone");
    let mutex = Mutex::new(&store, b"lock").unwrap();
    let held = mutex.lock(LONG).unwrap().expect("it is free");
    assert!(!elsewhere(|| is_free(&mutex)));
    drop(held);
    assert!(!store.contains_key(b"lock").unwrap());
    store.set(b"lock", b"something else").unwrap();
    assert!(matches!(mutex.lock(LONG), Err(QueueError::Broken(_))));
    store.delete(b"lock").unwrap();
    assert!(is_free(&mutex), "a refusal leaves nothing behind");
}

/// Runs something in another thread.
fn elsewhere<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// Whether it is to be had at once.
fn is_free(mutex: &Mutex) -> bool {
    mutex.lock(Duration::from_millis(10)).unwrap().is_some()
}

/// Held by this process or by another, waited for by threads, handles and processes: none gets it before it is
/// released.
#[test]
fn a_clear_releases_no_mutex() {
    let _watchdog = Watchdog::start("waiting-clear");
    let (_scratch, store) = store("waiting-clear");
    let again = Options::new().open(store.path()).unwrap();
    let (mutex, same) = (Mutex::new(&store, b"lock").unwrap(), Mutex::new(&again, b"lock").unwrap());
    let held = mutex.lock(LONG).unwrap().expect("it is free");
    for round in 0..3 {
        // The key alone decides nothing either way.
        match round {
            0 => store.clear().unwrap(),
            1 => again.clear().unwrap(),
            _ => assert!(!store.delete(b"lock").unwrap()),
        }
        assert!(!elsewhere(|| is_free(&mutex)), "another thread has it too");
        assert!(!elsewhere(|| is_free(&same)), "another handle has it too");
        // That it is held stays known; by whom the kernel does not say.
        let holders = [&mutex, &same].map(|mutex| mutex.holder().unwrap().map(|holder| holder.pid));
        assert_eq!(holders, [Some(std::process::id()), Some(0)]);
    }
    // A waiter goes on waiting over a clear, and gets it when it is released.
    let waiter = again.clone();
    let waiter = std::thread::spawn(move || {
        let mutex = Mutex::new(&waiter, b"lock").unwrap();
        let held = mutex.lock(LONG).unwrap().expect("it was released");
        (held.was_abandoned(), mutex.holder().unwrap().map(|holder| holder.pid))
    });
    std::thread::sleep(Duration::from_millis(20));
    store.clear().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waiter.is_finished());
    drop(held);
    assert_eq!(waiter.join().unwrap(), (false, Some(std::process::id())));
    assert!(is_free(&mutex) && is_free(&same));
    // That of another process, which is killed behind the clear.
    let mut other = Worker::start(worker!(), "once", &[&store.path().display(), &"key", &true]);
    other.expect("computing");
    store.clear().unwrap();
    let compute = || Ok::<_, QueueError>(b"mine".to_vec());
    assert_eq!(once(&store, b"key", Duration::from_millis(30), compute).unwrap(), None, "it computes still");
    assert_eq!(once_holder(&store, b"key").unwrap().map(|holder| holder.pid), Some(0), "it does, but its name is gone");
    other.kill();
    assert_eq!(once_holder(&store, b"key").unwrap(), None);
    assert_eq!(once(&store, b"key", LONG, compute).unwrap().as_deref(), Some(&b"mine"[..]));
}

#[test]
fn a_mutex_taken_twice_by_one_thread_is_refused() {
    let _watchdog = Watchdog::start("waiting-twice");
    let (_scratch, store) = store("waiting-twice");
    let again = Options::new().open(store.path()).unwrap();
    let (mutex, same) = (Mutex::new(&store, b"lock").unwrap(), Mutex::new(&again, b"lock").unwrap());
    let twice = |mutex: &Mutex| {
        let error = mutex.lock(Duration::MAX).unwrap_err();
        assert!(matches!(error, QueueError::Reentered { .. }) && error.code() == 69, "{error}");
        assert!(error.to_string().contains("the mutex \"lock\" was locked by this thread"), "{error}");
        assert!(mutex.lock(Duration::ZERO).unwrap().is_none(), "it is held");
    };
    let held = mutex.lock(LONG).unwrap().unwrap();
    twice(&mutex);
    twice(&mutex.clone());
    twice(&same);
    store.clear().unwrap();
    twice(&mutex);
    // Another key is another matter, and so is another thread, which waits.
    let other = Mutex::new(&store, b"other").unwrap();
    let inner = other.lock(LONG).unwrap().unwrap();
    assert!(!elsewhere(|| is_free(&mutex)));
    drop(inner);
    drop(held);
    // Released by another thread than the one that took it.
    let held = mutex.lock(LONG).unwrap().unwrap();
    elsewhere(move || drop(held));
    let held = same.lock(LONG).unwrap().unwrap();
    twice(&mutex);
    // A child holds nothing, and waits like any other.
    wait(fork(|| assert!(matches!(mutex.lock(Duration::from_millis(10)), Ok(None)))));
    drop(held);
    assert!(is_free(&mutex));
}

#[test]
fn a_waiter_at_a_barrier_gets_an_error_after_a_clear() {
    let _watchdog = Watchdog::start("waiting-barrier-clear");
    let (_scratch, store) = store("waiting-barrier-clear");
    let mut old = Barrier::join(&store, b"race", 2).unwrap();
    let waiter = store.clone();
    let waiter = std::thread::spawn(move || {
        let mut barrier = Barrier::join(&waiter, b"other", 2).unwrap();
        barrier.wait(LONG)
    });
    while !store.contains_key(b"other").unwrap() {
        std::thread::yield_now();
    }
    store.clear().unwrap();
    let names_the_clear = |result: Result<_, QueueError>| match result {
        Err(error @ QueueError::Broken(_)) => error.to_string().contains("cleared"),
        _ => false,
    };
    assert!(names_the_clear(waiter.join().unwrap()), "asleep during the clear");
    assert!(names_the_clear(old.wait(LONG)));
    // One that is made under the same key is another, and its participants are not taken for those of the old one.
    let mut new = Barrier::join(&store, b"race", 2).unwrap();
    assert!(names_the_clear(old.wait(LONG)));
    drop(old);
    assert_eq!(new.wait(Duration::from_millis(5)).unwrap(), None, "the old one counts as arrived, or as lost");
    let mut second = Barrier::join(&store, b"race", 2).unwrap();
    assert_eq!(second.wait(LONG).unwrap().map(|start| (start.round, start.lost)), Some((1, 0)));
    assert!(new.wait(LONG).unwrap().is_some());
}

#[test]
fn a_value_is_computed_once_and_again_if_who_computes_dies() {
    let _watchdog = Watchdog::start("waiting-once");
    let (_scratch, store) = store("waiting-once");
    let path = store.path().display();
    let mut victim = Worker::start(worker!(), "once", &[&path, &"key", &true]);
    victim.expect("computing");
    let compute = || Ok::<_, QueueError>(b"mine".to_vec());
    assert_eq!(once(&store, b"key", Duration::from_millis(20), compute).unwrap(), None, "it lives");
    let mut others: Vec<Worker> = (0..3).map(|_| Worker::start(worker!(), "once", &[&path, &"key", &false])).collect();
    std::thread::sleep(Duration::from_millis(30));
    victim.kill();
    let mut computed = 0;
    for other in &mut others {
        let mut line = other.hear(LIMIT);
        if line == "computing" {
            computed += 1;
            line = other.hear(LIMIT);
        }
        assert_eq!(line, "value computed");
    }
    assert_eq!(computed, 1);
    others.into_iter().for_each(|other| drop(other.finish(LIMIT).ok("once")));
    assert_eq!(once(&store, b"key", LONG, compute).unwrap().as_deref(), Some(&b"computed"[..]));
}

#[test]
fn a_barrier_opens_for_all_and_without_the_crashed() {
    let _watchdog = Watchdog::start("waiting-barrier");
    let (_scratch, store) = store("waiting-barrier");
    let path = store.path().display();
    let start = |rounds: u64| {
        let mut worker = Worker::start(worker!(), "barrier", &[&path, &"race", &4, &rounds]);
        worker.expect("joined");
        worker
    };
    let mut two = [start(3), start(3)];
    let victim = start(1);
    let mut barrier = Barrier::join(&store, b"race", 4).unwrap();
    assert!(matches!(Barrier::join(&store, b"race", 4), Err(QueueError::Broken(_))), "there are four");
    assert!(matches!(Barrier::join(&store, b"race", 5), Err(QueueError::Broken(_))));
    let first = barrier.wait(LONG).unwrap().unwrap();
    assert_eq!((first.round, first.lost), (1, 0));
    two.iter_mut().for_each(|worker| worker.expect("round 1 lost 0"));
    victim.kill();
    let second = barrier.wait(LONG).unwrap().unwrap();
    assert_eq!((second.round, second.lost), (2, 1));
    two.iter_mut().for_each(|worker| worker.expect("round 2 lost 1"));
    assert_eq!(barrier.wait(LONG).unwrap().unwrap().round, 3);
    drop(barrier);
    two.into_iter().for_each(|worker| drop(worker.finish(LIMIT).ok("barrier")));
    assert!(!store.contains_key(b"race").unwrap(), "the last to leave takes the key along");
}

#[test]
fn what_a_forked_child_inherits_is_not_its_to_let_go() {
    let _watchdog = Watchdog::start("waiting-forked");
    let (_scratch, store) = store("waiting-forked");
    let mutex = Mutex::new(&store, b"mutex").unwrap();
    let guard = mutex.lock(LONG).unwrap().unwrap();
    let mut barrier = Barrier::join(&store, b"barrier", 2).unwrap();
    let mut other = Barrier::join(&store, b"barrier", 2).unwrap();
    let (mutex, mut guard, mut child_barrier) = (&mutex, Some(guard), Some(&mut barrier));
    wait(fork(|| {
        drop(guard.take());
        // SAFETY: a copy of what the child inherited, whose other copy the child never drops.
        let mut inherited = unsafe { std::ptr::read(child_barrier.take().unwrap()) };
        assert!(matches!(inherited.wait(Duration::ZERO), Err(QueueError::Forked)));
        drop(inherited);
        assert!(mutex.lock(Duration::from_millis(10)).unwrap().is_none());
    }));
    assert!(!elsewhere(|| is_free(mutex)), "the child let the parent's lock go");
    drop(guard);
    assert!(mutex.lock(LONG).unwrap().is_some());
    assert_eq!(other.wait(Duration::from_millis(10)).unwrap(), None, "the child left in its parent's name");
    assert!(barrier.wait(LONG).unwrap().is_some_and(|start| start.lost == 0));
}

#[test]
fn who_holds_a_mutex_and_who_computes_is_known() {
    let (_scratch, store) = store("waiting-holder");
    let mutex = Mutex::new(&store, b"mutex").unwrap();
    assert_eq!(mutex.holder().unwrap(), None);
    let held = mutex.lock(LONG).unwrap().unwrap();
    let holder = Mutex::new(&store, b"mutex").unwrap().holder().unwrap().unwrap();
    assert_eq!(holder.pid, std::process::id());
    drop(held);
    assert_eq!(mutex.holder().unwrap(), None);
    let value = once::<QueueError>(&store, b"key", LONG, || {
        assert_eq!(once_holder(&store, b"key")?.map(|holder| holder.pid), Some(std::process::id()));
        Ok(b"value".to_vec())
    });
    assert_eq!((value.unwrap(), once_holder(&store, b"key").unwrap()), (Some(b"value".to_vec()), None));
}

/// Without a time limit it would wait for itself forever.
#[test]
fn once_within_once_is_refused() {
    let _watchdog = Watchdog::start("waiting-once-in-once");
    let (scratch, store) = store("waiting-once-in-once");
    let same = Options::new().open(scratch.store("waiting")).unwrap();
    let value = once::<QueueError>(&store, b"outer", Duration::MAX, || {
        let error = once::<QueueError>(&same, b"outer", Duration::MAX, || unreachable!()).unwrap_err();
        assert!(matches!(error, QueueError::Reentered { .. }) && error.code() == 69, "{error}");
        assert!(error.to_string().contains("`once` of \"outer\""), "{error}");
        // That of another key is another matter, and so is another thread, which waits.
        let other = same.clone();
        let waited = std::thread::spawn(move || {
            once::<QueueError>(&other, b"outer", Duration::from_millis(20), || unreachable!()).unwrap()
        });
        assert_eq!(waited.join().unwrap(), None);
        once::<QueueError>(&store, b"inner", Duration::MAX, || Ok(b"in".to_vec())).map(Option::unwrap)
    });
    assert_eq!(value.unwrap(), Some(b"in".to_vec()));
    // A computation that failed is over.
    assert!(once::<QueueError>(&store, b"failed", LONG, || Err(QueueError::Removed)).is_err());
    assert!(once::<QueueError>(&store, b"failed", LONG, || Ok(Vec::new())).unwrap().is_some());
}
