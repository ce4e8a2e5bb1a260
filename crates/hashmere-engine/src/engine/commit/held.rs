//! The locks of a write.

use crate::engine::index::Place;
use hashmere_format::leaf::LockWord;

/// The locks that an attempt holds.
#[derive(Default)]
pub(in crate::engine) struct HeldKey {
    pub(in crate::engine) place: Place,
    pub(in crate::engine) word: LockWord,
    /// Bucket in the overflow tree and its word.
    pub(in crate::engine) second: Option<(u64, LockWord)>,
}

impl HeldKey {
    /// A key's lock alone, as [`Engine::lock_key`](crate::engine::Engine::lock_key) returned it.
    pub(in crate::engine) fn key((place, word): (Place, LockWord)) -> HeldKey {
        HeldKey { place, word, second: None }
    }

    /// Whether what is not in the buckets that are locked may be in those of the next hash.
    pub(in crate::engine) fn goes_on(&self) -> bool {
        self.second.map_or(self.word, |(_, word)| word).has_overflow()
    }
}
