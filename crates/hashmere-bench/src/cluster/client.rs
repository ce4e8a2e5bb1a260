//! A connection to a cluster or to one server, in the text protocol, that survives both.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than the time-out of the proxy.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What came for a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The value.
    Value(Vec<u8>),
    /// There is none.
    Absent,
    /// Stored.
    Stored,
    /// An error, or nothing.
    Failed,
}

/// The connection, opened when it is needed.
#[derive(Debug)]
pub struct Client {
    address: String,
    stream: Option<TcpStream>,
    got: Vec<u8>,
}

impl Client {
    /// A client of this address.
    pub fn new(address: &str) -> Client {
        Client { address: address.into(), stream: None, got: Vec::new() }
    }

    /// Asks for a key.
    pub fn get(&mut self, key: &str) -> Answer {
        match self.ask(format!("get {key}\r\n").as_bytes(), is_whole_get) {
            Ok(answer) if answer == b"END\r\n" => Answer::Absent,
            Ok(answer) => value_of(&answer).map_or(Answer::Failed, |value| Answer::Value(value.into())),
            Err(_) => Answer::Failed,
        }
    }

    /// Stores a value.
    pub fn set(&mut self, key: &str, value: &[u8]) -> Answer {
        let head = format!("set {key} 0 0 {}\r\n", value.len());
        match self.ask(&[head.as_bytes(), value, b"\r\n"].concat(), is_line) {
            Ok(answer) if answer == b"STORED\r\n" => Answer::Stored,
            _ => Answer::Failed,
        }
    }

    /// How many of these keys there are; `None` if nothing answers.
    pub fn count(&mut self, keys: &[String]) -> Option<usize> {
        let request = format!("get {}\r\n", keys.join(" "));
        let answer = self.ask(request.as_bytes(), |got| got.ends_with(b"END\r\n") || is_error(got)).ok()?;
        let values = answer.windows(6).filter(|window| *window == b"VALUE ").count();
        (!is_error(&answer)).then_some(values)
    }

    /// Sends a request and receives until the answer is whole. What fails closes the connection.
    fn ask(&mut self, request: &[u8], is_whole: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
        let answer = self.try_ask(request, is_whole);
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    fn try_ask(&mut self, request: &[u8], is_whole: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(&self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                none.insert(stream)
            }
        };
        stream.write_all(request)?;
        self.got.clear();
        let mut buffer = [0; 16 << 10];
        while !is_whole(&self.got) {
            match stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => self.got.extend_from_slice(buffer.get(..bytes).unwrap_or(&[])),
            }
        }
        Ok(std::mem::take(&mut self.got))
    }
}

fn is_line(got: &[u8]) -> bool {
    got.ends_with(b"\r\n")
}

fn is_error(got: &[u8]) -> bool {
    [&b"SERVER_ERROR"[..], b"CLIENT_ERROR", b"ERROR"].iter().any(|error| got.starts_with(error)) && is_line(got)
}

fn is_whole_get(got: &[u8]) -> bool {
    got == b"END\r\n" || value_of(got).is_some() || is_error(got)
}

/// The value of a whole answer to a get of one key.
fn value_of(answer: &[u8]) -> Option<&[u8]> {
    let end = answer.windows(2).position(|window| window == b"\r\n")?;
    let (head, rest) = (std::str::from_utf8(answer.get(..end)?).ok()?, answer.get(end + 2..)?);
    let len: usize = head.strip_prefix("VALUE ")?.rsplit(' ').next()?.parse().ok()?;
    (rest.get(len..)? == b"\r\nEND\r\n").then(|| rest.get(..len))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_partial_answers() {
        let whole = b"VALUE k 0 3\r\nabc\r\nEND\r\n";
        assert_eq!(value_of(whole), Some(&b"abc"[..]));
        assert!((0..whole.len()).all(|len| !is_whole_get(&whole[..len])));
        assert!(is_whole_get(b"END\r\n") && is_whole_get(b"SERVER_ERROR Host is down\r\n"));
        assert!(!is_whole_get(b"SERVER_ERROR Host") && !is_whole_get(b"EN"));
    }
}
