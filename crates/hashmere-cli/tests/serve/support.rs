//! Servers of the tests: ours and Debian's memcached, each a child that ends with its handle; and a client without manners.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Longer than anything takes that ends, on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A folder for stores and files, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/dev/shm/hashmere-serve-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that is ended with its handle.
pub struct Server {
    pub child: Child,
    pub port: u16,
    pub scratch: Option<Scratch>,
}

impl Server {
    /// Ours, on a free port and on a store of its own.
    pub fn start(arguments: &[&str]) -> Server {
        let scratch = Scratch::new();
        let mut server = Server::on(&scratch, arguments);
        server.scratch = Some(scratch);
        server
    }

    /// Ours, with stores in this folder.
    pub fn on(scratch: &Scratch, arguments: &[&str]) -> Server {
        Server::at(scratch, "-1", arguments)
    }

    /// The same on this port.
    pub fn at(scratch: &Scratch, port: &str, arguments: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hashmere"));
        command.args(["serve", "-p", port, "-l", "127.0.0.1", "-t", "2"]).args(arguments);
        Server::from(command.env("HASHMERE_DIR", scratch.path().join("ns")))
    }

    /// Whatever this command starts.
    pub fn from(command: &mut Command) -> Server {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let port = line.split("tcp:127.0.0.1:").nth(1).and_then(|rest| rest.split_whitespace().next());
        let port = port.unwrap_or_else(|| panic!("the server said: {line}")).parse().unwrap();
        // Whatever else it says is shown with the test's output.
        std::thread::spawn(move || lines.lines().map_while(Result::ok).for_each(|line| eprintln!("{line}")));
        Server { child, port, scratch: None }
    }

    /// Debian's memcached (1.6.18); `None` with a message if it is not installed.
    pub fn memcached(arguments: &[&str]) -> Option<Server> {
        Server::reference(Path::new("memcached"), arguments).or_else(|| {
            eprintln!("skipped: memcached is not installed (scripts/setup packages memcached)");
            None
        })
    }

    /// memcached 1.6.45, whose behaviour this server has: the binary that HASHMERE_MEMCACHED names, else what scripts/memcached-1.6.45
    /// unpacked. `None` with a message if neither is there.
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

    /// A memcached; `None` if it cannot be started.
    fn reference(binary: &Path, arguments: &[&str]) -> Option<Server> {
        let port = free_port();
        let mut command = Command::new(binary);
        command.args(["-u", "root", "-U", "0", "-l", "127.0.0.1", "-p", &port.to_string()]).args(arguments);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let mut server = Server { child, port, scratch: None };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{} ended: {ended:?}", binary.display());
            assert!(Instant::now() < deadline, "memcached does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(server)
    }

    pub fn connect(&self) -> Client {
        Client::new(TcpStream::connect(("127.0.0.1", self.port)).unwrap())
    }

    /// Where the server's stores are.
    pub fn folder(&self) -> PathBuf {
        self.scratch.as_ref().unwrap().path().join("ns")
    }

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

/// A port that nobody has, below those which the kernel gives away by itself: nobody is given it before it is listened on, and
/// who connects to it meanwhile does not by chance reach itself. Other test processes leave it alone as long as this one lives.
pub fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    static CLAIMED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    const FIRST: u32 = 12_000;
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let end = range.split_whitespace().next().unwrap().parse::<u32>().unwrap().max(FIRST + 1000);
    // Test processes that run at the same time begin far from each other.
    let first = std::process::id().wrapping_mul(7919);
    loop {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        assert!(tried < end - FIRST, "no port is free");
        let port = (FIRST + first.wrapping_add(tried) % (end - FIRST)) as u16;
        // A name that the kernel gives to one process, and takes back when that ends.
        let name = SocketAddr::from_abstract_name(format!("hashmere-test-port-{port}")).unwrap();
        let Ok(claim) = UnixListener::bind_addr(&name) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            CLAIMED.lock().unwrap().push(claim);
            return port;
        }
    }
}

/// A connection.
pub struct Client {
    pub stream: TcpStream,
    got: Vec<u8>,
}

impl Client {
    pub fn new(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream, got: Vec::new() }
    }

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
            let mut buffer = [0; 65536];
            match self.stream.read(&mut buffer) {
                Ok(0) => return (std::mem::take(&mut self.got), false),
                Ok(bytes) => self.got.extend_from_slice(&buffer[..bytes]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    return (std::mem::take(&mut self.got), false)
                }
                Err(error) => panic!("no answer ({error}) after {:?}", String::from_utf8_lossy(&self.got)),
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

    /// Exactly so many bytes.
    pub fn exactly(&mut self, bytes: usize) -> Vec<u8> {
        self.try_exactly(bytes).expect("closed")
    }

    /// Exactly so many bytes; `None` if the server closes before.
    pub fn try_exactly(&mut self, bytes: usize) -> Option<Vec<u8>> {
        while self.got.len() < bytes {
            let mut buffer = [0; 65536];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(more) => self.got.extend_from_slice(&buffer[..more]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer: {error}"),
            }
        }
        let rest = self.got.split_off(bytes);
        Some(std::mem::replace(&mut self.got, rest))
    }
}
