//! A connection's socket: TCP, Unix, or TLS over TCP; plain ones by a ring too.

use super::plain::Plain;
use super::ring_stream::RingStream;
use crate::tls::TlsStream;
use hashmere_uring::{Ring, Tag};
use mio::event::Source;
use mio::{Interest, Registry, Token};
use std::io::{self, IoSlice, Read, Write};

/// The socket.
#[derive(Debug)]
pub enum Stream {
    /// Read and written by this event loop.
    Plain(Plain),
    /// The same over TLS.
    Tls(Box<TlsStream>),
    /// Read and written by a ring.
    Ring(Box<RingStream>),
}

impl Stream {
    /// Whether the last byte of a short read was the last that was there. (A TLS record may leave more than was asked
    /// for.)
    pub fn short_reads_are_final(&self) -> bool {
        !matches!(self, Stream::Tls(_))
    }

    /// Whether it holds unsent bytes that are not in the outbox.
    pub fn is_holding(&self) -> bool {
        match self {
            Stream::Tls(tls) => tls.is_holding(),
            _ => false,
        }
    }

    /// Whether a ring has a reply that was not sent yet: nothing is written before.
    #[inline]
    pub fn is_sending(&self) -> bool {
        matches!(self, Stream::Ring(stream) if stream.is_sending())
    }

    /// Whether a ring has received what was not read yet.
    #[inline]
    pub fn has_unread(&self) -> bool {
        matches!(self, Stream::Ring(stream) if stream.has_unread())
    }

    /// Whether it is what a ring calls so.
    pub fn is_ring(&self, tag: Tag) -> bool {
        matches!(self, Stream::Ring(stream) if stream.is(tag))
    }

    /// The socket, if it is what a ring calls so.
    pub fn ring(&mut self, tag: Tag) -> Option<&mut RingStream> {
        match self {
            Stream::Ring(stream) if stream.is(tag) => Some(stream),
            _ => None,
        }
    }

    /// Asks the ring for what is to be done, if it is one's.
    pub fn hand_over(&mut self, ring: &mut Ring) -> io::Result<()> {
        match self {
            Stream::Ring(stream) => stream.hand_over(ring),
            _ => Ok(()),
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Stream::Plain(stream) => stream.source(),
            Stream::Tls(tls) => tls.socket(),
            Stream::Ring(stream) => stream.socket().source(),
        }
    }

    /// Registers it for input, edge-triggered; not if it is a ring's.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Stream::Ring(_) => Ok(()),
            _ => registry.register(self.source(), token, Interest::READABLE),
        }
    }

    /// Changes whether write readiness is polled too. A Unix socket reports it each time that its client has read
    /// something, so only a connection with unsent replies asks for it.
    pub fn set_write_interest(&mut self, registry: &Registry, token: Token, room: bool) -> io::Result<()> {
        match (matches!(self, Stream::Ring(_)), room) {
            (true, true) => registry.register(self.source(), token, Interest::WRITABLE),
            (true, false) => registry.deregister(self.source()),
            (false, true) => registry.reregister(self.source(), token, Interest::READABLE | Interest::WRITABLE),
            (false, false) => registry.reregister(self.source(), token, Interest::READABLE),
        }
    }

    /// Ends what is under way for it, before it is closed.
    pub fn finish(&mut self, registry: &Registry, ring: Option<&mut Ring>) -> io::Result<()> {
        // Closing does the same; and a ring's is seldom registered.
        let _ = registry.deregister(self.source());
        match (self, ring) {
            (Stream::Ring(stream), Some(ring)) => stream.finish(ring),
            _ => Ok(()),
        }
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Tls(tls) => tls.read(buffer),
            Stream::Ring(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
            Stream::Ring(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write_vectored(pieces),
            Stream::Tls(tls) => tls.write_vectored(pieces),
            Stream::Ring(stream) => stream.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tls(tls) => tls.flush(),
            _ => Ok(()),
        }
    }
}
