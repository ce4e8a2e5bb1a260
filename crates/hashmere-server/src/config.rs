//! The options of the server.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

/// Which protocols a connection may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialects {
    /// The one of its first byte.
    #[default]
    Auto,
    /// Text only.
    Text,
    /// Binary only.
    Binary,
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

/// How the server runs. [`Config::default`] is what `hashmere serve` does without options.
#[derive(Debug)]
pub struct Config {
    /// TCP addresses.
    pub listen: Vec<SocketAddr>,
    /// Unix socket.
    pub unix: Option<PathBuf>,
    /// Permissions of the Unix socket.
    pub unix_mode: u32,
    /// Listening sockets that were handed over by the service manager; no others are opened then.
    pub inherited: Vec<OwnedFd>,
    /// Event loops.
    pub threads: usize,
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
    /// Protocols.
    pub dialects: Dialects,
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
    /// TLS on every TCP socket.
    pub tls: Option<TlsFiles>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The user to become once the sockets are open.
    pub user: Option<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: Vec::new(),
            unix: None,
            unix_mode: 0o700,
            inherited: Vec::new(),
            threads: std::thread::available_parallelism().map_or(4, std::num::NonZero::get),
            connections: 1024,
            backlog: 1024,
            item_max: 1 << 20,
            input_max: 64 << 20,
            idle: None,
            lease_time: 10,
            drain: Duration::from_secs(5),
            dialects: Dialects::Auto,
            cas: true,
            may_flush: true,
            may_dump: true,
            access_times: false,
            may_watch: true,
            may_shutdown: false,
            delimiter: None,
            verbosity: 0,
            accounts: None,
            sasl: false,
            tls: None,
            metrics: None,
            user: None,
        }
    }
}
