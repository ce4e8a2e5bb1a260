//! Just enough HTTP for a scraper: one small `GET` a connection, one reply.
//!
//! A client cannot hold the endpoint up: each has a thread and [`DEADLINE`] for its whole request and reply, however it
//! divides them, and there are at most [`CLIENTS_MAX`]; further ones are refused at once. A library for HTTP would have
//! its own threads without a deadline for the whole request, which is the part that matters here.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// From accepting a client to the last byte of its reply.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// Clients at a time.
pub const CLIENTS_MAX: usize = 16;
/// Longest request.
const REQUEST_MAX: usize = 8 << 10;
/// After a failure to accept, which may be a limit of the system.
const PAUSE: Duration = Duration::from_millis(100);

/// A reply: status and body, as text.
pub type Reply = (&'static str, String);

/// Answers clients until the process ends: `answer` gets the path of each request, and `failed` each failure.
pub fn serve<A, F>(listener: &TcpListener, answer: A, failed: F)
where
    A: Fn(&[u8]) -> Reply + Send + Sync + 'static,
    F: Fn(io::Error) + Send + Sync + 'static,
{
    let shared = Arc::new((answer, failed));
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let accepted = Instant::now();
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                (shared.1)(error);
                std::thread::sleep(PAUSE);
                continue;
            }
        };
        let mut client = Client { stream, deadline: accepted + DEADLINE };
        let Some(place) = Permit::take(&clients) else {
            // The socket is new, so its buffer has room for this; the client may be gone.
            let _ = client.reply("503 Service Unavailable", "too many clients\n");
            continue;
        };
        let shared = shared.clone();
        let thread = std::thread::Builder::new().name("http".into());
        // Without a thread the client is dropped, and its place with it.
        let _ = thread.spawn(move || {
            let _place = place;
            let (answer, failed) = &*shared;
            if let Err(error) = client.serve(answer) {
                failed(error);
            }
        });
    }
}

/// One of the places for clients, given back when it is dropped.
struct Permit(Arc<AtomicUsize>);

impl Permit {
    fn take(clients: &Arc<AtomicUsize>) -> Option<Permit> {
        let taken = clients.fetch_add(1, Ordering::Relaxed);
        if taken < CLIENTS_MAX {
            return Some(Permit(clients.clone()));
        }
        clients.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Client {
    stream: TcpStream,
    deadline: Instant,
}

impl Client {
    fn serve(&mut self, answer: &impl Fn(&[u8]) -> Reply) -> io::Result<()> {
        let request = self.request()?;
        match path(&request) {
            Some(path) => {
                let (status, body) = answer(path);
                self.reply(status, &body)
            }
            None => self.reply("400 Bad Request", "only GET, in at most 8 KiB\n"),
        }
    }

    /// The request up to its empty line; less if the client ends it before, or it is too long.
    fn request(&mut self) -> io::Result<Vec<u8>> {
        let mut request = Vec::new();
        let mut buffer = [0; 1024];
        while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_MAX {
            self.stream.set_read_timeout(Some(self.left()?))?;
            match self.stream.read(&mut buffer)? {
                0 => break,
                bytes => request.extend_from_slice(&buffer[..bytes]),
            }
        }
        Ok(request)
    }

    fn reply(&mut self, status: &str, body: &str) -> io::Result<()> {
        let length = body.len();
        let reply = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        let mut left = reply.as_bytes();
        while !left.is_empty() {
            self.stream.set_write_timeout(Some(self.left()?))?;
            match self.stream.write(left)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                bytes => left = &left[bytes..],
            }
        }
        Ok(())
    }

    /// The time that it still has.
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

/// The path that a request asks for; `None` if it is not a `GET`, or its first line is not all there.
fn path(request: &[u8]) -> Option<&[u8]> {
    let rest = request.strip_prefix(b"GET ")?;
    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\r' | b'\n'))?;
    (rest[end] == b' ').then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_whole_and_broken_requests() {
        for (request, expected) in [
            (&b"GET /metrics HTTP/1.1\r\n\r\n"[..], Some(&b"/metrics"[..])),
            (b"GET / HTTP/1.0\r\n", Some(b"/")),
            (b"GET /metrics\r\n", None),
            (b"GET /metr", None),
            (b"POST / HTTP/1.1\r\n\r\n", None),
            (b"", None),
        ] {
            assert_eq!(path(request), expected, "{}", request.escape_ascii());
        }
    }

    #[test]
    fn places_are_given_back() {
        let clients = Arc::new(AtomicUsize::new(0));
        let mut places: Vec<Permit> = (0..CLIENTS_MAX).map(|_| Permit::take(&clients).unwrap()).collect();
        assert!(Permit::take(&clients).is_none());
        places.pop();
        assert!(Permit::take(&clients).is_some());
        drop(places);
        assert_eq!(clients.load(Ordering::Relaxed), 0);
    }
}
