//! New connections on their way to the event loop that will serve them.

use super::stream::Stream;
use crate::config::Protocol;
use mio::{Poll, Token, Waker};
use std::io;
use std::sync::{Mutex, PoisonError};

/// The token of a mailbox.
pub const TOKEN: Token = Token(usize::MAX);

/// A connection that was accepted.
#[derive(Debug)]
pub struct Arrival {
    /// The socket.
    pub stream: Stream,
    /// Where it comes from.
    pub address: String,
    /// The listener that it came to.
    pub listener: String,
    /// What it speaks.
    pub protocol: Protocol,
}

/// The arrivals of one event loop.
#[derive(Debug)]
pub struct Mailbox {
    waker: Waker,
    arrivals: Mutex<Vec<Arrival>>,
}

impl Mailbox {
    /// A mailbox that wakes this poll.
    pub fn new(poll: &Poll) -> io::Result<Mailbox> {
        Ok(Mailbox { waker: Waker::new(poll.registry(), TOKEN)?, arrivals: Mutex::default() })
    }

    /// Adds a connection, and wakes the event loop.
    pub fn send(&self, arrival: Arrival) {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).push(arrival);
        self.wake();
    }

    /// Takes all arrivals.
    pub fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Wakes the event loop.
    pub fn wake(&self) {
        // Fails only if the loop's poll is gone, and then so is the loop.
        let _ = self.waker.wake();
    }
}
