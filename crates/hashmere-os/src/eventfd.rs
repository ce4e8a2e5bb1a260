//! A counter in the kernel that poll, epoll and their kin can wait for.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// An event file descriptor: readable while its counter is not zero. Closed on exec and never blocking.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A new one, at zero.
    ///
    /// # Errors
    /// Those of `eventfd`.
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: no memory is involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        Ok(EventFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes it readable.
    pub fn raise(&self) {
        let one = 1u64.to_le_bytes();
        // SAFETY: eight bytes that live. It fails only when the counter is at its end, and readable.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Takes that back; returns how often it was raised.
    pub fn clear(&self) -> u64 {
        let mut count = [0u8; 8];
        // SAFETY: room for eight bytes. It fails when the counter is zero.
        let n = unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        if n == 8 {
            u64::from_le_bytes(count)
        } else {
            0
        }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_until_it_is_cleared() {
        let event = EventFd::new().unwrap();
        assert_eq!(event.clear(), 0);
        event.raise();
        event.raise();
        assert_eq!((event.clear(), event.clear()), (2, 0));
    }
}
