//! Reads without pause until standard input is closed: `reader STORE KEYS`, the registers that `hammer ... set` writes.
//! Says `ready`, and in the end `read N`. Panics on a value that is torn or another key's.

use super::{input_closed, Arguments};
use crate::payload;
use std::sync::atomic::Ordering;

pub(super) fn run(arguments: &mut Arguments) {
    let store = arguments.store();
    let keys: u64 = arguments.next();
    let closed = input_closed();
    let mut buffer = Vec::new();
    let mut reads = 0u64;
    println!("ready");
    while !closed.load(Ordering::Relaxed) {
        for key in 0..keys {
            assert!(store.get_into(&payload::key(key), &mut buffer).expect("get").is_some(), "key {key} is gone");
            let tag = payload::decode(&buffer).unwrap_or_else(|problem| panic!("key {key}: {problem}"));
            assert_eq!(tag & 0xffff, key, "the value of another key");
            reads += 1;
        }
    }
    println!("read {reads}");
}
