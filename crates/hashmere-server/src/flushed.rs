//! The keys that the last `flush_all` removed, for `get_flushed`: a hash of each, up to a limit. A key counts once, at
//! the next request that misses it; one that was stored again before does not count.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most keys that are remembered: the first that a scan of the store returns.
pub const KEYS_MAX: usize = 1 << 18;

/// The keys.
#[derive(Debug, Default)]
pub struct Flushed {
    hasher: RandomState,
    /// How many there are: nearly always none, and then no lookup is needed.
    left: AtomicUsize,
    hashes: Mutex<HashSet<u64>>,
}

impl Flushed {
    /// Replaces the keys by these.
    pub fn remember(&self, keys: impl Iterator<Item = Vec<u8>>) {
        let hashes = keys.take(KEYS_MAX).map(|key| self.hasher.hash_one(key)).collect::<HashSet<_>>();
        let mut remembered = self.lock();
        self.left.store(hashes.len(), Ordering::Relaxed);
        *remembered = hashes;
    }

    /// Removes this key; returns whether it was one of them.
    #[inline]
    pub fn forget(&self, key: &[u8]) -> bool {
        self.left.load(Ordering::Relaxed) != 0 && self.remove(key)
    }

    #[cold]
    fn remove(&self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key.to_vec());
        let mut hashes = self.lock();
        let was = hashes.remove(&hash);
        if hashes.is_empty() {
            // Gives the memory back too.
            *hashes = HashSet::new();
        }
        self.left.store(hashes.len(), Ordering::Relaxed);
        was
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_counts_once() {
        let flushed = Flushed::default();
        assert!(!flushed.forget(b"a"));
        flushed.remember([b"a".to_vec(), b"b".to_vec()].into_iter());
        assert!(flushed.forget(b"a") && !flushed.forget(b"a") && !flushed.forget(b"c") && flushed.forget(b"b"));
        assert!(!flushed.forget(b"b"));
        flushed.remember((0..KEYS_MAX + 9).map(|i| i.to_le_bytes().to_vec()));
        assert_eq!(flushed.left.load(Ordering::Relaxed), KEYS_MAX);
        flushed.remember(std::iter::empty());
        assert!(!flushed.forget(&0usize.to_le_bytes()));
    }
}
