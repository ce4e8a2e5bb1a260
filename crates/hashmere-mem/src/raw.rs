//! The address of a mapping, for [`MapMem`](crate::MapMem) and the byte routines.

use std::sync::atomic::AtomicU64;
#[cfg(any(hashmere_words, miri))]
use std::sync::atomic::Ordering;

/// The address of the mapping, for the byte routines. The caller has checked that
/// the range of the operation lies in the mapping, and guarantees that it was backed.
#[derive(Debug)]
pub(crate) struct Raw(*mut u8);

impl Raw {
    /// Of a mapping that outlives it.
    pub(crate) fn new(start: *mut u8) -> Raw {
        Raw(start)
    }

    #[inline(always)]
    pub(crate) fn at(&self, off: u64) -> *mut u8 {
        self.0.wrapping_add(off as usize)
    }

    #[inline(always)]
    pub(crate) fn word(&self, off: u64) -> &AtomicU64 {
        // SAFETY: an aligned word inside the mapping (see `Raw`), which stays mapped for as long as
        // `MapMem` lives; all that processes share is accessed atomically.
        unsafe { AtomicU64::from_ptr(self.at(off).cast()) }
    }
}

#[cfg(any(hashmere_words, miri))]
impl crate::words::Words for Raw {
    #[inline(always)]
    fn load_word(&self, off: u64) -> u64 {
        self.word(off).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn store_word(&self, off: u64, value: u64) {
        self.word(off).store(value, Ordering::Relaxed);
    }
}

// SAFETY: the address belongs to a `Map`, which may be used by any thread; every access through
// it is atomic, or under the contract of `Mem::slice` and `Mem::slice_mut`.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}
