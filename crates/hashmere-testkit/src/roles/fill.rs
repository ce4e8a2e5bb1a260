//! Fills a store until it is full, and shows that nothing is lost by it: `fill STORE LENGTH FILE MEMORY`.
//!
//! `FILE` is a file size limit for this process, `MEMORY` one for its address space (0: none). Says `open CODE` and
//! ends where the store cannot be opened; otherwise `full CODE` with the code of the error, then `intact` after a check
//! of everything and a refused overwrite, then `room` after deletes made room, several times over, and `end`.

use super::{limit, Arguments};
use crate::payload;
use hashmere::{Options, Store, WriteError};
use nix::sys::resource::Resource;

/// How often it is filled and emptied.
const CYCLES: u64 = 3;

pub(super) fn run(arguments: &mut Arguments) {
    let path: String = arguments.next();
    let len: usize = arguments.next();
    // Made here: when the store has all addresses that it may have, there are few for others.
    let long = vec![1; 1 << 26];
    for what in [Resource::RLIMIT_FSIZE, Resource::RLIMIT_AS] {
        let bytes: u64 = arguments.next();
        if bytes != 0 {
            limit(what, bytes);
        }
    }
    let store = match Options::new().segment_bytes(65536).leaf_bytes(1024).open(&path) {
        Ok(store) => store,
        Err(error) => {
            println!("open {}", error.code());
            return;
        }
    };
    for cycle in 1..=CYCLES {
        let (count, error) = fill(&store, len, cycle);
        println!("full {}", error.code());
        check(&store, len, cycle, count);
        let refused = store.set(b"far too long", &long).expect_err("there is no room for this");
        assert_eq!(refused.code(), error.code(), "{refused:?}");
        check(&store, len, cycle, count);
        println!("intact");
        for number in 0..count {
            assert!(store.delete(&payload::key(number)).expect("deleting works in a full store"));
        }
        assert_eq!(store.len(), 0);
        println!("room");
    }
    println!("end");
}

fn fill(store: &Store, len: usize, cycle: u64) -> (u64, WriteError) {
    for number in 0.. {
        if let Err(error) = store.set(&payload::key(number), &payload::encode_len(number * cycle, len)) {
            assert!(number > 10, "room for {number} values only: {error}");
            return (number, error);
        }
    }
    unreachable!("there are not that many numbers")
}

fn check(store: &Store, len: usize, cycle: u64, count: u64) {
    for number in 0..count {
        let found = store.get(&payload::key(number)).expect("get");
        assert_eq!(found, Some(payload::encode_len(number * cycle, len)), "key {number} of {count}");
    }
    assert_eq!(store.len(), count);
    assert_eq!(store.get(&payload::key(count)).expect("get"), None, "the refused key");
}
