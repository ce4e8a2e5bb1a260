//! Which keys a first copy brought.

use std::collections::hash_map::RandomState;
use std::collections::HashSet;
use std::hash::BuildHasher;

/// A set of keys, by 128 bits of hash: a foreign key is taken for one of n with a chance of n / 2^128.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    seeds: [RandomState; 2],
    hashes: HashSet<[u64; 2]>,
}

impl Keys {
    fn hashes(&self, key: &[u8], supplied: Option<u64>) -> [u64; 2] {
        [0, 1].map(|n: usize| self.seeds[n].hash_one((key, supplied)))
    }

    pub fn add(&mut self, key: &[u8], supplied: Option<u64>) {
        let hashes = self.hashes(key, supplied);
        self.hashes.insert(hashes);
    }

    pub fn has(&self, key: &[u8], supplied: Option<u64>) -> bool {
        self.hashes.contains(&self.hashes(key, supplied))
    }

    pub fn forget(&mut self) {
        self.hashes.clear();
    }
}
