//! Moves elements of a pool about until standard input is closed.
//!
//! `queue STORE POOL SEED QUEUES...`: pops from and pushes to the named queues, single elements and batches. Element n
//! holds its number, and while it is in an endpoint the process id of its holder: another's there means that two held
//! it. In the end says `moved N`.
//!
//! `holder STORE POOL`: takes an element and says `holding`.
//!
//! `mutex STORE KEY COUNTER`: adds one to a counter under the mutex of a key, by a get and a set.
//!
//! `once STORE KEY`: computes the value of a key once, or dies at it.
//!
//! `barrier STORE KEY SIZE ROUNDS`: says `round N lost M` each time that the barrier opens.

use super::{input_closed, Arguments};
use crate::rng::Rng;
use hashmere_queue::{once, Barrier, Endpoint, Mutex, Pool, Queue, QueueError};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(1000);

pub(super) fn run(arguments: &mut Arguments) {
    let store = arguments.store();
    let name: String = arguments.next();
    let pool = Pool::open(&store, &name).expect("open the pool");
    let mut rng = Rng::from_seed(arguments.next());
    let queues: Vec<Queue> = arguments.rest().iter().map(|name| pool.queue(name).expect("open a queue")).collect();
    let closed = input_closed();
    let mut endpoint = pool.endpoint().expect("an endpoint");
    let me = u64::from(std::process::id());
    let mut moved = 0u64;
    while !closed.load(Ordering::Relaxed) {
        let (from, to) = (&queues[rng.index(queues.len())], &queues[rng.index(queues.len())]);
        moved += match rng.below(4) {
            0 => move_batch(&mut endpoint, [from, to, pool.free()], 1 + rng.below(9), me),
            n => move_few(&endpoint, from, to, n, me),
        };
    }
    println!("moved {moved}");
}

pub(super) fn holder(arguments: &mut Arguments) {
    let store = arguments.store();
    let name: String = arguments.next();
    let pool = Pool::open(&store, &name).expect("open the pool");
    let endpoint = pool.endpoint().expect("an endpoint");
    let _element = endpoint.pop(pool.free()).expect("pop").expect("an element");
    println!("holding");
    let closed = input_closed();
    while !closed.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Of a queue with one producer or consumer another process may be that: then nothing is moved.
fn unless_taken<T: Default>(result: Result<T, QueueError>) -> T {
    match result {
        Err(QueueError::Taken(_)) => T::default(),
        other => other.expect("move elements"),
    }
}

/// The words of an element: its number, and who holds it.
fn claim(bytes: &mut [u8], me: u64) {
    bytes[8..16].copy_from_slice(&me.to_le_bytes());
}

fn check(bytes: &[u8], me: u64) {
    assert_eq!(bytes[8..16], me.to_le_bytes(), "another process holds the same element");
}

fn move_few(endpoint: &Endpoint, from: &Queue, to: &Queue, n: u64, me: u64) -> u64 {
    let mut held = Vec::new();
    for _ in 0..n {
        held.extend(unless_taken(endpoint.pop(from)));
    }
    held.iter_mut().for_each(|element| claim(element, me));
    let mut moved = 0;
    for element in held {
        check(&element, me);
        // What is not taken goes back when it is dropped.
        moved += u64::from(unless_taken(element.push(to).map(|back| back.is_none())));
    }
    moved
}

fn move_batch(endpoint: &mut Endpoint, [from, to, free]: [&Queue; 3], n: u64, me: u64) -> u64 {
    let n = unless_taken(endpoint.pop_many(from, n));
    (0..n).for_each(|i| claim(endpoint.batch_mut(i), me));
    (0..n).for_each(|i| check(endpoint.batch(i), me));
    let moved = unless_taken(endpoint.push_many(to, n));
    endpoint.push_many(free, n).expect("push what is left of a batch");
    moved
}

pub(super) fn mutex(arguments: &mut Arguments) {
    let store = arguments.store();
    let (key, counter): (String, String) = (arguments.next(), arguments.next());
    let mutex = Mutex::new(&store, key.as_bytes()).expect("a mutex");
    let closed = input_closed();
    println!("ready");
    let mut added = 0;
    while !closed.load(Ordering::Relaxed) {
        let _held = mutex.lock(LONG).expect("lock").expect("no living process keeps it");
        let value = store.get(counter.as_bytes()).expect("get").map_or(0, |value| number(&value));
        store.set(counter.as_bytes(), (value + 1).to_string().as_bytes()).expect("set");
        added += 1;
    }
    println!("added {added}");
}

fn number(value: &[u8]) -> u64 {
    String::from_utf8_lossy(value).parse().expect("a number")
}

pub(super) fn once_only(arguments: &mut Arguments) {
    let store = arguments.store();
    let (key, dies): (String, bool) = (arguments.next(), arguments.next());
    let value = once(&store, key.as_bytes(), LONG, || {
        println!("computing");
        if dies {
            std::thread::sleep(LONG);
        }
        Ok::<_, QueueError>(b"computed".to_vec())
    });
    println!("value {}", String::from_utf8_lossy(&value.expect("once").expect("no living process computes forever")));
}

pub(super) fn barrier(arguments: &mut Arguments) {
    let store = arguments.store();
    let key: String = arguments.next();
    let (size, rounds): (u64, u64) = (arguments.next(), arguments.next());
    let mut barrier = Barrier::join(&store, key.as_bytes(), size).expect("join");
    println!("joined");
    for _ in 0..rounds {
        let start = barrier.wait(LONG).expect("wait").expect("all come or die");
        println!("round {} lost {}", start.round, start.lost);
    }
}
