//! A socket to a server: TCP, TLS over it, or Unix. Every call ends.

use super::address::{Place, Served};
use super::failed::Failed;
use super::tls::{self, TlsStream};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a server may take to accept, and to take bytes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The socket.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Stream,
    /// A call waits for its socket.
    is_blocking: bool,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

impl Socket {
    /// Connects; with TLS the server is known afterwards.
    pub fn open(served: &Served) -> Result<Socket, Failed> {
        let stream = match &served.place {
            Place::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            Place::Tcp { host, port, is_tls } => {
                let stream = connect(host, *port)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                match is_tls {
                    true => Stream::Tls(Box::new(tls::connect(served, host, stream)?)),
                    false => Stream::Tcp(stream),
                }
            }
        };
        if let Stream::Unix(stream) = &stream {
            stream.set_write_timeout(Some(TIMEOUT))?;
        }
        Ok(Socket { stream, is_blocking: true })
    }

    /// What comes within this time; `None`: nothing.
    pub fn receive(&mut self, buffer: &mut [u8], time: Duration) -> io::Result<Option<usize>> {
        self.set_blocking(!time.is_zero())?;
        if self.is_blocking {
            match &self.stream {
                Stream::Tcp(stream) => stream.set_read_timeout(Some(time)),
                Stream::Unix(stream) => stream.set_read_timeout(Some(time)),
                Stream::Tls(stream) => stream.socket().set_read_timeout(Some(time)),
            }?;
        }
        let read = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        };
        match read {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Sends everything.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.set_blocking(true)?;
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn set_blocking(&mut self, is_blocking: bool) -> io::Result<()> {
        if self.is_blocking != is_blocking {
            match &self.stream {
                Stream::Tcp(stream) => stream.set_nonblocking(!is_blocking),
                Stream::Unix(stream) => stream.set_nonblocking(!is_blocking),
                Stream::Tls(stream) => stream.socket().set_nonblocking(!is_blocking),
            }?;
            self.is_blocking = is_blocking;
        }
        Ok(())
    }
}

/// Connects to the first address that accepts.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
