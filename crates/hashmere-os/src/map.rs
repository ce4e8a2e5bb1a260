//! One shared mapping over a file that may still be much shorter than the mapping.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// `MADV_POPULATE_WRITE` of Linux 5.14, which older C libraries do not name.
const MADV_POPULATE_WRITE: libc::c_int = 23;
/// `MADV_COLLAPSE` of Linux 6.1.
const MADV_COLLAPSE: libc::c_int = 25;
/// A large page, and what a mapping must be aligned to for the kernel to use them.
const LARGE_PAGE: usize = 2 << 20;

/// A shared mapping of the first `len` bytes of a file.
///
/// The mapping may reach far beyond the end of the file: pages become valid as the file grows, so
/// no pointer ever moves. Touching a page that the file does not have yet raises `SIGBUS`, so a
/// range must be allocated ([`crate::space::allocate`]) before it is touched. The file may be
/// closed while it is mapped. Dropping unmaps.
#[derive(Debug)]
pub struct Map {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: a `Map` is an address range that stays mapped until drop; the type itself never
// dereferences it, and whoever does so through `as_ptr` answers for the races.
unsafe impl Send for Map {}
// SAFETY: as above; every method takes `&self` and changes nothing in the struct.
unsafe impl Sync for Map {}

impl Map {
    /// Maps `len` bytes of the file from offset 0 on, shared with every other process that does.
    ///
    /// Only address range is taken: no memory, no swap and no file space is reserved. The pages
    /// are kept out of core dumps where the kernel allows that.
    ///
    /// # Errors
    /// - `InvalidInput` if `len` is 0 or no address range can be that long.
    /// - `OutOfMemory` (`ENOMEM`) if the address space or its limit (`RLIMIT_AS`) has no room.
    /// - Whatever else `mmap` says: `EACCES` for a descriptor whose access mode does not fit.
    pub fn reserve(fd: BorrowedFd<'_>, len: u64, writable: bool) -> io::Result<Map> {
        let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "impossible mapping length");
        let len = usize::try_from(len).map_err(|_| too_long())?;
        if len == 0 || isize::try_from(len).is_err() {
            return Err(too_long());
        }
        let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let base = place(len)?;
        // SAFETY: the range is ours, reserved just now, and nothing refers to it; if this fails it is unmapped below.
        let mapped = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
            libc::mmap(base.as_ptr().cast(), len, access, flags, fd.as_raw_fd(), 0)
        };
        let map = Map { base, len, writable };
        if mapped == libc::MAP_FAILED {
            // `map` unmaps what was reserved.
            return Err(io::Error::last_os_error());
        }
        // Best effort: a core dump of a shared table of gigabytes helps nobody.
        map.advise(0, len, libc::MADV_DONTDUMP);
        Ok(map)
    }

    /// Like [`Map::reserve`] for `wanted` bytes, halved for as long as the address space has no
    /// room, down to and including `minimum`. [`Map::len`] says what it came to.
    ///
    /// # Errors
    /// Those of [`Map::reserve`]; `OutOfMemory` only once `minimum` bytes were refused too.
    pub fn reserve_up_to(fd: BorrowedFd<'_>, wanted: u64, minimum: u64, writable: bool) -> io::Result<Map> {
        let mut len = wanted.max(minimum);
        loop {
            match Map::reserve(fd, len, writable) {
                // EINVAL is what valgrind says to a range larger than its own address space.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EINVAL)) && len > minimum => {
                    len = (len / 2).max(minimum);
                }
                outcome => return outcome,
            }
        }
    }

    /// The address of the first byte, on a page boundary. It stays the same for the life of the
    /// `Map`.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// How many bytes of address range are mapped.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // a Map is never empty
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether the pages may be written.
    #[inline]
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// Enters the pages of a range into the page tables, as a write to each would, so that
    /// later writes take no page fault.
    ///
    /// A mere optimisation: every error is ignored (old kernels do not know the advice), as is a
    /// range outside the mapping. It never raises a signal - the kernel reports a page that
    /// has nothing behind it as an error - but it would fill holes of the file, so call it
    /// after the range was allocated.
    pub fn populate_write(&self, off: u64, len: u64) {
        let page = page_size();
        let Some(end) = off.checked_add(len) else {
            return;
        };
        if !self.writable || len == 0 || end > self.len() {
            return;
        }
        let start = off - off % page;
        // Both fit usize: they are at most `self.len`.
        self.advise(start as usize, (end - start) as usize, MADV_POPULATE_WRITE);
    }

    /// Makes one large page of each 2 MiB of a range, zeros where the file has nothing yet; `false` if the system cannot.
    /// What is there stays, and whoever uses it at the moment waits in a page fault at most.
    pub fn collapse(&self, off: u64, len: u64) -> bool {
        let inside = off.checked_add(len).is_some_and(|end| end <= self.len());
        inside && self.advise(off as usize, len as usize, MADV_COLLAPSE)
    }

    /// Advice about a range inside the mapping, whose outcome nobody depends on.
    fn advise(&self, off: usize, len: usize, advice: libc::c_int) -> bool {
        debug_assert!(off + len <= self.len);
        // SAFETY: the range lies in this mapping (asserted, and checked by all callers), and the
        // kinds of advice that are passed change no byte that a program could see.
        unsafe { libc::madvise(self.base.as_ptr().add(off).cast(), len, advice) == 0 }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `reserve` mapped; whoever uses `as_ptr` must not outlive
        // us.
        unsafe {
            libc::munmap(self.base.as_ptr().cast(), self.len);
        }
    }
}

