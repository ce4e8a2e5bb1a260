//! When keys were last asked for, for the flags `h` and `l` of the meta protocol.
//!
//! The store does not keep this. The table is made when somebody asks for the first time, and notes accesses over the
//! socket from then on; it forgets the older of two keys that fall on the same place.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;

const PLACES: usize = 1 << 16;
const FETCHED: u64 = 1 << 32;
const NAME: u64 = !((1 << 33) - 1);

/// The table.
#[derive(Debug, Default)]
pub struct Access {
    on: AtomicBool,
    places: OnceLock<Box<[AtomicU64]>>,
}

/// FNV-1a, 64 bits.
fn hash(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

impl Access {
    /// Whether accesses are to be noted.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Notes that a key was stored (`false`) or fetched at this second.
    pub fn note(&self, key: &[u8], fetched: bool, second: u64) {
        let hash = hash(key);
        let Some(place) = self.place(hash) else { return };
        let fetched = if fetched { FETCHED } else { 0 };
        place.store(hash & NAME | fetched | second & u64::from(u32::MAX), Ordering::Relaxed);
    }

    /// Whether a key was fetched since it was stored, and the second of the last access. `None`: nothing is known.
    pub fn look(&self, key: &[u8]) -> Option<(bool, u64)> {
        self.places.get_or_init(|| (0..PLACES).map(|_| AtomicU64::new(0)).collect());
        self.on.store(true, Ordering::Relaxed);
        let hash = hash(key);
        let word = self.place(hash)?.load(Ordering::Relaxed);
        (word & NAME == hash & NAME).then_some((word & FETCHED != 0, word & u64::from(u32::MAX)))
    }

    fn place(&self, hash: u64) -> Option<&AtomicU64> {
        self.places.get()?.get(hash as usize % PLACES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_noted_once_somebody_asks() {
        let access = Access::default();
        access.note(b"k", true, 5);
        assert!(!access.is_on());
        assert_eq!(access.look(b"k"), None);
        access.note(b"k", false, 7);
        assert_eq!(access.look(b"k"), Some((false, 7)));
        access.note(b"k", true, 9);
        assert_eq!(access.look(b"k"), Some((true, 9)));
        assert_eq!(access.look(b"other"), None);
    }
}
