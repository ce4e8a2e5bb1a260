//! `HashMap<Vec<u8>, Vec<u8>>`: what a table costs when nothing is shared.

use super::Table;
use crate::Outcome;
use rapidhash::v3::{rapidhash_v3_inline, RapidSecrets};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;

/// A map with the given hash. A value is overwritten in place when the key is there, which is the fastest that a
/// `HashMap` of vectors can do.
#[derive(Default)]
pub struct Map<H> {
    map: HashMap<Vec<u8>, Vec<u8>, H>,
}

impl<H: BuildHasher> Table for Map<H> {
    #[inline]
    fn set(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        match self.map.get_mut(key) {
            Some(old) => {
                old.clear();
                old.extend_from_slice(value);
            }
            None => {
                self.map.insert(key.to_vec(), value.to_vec());
            }
        }
        Ok(())
    }
    #[inline]
    fn holds(&mut self, key: &[u8], value: &[u8]) -> Outcome<bool> {
        Ok(self.map.get(key).is_some_and(|found| found == value))
    }
}

/// A map where a set is `insert` of freshly allocated vectors, as most programs write it.
#[derive(Default)]
pub struct Fresh<H> {
    map: HashMap<Vec<u8>, Vec<u8>, H>,
}

impl<H: BuildHasher> Table for Fresh<H> {
    #[inline]
    fn set(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        self.map.insert(key.to_vec(), value.to_vec());
        Ok(())
    }
    #[inline]
    fn holds(&mut self, key: &[u8], value: &[u8]) -> Outcome<bool> {
        Ok(self.map.get(key).is_some_and(|found| found == value))
    }
}

/// foldhash, the default of hashbrown.
pub type Foldhash = foldhash::fast::FixedState;

/// rapidhash v3 with a seed: the hash function of Hashmere.
#[derive(Clone, Copy, Default)]
pub struct Rapidhash(PhantomData<()>);

/// Hashes one byte string; the length that `Hash` feeds in before it is left out, as Hashmere leaves it out.
pub struct RapidhashOnce(u64);

static SECRETS: RapidSecrets = RapidSecrets::seed_cpp(0x4841_5348_4D45_5245);

impl BuildHasher for Rapidhash {
    type Hasher = RapidhashOnce;
    #[inline]
    fn build_hasher(&self) -> RapidhashOnce {
        RapidhashOnce(0)
    }
}

impl Hasher for RapidhashOnce {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        // As in hashmere-format/src/hash.rs.
        self.0 = rapidhash_v3_inline::<true, false, false>(bytes, &SECRETS);
    }
    #[inline]
    fn write_usize(&mut self, _length: usize) {}
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
