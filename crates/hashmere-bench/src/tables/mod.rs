//! The systems that this process can measure by itself. Those in C and C++ are programs of `bench/peers`.

mod hash_map;
mod memcached;
mod store;

pub use hash_map::{Foldhash, Fresh, Map, Rapidhash};
pub use memcached::Memcached;
pub use store::{bulk_matches, file as store_file, Mere};

use crate::Outcome;

/// A table under test.
pub trait Table {
    /// Stores a value, replacing the one before.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Outcome;
    /// Reads a value and compares it: false when it is missing or another.
    fn holds(&mut self, key: &[u8], value: &[u8]) -> Outcome<bool>;
}

/// A cache under test.
pub trait Cached: Table {
    /// Reads a value into a buffer: false when it is not there.
    fn find(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool>;
}

/// As [`Table::holds`], but anything else than the right value is a failure.
#[inline]
pub fn must_hold(table: &mut impl Table, key: &[u8], value: &[u8]) -> Outcome {
    if table.holds(key, value)? {
        return Ok(());
    }
    Err(format!("wrong or missing value of {}", String::from_utf8_lossy(key)).into())
}
