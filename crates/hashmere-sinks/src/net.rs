//! A connection to a server: one write for a batch, lines and blocks read from a buffer, nothing waits forever.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a server may take to accept, to take bytes, and to answer.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest line of a reply that is read: an error text, or what a server says of itself.
const LINE: usize = 64 << 10;

/// A connection and what was read ahead.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What of the buffer was taken already.
    taken: usize,
}

impl Connection {
    /// Connects to the first address that accepts.
    pub fn open(host: &str, port: u16) -> io::Result<Connection> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, TIMEOUT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(TIMEOUT))?;
                    stream.set_write_timeout(Some(TIMEOUT))?;
                    return Ok(Connection { stream, buffer: Vec::with_capacity(64 << 10), taken: 0 });
                }
                Err(error) => last = io::Error::new(error.kind(), format!("{host}:{port}: {error}")),
            }
        }
        Err(last)
    }

    /// Sends everything.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).map_err(timed_out)
    }

    /// Whether something is there to be read, now.
    pub fn has_input(&mut self) -> io::Result<bool> {
        if self.taken < self.buffer.len() {
            return Ok(true);
        }
        self.stream.set_nonblocking(true)?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        match peeked {
            Ok(0) => Err(closed()),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The next line, without its end.
    pub fn line(&mut self) -> io::Result<&[u8]> {
        let mut looked = 0;
        loop {
            let rest = &self.buffer[self.taken..];
            if let Some(at) = rest[looked..].iter().position(|&b| b == b'\n') {
                let start = self.taken;
                self.taken += looked + at + 1;
                let line = &self.buffer[start..start + looked + at];
                return Ok(line.strip_suffix(b"\r").unwrap_or(line));
            }
            looked = rest.len();
            if looked > LINE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the server sent a line without an end"));
            }
            self.fill()?;
        }
    }

    /// The next `len` bytes, and passes over the end of line behind them.
    pub fn block(&mut self, len: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.taken < len + 2 {
            self.fill()?;
        }
        let start = self.taken;
        self.taken += len + 2;
        Ok(&self.buffer[start..start + len])
    }

    fn fill(&mut self) -> io::Result<()> {
        const CHUNK: usize = 64 << 10;
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let len = self.buffer.len();
        self.buffer.resize(len + CHUNK, 0);
        let read = loop {
            match self.stream.read(&mut self.buffer[len..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(len + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(closed()),
            Ok(_) => Ok(()),
            Err(error) => Err(timed_out(error)),
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

/// A timeout of a socket is "would block" to the system.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", TIMEOUT.as_secs()))
        }
        _ => error,
    }
}
