//! Space in a file: putting blocks behind a range, and giving them back.

use crate::sys::{check, offset, retry};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Puts blocks behind `len` bytes from `off` on, growing the file where the range ends beyond it.
///
/// Afterwards touching the range through a mapping cannot fail for want of space. What the file
/// held there stays; new bytes read as zero. Idempotent. No signal reaches the process: a file
/// size limit, which by default kills with `SIGXFSZ`, is an error like any other.
///
/// On an error the file holds what it held, though some blocks of the range may now be allocated.
///
/// # Errors
/// - `StorageFull` (`ENOSPC`): no room in the file system.
/// - `QuotaExceeded` (`EDQUOT`), `FileTooLarge` (`EFBIG`: `RLIMIT_FSIZE` or the file system's
///   limit), `OutOfMemory`.
/// - `Unsupported`: this file system cannot allocate in advance; the message names it. There is no
///   fallback that writes zeros: two processes may allocate the same range at once, and
///   zeros written by the slower would land on the other's data.
/// - `InvalidInput`: the range ends beyond 2^63.
pub fn allocate(fd: BorrowedFd<'_>, off: u64, len: u64) -> io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    let (off, len) = (offset(off)?, offset(len)?);
    refuse_what_cannot_fit(fd, len as u64)?;
    // tmpfs undoes the whole call when any signal interrupts it, so a profiler's timer could
    // keep a large allocation from ever finishing: hence no signal at all while it runs.
    let outcome = without_signals(|| {
        // SAFETY: fallocate takes plain values and touches no memory of ours.
        retry(|| unsafe { libc::fallocate(fd.as_raw_fd(), 0, off, len) })
    })?;
    match outcome {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the file system ({}) cannot allocate space in advance (fallocate)", file_system(fd)),
        )),
        Err(error) => Err(error),
    }
}

/// What is larger is not tried if it cannot fit: tmpfs would take page after page before it finds out, and undo that.
const LARGE: u64 = 64 << 20;

/// Refuses `len` bytes for a file, those that it has already included, if its file system has not so much.
///
/// # Errors
/// `StorageFull` (`ENOSPC`). If the file system does not say what it has, that is no error.
pub fn refuse_what_cannot_fit(fd: BorrowedFd<'_>, len: u64) -> io::Result<()> {
    let most = || Some(free(fd).ok()?.saturating_add(blocks(fd).ok()?));
    if len < LARGE || most().is_none_or(|most| len <= most) {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(libc::ENOSPC))
}

/// Bytes that its file system has left, for root at least.
///
/// # Errors
/// Those of `fstatvfs`.
pub fn free(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut stat = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the pointer is to a statvfs, which the call fills when it succeeds.
    check(unsafe { libc::fstatvfs(fd.as_raw_fd(), stat.as_mut_ptr()) })?;
    // SAFETY: the call succeeded.
    let stat = unsafe { stat.assume_init() };
    Ok(stat.f_bfree.saturating_mul(stat.f_frsize))
}

/// Gives the blocks behind a range back: it reads as zero afterwards, and the size of the file
/// stays.
///
/// Bytes of blocks that the range covers only in part are zeroed, their blocks stay.
///
/// # Errors
/// - `Unsupported` (`EOPNOTSUPP`): the file system cannot punch holes.
/// - `InvalidInput`: the range ends beyond 2^63.
/// - `PermissionDenied` or `EBADF`: the descriptor is not open for writing.
pub fn punch(fd: BorrowedFd<'_>, off: u64, len: u64) -> io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    let (off, len) = (offset(off)?, offset(len)?);
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: fallocate takes plain values and touches no memory of ours.
    retry(|| unsafe { libc::fallocate(fd.as_raw_fd(), mode, off, len) }).map(drop)
}

/// Bytes of storage that the file really occupies.
///
/// # Errors
/// Those of `fstat`.
pub fn blocks(fd: BorrowedFd<'_>) -> io::Result<u64> {
    // `st_blocks` counts 512-byte units whatever the file system's block size is.
    Ok(u64::try_from(status(fd)?.st_blocks).unwrap_or(0).saturating_mul(512))
}

