//! Hashmere itself.

use super::{Cached, Table};
use crate::workload::eight_digits;
use crate::Outcome;
use hashmere::{Mode, Options, Store};
use std::path::{Path, PathBuf};

/// A store and the buffer that its gets fill.
pub struct Mere {
    /// The store.
    pub store: Store,
    buffer: Vec<u8>,
}

/// The store's file in a folder.
pub fn file(folder: &Path) -> PathBuf {
    folder.join("bench.mere")
}

impl Mere {
    /// Creates or opens the store of a folder; with default options, unless a number of items is expected.
    pub fn open(folder: &Path, expected_items: Option<u64>) -> Outcome<Mere> {
        let options = Options::new();
        let options = match expected_items {
            Some(items) => options.expected_items(items),
            None => options,
        };
        Ok(Mere { store: options.open(file(folder))?, buffer: Vec::new() })
    }

    /// Creates a cache of at most `bytes` in a folder.
    pub fn open_cache(folder: &Path, bytes: u64) -> Outcome<Mere> {
        let options = Options::new().mode(Mode::Cache).max_bytes(bytes);
        Ok(Mere { store: options.open(file(folder))?, buffer: Vec::new() })
    }
}

impl Cached for Mere {
    fn find(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool> {
        Ok(self.store.get_into(key, value)?.is_some())
    }
}

impl Table for Mere {
    #[inline]
    fn set(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        self.store.set(key, value)?;
        Ok(())
    }
    #[inline]
    fn holds(&mut self, key: &[u8], value: &[u8]) -> Outcome<bool> {
        Ok(self.store.get_into(key, &mut self.buffer)?.is_some() && self.buffer == value)
    }
}

/// Bulk get of `%08d` keys whose values are the keys: whether every one came, in order and right.
#[inline]
pub fn bulk_matches(store: &Store, numbers: &[u32], keys: &mut Vec<[u8; 8]>) -> Outcome<bool> {
    keys.clear();
    keys.extend(numbers.iter().map(|&n| eight_digits(n)));
    let keys = keys.as_slice();
    let mut right = 0;
    store.get_many_with(keys, |i, value| {
        right += usize::from(i < keys.len() && value == Some(&keys[i]));
    })?;
    Ok(right == keys.len())
}
