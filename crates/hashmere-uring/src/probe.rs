//! Does it work here? The only answer that holds for every kernel, container and filter of system calls is an exchange.

use crate::completion::{Completion, Input, Tag};
use crate::ring::Ring;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long the exchange may take. It happens between two sockets of this process.
const LIMIT: Duration = Duration::from_secs(5);

/// Sends, receives, watches and cancels once.
///
/// # Errors
/// What does not work, in words.
pub fn probe() -> io::Result<()> {
    let mut ring = Ring::new()?;
    ring.enable()?;
    let (ours, theirs) = UnixStream::pair()?;
    let tag = Tag::new(1, 1);
    ring.receive(ours.as_fd(), tag)?;
    ring.watch(ours.as_fd())?;
    ring.send(theirs.as_fd(), tag, &mut b"probe".to_vec())?;
    let mut seen = Seen::default();
    let end = Instant::now() + LIMIT;
    while !(seen.received && seen.sent && seen.ready) {
        seen.take(&mut ring, end)?;
    }
    ring.pause(tag)?;
    while !seen.cancelled {
        seen.take(&mut ring, end)?;
    }
    ring.cancel(ours.as_fd())
}

#[derive(Default)]
struct Seen {
    received: bool,
    sent: bool,
    ready: bool,
    cancelled: bool,
}

impl Seen {
    fn take(&mut self, ring: &mut Ring, end: Instant) -> io::Result<()> {
        if Instant::now() > end {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "io_uring does not complete what it is asked for"));
        }
        ring.wait(Duration::from_millis(100))?;
        while let Some(completion) = ring.next_completion() {
            match completion {
                Completion::Ready => self.ready = true,
                Completion::Sent { result, .. } => self.sent = result.map(|()| true)?,
                Completion::Received { input: Input::Failed(error), .. } => return Err(error),
                Completion::Received { input: Input::Bytes(buffer), more, .. } => {
                    self.received = *buffer == *b"probe";
                    if !more {
                        return Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring receives only once"));
                    }
                    ring.give_back(buffer);
                }
                Completion::Received { more, .. } => self.cancelled |= !more,
            }
        }
        Ok(())
    }
}
