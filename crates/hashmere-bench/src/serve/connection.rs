//! A connection that knows what it will be answered.

use crate::Outcome;
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Bytes of a value.
const VALUE: usize = 32;

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Whom it speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// memcached's text protocol.
    Memcached,
    /// Redis's protocol, version 2.
    Redis,
}

/// The connection.
pub struct Connection {
    stream: Stream,
    language: Language,
    request: Vec<u8>,
    expected: Vec<u8>,
    got: usize,
    buffer: Vec<u8>,
    /// When the last request was sent.
    pub asked: Instant,
}

/// The text of a key: eight bytes.
pub fn name(key: u64) -> [u8; 8] {
    let mut name = *b"00000000";
    let mut rest = key;
    for digit in name.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    name
}

/// The value of a key.
pub fn value(key: u64) -> [u8; VALUE] {
    let name = name(key);
    let mut value = [b'v'; VALUE];
    value[..8].copy_from_slice(&name);
    value[24..].copy_from_slice(&name);
    value
}

impl Connection {
    /// Opens one, to `host:port` or to a path, with `redis:` in front if it is a Redis.
    pub fn open(address: &str) -> Outcome<Connection> {
        let (language, address) = match address.strip_prefix("redis:") {
            Some(address) => (Language::Redis, address),
            None => (Language::Memcached, address),
        };
        let stream = if address.contains('/') {
            Stream::Unix(UnixStream::connect(address)?)
        } else {
            let stream = std::net::TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Stream::Tcp(TcpStream::from_std(stream))
        };
        Ok(Connection {
            stream,
            language,
            request: Vec::new(),
            expected: Vec::new(),
            got: 0,
            buffer: vec![0; 256 << 10],
            asked: Instant::now(),
        })
    }

    /// Watches it for answers.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let source: &mut dyn Source = match &mut self.stream {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
        };
        registry.register(source, token, Interest::READABLE)
    }

    /// Starts a request.
    pub fn begin(&mut self) {
        self.request.clear();
        self.expected.clear();
        self.got = 0;
    }

    /// Adds a set.
    pub fn set(&mut self, key: u64) {
        if self.language == Language::Redis {
            self.request.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$8\r\n");
            self.request.extend_from_slice(&name(key));
            self.request.extend_from_slice(b"\r\n$32\r\n");
            self.request.extend_from_slice(&value(key));
            self.request.extend_from_slice(b"\r\n");
            self.expected.extend_from_slice(b"+OK\r\n");
            return;
        }
        self.request.extend_from_slice(b"set ");
        self.request.extend_from_slice(&name(key));
        self.request.extend_from_slice(b" 0 0 32\r\n");
        self.request.extend_from_slice(&value(key));
        self.request.extend_from_slice(b"\r\n");
        self.expected.extend_from_slice(b"STORED\r\n");
    }

    /// Adds a get of several keys.
    pub fn get(&mut self, keys: impl Iterator<Item = u64>) {
        if self.language == Language::Redis {
            return keys.for_each(|key| self.get_redis(key));
        }
        self.request.extend_from_slice(b"get");
        for key in keys {
            self.request.push(b' ');
            self.request.extend_from_slice(&name(key));
            self.expected.extend_from_slice(b"VALUE ");
            self.expected.extend_from_slice(&name(key));
            self.expected.extend_from_slice(b" 0 32\r\n");
            self.expected.extend_from_slice(&value(key));
            self.expected.extend_from_slice(b"\r\n");
        }
        self.request.extend_from_slice(b"\r\n");
        self.expected.extend_from_slice(b"END\r\n");
    }

    fn get_redis(&mut self, key: u64) {
        self.request.extend_from_slice(b"*2\r\n$3\r\nGET\r\n$8\r\n");
        self.request.extend_from_slice(&name(key));
        self.request.extend_from_slice(b"\r\n");
        self.expected.extend_from_slice(b"$32\r\n");
        self.expected.extend_from_slice(&value(key));
        self.expected.extend_from_slice(b"\r\n");
    }

    /// Sends what was added.
    pub fn send(&mut self) -> Outcome {
        self.asked = Instant::now();
        let mut sent = 0;
        while sent < self.request.len() {
            let rest = &self.request[sent..];
            let done = match &mut self.stream {
                Stream::Tcp(stream) => stream.write(rest),
                Stream::Unix(stream) => stream.write(rest),
            };
            match done {
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes what came; `true` when the answer is whole.
    pub fn receive(&mut self) -> Outcome<bool> {
        while self.got < self.expected.len() {
            let read = match &mut self.stream {
                Stream::Tcp(stream) => stream.read(&mut self.buffer),
                Stream::Unix(stream) => stream.read(&mut self.buffer),
            };
            match read {
                Ok(0) => return Err("the server closed".into()),
                Ok(bytes) => {
                    let wanted = self.expected.get(self.got..self.got + bytes).ok_or("too long an answer")?;
                    if wanted != &self.buffer[..bytes] {
                        return Err("a wrong answer".into());
                    }
                    self.got += bytes;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Sends, and waits for the answer.
    pub fn finish_blocking(&mut self) -> Outcome {
        self.send()?;
        while !self.receive()? {
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }
}
