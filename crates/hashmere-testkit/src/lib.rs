//! What the tests of Hashmere share: a seeded generator, an oracle, a history checker, worker processes that can
//! be killed and stopped, and scratch folders. Development only; nothing here ships.
//!
//! The tests are in `tests/`, one file per promise. A test that needs another process starts
//! [`worker!`](crate::worker), whose parts are in [`roles`].
//!
//! `HASHMERE_SEED` replays a run (each test prints the seed that it used), `HASHMERE_QUICK=1` makes the
//! longest tests shorter, `HASHMERE_BIG=1` wants those that need several gigabytes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code: a failed assumption is a failed test"
)]

pub mod files;
pub mod forked;
pub mod history;
pub mod hostile;
pub mod journal;
pub mod limits;
pub mod memcached;
pub mod oracle;
pub mod payload;
pub mod procs;
pub mod register;
pub mod rng;
pub mod roles;
pub mod scratch;
pub mod step;
pub mod storm;
pub mod threads;

use hashmere::{Options, Store};

/// Path of the worker program. Expands in the calling test, where Cargo says where the binary is.
#[macro_export]
macro_rules! worker {
    () => {
        env!("CARGO_BIN_EXE_hashmere-testkit-worker")
    };
}

/// Bytes before the first segment of every file and count towards its maximum size (mostly holes).
pub const BASE: u64 = 1 << 20;

/// Options of the smallest store: splits and cleaning happen all the time. Who holds a lock may not be run for long on
/// a busy machine: only one that is never given back is refused.
pub fn tiny() -> Options {
    Options::new().segment_bytes(4096).leaf_bytes(256).busy_timeout(procs::LIMIT)
}

/// Options of a small store with another proportion than [`tiny`].
pub fn small() -> Options {
    Options::new().segment_bytes(8192).leaf_bytes(512).busy_timeout(procs::LIMIT)
}

/// Nothing in the store contradicts itself.
#[track_caller]
pub fn assert_clean(store: &Store) {
    let report = store.check();
    assert!(report.is_clean(), "{:#?}", report.problems);
}

/// These numbers are keys of the store, each with its value of this length.
#[track_caller]
pub fn assert_there(store: &Store, numbers: impl Iterator<Item = u64>, len: usize) {
    for number in numbers {
        let found = store.get(&payload::key(number)).unwrap();
        assert_eq!(found, Some(payload::encode_len(number, len)), "key {number}");
    }
}
