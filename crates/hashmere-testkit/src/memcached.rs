//! Servers of the memcached protocol as child processes, ours and memcached's own, and a client that sends any bytes.

use crate::scratch::Scratch;
use socket2::{Domain, Socket, Type};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any step of a test takes, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A port of 127.0.0.1 that the kernel assigns to no other socket as long as this exists. Its socket is bound and does
/// not listen, so connections are refused, and a server that is given the number (and sets SO_REUSEADDR, as servers do)
/// can listen on it, end, and listen again. A port that was only looked up may have another owner when it is used; and
/// a socket that listened to find it is inherited by a child process that this process forks at the same time, and
/// listens until that executes its program.
pub struct Port {
    number: u16,
    _held: Socket,
}

impl Port {
    /// Reserves a port that is free.
    pub fn reserve() -> Port {
        let held = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        held.set_reuse_address(true).unwrap();
        held.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        let number = held.local_addr().unwrap().as_socket().unwrap().port();
        Port { number, _held: held }
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number.fmt(f)
    }
}

/// A server process that is killed when this is dropped.
pub struct Server {
    /// The process.
    pub child: Child,
    /// Where it listens.
    pub port: u16,
    /// The folder of its store, if it has one of its own.
    pub scratch: Option<Scratch>,
}

impl Server {
    /// The server that this command starts: it writes ` on tcp:127.0.0.1:PORT` to standard error when it listens.
    pub fn spawn(command: &mut Command) -> Server {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        // It may have warnings before.
        let mut before = String::new();
        let port = loop {
            let line = lines.next().unwrap_or_else(|| panic!("the server ended ({:?}): {before}", child.wait()));
            match line.split_once(" on tcp:127.0.0.1:") {
                Some((_, rest)) => break rest.split_whitespace().next().unwrap().parse().unwrap(),
                None => before += &(line + "\n"),
            }
        };
        // The rest of its messages is shown with the test's output.
        std::thread::spawn(move || lines.for_each(|line| eprintln!("{line}")));
        Server { child, port, scratch: None }
    }

    /// Debian's memcached (1.6.18); `None` with a message if it is not installed.
    pub fn memcached(arguments: &[&str]) -> Option<Server> {
        Server::reference(Path::new("memcached"), arguments).or_else(|| {
            eprintln!("skipped: memcached is not installed (scripts/setup packages memcached)");
            None
        })
    }

    /// memcached 1.6.45, whose behaviour this server has: the binary that HASHMERE_MEMCACHED names, else what
    /// scripts/memcached-1.6.45 unpacked. `None` with a message if neither is there.
    pub fn memcached_today(arguments: &[&str]) -> Option<Server> {
        let unpacked = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/memcached-1.6.45/memcached");
        let binary = std::env::var_os("HASHMERE_MEMCACHED").map_or_else(unpacked, PathBuf::from);
        let Ok(version) = Command::new(&binary).arg("-V").output() else {
            eprintln!(
                "skipped: no memcached 1.6.45 (scripts/memcached-1.6.45 unpacks it, or HASHMERE_MEMCACHED names it)"
            );
            return None;
        };
        let version = String::from_utf8_lossy(&version.stdout);
        assert!(version.starts_with("memcached 1.6.45"), "{} says that it is {version}", binary.display());
        Server::reference(&binary, arguments)
    }

    /// A memcached on a port that the kernel gives it; `None` if it cannot be started. It writes the port down once it
    /// listens.
    fn reference(binary: &Path, arguments: &[&str]) -> Option<Server> {
        let scratch = Scratch::new("reference");
        let file = scratch.path().join("port");
        let mut command = Command::new(binary);
        command.args(["-u", "root", "-U", "0", "-l", "127.0.0.1", "-p", "-1"]).args(arguments);
        let child = command.env("MEMCACHED_PORT_FILENAME", &file).stdin(Stdio::null()).spawn().ok()?;
        let mut server = Server { child, port: 0, scratch: None };
        let deadline = Instant::now() + PATIENCE;
        let text = loop {
            match std::fs::read_to_string(&file) {
                Ok(text) => break text,
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{} ended: {ended:?}", binary.display());
            assert!(Instant::now() < deadline, "{} does not listen", binary.display());
        };
        let port = text.trim().strip_prefix("TCP INET: ").and_then(|port| port.parse().ok());
        server.port = port.unwrap_or_else(|| panic!("{} listens on {text:?}", binary.display()));
        Some(server)
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        Client::new(TcpStream::connect(("127.0.0.1", self.port)).unwrap())
    }

    /// The reply to a request on a new connection; connects again if the server closes idle connections before it
    /// replies.
    pub fn answer(&self, request: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut client = self.connect();
            client.send(request.as_bytes());
            client.send(b"mn\r\n");
            let (answer, open) = client.until(b"MN\r\n");
            if open {
                return String::from_utf8_lossy(&answer[..answer.len() - 4]).into_owned();
            }
            assert!(Instant::now() < deadline, "closed after {request:?}: {:?}", String::from_utf8_lossy(&answer));
        }
    }

    /// Where the server's stores are.
    pub fn folder(&self) -> PathBuf {
        self.scratch.as_ref().unwrap().path().join("ns")
    }

    /// Sends it a signal, by name.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Resident memory in bytes.
    pub fn memory(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection.
pub struct Client {
    /// The socket.
    pub stream: TcpStream,
    got: Vec<u8>,
}

impl Client {
    /// A client on this socket.
    pub fn new(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream, got: Vec::new() }
    }

    /// Sends these bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        // A server may close while it is being sent to; that shows in what comes back.
        let _ = self.stream.write_all(bytes);
    }

    /// Everything up to and with `end`; what came if the server closed, and `false`.
    pub fn until(&mut self, end: &[u8]) -> (Vec<u8>, bool) {
        loop {
            if let Some(at) = self.got.windows(end.len()).position(|window| window == end) {
                let rest = self.got.split_off(at + end.len());
                return (std::mem::replace(&mut self.got, rest), true);
            }
            if !self.receive() {
                return (std::mem::take(&mut self.got), false);
            }
        }
    }

    /// Sends a request and returns its answer, a text that ends with a line ending.
    #[track_caller]
    pub fn ask(&mut self, request: &str) -> String {
        self.send(request.as_bytes());
        self.send(b"mn\r\n");
        let (answer, open) = self.until(b"MN\r\n");
        assert!(open, "closed after {request:?}: {:?}", String::from_utf8_lossy(&answer));
        String::from_utf8_lossy(&answer[..answer.len() - 4]).into_owned()
    }

    /// Receives something more; `false`: the server closed.
    fn receive(&mut self) -> bool {
        let mut buffer = [0; 65536];
        loop {
            return match self.stream.read(&mut buffer) {
                Ok(bytes) => {
                    self.got.extend_from_slice(&buffer[..bytes]);
                    bytes != 0
                }
                // A read with a time limit is not restarted after a signal, whatever its handler asks for.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
                Err(error) => panic!("no answer ({error}) after {:?}", String::from_utf8_lossy(&self.got)),
            };
        }
    }

    /// Receives exactly this number of bytes.
    pub fn exactly(&mut self, bytes: usize) -> Vec<u8> {
        self.try_exactly(bytes).expect("closed")
    }

    /// Receives exactly this number of bytes; `None` if the server closes before.
    pub fn try_exactly(&mut self, bytes: usize) -> Option<Vec<u8>> {
        while self.got.len() < bytes {
            if !self.receive() {
                return None;
            }
        }
        let rest = self.got.split_off(bytes);
        Some(std::mem::replace(&mut self.got, rest))
    }
}
