//! `replicate FROM TO`: follows one store with another until standard input is closed and everything is applied.
//! `two-way A B`: keeps two stores equal until standard input is closed and nothing is left to do.
//! `mutate STORE SEED`: changes random keys in every way until standard input is closed.

use super::{input_closed, Arguments};
use crate::procs::LIMIT;
use crate::rng::Rng;
use hashmere::{Attributes, Key, Options, Store, Ttl, WriteBatch, WriteError};
use hashmere_replica::{Replicator, TwoWay, ORIGIN};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Keys that are changed.
const KEYS: u64 = 400;

pub(super) fn replicate(arguments: &mut Arguments) {
    let from = arguments.store();
    let to: String = arguments.next();
    let to = Options::new().busy_timeout(LIMIT).origin(ORIGIN).open(&to).unwrap();
    let mut replicator = Replicator::open(&from, &to).unwrap();
    let closed = input_closed();
    println!("ready");
    loop {
        let is_last = closed.load(Ordering::Relaxed);
        let is_idle = !replicator.step(Duration::from_millis(5)).unwrap();
        if is_last && is_idle {
            break;
        }
    }
}

pub(super) fn two_way(arguments: &mut Arguments) {
    let open = |path: String| Options::new().busy_timeout(LIMIT).origin(ORIGIN).open(&path).unwrap();
    let (a, b) = (open(arguments.next()), open(arguments.next()));
    let mut two_way = TwoWay::open(&a, &b).unwrap();
    let closed = input_closed();
    println!("ready");
    loop {
        let is_last = closed.load(Ordering::Relaxed);
        let is_idle = !two_way.step(Duration::from_millis(5)).unwrap();
        if is_last && is_idle {
            break;
        }
    }
}

pub(super) fn mutate(arguments: &mut Arguments) {
    let store = arguments.store();
    let mut rng = Rng::from_seed(arguments.next());
    let closed = input_closed();
    println!("ready");
    let mut n = 0u64;
    while !closed.load(Ordering::Relaxed) {
        mutate_one(&store, &mut rng).unwrap();
        n += 1;
        // So that the replicator is not lapped without end on a busy machine.
        if n % 32 == 0 {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

fn mutate_one(store: &Store, rng: &mut Rng) -> Result<(), WriteError> {
    let (key, other) = (format!("k{}", rng.below(KEYS)), format!("k{}", rng.below(KEYS)));
    let len = rng.index(300);
    let value = rng.bytes(len);
    match rng.below(12) {
        0 | 1 => store.delete(&key).map(drop),
        2 => store.set(Key::with_hash(&key, rng.below(3)), &value).map(drop),
        3 => store.delete(Key::with_hash(&key, rng.below(3))).map(drop),
        4 => store.touch(&key, Ttl::At(9_000_000_000_000 + rng.below(1000))).map(drop),
        5 => {
            let with = Attributes { flags: rng.word() as u32, ttl: Ttl::At(8_000_000_000_000), ..Attributes::NONE };
            store.set_with(&key, &value, with).map(drop)
        }
        6 | 7 => {
            let mut batch = WriteBatch::new();
            batch.set(&key, &value).delete(&other).set("pair a", &value).set("pair b", &value);
            store.write_batch(&batch).map(drop)
        }
        8 if rng.chance(1) => store.clear(),
        // In place.
        9 => store.set(&key, &rng.word().to_le_bytes()).map(drop),
        _ => store.set(&key, &value).map(drop),
    }
}