/// Reserves an address range of `len` bytes that begins on a large page.
fn place(len: usize) -> io::Result<NonNull<u8>> {
    let too_long = || io::Error::from_raw_os_error(libc::ENOMEM);
    let wide = len.checked_next_multiple_of(page_size() as usize).and_then(|len| len.checked_add(LARGE_PAGE));
    let wide = wide.ok_or_else(too_long)?;
    // SAFETY: without MAP_FIXED the kernel picks free addresses, so no existing object is touched.
    let start = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::mmap(std::ptr::null_mut(), wide, libc::PROT_NONE, flags, -1, 0)
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = start.cast::<u8>();
    let before = start.align_offset(LARGE_PAGE);
    // SAFETY: both ends lie in the range just reserved, of which `before + len` is less than `wide`.
    unsafe {
        let base = start.add(before);
        let end = base.add(len.next_multiple_of(page_size() as usize));
        if before != 0 {
            libc::munmap(start.cast(), before);
        }
        libc::munmap(end.cast(), start.add(wide).offset_from(end) as usize);
        NonNull::new(base).ok_or_else(|| io::Error::other("the kernel mapped the file at address zero"))
    }
}

/// The page size of this machine.
pub fn page_size() -> u64 {
    // SAFETY: sysconf takes a plain value.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space;
    use crate::testing::Scratch;
    use std::os::fd::AsFd;

    #[test]
    fn mapping_becomes_valid_as_the_file_grows() {
        let scratch = Scratch::new("map-grow");
        let file = scratch.file("f");
        let map = Map::reserve(file.as_fd(), 1 << 30, true).unwrap();
        assert_eq!(map.len(), 1 << 30);
        assert!(map.writable());
        for end in [4096u64, 1 << 20, 3 << 20] {
            space::allocate(file.as_fd(), 0, end).unwrap();
            map.populate_write(0, end);
            // SAFETY: the last byte was allocated just now, and nobody else maps the file.
            unsafe {
                let last = map.as_ptr().add(end as usize - 1);
                assert_eq!(last.read_volatile(), 0);
                last.write_volatile(7);
            }
        }
        let other = Map::reserve(file.as_fd(), 4096, false).unwrap();
        // SAFETY: byte 4095 was allocated above.
        assert_eq!(unsafe { other.as_ptr().add(4095).read_volatile() }, 7);
    }

    #[test]
    fn populate_of_what_is_not_there_is_harmless() {
        let scratch = Scratch::new("map-populate");
        let file = scratch.file("f");
        let map = Map::reserve(file.as_fd(), 1 << 20, true).unwrap();
        map.populate_write(0, 1 << 20);
        map.populate_write(1 << 19, 1 << 20);
        map.populate_write(u64::MAX, 2);
        map.populate_write(123, 0);
        assert_eq!(space::size(file.as_fd()).unwrap(), 0);
    }

    #[test]
    fn impossible_lengths_are_refused() {
        let scratch = Scratch::new("map-len");
        let file = scratch.file("f");
        for len in [0, u64::MAX, 1 << 63] {
            let error = Map::reserve(file.as_fd(), len, true).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn reserve_halves_until_it_fits() {
        let scratch = Scratch::new("map-halve");
        let file = scratch.file("f");
        // No x86-64 or aarch64 process has 2^62 bytes of user addresses.
        let map = Map::reserve_up_to(file.as_fd(), 1 << 62, 1 << 16, true).unwrap();
        assert!(map.len() >= 1 << 16 && map.len() < 1 << 62);
        let error = Map::reserve_up_to(file.as_fd(), 1 << 62, 1 << 61, true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
