//! Memory on the heap: for Miri, which follows every access, and for tests that want a full disk.

use crate::words::{self, Words};
use crate::{pair, BackError, Mem};
use std::io;
use std::sync::atomic::{self, AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A number of words that are zero, which the allocator hands out as such: one by one they would keep Miri busy for a
/// minute.
fn zeroed(count: u64) -> Box<[AtomicU64]> {
    let words = Box::into_raw(vec![0u64; count as usize].into_boxed_slice());
    // SAFETY: the box gave the words up, and an `AtomicU64` has the size, the bits and (on 64-bit targets;
    // `hashmere-os` refuses others) the alignment of a `u64`.
    unsafe { Box::from_raw(words as *mut [AtomicU64]) }
}

/// Copies words, one by one.
fn copy(from: &[AtomicU64], to: &[AtomicU64]) {
    from.iter().zip(to).for_each(|(from, to)| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed));
}

/// The unit of backing, as on a real file.
const PAGE: u64 = 4096;

/// [`Mem`] on the heap of one process, shared between its threads by reference or `Arc`.
///
/// It behaves as a file does on an empty disk: everything reads as zero, ranges must be backed
/// before use, and the disk can be made to be full ([`HeapMem::set_limit`],
/// [`HeapMem::set_budget`]). An access beyond the capacity panics always, one to a page that was
/// never backed only after [`HeapMem::set_strict`]. All accesses are plain atomics, without
/// assembly.
#[derive(Debug)]
pub struct HeapMem {
    /// Bytes of `words`: to ask the slice itself would make Miri look at all of it.
    capacity: u64,
    words: Box<[AtomicU64]>,
    /// One bit per page that was backed.
    pages: Box<[AtomicU64]>,
    limit: AtomicU64,
    budget: AtomicU64,
    strict: AtomicBool,
}

impl HeapMem {
    /// Memory of `capacity` bytes (rounded up to whole pages of 4096), nothing backed and no limit
    /// set.
    pub fn new(capacity: u64) -> HeapMem {
        let pages = capacity.div_ceil(PAGE);
        HeapMem {
            capacity: pages * PAGE,
            words: zeroed(pages * PAGE / 8),
            pages: zeroed(pages.div_ceil(64)),
            limit: AtomicU64::new(u64::MAX),
            budget: AtomicU64::new(u64::MAX),
            strict: AtomicBool::new(false),
        }
    }

    /// The largest file: [`Mem::back`] says "no space" to a range that ends beyond `bytes`,
    /// unless all of it was backed before.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// The size of the disk: [`Mem::back`] says "no space" when the backed pages would come to more
    /// than `bytes`.
    pub fn set_budget(&self, bytes: u64) {
        self.budget.store(bytes, Ordering::Relaxed);
    }

    /// Whether an access to a page that was never backed, or was given back, panics. On
    /// a real file it might raise `SIGBUS`.
    pub fn set_strict(&self, strict: bool) {
        self.strict.store(strict, Ordering::Relaxed);
    }

    /// Whether there is memory behind an offset.
    pub fn has_memory(&self, off: u64) -> bool {
        self.is_backed(off / PAGE)
    }

    /// Bytes of backed pages.
    pub fn backed_bytes(&self) -> u64 {
        let count = |word: &AtomicU64| u64::from(word.load(Ordering::Relaxed).count_ones());
        self.pages.iter().map(count).sum::<u64>() * PAGE
    }

    /// A copy of everything, as a snapshot of the file would be; limits and strictness included.
    pub fn image(&self) -> HeapMem {
        let image = HeapMem::new(self.capacity);
        copy(&self.pages, &image.pages);
        // Holes are zero in both, and stay unallocated in the copy.
        let words = |page: u64| (page * PAGE / 8) as usize..((page + 1) * PAGE / 8) as usize;
        for page in (0..self.capacity / PAGE).filter(|page| self.is_backed(*page)) {
            copy(&self.words[words(page)], &image.words[words(page)]);
        }
        image.limit.store(self.limit.load(Ordering::Relaxed), Ordering::Relaxed);
        image.budget.store(self.budget.load(Ordering::Relaxed), Ordering::Relaxed);
        image.strict.store(self.strict.load(Ordering::Relaxed), Ordering::Relaxed);
        image
    }

    #[inline]
    fn word(&self, off: u64) -> &AtomicU64 {
        debug_assert!(off % 8 == 0, "word offset {off:#x} is not aligned");
        if self.strict.load(Ordering::Relaxed) {
            assert!(self.is_backed(off / PAGE), "offset {off:#x} was never backed");
        }
        &self.words[(off / 8) as usize]
    }

