//! Writes without pause until standard input is closed.
//!
//! `hammer STORE KEYS incr`: adds one to the counters `0..KEYS` in turn; in the end says `added N` for all of them.
//! `hammer STORE KEYS set`: overwrites the registers `0..KEYS` in turn. `hammer STORE KEYS grow`: also new keys, and
//! deletes them again, so that the index splits and segments are cleaned. `hammer STORE KEYS toggle`: sets all in one
//! round and deletes them in the next. `hammer STORE KEYS refill`: sets all in order, then clears the store. All say
//! `ready` after the first round.

use super::{input_closed, Arguments};
use crate::payload;
use hashmere::{Counter, Store};
use std::sync::atomic::Ordering;

pub(super) fn run(arguments: &mut Arguments) {
    let store = arguments.store();
    let keys: u64 = arguments.next();
    let kind: String = arguments.next();
    let closed = input_closed();
    let mut round = 0;
    while !closed.load(Ordering::Relaxed) {
        for key in 0..keys {
            match kind.as_str() {
                "incr" => add_one(&store, key),
                "set" | "refill" => set(&store, key, round),
                "toggle" if round % 2 == 1 => _ = store.delete(&payload::key(key)).expect("delete"),
                "toggle" => set(&store, key, round),
                _ => grow(&store, key, round),
            }
        }
        if kind == "refill" {
            store.clear().expect("clear");
        }
        round += 1;
        if round == 1 {
            println!("ready");
        }
    }
    println!("added {round}");
}

fn add_one(store: &Store, key: u64) {
    let after = store.incr(&payload::key(key), 1, Counter::or_create(1)).expect("increment");
    assert_ne!(after, None, "created if missing");
}

fn set(store: &Store, key: u64, round: u64) {
    store.set(&payload::key(key), &payload::encode(round << 16 | key)).expect("set");
}

fn grow(store: &Store, key: u64, round: u64) {
    set(store, key, round);
    let fresh = 1_000_000 + (round * 7 + key) % 5000;
    if round % 2 == 0 {
        set(store, fresh, round);
    } else {
        store.delete(&payload::key(fresh)).expect("delete");
    }
}
