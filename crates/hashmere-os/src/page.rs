//! Sizes of pages.

/// A large page, and what a mapping must be aligned to for the kernel to use them.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// The page size of this machine.
pub fn page_size() -> u64 {
    // SAFETY: sysconf takes a plain value.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}
