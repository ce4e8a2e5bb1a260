//! The real memory: a shared mapping of the file.

use crate::raw::Raw;
use crate::{pair, BackError, Mem, BLOCK};
use hashmere_os::page::page_size;
use hashmere_os::{futex, send, space, AddressLimit, Map};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{self, AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

#[cfg(any(hashmere_words, miri))]
use crate::words as bytes;
#[cfg(not(any(hashmere_words, miri)))]
use crate::x86_64 as bytes;

/// [`Mem`] on a file that every process maps.
///
/// The mapping grows in place when more of the file is needed than it has ([`Mem::extend`]), so the address of an
/// offset never changes.
///
/// Words and short byte ranges (64 bytes at most) are checked against the capacity by debug
/// assertions only, everything else always: the engine validates what it reads from the file
/// before it gets here. Touching a range that was never backed raises `SIGBUS`.
#[derive(Debug)]
pub struct MapMem {
    raw: Raw,
    writable: bool,
    file: Arc<File>,
    /// Large pages were refused.
    small_pages: AtomicBool,
    /// Keeps `raw` mapped.
    map: Map,
}

impl MapMem {
    /// A memory on `map`, which must be a mapping of `file`.
    ///
    /// `writable` says whether [`Mem::back`] may grow the file; it takes a writable mapping too.
    /// Storing to a mapping that is not writable raises `SIGSEGV`.
    pub fn new(file: impl Into<Arc<File>>, map: Map, writable: bool) -> MapMem {
        MapMem {
            raw: Raw::new(map.as_ptr()),
            writable: writable && map.writable(),
            file: file.into(),
            small_pages: AtomicBool::new(false),
            map,
        }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether the memory may be stored to, and grown.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// The present size of the file: what lies below it can be read without a signal.
    ///
    /// # Errors
    /// Those of `fstat`.
    pub fn file_len(&self) -> io::Result<u64> {
        space::size(self.file.as_fd())
    }

    /// Bytes of storage that the file really occupies.
    ///
    /// # Errors
    /// Those of `fstat`.
    pub fn allocated_bytes(&self) -> io::Result<u64> {
        space::blocks(self.file.as_fd())
    }

    /// Sends bytes of `letter` to a descriptor from the offset in the word at `progress`; the kernel advances
    /// that by the number it returns, so a process killed during the call has had both done or neither. See
    /// [`send::send`].
    ///
    /// # Errors
    /// Those of [`send::send`].
    pub fn send(&self, letter: &File, to: BorrowedFd<'_>, progress: u64, len: u64) -> io::Result<u64> {
        self.check_always(progress, 8);
        send::send(letter, to, self.word(progress), len)
    }

    /// The word at an offset, which is a multiple of 8 within the mapping. It stays where it is as long as this lives.
    #[inline(always)]
    pub fn atomic(&self, off: u64) -> &AtomicU64 {
        assert!(off % 8 == 0, "word offset {off:#x} is not aligned");
        self.check_always(off, 8);
        self.word(off)
    }

    #[inline(always)]
    fn word(&self, off: u64) -> &AtomicU64 {
        debug_assert!(off % 8 == 0, "word offset {off:#x} is not aligned");
        debug_assert!(self.holds(off, 8), "offset {off:#x} beyond the mapping");
        self.raw.word(off)
    }

    #[inline(always)]
    fn holds(&self, off: u64, len: u64) -> bool {
        off.checked_add(len).is_some_and(|end| end <= self.map.len())
    }

    /// Checks a byte range: always where the cost drowns in that of the copy, else in debug builds.
    #[inline(always)]
    fn check(&self, off: u64, len: u64) {
        if cfg!(debug_assertions) || len > 64 {
            self.check_always(off, len);
        }
    }

    #[inline(always)]
    fn check_always(&self, off: u64, len: u64) {
        assert!(self.holds(off, len), "range {off:#x}+{len:#x} beyond the mapping");
    }
}

impl Mem for MapMem {
    #[inline(always)]
    fn capacity(&self) -> u64 {
        self.map.len()
    }

    fn capacity_limit(&self) -> u64 {
        u64::MAX
    }

    #[cold]
    fn extend(&self, end: u64) -> bool {
        end <= self.capacity() || self.map.grow(end).is_ok()
    }

    #[cold]
    fn address_limit(&self, end: u64) -> AddressLimit {
        AddressLimit::of_refused(end.saturating_sub(self.capacity()))
    }

    #[cold]
    fn size(&self) -> u64 {
        self.file_len().unwrap_or(0)
    }

    #[inline(always)]
    fn load(&self, off: u64, order: Ordering) -> u64 {
        self.word(off).load(order)
    }

    #[inline(always)]
    fn store(&self, off: u64, value: u64, order: Ordering) {
        self.word(off).store(value, order);
    }

    #[cfg(not(any(hashmere_words, miri)))]
    #[inline(always)]
    fn agreeing(&self, first: u64, second: u64, pattern: u32, mask: u32) -> u32 {
        debug_assert!([first, second].iter().all(|off| off % 64 == 0 && self.holds(*off, 64)));
        bytes::agreeing(&self.raw, first, second, pattern, mask)
    }

    #[inline(always)]
    fn compare_exchange(&self, off: u64, current: u64, new: u64) -> Result<u64, u64> {
        self.word(off).compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    #[inline(always)]
    fn has_pairs(&self) -> bool {
        pair::is_supported()
    }

    #[inline(always)]
    fn compare_exchange_pair(&self, off: u64, current: [u64; 2], new: [u64; 2]) -> bool {
        debug_assert!(off % 16 == 0 && self.holds(off, 16));
        // SAFETY: mapped, as of every operation (see `Raw`); mappings begin at pages; `has_pairs` is the caller's.
        unsafe { pair::compare_exchange(self.raw.at(off), current, new) }
    }

    #[inline(always)]
    fn swap(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.word(off).swap(value, order)
    }

    #[inline(always)]
    fn fetch_add(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.word(off).fetch_add(value, order)
    }

    #[inline(always)]
    fn fetch_or(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.word(off).fetch_or(value, order)
    }

    #[inline(always)]
    fn fence(&self, order: Ordering) {
        atomic::fence(order);
    }

    #[inline(always)]
    fn prefetch(&self, off: u64) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            // SAFETY: every processor of this kind has the instruction, and it ignores bad
            // addresses.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.raw.at(off).cast()) };
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        // SAFETY: a hint, which ignores bad addresses.
        unsafe {
            core::arch::asm!("prfm pldl1keep, [{}]", in(reg) self.raw.at(off),
                options(nostack, preserves_flags, readonly));
        }
        #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
        let _ = off;
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    fn prefetch_write(&self, off: u64) {
        use core::arch::x86_64::{_mm_prefetch, _MM_HINT_ET0};
        // SAFETY: as above; a processor that does not know this hint ignores it.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(self.raw.at(off).cast()) };
    }

    #[inline(always)]
    fn read(&self, off: u64, dst: &mut [u8]) {
        self.check(off, dst.len() as u64);
        bytes::read(&self.raw, off, dst);
    }

    #[inline(always)]
    fn append_to(&self, off: u64, len: usize, dst: &mut Vec<u8>) {
        self.check(off, len as u64);
        bytes::append_to(&self.raw, off, len, dst);
    }

    #[inline(always)]
    fn write(&self, off: u64, src: &[u8]) {
        self.check(off, src.len() as u64);
        bytes::write(&self.raw, off, src);
    }

    #[inline(always)]
    fn matches(&self, off: u64, bytes: &[u8]) -> bool {
        self.check(off, bytes.len() as u64);
        bytes::matches(&self.raw, off, bytes)
    }

    #[inline]
    fn copy(&self, from: u64, to: u64, len: u64) {
        debug_assert!((from | to | len) % 8 == 0);
        self.check_always(from, len);
        self.check_always(to, len);
        bytes::copy(&self.raw, from, to, len);
    }

    #[inline]
    fn zero(&self, off: u64, len: u64) {
        debug_assert!((off | len) % 8 == 0);
        self.check_always(off, len);
        bytes::zero(&self.raw, off, len);
    }

    #[inline]
    unsafe fn slice(&self, off: u64, len: usize) -> &[u8] {
        self.check_always(off, len as u64);
        // SAFETY: inside the mapping, which lives as long as `self`; the caller vouches that it
        // was backed and that nothing writes to it.
        unsafe { std::slice::from_raw_parts(self.raw.at(off), len) }
    }

    #[inline]
    unsafe fn slice_mut(&self, off: u64, len: usize) -> &mut [u8] {
        self.check_always(off, len as u64);
        // SAFETY: inside the mapping, which lives as long as `self`; the caller vouches that it
        // was backed and that nothing else accesses it.
        unsafe { std::slice::from_raw_parts_mut(self.raw.at(off), len) }
    }

    fn back(&self, off: u64, len: u64) -> Result<(), BackError> {
        if !self.writable {
            let error = io::Error::new(io::ErrorKind::PermissionDenied, "the store is open for reading only");
            return Err(BackError::Io(error));
        }
        let end = off.saturating_add(len);
        if !self.extend(end) {
            return Err(BackError::AddressSpace { end, limit: self.address_limit(end) });
        }
        space::allocate(self.file.as_fd(), off, len).map_err(classify)?;
        // Allocated is safe; populated is fast too: no page fault inside a critical section.
        self.map.populate_write(off, len);
        Ok(())
    }

    fn back_block(&self, off: u64) {
        if !self.writable || !self.holds(off, BLOCK) || self.small_pages.load(Ordering::Relaxed) {
            return;
        }
        // The first and the last page: a range with nothing in it, or beyond the end of the file, is not made one page.
        let page = page_size();
        let ends = [off, off + BLOCK - page];
        if ends.iter().all(|end| space::allocate(self.file.as_fd(), *end, page).is_ok())
            && !self.map.collapse(off, BLOCK)
        {
            // This file system or this kernel has no large pages, or there is none at the moment: do not ask again.
            self.small_pages.store(true, Ordering::Relaxed);
        }
    }

    fn left(&self) -> Option<u64> {
        space::free(self.file.as_fd()).ok()
    }

    fn unback(&self, off: u64, len: u64) -> bool {
        self.writable && self.holds(off, len) && space::punch(self.file.as_fd(), off, len).is_ok()
    }

    fn sync(&self) -> io::Result<()> {
        // The kernel knows which pages were stored to through any mapping of the file.
        self.file.sync_data()
    }

    fn wait(&self, off: u64, expected: u32, timeout: Duration) {
        // The low half of a little-endian word comes first. Why it returned makes no difference.
        futex::wait(self.word(off).as_ptr().cast(), expected, timeout);
    }

    fn wake(&self, off: u64) {
        futex::wake(self.word(off).as_ptr().cast(), u32::MAX);
    }

    #[inline(always)]
    fn relax(&self) {
        std::hint::spin_loop();
    }
}

/// Whether a failed allocation means "full", which the store survives, or something else.
fn classify(error: io::Error) -> BackError {
    use io::ErrorKind::{FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | FileTooLarge | QuotaExceeded | OutOfMemory => BackError::NoSpace(error),
        _ => BackError::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_and_broken_are_different_errors() {
        // ENOSPC, EFBIG, EDQUOT and ENOMEM; then EIO and EBADF. Their numbers are Linux's.
        for code in [28, 27, 122, 12] {
            let error = classify(io::Error::from_raw_os_error(code));
            assert!(matches!(error, BackError::NoSpace(_)), "{error:?}");
        }
        for code in [5, 9] {
            let error = classify(io::Error::from_raw_os_error(code));
            assert!(matches!(error, BackError::Io(_)), "{error:?}");
        }
    }
}
