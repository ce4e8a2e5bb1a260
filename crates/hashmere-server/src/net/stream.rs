//! A connection's socket: TCP, Unix, or TLS over TCP.

use crate::tls::TlsStream;
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use std::io::{self, IoSlice, Read, Write};

/// The socket.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// Unix.
    Unix(UnixStream),
    /// TLS.
    Tls(Box<TlsStream>),
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

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
            Stream::Tls(tls) => tls.socket(),
        }
    }

    /// Registers it for input, edge-triggered.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(self.source(), token, Interest::READABLE)
    }

    /// Changes whether write readiness is polled too. A Unix socket reports it each time that its client has read
    /// something, so only a connection with unsent replies asks for it.
    pub fn set_write_interest(&mut self, registry: &Registry, token: Token, room: bool) -> io::Result<()> {
        let interest = if room { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        registry.reregister(self.source(), token, interest)
    }

    /// Removes it from the poll.
    pub fn deregister(&mut self, registry: &Registry) {
        // It is about to be closed, which does the same.
        let _ = registry.deregister(self.source());
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(pieces),
            Stream::Unix(stream) => stream.write_vectored(pieces),
            Stream::Tls(tls) => tls.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tls(tls) => tls.flush(),
            _ => Ok(()),
        }
    }
}
