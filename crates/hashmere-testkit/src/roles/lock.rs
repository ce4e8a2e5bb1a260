//! Readers-writer locks and semaphores.
//!
//! `rwlock STORE KEY SEED`: reads or writes a pair of counters under the readers-writer lock of a key until standard
//! input is closed and it has written, then says `wrote N`. The two differ only behind the death of a writer, which is
//! reported to every reader until a writer makes them equal again.
//!
//! `rwlock-holder STORE KEY WRITES`: says `waiting`, waits for the lock, says `holding`.
//!
//! `semaphore STORE KEY PERMITS`: takes and gives back permits until standard input is closed, then says `took N`.

use super::{input_closed, Arguments};
use crate::rng::Rng;
use hashmere::Store;
use hashmere_queue::{RwLock, RwLockMode, Semaphore};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(1000);

fn value(store: &Store, key: &[u8]) -> u64 {
    let value = store.get(key).expect("get");
    value.map_or(0, |value| String::from_utf8_lossy(&value).parse().expect("a number"))
}

pub(super) fn rwlock(arguments: &mut Arguments) {
    let store = arguments.store();
    let key: String = arguments.next();
    let mut rng = Rng::from_seed(arguments.next());
    let lock = RwLock::new(&store, key.as_bytes()).expect("a lock");
    let closed = input_closed();
    println!("ready");
    let mut wrote = 0;
    while wrote == 0 || !closed.load(Ordering::Relaxed) {
        if rng.below(3) == 0 {
            let held = lock.write(LONG).expect("write").expect("no living process keeps it");
            let (a, b) = (value(&store, b"a"), value(&store, b"b"));
            assert!(a == b || held.was_abandoned(), "{a} and {b}, and no writer died");
            for key in [b"a", b"b"] {
                store.set(key, (a + 1).to_string().as_bytes()).expect("set");
            }
            wrote += 1;
        } else {
            let held = lock.read(LONG).expect("read").expect("no living process keeps it");
            let (a, b) = (value(&store, b"a"), value(&store, b"b"));
            assert!(a == b || held.was_abandoned(), "{a} and {b}, and no writer died");
        }
    }
    println!("wrote {wrote}");
}

pub(super) fn rwlock_holder(arguments: &mut Arguments) {
    let store = arguments.store();
    let (key, writes): (String, bool) = (arguments.next(), arguments.next());
    let lock = RwLock::new(&store, key.as_bytes()).expect("a lock");
    let mut waiter = lock.waiter(if writes { RwLockMode::Write } else { RwLockMode::Read });
    let at_once = waiter.wait(Duration::from_millis(1)).expect("wait");
    if at_once.is_none() {
        // It has the turn, if it is the only one that waits.
        println!("waiting");
    }
    let _held = at_once.or_else(|| waiter.wait(LONG).expect("wait")).expect("no living process keeps it");
    println!("holding");
    let closed = input_closed();
    while !closed.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(super) fn semaphore(arguments: &mut Arguments) {
    let store = arguments.store();
    let (key, permits): (String, u32) = (arguments.next(), arguments.next());
    let semaphore = Semaphore::new(&store, key.as_bytes(), permits).expect("a semaphore");
    let closed = input_closed();
    println!("ready");
    let mut took = 0;
    while !closed.load(Ordering::Relaxed) {
        let _held = semaphore.acquire(LONG).expect("acquire").expect("no living process keeps them all");
        took += 1;
    }
    println!("took {took}");
}
