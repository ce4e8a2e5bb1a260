//! A connection to a server: one write for a batch, lines and blocks read from a buffer, nothing waits forever.

use crate::sink::SinkError;
use hashmere_tls::{ClientTls, TlsError, TlsStream};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a server may take to accept, to take bytes, and to answer.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest line of a reply that is read: an error text, or what a server says of itself.
const LINE: usize = 64 << 10;

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

/// A connection and what was read ahead.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
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
                    return Ok(Connection {
                        stream: Stream::Plain(stream),
                        buffer: Vec::with_capacity(64 << 10),
                        taken: 0,
                    });
                }
                Err(error) => last = io::Error::new(error.kind(), format!("{host}:{port}: {error}")),
            }
        }
        Err(last)
    }

    /// The same connection with TLS from now on; what was sent to here has been read.
    pub fn secured(self, tls: &ClientTls, host: &str) -> Result<Connection, SinkError> {
        let stream = match self.stream {
            Stream::Plain(stream) if self.taken == self.buffer.len() => stream,
            _ => return Err(SinkError::Refused("the server sent more than its greeting before TLS".into())),
        };
        let stream = tls.connect(host, stream).map_err(|error| match error {
            TlsError::Refused(why) => SinkError::Refused(why),
            TlsError::Io(error) => timed_out(error).into(),
        })?;
        Ok(Connection { stream: Stream::Tls(Box::new(stream)), ..self })
    }

    /// Sends everything.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        };
        written.map_err(timed_out)
    }

    /// Whether something is there to be read, now.
    pub fn has_input(&mut self) -> io::Result<bool> {
        if self.taken < self.buffer.len() {
            return Ok(true);
        }
        self.socket().set_nonblocking(true)?;
        let read = self.fill();
        self.socket().set_nonblocking(false)?;
        match read {
            Ok(()) => Ok(true),
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
            self.fill().map_err(timed_out)?;
        }
    }

    /// The next `len` bytes, and passes over the end of line behind them.
    pub fn block(&mut self, len: usize) -> io::Result<&[u8]> {
        self.bytes(len + 2).map(|bytes| &bytes[..len])
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.taken < len {
            self.fill().map_err(timed_out)?;
        }
        let start = self.taken;
        self.taken += len;
        Ok(&self.buffer[start..self.taken])
    }

    fn socket(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.socket(),
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        const CHUNK: usize = 64 << 10;
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let len = self.buffer.len();
        self.buffer.resize(len + CHUNK, 0);
        let read = loop {
            let room = &mut self.buffer[len..];
            let read = match &mut self.stream {
                Stream::Plain(stream) => stream.read(room),
                Stream::Tls(stream) => stream.read(room),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(len + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(closed()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
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