    fn is_backed(&self, page: u64) -> bool {
        let word = self.pages.get((page / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (page % 64) & 1 != 0)
    }

    fn holds(&self, off: u64, len: u64) -> bool {
        off.checked_add(len).is_some_and(|end| end <= self.capacity())
    }

    /// The address of a range, with the provenance of the whole memory.
    fn address(&self, off: u64, len: usize) -> *mut u8 {
        assert!(self.holds(off, len as u64), "range {off:#x}+{len:#x} beyond the capacity");
        // The atomics are interior-mutable, so a pointer derived from the shared slice may write.
        self.words.as_ptr().cast_mut().cast::<u8>().wrapping_add(off as usize)
    }
}

impl Words for HeapMem {
    #[inline]
    fn load_word(&self, off: u64) -> u64 {
        self.word(off).load(Ordering::Relaxed)
    }

    #[inline]
    fn store_word(&self, off: u64, value: u64) {
        self.word(off).store(value, Ordering::Relaxed);
    }
}

impl Mem for HeapMem {
    #[inline]
    fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn load(&self, off: u64, order: Ordering) -> u64 {
        self.word(off).load(order)
    }

    #[inline]
    fn store(&self, off: u64, value: u64, order: Ordering) {
        self.word(off).store(value, order);
    }

    #[inline]
    fn compare_exchange(&self, off: u64, current: u64, new: u64) -> Result<u64, u64> {
        self.word(off).compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    #[inline]
    fn has_pairs(&self) -> bool {
        pair::is_supported() && self.words.as_ptr() as usize % 16 == 0
    }

    #[inline]
    fn compare_exchange_pair(&self, off: u64, current: [u64; 2], new: [u64; 2]) -> bool {
        let _ = self.word(off);
        // SAFETY: inside the allocation (`address` checks), which `has_pairs` found aligned, in memory of atomics.
        unsafe { pair::compare_exchange(self.address(off, 16), current, new) }
    }

    #[inline]
    fn swap(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.word(off).swap(value, order)
    }

    #[inline]
    fn fetch_add(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.word(off).fetch_add(value, order)
    }

    #[inline]
    fn fetch_or(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.word(off).fetch_or(value, order)
    }

    #[inline]
    fn fence(&self, order: Ordering) {
        atomic::fence(order);
    }

    crate::bytes_by_words!();

    fn zero(&self, off: u64, len: u64) {
        words::zero(self, off, len);
    }

    unsafe fn slice(&self, off: u64, len: usize) -> &[u8] {
        // SAFETY: inside the allocation (`address` checks), which lives as long as `self`; the
        // caller vouches that nothing writes to the range.
        unsafe { std::slice::from_raw_parts(self.address(off, len), len) }
    }

    unsafe fn slice_mut(&self, off: u64, len: usize) -> &mut [u8] {
        // SAFETY: inside the allocation (`address` checks), which lives as long as `self`; the
        // caller vouches that nothing else accesses the range.
        unsafe { std::slice::from_raw_parts_mut(self.address(off, len), len) }
    }

    fn back(&self, off: u64, len: u64) -> Result<(), BackError> {
        let capacity = self.capacity();
        if !self.holds(off, len) {
            let end = off.saturating_add(len);
            return Err(BackError::BeyondReserve { end, capacity });
        }
        let wanted = off / PAGE..(off + len).div_ceil(PAGE);
        let missing = wanted.clone().filter(|&page| !self.is_backed(page)).count() as u64;
        if len == 0 || missing == 0 {
            return Ok(());
        }
        let total = self.backed_bytes() + missing * PAGE;
        if off + len > self.limit.load(Ordering::Relaxed) || total > self.budget.load(Ordering::Relaxed) {
            return Err(BackError::NoSpace(io::ErrorKind::StorageFull.into()));
        }
        for page in wanted {
            self.pages[(page / 64) as usize].fetch_or(1 << (page % 64), Ordering::Relaxed);
        }
        Ok(())
    }

    fn unback(&self, off: u64, len: u64) -> bool {
        if !self.holds(off, len) {
            return false;
        }
        // As a hole in a file: pages inside the range are freed, bytes of others only zeroed.
        for page in off.div_ceil(PAGE)..(off + len) / PAGE {
            self.pages[(page / 64) as usize].fetch_and(!(1 << (page % 64)), Ordering::Relaxed);
        }
        for at in (off & !7..off + len).step_by(8) {
            let before = off.saturating_sub(at);
            let after = (at + 8).saturating_sub(off + len);
            let word = &self.words[(at / 8) as usize];
            // Whole words, which most are, need no exchange.
            match !0 << (8 * before) & !0 >> (8 * after) {
                u64::MAX => word.store(0, Ordering::Relaxed),
                mask => drop(word.fetch_and(!mask, Ordering::Relaxed)),
            }
        }
        true
    }

    fn wait(&self, off: u64, expected: u32, timeout: Duration) {
        let start = Instant::now();
        // Yielding, and not sleeping on something: there may be no thread but ours, as under Miri.
        while self.load(off, Ordering::Acquire) as u32 == expected && start.elapsed() < timeout {
            std::thread::yield_now();
        }
    }

    fn wake(&self, _off: u64) {}

    #[inline]
    fn relax(&self) {
        std::hint::spin_loop();
    }
}
