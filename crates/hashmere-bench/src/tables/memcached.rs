//! memcached over a unix socket: a server of our own on a private path, one connection, the text protocol.

use super::{Cached, Table};
use crate::Outcome;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The server and the connection to it.
pub struct Memcached {
    server: Child,
    stream: BufReader<UnixStream>,
    request: Vec<u8>,
    line: Vec<u8>,
}

impl Memcached {
    /// Starts a server of `megabytes` whose socket lies in the folder, and connects.
    pub fn start(folder: &Path, megabytes: u32) -> Outcome<Memcached> {
        let socket = folder.join("memcached.sock");
        let mut command = Command::new("memcached");
        command.args(["-t", "1", "-U", "0", "-m", &megabytes.to_string(), "-s"]).arg(&socket);
        if std::fs::metadata("/proc/self")?.uid() == 0 {
            command.args(["-u", "root"]);
        }
        let server = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start memcached: {error}"))?;
        let mut server = Started(Some(server));
        let deadline = Instant::now() + Duration::from_secs(5);
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break BufReader::new(stream),
                Err(error) if Instant::now() > deadline => {
                    return Err(format!("no memcached on {}: {error}", socket.display()).into())
                }
                Err(_) => sleep(Duration::from_millis(2)),
            }
        };
        let server = server.0.take().ok_or("the server is gone")?;
        Ok(Memcached { server, stream, request: Vec::new(), line: Vec::new() })
    }

    fn ask(&mut self) -> Outcome {
        self.stream.get_mut().write_all(&self.request)?;
        self.read_line()
    }

    fn read_line(&mut self) -> Outcome {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line)?;
        Ok(())
    }
}

/// Ends the server if the start fails half-way.
struct Started(Option<Child>);

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(server) = &mut self.0 {
            end(server);
        }
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        end(&mut self.server);
    }
}

fn end(server: &mut Child) {
    // Neither can fail for a child that no other thread waits for.
    let _ = server.kill();
    let _ = server.wait();
}

impl Table for Memcached {
    fn set(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        self.request.clear();
        self.request.extend_from_slice(b"set ");
        self.request.extend_from_slice(key);
        self.request.extend_from_slice(format!(" 0 0 {}\r\n", value.len()).as_bytes());
        self.request.extend_from_slice(value);
        self.request.extend_from_slice(b"\r\n");
        self.ask()?;
        if self.line == b"STORED\r\n" {
            return Ok(());
        }
        Err(format!("memcached answered {}", String::from_utf8_lossy(&self.line)).into())
    }

    fn holds(&mut self, key: &[u8], value: &[u8]) -> Outcome<bool> {
        let mut found = Vec::new();
        Ok(self.find(key, &mut found)? && found == value)
    }
}

impl Cached for Memcached {
    fn find(&mut self, key: &[u8], value: &mut Vec<u8>) -> Outcome<bool> {
        self.request.clear();
        self.request.extend_from_slice(b"get ");
        self.request.extend_from_slice(key);
        self.request.extend_from_slice(b"\r\n");
        self.ask()?;
        if !self.line.starts_with(b"VALUE ") {
            return Ok(false);
        }
        let length: usize = String::from_utf8_lossy(&self.line)
            .split_ascii_whitespace()
            .nth(3)
            .ok_or("memcached answered without a length")?
            .parse()?;
        value.resize(length + 2, 0);
        self.stream.read_exact(value)?;
        self.read_line()?;
        if self.line != b"END\r\n" || !value.ends_with(b"\r\n") {
            return Err(format!("memcached answered {}", String::from_utf8_lossy(&self.line)).into());
        }
        value.truncate(length);
        Ok(true)
    }
}
