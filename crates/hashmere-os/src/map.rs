//! One shared mapping over a file, which grows where it is.

use crate::addresses::{headroom, Position};
use crate::fork;
use crate::page::{page_size, LARGE_PAGE};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// `MADV_POPULATE_WRITE` of Linux 5.14, which older C libraries do not name.
const MADV_POPULATE_WRITE: libc::c_int = 23;
/// `MADV_COLLAPSE` of Linux 6.1.
const MADV_COLLAPSE: libc::c_int = 25;

/// What a mapping gets beyond what is asked for: a quarter, within these bounds, so that it need not grow often.
const SLACK: (u64, u64) = (16 << 20, 64 << 30);
/// How many positions are tried that something else may occupy.
const TRIES: usize = 16;
/// What a mapping that is where the kernel put it gets beyond what is asked for: behind it there is seldom room to
/// grow.
const UNPLACED: u64 = 64 << 30;

/// A shared mapping of the first bytes of a file.
///
/// The mapping may reach beyond the end of the file: pages become valid as the file grows. And it can itself
/// [`grow`](Self::grow), in place, so no pointer ever moves. Touching a page that the file does not have yet raises
/// `SIGBUS`, so a range must be allocated ([`crate::space::allocate`]) before it is touched. The file may be closed
/// while it is mapped. Dropping unmaps.
#[derive(Debug)]
pub struct Map {
    base: NonNull<u8>,
    /// A multiple of the page size. It only grows.
    len: AtomicUsize,
    writable: bool,
    /// Held by the thread that grows the mapping.
    turn: Turn,
    /// Where it begins, unless the kernel chose. Given back after the range was unmapped.
    _position: Option<Position>,
}

