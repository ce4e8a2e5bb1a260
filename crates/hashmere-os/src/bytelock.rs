//! Locks on single bytes far beyond the end of a file, which the kernel drops when their process
//! dies.
//!
//! These are *open file description* locks: they belong to a descriptor opened only for them, not
//! to the process, so closing some other descriptor of the same file does not drop them, and they
//! mean the same in every PID namespace. No byte at those offsets ever exists.

use crate::fork::ForkClosedFd;
use crate::sys::{check, retry};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// The offset of lock 0: beyond the size limit of every file system, so it never meets data.
pub const BASE: u64 = 1 << 62;

/// The number of locks: all offsets up to 2^63 - 1.
pub const COUNT: u64 = 1 << 62;

/// A set of byte locks on one file, held through one descriptor of their own.
///
/// Two `ByteLocks` of one file conflict, in one process as well as in two. Within one `ByteLocks`
/// locks never conflict: taking a lock that it already holds succeeds and merely sets the mode.
/// Dropping it releases everything, as does the death of the process by any cause.
///
/// A forked child does not inherit the locks. There every method but [`ByteLocks::is_stale`] fails
/// with [`stale_error`]; make a new `ByteLocks` from the file.
#[derive(Debug)]
pub struct ByteLocks {
    fd: ForkClosedFd,
}

impl ByteLocks {
    /// Opens the file behind `fd` once more, with the same access mode, only for locks.
    ///
    /// # Errors
    /// Those of opening `/proc/self/fd/N` (which needs a mounted `/proc`) and of
    /// [`ForkClosedFd::open`].
    pub fn new(fd: BorrowedFd<'_>) -> io::Result<ByteLocks> {
        // SAFETY: F_GETFL takes no further argument.
        let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
        let mode = flags & libc::O_ACCMODE;
        // Never `dup`: that would share one description, and thus one set of locks, with `fd` and
        // with the process that inherited or received it.
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let fd = ForkClosedFd::open(|| {
            OpenOptions::new()
                .read(mode != libc::O_WRONLY)
                .write(mode != libc::O_RDONLY)
                .custom_flags(libc::O_CLOEXEC | libc::O_NOCTTY)
                .open(&path)
                .map(OwnedFd::from)
        })?;
        Ok(ByteLocks { fd })
    }

    /// Tries to take lock `n` for ourselves alone; `false` if another has it in any mode.
    ///
    /// # Errors
    /// - `PermissionDenied` if the file is open for reading only.
    /// - `InvalidInput` for `n` not below [`COUNT`].
    /// - `ENOLCK` and the like: the kernel or the file system has no room for, or no notion of,
    ///   locks.
    /// - [`stale_error`] in a forked child.
    pub fn try_exclusive(&self, n: u64) -> io::Result<bool> {
        self.set(n, libc::F_WRLCK)
    }

    /// Tries to take lock `n` beside others who share it; `false` if another has it exclusively.
    ///
    /// # Errors
    /// Those of [`ByteLocks::try_exclusive`], except that a file open for reading will do.
    pub fn try_shared(&self, n: u64) -> io::Result<bool> {
        self.set(n, libc::F_RDLCK)
    }

    /// Gives lock `n` back, in whatever mode; harmless if we do not hold it.
    ///
    /// # Errors
    /// `InvalidInput`, `ENOLCK` and [`stale_error`] as above.
    pub fn unlock(&self, n: u64) -> io::Result<()> {
        self.set(n, libc::F_UNLCK).map(drop)
    }

    /// Whether another than this `ByteLocks` holds lock `n`, in any mode. Takes nothing.
    ///
    /// # Errors
    /// `InvalidInput` and [`stale_error`] as above.
    pub fn is_locked_by_other(&self, n: u64) -> io::Result<bool> {
        let fd = self.raw()?;
        let mut lock = request(n, libc::F_WRLCK)?;
        // SAFETY: the third argument is a `flock`, as F_OFD_GETLK wants.
        retry(|| unsafe { libc::fcntl(fd, libc::F_OFD_GETLK, &mut lock) })?;
        Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
    }

