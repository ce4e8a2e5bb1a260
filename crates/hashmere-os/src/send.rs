//! Bytes written to a descriptor together with a note of how many, by one system call: a process that is killed in it
//! has done both or neither.

use crate::sys::{check, offset};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::sync::atomic::AtomicU64;

/// An anonymous file in memory with these bytes.
///
/// # Errors
/// Those of `memfd_create` and of writing: no memory, no descriptors, a filter of system calls.
pub fn letter(bytes: &[u8]) -> io::Result<File> {
    // SAFETY: the name is a C string that lives.
    let fd = check(unsafe { libc::memfd_create(c"hashmere".as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor was just made and has no other owner.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(bytes)?;
    Ok(file)
}

/// Sends up to `len` bytes of `letter` from the offset in `progress` on, which the kernel moves on by as many as it
/// returns. The word should be in memory: the kernel does not wait for it to be fetched if this process is being
/// killed.
///
/// The letter may not change afterwards: a pipe holds on to its pages.
///
/// # Errors
/// `InvalidInput` if `to` cannot be sent to in this way (opened for appending); what writing to it fails with.
pub fn send(letter: &File, to: BorrowedFd<'_>, progress: &AtomicU64, len: u64) -> io::Result<u64> {
    offset(len)?;
    // SAFETY: the kernel stores 8 bytes in the word, which lives and is writable; it checks the address.
    let sent =
        unsafe { libc::sendfile64(to.as_raw_fd(), letter.as_raw_fd(), progress.as_ptr().cast(), len as libc::size_t) };
    u64::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Waits until a descriptor takes bytes, or forever: a non-blocking one that is full is not an error of its user.
pub fn wait_writable(to: BorrowedFd<'_>) {
    let mut poll = libc::pollfd { fd: to.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one structure that lives.
    unsafe { libc::poll(&mut poll, 1, 100) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_util::Scratch;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering;

    #[test]
    fn sends_from_the_note_on() {
        let letter = letter(b"hello world").unwrap();
        let progress = AtomicU64::new(6);
        let (mut from, to) = std::io::pipe().unwrap();
        assert_eq!(send(&letter, to.as_fd(), &progress, 5).unwrap(), 5);
        assert_eq!(progress.load(Ordering::Relaxed), 11);
        drop(to);
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        assert_eq!(text, "world");
    }

    #[test]
    fn a_file_for_appending_is_refused() {
        let scratch = Scratch::new("send");
        let path = scratch.path("f");
        let file = File::options().append(true).create(true).open(path).unwrap();
        let progress = AtomicU64::new(0);
        let error = send(&letter(b"x").unwrap(), file.as_fd(), &progress, 1).unwrap_err();
        assert_eq!((error.kind(), progress.load(Ordering::Relaxed)), (io::ErrorKind::InvalidInput, 0));
    }
}
