//! A connection to a server that streams its store's changes.

use super::address::Served;
use super::failed::Failed;
use super::line::{shown, Line};
use super::socket::Socket;
use hashmere_feed::FeedStart;
use std::io;
use std::time::{Duration, Instant};

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// A line longer than this is none: a value of 1 GiB, each byte of it as `\u0001`, is below.
const LINE_MAX: usize = 7 << 30;
/// How long a server may be silent: it says something each second.
const SILENCE: Duration = Duration::from_secs(10);
/// The server hears from its client this often.
const BEAT: Duration = Duration::from_secs(5);

/// The connection.
#[derive(Debug)]
pub(super) struct Link {
    socket: Socket,
    buffer: Vec<u8>,
    /// What is read at once, on its way there.
    room: Box<[u8]>,
    /// What of the buffer was taken, and up to where there is no end of a line.
    taken: usize,
    looked: usize,
    heard: Instant,
    said: Instant,
    /// The number that was said last.
    asked: u64,
}

impl Link {
    /// Connects, authenticates where the server wants it, and asks for the changes.
    pub fn open(served: &Served, start: FeedStart, is_stamped: bool) -> Result<Link, Failed> {
        let socket = Socket::open(served)?;
        let now = Instant::now();
        let room = vec![0; CHUNK].into_boxed_slice();
        let buffer = Vec::new();
        let mut link = Link { socket, buffer, room, taken: 0, looked: 0, heard: now, said: now, asked: 0 };
        let start = match start {
            FeedStart::Start => "start".to_owned(),
            FeedStart::Now => "now".to_owned(),
            FeedStart::At(token) => token.to_string(),
        };
        let request = format!("feed {start} values{}\r\n", if is_stamped { " stamps" } else { "" });
        let mut answer = link.request(request.as_bytes())?;
        if answer == b"CLIENT_ERROR unauthenticated" {
            link.authenticate(served)?;
            answer = link.request(request.as_bytes())?;
        }
        let says = shown(&answer);
        match answer.as_slice() {
            b"FEED 1" => Ok(link),
            b"CLIENT_ERROR feed not allowed" => {
                Err(Failed::Final("the server does not allow it; start it with --feed 64M".into()))
            }
            [b'E', b'R', b'R', b'O', b'R', b' ', ..] => Err(Failed::Passing(says)),
            _ if answer.starts_with(b"SERVER_ERROR ") => Err(Failed::Passing(says)),
            _ => Err(Failed::Final(format!("it is no server with a feed that this version knows: it says `{says}`"))),
        }
    }

    /// Only where the server asked for it: another one would store the password as a value.
    fn authenticate(&mut self, served: &Served) -> Result<(), Failed> {
        let Some((name, password)) = &served.account else {
            return Err(Failed::Final("the server wants name and password (--account FILE)".into()));
        };
        let mut request = format!("set account 0 0 {}\r\n", name.len() + 1 + password.len()).into_bytes();
        for part in [&name[..], b" ", password, b"\r\n"] {
            request.extend_from_slice(part);
        }
        match self.request(&request)?.as_slice() {
            b"STORED" => Ok(()),
            b"CLIENT_ERROR authentication failure" => Err(Failed::Final("the server refuses name and password".into())),
            other => Err(Failed::Final(format!("it cannot be authenticated to: it says `{}`", shown(other)))),
        }
    }

    fn request(&mut self, request: &[u8]) -> Result<Vec<u8>, Failed> {
        self.socket.send(request)?;
        loop {
            if let Some(line) = self.buffered() {
                return Ok(self.text(line).to_vec());
            }
            self.fill(SILENCE).map_err(|error| match error.kind() {
                // That of rustls, whose client certificate is refused behind the handshake.
                io::ErrorKind::InvalidData => Failed::Final(format!("TLS: {error}")),
                _ => error.into(),
            })?;
        }
    }

    /// The next line; waits for it until then. `None`: there is none yet.
    pub fn next(&mut self, deadline: Instant) -> Result<Option<Line>, Failed> {
        loop {
            if self.said.elapsed() >= BEAT {
                self.say()?;
            }
            if let Some(line) = self.buffered() {
                return Line::parse(self.text(line)).map(Some).map_err(Failed::Final);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            // With no time left it still takes what has come.
            if !self.fill(left.min(Duration::from_millis(500)))? && left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Asks for an answer; returns its number.
    pub fn ask(&mut self) -> Result<u64, Failed> {
        self.asked += 1;
        self.say()?;
        Ok(self.asked)
    }

    /// When the server was heard last.
    pub fn heard(&self) -> Instant {
        self.heard
    }

    fn say(&mut self) -> io::Result<()> {
        self.said = Instant::now();
        self.socket.send(format!("beat {}\r\n", self.asked).as_bytes())
    }

    /// Where the next line is, if it is here; it is taken.
    fn buffered(&mut self) -> Option<(usize, usize)> {
        let rest = &self.buffer[self.looked..];
        let Some(at) = rest.iter().position(|byte| *byte == b'\n') else {
            self.looked = self.buffer.len();
            return None;
        };
        let (start, end) = (self.taken, self.looked + at);
        (self.taken, self.looked) = (end + 1, end + 1);
        Some((start, end))
    }

    fn text(&self, (start, end): (usize, usize)) -> &[u8] {
        let line = &self.buffer[start..end];
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Reads what comes within this time; `false`: nothing.
    fn fill(&mut self, time: Duration) -> io::Result<bool> {
        self.buffer.drain(..self.taken);
        self.looked -= self.taken;
        self.taken = 0;
        if self.buffer.len() > LINE_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the server sent a line without an end"));
        }
        let read = self.socket.receive(&mut self.room, time);
        match read? {
            Some(bytes) => {
                self.buffer.extend_from_slice(&self.room[..bytes]);
                self.heard = Instant::now();
                Ok(true)
            }
            None if self.heard.elapsed() >= SILENCE => {
                let text = format!("the server has been silent for {} s", SILENCE.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
            None => Ok(false),
        }
    }
}