    /// Whether this process was forked after the descriptor was opened, so that it holds nothing.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.fd.get().is_none()
    }

    fn raw(&self) -> io::Result<RawFd> {
        Ok(self.fd.get().ok_or_else(stale_error)?.as_raw_fd())
    }

    fn set(&self, n: u64, kind: libc::c_int) -> io::Result<bool> {
        let fd = self.raw()?;
        let lock = request(n, kind)?;
        // SAFETY: the third argument is a `flock`, as F_OFD_SETLK wants.
        match retry(|| unsafe { libc::fcntl(fd, libc::F_OFD_SETLK, &lock) }) {
            Ok(_) => Ok(true),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => Ok(false),
                Some(libc::EBADF) => Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "the file is not open in the mode that this lock needs",
                )),
                _ => Err(error),
            },
        }
    }
}

impl Drop for ByteLocks {
    fn drop(&mut self) {
        // Closing would do, but for a fork in another thread at the very moment when the descriptor
        // has left the table of the fork guard: that child would keep the description, and the
        // locks, alive.
        if let Some(fd) = self.fd.get() {
            let everything = range(BASE, 0, libc::F_UNLCK);
            if let Ok(lock) = everything {
                // SAFETY: the third argument is a `flock`, as F_OFD_SETLK wants.
                unsafe {
                    libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &lock);
                }
            }
        }
    }
}

/// The error of every operation on a [`ByteLocks`] that a fork left behind; its kind is
/// `NotConnected`.
pub fn stale_error() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "this process was forked; the locks belong to its parent")
}

fn request(n: u64, kind: libc::c_int) -> io::Result<libc::flock> {
    if n >= COUNT {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such lock"));
    }
    range(BASE + n, 1, kind)
}

