//! The options of the server.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

/// What the connections of a listening socket speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// memcached's, text (with meta commands) or binary: the one of the first byte.
    #[default]
    Memcached,
    /// memcached's text protocol only.
    Text,
    /// memcached's binary protocol only.
    Binary,
    /// HTTP.
    Http,
    /// That of Redis.
    Resp,
    /// The one of these that the beginning of a connection tells.
    All,
}

/// Where a socket listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// How event loops move the bytes of sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventLoop {
    /// By `io_uring` where that can be used, else by epoll.
    #[default]
    Auto,
    /// By epoll.
    Epoll,
    /// By `io_uring`; the server does not start where that cannot be used.
    IoUring,
}

/// A socket that listens, and what its connections speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where.
    pub address: Address,
    /// What.
    pub protocol: Protocol,
}

/// Where the certificate of a TLS server is.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain, PEM.
    pub chain: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
    /// Authorities whose client certificates are demanded, PEM.
    pub clients: Option<PathBuf>,
}

/// What HTTP clients may do.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    /// File with the token that every request for data has to have.
    pub token: Option<PathBuf>,
    /// Whether changes are allowed.
    pub write: bool,
    /// Names of this server that `Host` may have, beside IP addresses and `localhost`.
    pub hosts: Vec<String>,
}

/// How the server runs. [`Config::default`] is what `hashmere serve` does without options.
#[derive(Debug)]
pub struct Config {
    /// The sockets that listen.
    pub endpoints: Vec<Endpoint>,
    /// Permissions of Unix sockets.
    pub unix_mode: u32,
    /// Listening sockets that were handed over by the service manager, for clients of memcached.
    pub inherited: Vec<OwnedFd>,
    /// What the connections of those speak.
    pub inherited_protocol: Protocol,
    /// Event loops.
    pub threads: usize,
    /// How they move bytes. While the server runs: what was chosen.
    pub event_loop: EventLoop,
    /// Most connections at a time.
    pub connections: usize,
    /// Backlog of each listening socket.
    pub backlog: i32,
    /// Largest item: key, value and some 60 bytes, as memcached counts it.
    pub item_max: u64,
    /// Bytes of unfinished values and long lines that all connections may hold together.
    pub input_max: usize,
    /// A connection that is idle for this long is closed.
    pub idle: Option<Duration>,
    /// Seconds after which a lease that was not used is given to the next client that asks: 1 to 1800.
    pub lease_time: u64,
    /// How long a stopping server waits for clients to receive their replies.
    pub drain: Duration,
    /// Whether versions are shown.
    pub cas: bool,
    /// Whether `flush_all` is allowed.
    pub may_flush: bool,
    /// Whether listing keys is allowed.
    pub may_dump: bool,
    /// Whether accesses to keys are recorded from the start, and not only from the first request for them.
    pub access_times: bool,
    /// Whether `watch` is allowed.
    pub may_watch: bool,
    /// Whether `feed` is allowed; the store keeps this many bytes of changes then, with values, unless it keeps some
    /// already.
    pub feed: Option<u64>,
    /// Whether the `shutdown` command is allowed.
    pub may_shutdown: bool,
    /// What ends the prefix of a key in `stats detail`, which is on from the start then; else a colon.
    pub delimiter: Option<u8>,
    /// Verbosity of the messages on standard error.
    pub verbosity: u8,
    /// File of `name:password` lines; with it every connection has to authenticate.
    pub accounts: Option<PathBuf>,
    /// Authentication by SASL, in the binary protocol only.
    pub sasl: bool,
    /// Which keyspace events clients of Redis can subscribe to: the letters of `notify-keyspace-events`.
    pub keyspace_events: String,
    /// TLS on every TCP socket.
    pub tls: Option<TlsFiles>,
    /// What HTTP clients may do.
    pub http: HttpOptions,
    /// The user to become once the sockets are open.
    pub user: Option<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            endpoints: Vec::new(),
            unix_mode: 0o700,
            inherited: Vec::new(),
            inherited_protocol: Protocol::Memcached,
            threads: std::thread::available_parallelism().map_or(4, std::num::NonZero::get),
            event_loop: EventLoop::Auto,
            connections: 1024,
            backlog: 1024,
            item_max: 1 << 20,
            input_max: 64 << 20,
            idle: None,
            lease_time: 10,
            drain: Duration::from_secs(5),
            cas: true,
            may_flush: true,
            may_dump: true,
            access_times: false,
            may_watch: true,
            feed: None,
            may_shutdown: false,
            delimiter: None,
            verbosity: 0,
            accounts: None,
            sasl: false,
            keyspace_events: String::new(),
            tls: None,
            http: HttpOptions::default(),
            user: None,
        }
    }
}

impl Config {
    /// Whether what HTTP clients may do fits where it listens, and who may use the other protocols.
    pub(crate) fn check_http(&self) -> Result<(), String> {
        let mut http = self.endpoints.iter().filter(|endpoint| endpoint.protocol.has_http()).peekable();
        let is_inherited = !self.inherited.is_empty() && self.inherited_protocol.has_http();
        if self.http.token.is_some() || (http.peek().is_none() && !is_inherited) {
            return Ok(());
        }
        if self.accounts.is_some() {
            return Err("clients have to authenticate (-Y), so HTTP needs --http-token FILE".into());
        }
        let is_local = |endpoint: &Endpoint| match &endpoint.address {
            Address::Tcp(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
        };
        // Where a socket that was handed over listens is the service manager's choice.
        if self.http.write && (is_inherited || !http.all(is_local)) {
            return Err("--http-write on an address of other machines needs --http-token FILE".into());
        }
        Ok(())
    }

    /// The TCP addresses and the Unix sockets for clients of memcached.
    pub(crate) fn for_memcached(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().filter(|endpoint| endpoint.protocol.is_memcached())
    }
}

impl EventLoop {
    /// Its name, in options and in `stats`.
    pub fn name(self) -> &'static str {
        match self {
            EventLoop::Auto => "auto",
            EventLoop::Epoll => "epoll",
            EventLoop::IoUring => "io_uring",
        }
    }
}

impl Protocol {
    /// Whether clients of memcached are served.
    pub(crate) fn is_memcached(self) -> bool {
        matches!(self, Protocol::Memcached | Protocol::Text | Protocol::Binary | Protocol::All)
    }

    /// Whether HTTP is, or is among, its protocols.
    fn has_http(self) -> bool {
        matches!(self, Protocol::Http | Protocol::All)
    }

    /// The reply to a connection above the limit.
    pub(crate) fn too_many_connections(self) -> &'static [u8] {
        match self {
            // Before its first byte nothing is known of a client; those of other protocols take it for a broken reply.
            Protocol::Memcached | Protocol::Text | Protocol::Binary | Protocol::All => {
                b"ERROR Too many open connections\r\n"
            }
            Protocol::Http => b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            Protocol::Resp => b"-ERR max number of clients reached\r\n",
        }
    }
}
