//! HTTP over sockets.

mod exact;
mod figures;
mod guide;
mod hostile;
mod prometheus;
mod streams;

use crate::support::{start, Client, Port, Server};
use std::net::TcpStream;

/// A server with HTTP on a port of its own.
pub struct Http {
    pub server: Server,
    port: Port,
}

impl Http {
    pub fn start(options: &[&str]) -> Http {
        let port = Port::reserve();
        let number = port.to_string();
        let server = start(&[&["--http", number.as_str()], options].concat());
        Http { server, port }
    }

    pub fn port(&self) -> u16 {
        self.port.number()
    }

    pub fn connect(&self) -> Client {
        Client::new(TcpStream::connect(("127.0.0.1", self.port.number())).unwrap())
    }

    /// Sends bytes on a connection of their own, and returns everything that comes before the server closes it.
    pub fn raw(&self, request: impl AsRef<[u8]>) -> String {
        let mut client = self.connect();
        client.send(request.as_ref());
        let (answer, open) = client.until(b"\x01no byte of any reply\x01");
        assert!(!open);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// One request of `METHOD TARGET`, with further headers, each with its ending, and a body.
    pub fn ask(&self, line: &str, headers: &str, body: &str) -> Reply {
        let length = if body.is_empty() && !line.starts_with('P') {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        Reply::of(
            &self
                .raw(format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}{length}\r\n{body}")),
        )
    }

    pub fn status(&self, line: &str, headers: &str, body: &str) -> u16 {
        self.ask(line, headers, body).status
    }
}

/// A reply, taken apart.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    fn of(text: &str) -> Reply {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no reply: {text:?}"));
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap().parse().unwrap();
        Reply { status, head: head.into(), body: body.into() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}
