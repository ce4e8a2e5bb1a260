//! A build without TLS: asking for it is refused by name.

use crate::config::Config;
use mio::net::TcpStream;
use std::convert::Infallible;
use std::io::{self, IoSlice};

/// There is none.
#[derive(Debug)]
pub struct Acceptor(Infallible);

/// There is none.
#[derive(Debug)]
pub struct TlsStream(Infallible);

impl Acceptor {
    /// Refuses if TLS is asked for.
    pub fn new(config: &Config) -> Result<Option<Acceptor>, String> {
        match &config.tls {
            None => Ok(None),
            Some(_) => Err("this build has no TLS (cargo feature `tls`)".into()),
        }
    }

    /// Never called.
    pub fn reload(&self) -> Result<(), String> {
        match self.0 {}
    }

    /// Never called.
    pub fn accept(&self, _: TcpStream) -> io::Result<TlsStream> {
        match self.0 {}
    }
}

impl TlsStream {
    /// Never called.
    pub fn is_holding(&self) -> bool {
        match self.0 {}
    }
    /// Never called.
    pub fn socket(&mut self) -> &mut TcpStream {
        match self.0 {}
    }
    /// Never called.
    pub fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
    /// Never called.
    pub fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }
    /// Never called.
    pub fn write_vectored(&mut self, _: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.0 {}
    }
    /// Never called.
    pub fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
