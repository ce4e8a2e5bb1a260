//! Built without TLS: it is refused by name.

use super::address::Served;
use super::failed::Failed;
use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// There is none.
#[derive(Debug)]
pub(super) struct TlsStream(Infallible);

/// Says so.
pub(super) fn connect(_served: &Served, _host: &str, _socket: TcpStream) -> Result<TlsStream, Failed> {
    Err(Failed::Final("this program was built without TLS".into()))
}

impl TlsStream {
    pub fn socket(&self) -> &TcpStream {
        match self.0 {}
    }
}

impl Read for TlsStream {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

impl Write for TlsStream {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