/// A lock request; length 0 means "to the end of all offsets".
fn range(start: u64, len: libc::off_t, kind: libc::c_int) -> io::Result<libc::flock> {
    let short =
        |value: libc::c_int| libc::c_short::try_from(value).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
    Ok(libc::flock {
        l_type: short(kind)?,
        l_whence: short(libc::SEEK_SET)?,
        l_start: crate::sys::offset(start)?,
        l_len: len,
        l_pid: 0, // must be 0 for these locks
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_util::{child, eventually, spawn, wait, Scratch};
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    fn pair(scratch: &Scratch) -> (File, ByteLocks, ByteLocks) {
        let file = scratch.file("f");
        let a = ByteLocks::new(file.as_fd()).unwrap();
        let b = ByteLocks::new(file.as_fd()).unwrap();
        (file, a, b)
    }

    #[test]
    fn two_of_one_process_conflict() {
        let scratch = Scratch::new("lock-conflict");
        let (file, a, b) = pair(&scratch);
        assert!(a.try_exclusive(3).unwrap());
        assert!(a.try_exclusive(3).unwrap(), "no conflict with oneself");
        assert!(!a.is_locked_by_other(3).unwrap());
        assert!(b.is_locked_by_other(3).unwrap());
        assert!(!b.try_exclusive(3).unwrap() && !b.try_shared(3).unwrap());
        assert!(b.try_exclusive(4).unwrap(), "other bytes are free");
        // Closing other descriptors of the file drops nothing.
        drop(File::open(scratch.path("f")).unwrap());
        drop(file);
        assert!(!b.try_exclusive(3).unwrap());
        a.unlock(3).unwrap();
        assert!(b.try_exclusive(3).unwrap());
        drop(b);
        assert!(eventually(|| a.try_exclusive(3).unwrap() && a.try_exclusive(4).unwrap()));
    }

    #[test]
    fn shared_locks_share() {
        let scratch = Scratch::new("lock-shared");
        let (_file, a, b) = pair(&scratch);
        assert!(a.try_shared(0).unwrap() && b.try_shared(0).unwrap());
        assert!(a.is_locked_by_other(0).unwrap() && !a.try_exclusive(0).unwrap());
        b.unlock(0).unwrap();
        assert!(a.try_exclusive(0).unwrap());
    }

    #[test]
    fn read_only_files_share_only() {
        let scratch = Scratch::new("lock-ro");
        let (_file, a, _b) = pair(&scratch);
        let read_only = File::open(scratch.path("f")).unwrap();
        let c = ByteLocks::new(read_only.as_fd()).unwrap();
        assert!(c.try_shared(9).unwrap());
        assert!(a.is_locked_by_other(9).unwrap());
        let error = c.try_exclusive(9).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        c.unlock(9).unwrap();
        assert!(a.try_exclusive(9).unwrap() && c.is_locked_by_other(9).unwrap());
    }

    #[test]
    fn range_of_numbers() {
        let scratch = Scratch::new("lock-range");
        let (_file, a, b) = pair(&scratch);
        assert!(a.try_exclusive(COUNT - 1).unwrap() && !b.try_exclusive(COUNT - 1).unwrap());
        let error = a.try_exclusive(COUNT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn death_of_a_process_releases() {
        let scratch = Scratch::new("lock-death");
        let (file, a, _b) = pair(&scratch);
        let (mut ready, mut tell) = UnixStream::pair().unwrap();
        let holder = spawn(|| {
            let Ok(own) = ByteLocks::new(file.as_fd()) else {
                return 1;
            };
            let locked = own.try_exclusive(7).unwrap_or(false);
            let _ = tell.write(&[u8::from(locked)]);
            loop {
                // SAFETY: sleeps until a signal comes.
                unsafe { libc::pause() };
            }
        });
        let mut said = [0];
        ready.read_exact(&mut said).unwrap();
        assert_eq!(said, [1]);
        assert!(!a.try_exclusive(7).unwrap());
        // SAFETY: kills the child that was forked above.
        unsafe { libc::kill(holder, libc::SIGKILL) };
        assert_eq!(wait(holder), 1000 + libc::SIGKILL);
        assert!(a.try_exclusive(7).unwrap());
    }

    #[test]
    fn child_does_not_keep_a_dead_parent_alive() {
        let scratch = Scratch::new("lock-orphan");
        let (file, a, _b) = pair(&scratch);
        let (mut hold, mut release) = UnixStream::pair().unwrap();
        // The child takes a lock, leaves a grandchild behind and dies. The grandchild says that it runs, and lives
        // until the stream is closed, having inherited everything but the lock's description.
        let status = child(|| {
            let Ok(own) = ByteLocks::new(file.as_fd()) else {
                return 1;
            };
            if !own.try_exclusive(5).unwrap_or(false) {
                return 2;
            }
            spawn(|| {
                let _ = hold.write(b"r");
                // SAFETY: the other end must be closed here, or the read below never ends.
                unsafe { libc::close(release.as_raw_fd()) };
                let _ = hold.read(&mut [0]);
                0
            });
            0
        });
        assert_eq!(status, 0);
        release.read_exact(&mut [0]).unwrap();
        assert!(a.try_exclusive(5).unwrap());
        drop(release);
    }

    #[test]
    fn stale_in_a_child() {
        let scratch = Scratch::new("lock-stale");
        let (_file, a, b) = pair(&scratch);
        assert!(a.try_exclusive(1).unwrap() && !a.is_stale());
        let status = child(|| {
            let kind = |outcome: io::Result<bool>| outcome.err().map(|error| error.kind());
            let stale = Some(io::ErrorKind::NotConnected);
            i32::from(!(a.is_stale() && kind(a.try_exclusive(1)) == stale))
        });
        assert_eq!(status, 0);
        assert!(b.is_locked_by_other(1).unwrap(), "the parent keeps its lock");
    }
}
