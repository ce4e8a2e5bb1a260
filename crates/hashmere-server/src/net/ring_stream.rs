//! A connection's socket whose bytes a ring moves: what was received and not read yet, and the reply on its way.
//!
//! To its connection it is a socket that does not block. Reading takes what the ring has received. A short reply is
//! kept until the turn is over, and handed to the ring then, with those of the other connections; until it was sent,
//! nothing more is written, and the connection waits. A long one is written at once, as without a ring: its system
//! call costs little beside its bytes.

use super::plain::Plain;
use hashmere_uring::{Ring, Tag};
use std::io::{self, IoSlice, Read, Write};

/// A longer reply is written at once.
const STAGED_MAX: usize = 16 << 10;
/// With more than this unread, nothing more is received; what the kernel has received by then still comes.
const BACKLOG_MAX: usize = 16 << 10;

/// The socket.
#[derive(Debug)]
pub struct RingStream {
    socket: Plain,
    tag: Tag,
    /// Received; unread from `at` on.
    backlog: Vec<u8>,
    at: usize,
    end: End,
    /// The ring receives.
    is_receiving: bool,
    /// It was asked to stop.
    is_pausing: bool,
    /// The reply to be handed over.
    staged: Vec<u8>,
    /// A reply is on its way.
    in_flight: bool,
}

/// What is behind the last byte that was received.
#[derive(Debug)]
enum End {
    /// It is not known yet.
    Open,
    /// The end of input.
    Ended,
    /// The socket failed.
    Failed(io::ErrorKind),
}

impl RingStream {
    /// This socket, by which the ring is to know it.
    pub fn new(socket: Plain, tag: Tag) -> RingStream {
        RingStream {
            socket,
            tag,
            backlog: Vec::new(),
            at: 0,
            end: End::Open,
            is_receiving: false,
            is_pausing: false,
            staged: Vec::new(),
            in_flight: false,
        }
    }

    /// The socket itself.
    pub fn socket(&mut self) -> &mut Plain {
        &mut self.socket
    }

    /// Whether this is what the ring calls so.
    pub fn is(&self, tag: Tag) -> bool {
        self.tag == tag
    }

    /// Whether a reply is not with the socket yet.
    #[inline]
    pub fn is_sending(&self) -> bool {
        self.in_flight || !self.staged.is_empty()
    }

    /// Whether something that was received was not read.
    #[inline]
    pub fn has_unread(&self) -> bool {
        self.at < self.backlog.len()
    }

    /// Whether the ring goes on to receive without being asked.
    pub fn note_receiving(&mut self, more: bool) {
        self.is_receiving = more;
        self.is_pausing &= more;
    }

    /// Bytes came that cannot be read at once.
    pub fn keep(&mut self, bytes: &[u8]) {
        self.backlog.extend_from_slice(bytes);
    }

    /// No more comes.
    pub fn note_end(&mut self, failed: Option<&io::Error>) {
        self.end = failed.map_or(End::Ended, |error| End::Failed(error.kind()));
    }

    /// The reply was sent.
    pub fn note_sent(&mut self) {
        self.in_flight = false;
    }

    /// Asks the ring for what is to be done: sends the reply; receives as long as what came is read.
    pub fn hand_over(&mut self, ring: &mut Ring) -> io::Result<()> {
        if !self.staged.is_empty() && !self.in_flight {
            self.in_flight = true;
            ring.send(self.socket.descriptor(), self.tag, &mut self.staged)?;
        }
        if self.is_receiving {
            if !self.is_pausing && self.backlog.len() - self.at > BACKLOG_MAX {
                self.is_pausing = true;
                ring.pause(self.tag)?;
            }
        } else if matches!(self.end, End::Open) && !self.has_unread() {
            self.is_receiving = true;
            ring.receive(self.socket.descriptor(), self.tag)?;
        }
        Ok(())
    }

    /// Ends what the ring does with it, before it is closed.
    pub fn finish(&mut self, ring: &mut Ring) -> io::Result<()> {
        if !self.in_flight && !self.staged.is_empty() {
            // Its last words, if there is room for them.
            let _ = self.socket.write(&self.staged);
        }
        if self.is_receiving || self.in_flight {
            ring.cancel(self.socket.descriptor())?;
        }
        Ok(())
    }
}

impl Read for RingStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.has_unread() {
            return match self.end {
                End::Open => Err(io::ErrorKind::WouldBlock.into()),
                End::Ended => Ok(0),
                End::Failed(kind) => Err(kind.into()),
            };
        }
        let unread = &self.backlog[self.at..];
        let bytes = unread.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&unread[..bytes]);
        self.at += bytes;
        if !self.has_unread() {
            self.backlog = Vec::new();
            self.at = 0;
        }
        Ok(bytes)
    }
}

impl Write for RingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_sending() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if bytes.len() > STAGED_MAX {
            return self.socket.write(bytes);
        }
        self.staged.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.is_sending() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.socket.write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