// SAFETY: a `Map` is an address range that stays mapped until drop; the type itself never
// dereferences it, and a caller that does so through `as_ptr` answers for the races.
unsafe impl Send for Map {}
// SAFETY: as above; every method takes `&self` and changes nothing in the struct.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the first `len` bytes of the file, and some more for it to grow into, where there is room for much more to
    /// come.
    ///
    /// Only addresses are taken: no memory, no swap and no file space is reserved. The pages
    /// are kept out of core dumps where the kernel allows that.
    ///
    /// # Errors
    /// - `InvalidInput` if `len` is 0 or no address range can be that long.
    /// - `OutOfMemory` (`ENOMEM`) if the address space, its limit (`RLIMIT_AS`) or that of mappings has no room.
    /// - Whatever else `mmap` says: `EACCES` for a descriptor whose access mode does not fit.
    pub fn open(fd: BorrowedFd<'_>, len: u64, writable: bool) -> io::Result<Map> {
        let least = checked(len)?;
        let mut from = 0;
        for _ in 0..TRIES {
            let Some(position) = Position::take(from) else { break };
            let Some(address) = position.address() else { break };
            from = position.number() + 1;
            match roomy_or(least, |len| map_at(fd, address, len, writable).map(|base| (base, len))) {
                Ok((base, len)) => {
                    let map = Map::new(base, len, writable, Some(position));
                    map.keep_out_of_dumps();
                    return Ok(map);
                }
                Err(error) if is_taken(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let wished = least.saturating_add(UNPLACED).next_multiple_of(LARGE_PAGE as u64);
        Map::reserve(fd, wished, writable).or_else(|_| roomy_or(least, |len| Map::reserve(fd, len, writable)))
    }

    /// Maps `len` bytes of the file from offset 0 on, shared with every other process that does, where the kernel finds
    /// room.
    ///
    /// # Errors
    /// Those of [`Map::open`].
    pub fn reserve(fd: BorrowedFd<'_>, len: u64, writable: bool) -> io::Result<Map> {
        let len = checked(len)?;
        let base = place(len as usize)?;
        let map = Map::new(base, len, writable, None);
        // SAFETY: the range is ours, reserved just now, and nothing refers to it; if this fails `map` unmaps it.
        unsafe { map_file(fd, base.as_ptr(), len, writable, libc::MAP_FIXED) }?;
        map.keep_out_of_dumps();
        Ok(map)
    }

    fn new(base: NonNull<u8>, len: u64, writable: bool, position: Option<Position>) -> Map {
        Map { base, len: AtomicUsize::new(len as usize), writable, turn: Turn::default(), _position: position }
    }

    /// Best effort: a core dump of a shared table of gigabytes is of no use.
    fn keep_out_of_dumps(&self) {
        self.advise(0, self.len() as usize, libc::MADV_DONTDUMP);
    }

    /// Makes the mapping at least `end` bytes long, in place. Any thread may ask at any time.
    ///
    /// # Errors
    /// `OutOfMemory` if the addresses behind the mapping are taken, or a limit is met
    /// ([`AddressLimit::of_refused`](crate::AddressLimit::of_refused) says which). The mapping is as it was then.
    pub fn grow(&self, end: u64) -> io::Result<()> {
        let end = checked(end)?;
        let _turn = self.turn.take();
        let len = self.len();
        if end <= len {
            return Ok(());
        }
        let grown = roomy_or(end, |wished| self.extend(len, wished).map(|()| wished))?;
        // Release: a thread that sees the new length finds the addresses mapped.
        self.len.store(grown as usize, Ordering::Release);
        Ok(())
    }

    fn extend(&self, from: u64, to: u64) -> io::Result<()> {
        // SAFETY: exactly this mapping, which may not move; of the bytes that are in use none changes.
        let base = unsafe { libc::mremap(self.base.as_ptr().cast(), from as usize, to as usize, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(())
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
        self.len.load(Ordering::Acquire) as u64
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
        // Both fit usize: they are at most the length.
        self.advise(start as usize, (end - start) as usize, MADV_POPULATE_WRITE);
    }

    /// Makes one large page of each 2 MiB of a range, zeros where the file has nothing yet; `false` if the system
    /// cannot. What is there stays, and a thread that uses it at the moment waits in a page fault at most.
    pub fn collapse(&self, off: u64, len: u64) -> bool {
        let inside = off.checked_add(len).is_some_and(|end| end <= self.len());
        inside && self.advise(off as usize, len as usize, MADV_COLLAPSE)
    }

    /// Advice about a range inside the mapping, whose outcome no caller depends on.
    fn advise(&self, off: usize, len: usize, advice: libc::c_int) -> bool {
        debug_assert!((off + len) as u64 <= self.len());
        // SAFETY: the range lies in this mapping (asserted, and checked by all callers), and the
        // kinds of advice that are passed change no byte that a program could see.
        unsafe { libc::madvise(self.base.as_ptr().add(off).cast(), len, advice) == 0 }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly the range that is mapped; no user of `as_ptr` may outlive us.
        unsafe {
            libc::munmap(self.base.as_ptr().cast(), *self.len.get_mut());
        }
    }
}

/// A length in whole pages, if a mapping can have it.
fn checked(len: u64) -> io::Result<u64> {
    let whole = len.checked_next_multiple_of(page_size()).filter(|whole| len != 0 && isize::try_from(*whole).is_ok());
    whole.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "impossible mapping length"))
}

/// Tries a length with slack; where that is refused, `least` alone. Either way others of the process find some
/// addresses afterwards.
fn roomy_or<T>(least: u64, map: impl Fn(u64) -> io::Result<T>) -> io::Result<T> {
    let slack = (least / 4).clamp(SLACK.0, SLACK.1);
    let wished = least.saturating_add(slack).next_multiple_of(LARGE_PAGE as u64);
    let spare = Spare::new()?;
    let mapped = map(wished).or_else(|error| match error.raw_os_error() {
        // EINVAL is what valgrind says to a range larger than its own address space.
        Some(libc::ENOMEM | libc::EINVAL) => map(least),
        _ => Err(error),
    });
    drop(spare);
    mapped
}

/// Whether a fixed address was refused because something is there, or by a sanitizer or emulator that places mappings
/// itself.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EEXIST | libc::EPERM | libc::EINVAL))
}

/// Maps a file at an address, unless something is there already.
fn map_at(fd: BorrowedFd<'_>, address: usize, len: u64, writable: bool) -> io::Result<NonNull<u8>> {
    let asked = std::ptr::without_provenance_mut(address);
    // SAFETY: with this flag no existing mapping is touched; a kernel before Linux 4.17 takes the address for a mere
    // wish.
    let base = unsafe { map_file(fd, asked, len, writable, libc::MAP_FIXED_NOREPLACE) }?;
    if base.addr() != address {
        // SAFETY: it was mapped just now, and nothing refers to it.
        unsafe { libc::munmap(base.cast(), len as usize) };
        return Err(io::Error::from_raw_os_error(libc::EEXIST));
    }
    NonNull::new(base).ok_or_else(|| io::Error::other("the kernel mapped the file at address zero"))
}

/// # Safety
/// Nothing in use is mapped at `at`, or `placing` leaves it alone.
unsafe fn map_file(
    fd: BorrowedFd<'_>,
    at: *mut u8,
    len: u64,
    writable: bool,
    placing: libc::c_int,
) -> io::Result<*mut u8> {
    let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | placing;
    // SAFETY: the caller answers for the address.
    let base = unsafe { libc::mmap(at.cast(), len as usize, access, flags, fd.as_raw_fd(), 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(base.cast())
}

/// Addresses that are held for a moment, so that another mapping finds them afterwards.
struct Spare {
    start: *mut libc::c_void,
    len: usize,
}

impl Spare {
    fn new() -> io::Result<Spare> {
        let len = headroom() as usize;
        // SAFETY: without MAP_FIXED the kernel picks free addresses, so no existing object is touched.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Spare { start, len })
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped, which nothing refers to.
        unsafe {
            libc::munmap(self.start, self.len);
        }
    }
}

/// Which thread may grow a mapping. No mutex: one that another thread held during a fork would stay locked in the child
/// forever; this one knows whose it is.
#[derive(Debug, Default)]
struct Turn(AtomicU64);

impl Turn {
    fn take(&self) -> impl Drop + '_ {
        struct Taken<'a>(&'a Turn);
        impl Drop for Taken<'_> {
            fn drop(&mut self) {
                self.0 .0.store(0, Ordering::Release);
            }
        }
        let mine = fork::generation() + 1;
        loop {
            let now = self.0.load(Ordering::Relaxed);
            if now != mine && self.0.compare_exchange(now, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Taken(self);
            }
            std::thread::yield_now();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_util::{child, most_addresses, Scratch};
    use crate::{space, AddressLimit};
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
            // SAFETY: the last byte was allocated just now, and no other process maps the file.
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
    fn a_mapping_grows_in_place() {
        let _most = most_addresses();
        let scratch = Scratch::new("map-extend");
        let file = scratch.file("f");
        let map = Map::open(file.as_fd(), 1, true).unwrap();
        let base = map.as_ptr();
        assert_eq!(base.addr() % LARGE_PAGE, 0);
        for end in [100 << 20, 1 << 30, 64 << 30] {
            map.grow(end).unwrap();
            assert!(map.len() >= end && map.as_ptr() == base);
        }
        space::allocate(file.as_fd(), (64 << 30) - 4096, 4096).unwrap();
        // SAFETY: the byte was allocated just now, and no other process maps the file.
        unsafe { base.add((64 << 30) - 1).write_volatile(7) };
        let len = map.len();
        // More than half of the address space: the program itself is in the way.
        assert_eq!(map.grow(1 << 46).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(map.grow(u64::MAX).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(map.len(), len);
    }

    #[test]
    fn many_threads_grow_one_mapping() {
        let scratch = Scratch::new("map-threads");
        let file = scratch.file("f");
        let map = Map::open(file.as_fd(), 1, true).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let map = &map;
                scope.spawn(move || {
                    for step in 1..=64 {
                        let end = (step * 8 + thread) << 24;
                        map.grow(end).unwrap();
                        assert!(map.len() >= end);
                    }
                });
            }
        });
    }

    #[test]
    fn a_thousand_mappings_all_grow() {
        let _most = most_addresses();
        let scratch = Scratch::new("map-many");
        let file = scratch.file("f");
        let maps: Vec<Map> = (0..1000).map(|_| Map::open(file.as_fd(), 1 << 20, true).unwrap()).collect();
        for map in &maps {
            map.grow(1 << 30).unwrap();
        }
    }

    #[test]
    fn a_child_grows_what_its_parent_was_growing() {
        let scratch = Scratch::new("map-fork");
        let file = scratch.file("f");
        fork::install().unwrap();
        let map = Map::open(file.as_fd(), 1, true).unwrap();
        let turn = map.turn.take();
        assert_eq!(child(|| i32::from(map.grow(1 << 30).is_err())), 0);
        drop(turn);
        map.grow(1 << 30).unwrap();
    }

    #[test]
    fn what_is_taken_is_left_alone() {
        let scratch = Scratch::new("map-taken");
        let file = scratch.file("f");
        let first = Map::open(file.as_fd(), 1 << 20, true).unwrap();
        let behind = first.as_ptr().addr() + first.len() as usize;
        let neighbour = map_at(file.as_fd(), behind, 4096, false).unwrap();
        assert_eq!(first.grow(first.len() + 1).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert!(is_taken(&map_at(file.as_fd(), behind, 4096, false).unwrap_err()));
        // SAFETY: mapped above, and nothing refers to it.
        unsafe { libc::munmap(neighbour.as_ptr().cast(), 4096) };
        first.grow(first.len() + 1).unwrap();
    }

    #[test]
    fn under_a_limit_a_mapping_takes_what_it_needs() {
        let scratch = Scratch::new("map-limit");
        let file = scratch.file("f");
        let status = child(|| {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
            let pages: u64 = pages.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
            // What is left to others is 64 MiB at most, and at least 2.
            let most = pages * page_size() + (80 << 20);
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            // SAFETY: the pointer is to an rlimit.
            if unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) } != 0 {
                return 1;
            }
            let Ok(map) = Map::open(file.as_fd(), 1 << 20, true) else { return 2 };
            let mut end = map.len();
            while map.grow(end + (1 << 20)).is_ok() {
                end = map.len();
            }
            if !(14 << 20..=78 << 20).contains(&end) || map.len() != end {
                return 3;
            }
            if Spare::new().is_err() {
                return 4;
            }
            i32::from(AddressLimit::of_refused(1 << 20) != AddressLimit::Process(most)) * 5
        });
        assert_eq!(status, 0);
    }
}