/// The size of the file: one past its last byte, holes included.
///
/// # Errors
/// Those of `fstat`.
pub fn size(fd: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(u64::try_from(status(fd)?.st_size).unwrap_or(0))
}

/// The name of the file system that holds the file, for messages; unknown ones by their number.
pub fn file_system(fd: BorrowedFd<'_>) -> String {
    let mut stat = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the pointer is to a statfs, which the call fills when it succeeds.
    if check(unsafe { libc::fstatfs(fd.as_raw_fd(), stat.as_mut_ptr()) }).is_err() {
        return "unknown".to_owned();
    }
    // SAFETY: the call succeeded.
    let kind = unsafe { stat.assume_init() }.f_type as u64 & 0xffff_ffff;
    let name = match kind {
        0x0102_1994 => "tmpfs",
        0x8584_58f6 => "ramfs",
        0x9584_58f6 => "hugetlbfs",
        0xef53 => "ext2/ext3/ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0xf2f5_2010 => "f2fs",
        0x2fc1_2fc1 => "zfs",
        0x794c_7630 => "overlayfs",
        0x6969 => "nfs",
        0xff53_4d42 => "cifs",
        0xfe53_4d42 => "smb2",
        0x0102_1997 => "9p",
        0x6573_5546 => "fuse",
        0x4d44 => "vfat",
        0x2011_bab0 => "exfat",
        _ => return format!("type {kind:#x}"),
    };
    name.to_owned()
}

fn status(fd: BorrowedFd<'_>) -> io::Result<libc::stat> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the pointer is to a stat, which the call fills when it succeeds.
    check(unsafe { libc::fstat(fd.as_raw_fd(), stat.as_mut_ptr()) })?;
    // SAFETY: the call succeeded.
    Ok(unsafe { stat.assume_init() })
}

/// Runs `body` with all signals of this thread blocked, and swallows a `SIGXFSZ` that it caused.
///
/// The kernel sends `SIGXFSZ` to the very thread that exceeds `RLIMIT_FSIZE`, so no other thread
/// can receive it, and one that was pending before is left for its owner.
fn without_signals<T>(body: impl FnOnce() -> T) -> io::Result<T> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both pointers are to signal sets; sigfillset initialises the first, and
    // pthread_sigmask reads it and fills the second. It returns an error number, not -1.
    let error = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr())
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let pending_before = size_signal_pending();
    let outcome = body();
    if !pending_before && size_signal_pending() {
        consume_size_signal();
    }
    // SAFETY: the set was filled by pthread_sigmask above; the third argument may be null.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
    Ok(outcome)
}

fn size_signal_pending() -> bool {
    let mut pending = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set, sigpending overwrites it, sigismember reads it.
    unsafe {
        libc::sigemptyset(pending.as_mut_ptr());
        libc::sigpending(pending.as_mut_ptr());
        libc::sigismember(pending.as_ptr(), libc::SIGXFSZ) == 1
    }
}

