//! Replies to a socket.

use super::stream::Stream;
use crate::outbox::{Outbox, PIECES};
use crate::stats::counters::Counters;
use std::io::{self, IoSlice, Write};

/// How much was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// All of it.
    All,
    /// Only a part: the socket's buffer is full.
    Part,
}

/// Sends until the outbox is empty or the socket's buffer full.
///
/// # Errors
/// The socket is broken.
pub fn send(stream: &mut Stream, out: &mut Outbox, counters: &Counters) -> io::Result<Sent> {
    while !out.is_empty() {
        let sent = match out.single() {
            Some(bytes) => stream.write(bytes),
            None => {
                let mut pieces = [IoSlice::new(&[]); PIECES];
                let count = out.pieces(&mut pieces);
                stream.write_vectored(&pieces[..count])
            }
        };
        match sent {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => {
                counters.bytes_written.add(bytes as u64);
                out.advance(bytes);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Sent::Part),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    match stream.flush() {
        Ok(()) => Ok(Sent::All),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(Sent::Part),
        Err(error) => Err(error),
    }
}
