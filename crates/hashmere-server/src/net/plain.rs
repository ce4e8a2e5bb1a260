//! A connection's socket as it is: TCP or Unix.

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// A socket as it is.
#[derive(Debug)]
pub enum Plain {
    /// TCP.
    Tcp(TcpStream),
    /// Unix.
    Unix(UnixStream),
}

impl Plain {
    /// What a poll watches.
    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Plain::Tcp(stream) => stream,
            Plain::Unix(stream) => stream,
        }
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Plain::Tcp(stream) => stream.as_fd(),
            Plain::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Plain {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Plain::Tcp(stream) => stream.read(buffer),
            Plain::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Plain {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Plain::Tcp(stream) => stream.write(bytes),
            Plain::Unix(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Plain::Tcp(stream) => stream.write_vectored(pieces),
            Plain::Unix(stream) => stream.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