fn consume_size_signal() {
    let mut only = MaybeUninit::<libc::sigset_t>::uninit();
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set is initialised before it is read, the information pointer may be null, and
    // the zero timeout makes this a poll.
    unsafe {
        libc::sigemptyset(only.as_mut_ptr());
        libc::sigaddset(only.as_mut_ptr(), libc::SIGXFSZ);
        libc::sigtimedwait(only.as_ptr(), std::ptr::null_mut(), &now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_util::{child, Scratch};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn allocate_grows_keeps_and_is_idempotent() {
        let scratch = Scratch::new("space-allocate");
        let file = scratch.file("f");
        file.write_all_at(b"kept", 100).unwrap();
        for _ in 0..2 {
            allocate(file.as_fd(), 0, 1 << 20).unwrap();
            assert_eq!(size(file.as_fd()).unwrap(), 1 << 20);
            assert!(blocks(file.as_fd()).unwrap() >= 1 << 20);
        }
        let mut bytes = [1; 8];
        file.read_exact_at(&mut bytes, 98).unwrap();
        assert_eq!(&bytes, b"\0\0kept\0\0");
        allocate(file.as_fd(), 5 << 20, 0).unwrap();
        assert_eq!(size(file.as_fd()).unwrap(), 1 << 20);
    }

    #[test]
    fn punch_gives_blocks_back_and_keeps_the_size() {
        let scratch = Scratch::new("space-punch");
        let file = scratch.file("f");
        allocate(file.as_fd(), 0, 1 << 20).unwrap();
        file.write_all_at(&[9; 8192], 0).unwrap();
        let before = blocks(file.as_fd()).unwrap();
        punch(file.as_fd(), 0, 1 << 19).unwrap();
        assert_eq!(size(file.as_fd()).unwrap(), 1 << 20);
        assert!(blocks(file.as_fd()).unwrap() <= before - (1 << 19));
        let mut bytes = [1; 16];
        file.read_exact_at(&mut bytes, 8000).unwrap();
        assert_eq!(bytes, [0; 16]);
        punch(file.as_fd(), 0, 0).unwrap();
    }

    #[test]
    fn wrong_ranges_and_descriptors_are_errors() {
        let scratch = Scratch::new("space-wrong");
        let file = scratch.file("f");
        let kind = |outcome: io::Result<()>| outcome.unwrap_err().kind();
        assert_eq!(kind(allocate(file.as_fd(), 0, 1 << 63)), io::ErrorKind::InvalidInput);
        assert_eq!(kind(punch(file.as_fd(), 1 << 63, 1)), io::ErrorKind::InvalidInput);
        let read_only = File::open(scratch.path("f")).unwrap();
        assert!(allocate(read_only.as_fd(), 0, 4096).is_err());
        assert!(punch(read_only.as_fd(), 0, 4096).is_err());
        assert_eq!(file_system(File::open("/dev/shm").unwrap().as_fd()), "tmpfs");
        assert!(!file_system(file.as_fd()).is_empty());
    }

    /// That of this thread: what was tried, however busy the machine is.
    fn processor_time() -> std::time::Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid timespec for the call to fill.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    #[test]
    fn what_cannot_fit_is_not_tried() {
        let scratch = Scratch::new("space-large");
        let file = scratch.file("f");
        allocate(file.as_fd(), 0, 1 << 20).unwrap();
        let (begin, free) = (processor_time(), free(file.as_fd()).unwrap());
        let error = allocate(file.as_fd(), 1 << 20, free + (1 << 30)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        let took = processor_time() - begin;
        assert!(took < std::time::Duration::from_millis(500), "{took:?}");
        assert_eq!(size(file.as_fd()).unwrap(), 1 << 20);
    }

    #[test]
    fn file_system_without_fallocate_is_named() {
        // procfs cannot allocate; which error it gives differs, but there must be one.
        let proc = File::open("/proc/self/stat").unwrap();
        assert!(allocate(proc.as_fd(), 0, 4096).is_err());
    }

    #[test]
    fn file_size_limit_is_an_error_and_not_a_signal() {
        let scratch = Scratch::new("space-limit");
        let file = scratch.file("f");
        // In a child: the limit is the whole process's. SIGXFSZ keeps its default, deadly
        // disposition.
        let status = child(|| {
            let limit = libc::rlimit { rlim_cur: 1 << 16, rlim_max: 1 << 16 };
            // SAFETY: a plain structure that the call reads; SIG_DFL is a valid disposition.
            unsafe {
                libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
                libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
            }
            if allocate(file.as_fd(), 0, 1 << 16).is_err() {
                return 1;
            }
            match allocate(file.as_fd(), 0, 1 << 20) {
                Err(error) if error.raw_os_error() == Some(libc::EFBIG) => {}
                _ => return 2,
            }
            if size_signal_pending() {
                return 3;
            }
            // The mask was restored: nothing is blocked now that was not before.
            let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: a null new set only asks for the current one, which the call fills.
            let blocked = unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), mask.as_mut_ptr());
                libc::sigismember(mask.as_ptr(), libc::SIGXFSZ)
            };
            if blocked != 0 {
                return 4;
            }
            i32::from(size(file.as_fd()).ok() != Some(1 << 16)) * 5
        });
        assert_eq!(status, 0);
    }
}
