//! `serve`: the memcached protocol and HTTP on a live store.

mod addresses;
mod daemon;
mod extended;

use crate::cmd::Outcome;
use crate::failure::Failure;
use crate::text;
use clap::{Args, ValueEnum, ValueHint};
use extended::Extended;
use hashmere::{Mode, OpenError, Options, Store};
use hashmere_server::{Address, Config, Endpoint, HttpOptions, Protocol, TlsFiles};
use std::path::PathBuf;
use std::time::Duration;

/// The store that is served if none is named.
const DEFAULT_STORE: &str = "memcached";
/// A store smaller than this is made of smaller segments: it needs a few dozen.
const SMALL_STORE: u64 = 8 << 20;
const SMALL_SEGMENT: u32 = 32 << 10;
const LICENSE: &str = "Hashmere is licensed under either of the Apache License, Version 2.0 (https://www.apache.org/licenses/LICENSE-2.0), \
or the MIT license (https://opensource.org/licenses/MIT), at your option. No code of memcached is in it.";
/// The smallest and the largest item limit.
const ITEM_BOUNDS: (u64, u64) = (1 << 10, 1 << 30);

/// Serve a store over the memcached protocol, and over HTTP.
///
/// Options mean what they mean to memcached; of one that is given twice the last counts. Without STORE a store named
/// `memcached` is served, and created as a cache of -m megabytes if it is missing; what is in it survives a restart. A
/// STORE that exists is served as it is.
#[derive(Args, Debug)]
#[command(disable_version_flag = true, args_override_self = true)]
pub struct Serve {
    /// Name of the store; or its path, if it has a slash or ends in .mere
    #[arg(value_name = "STORE", value_hint = ValueHint::AnyPath)]
    store: Option<PathBuf>,
    /// TCP port; 0 for none, -1 for any that is free
    #[arg(short, long, value_name = "PORT", allow_negative_numbers = true)]
    port: Option<i32>,
    /// Unix socket; TCP is then off unless -p or -l is given
    #[arg(short = 's', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    unix_socket: Option<PathBuf>,
    /// Permissions of the Unix socket, octal
    #[arg(short = 'a', long, value_name = "OCTAL", default_value = "0700", value_parser = parse_octal)]
    unix_mask: u32,
    /// Addresses to listen on: host, host:port, [v6]:port; several, or with commas between (default: this machine only)
    #[arg(short, long, value_name = "ADDRESS", value_delimiter = ',')]
    listen: Vec<String>,
    /// Serve clients of Redis on this address: host:port, a port of this machine, or unix:FILE; may be repeated
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', action = clap::ArgAction::Append)]
    resp: Vec<String>,
    /// The sockets of memcached's clients serve those of Redis and of HTTP as well: how a connection begins tells which
    /// it is
    #[arg(long)]
    all_protocols: bool,
    /// Keyspace events for clients of Redis, by the letters of notify-keyspace-events; needs a store with a feed
    #[arg(long, value_name = "LETTERS")]
    notify_keyspace_events: Option<String>,
    /// Megabytes of a store that is created (default 64)
    #[arg(short, long, value_name = "MB")]
    memory_limit: Option<u64>,
    /// A store that is created refuses values when it is full, rather than drop others
    #[arg(short = 'M', long)]
    disable_evictions: bool,
    /// Most connections at a time
    #[arg(short, long, value_name = "N", default_value_t = 1024)]
    conn_limit: usize,
    /// Event loops (default: one for each core)
    #[arg(short, long, value_name = "N")]
    threads: Option<usize>,
    /// Largest item, for example 512k or 4m
    #[arg(short = 'I', long, value_name = "SIZE", default_value = "1m", value_parser = text::parse_size)]
    max_item_size: u64,
    /// Requests of one event (accepted; turns are taken by bytes here)
    #[arg(short = 'R', long, value_name = "N", hide_short_help = true)]
    max_reqs_per_event: Option<u32>,
    /// Backlog of the listening sockets
    #[arg(short, long, value_name = "N", default_value_t = 1024)]
    backlog: i32,
    /// Do not show versions (CAS ids)
    #[arg(short = 'C', long)]
    disable_cas: bool,
    /// Protocol
    #[arg(short = 'B', long, value_enum, default_value_t = Dialects::Auto)]
    protocol: Dialects,
    /// Run in the background
    #[arg(short, long)]
    daemon: bool,
    /// File for the process id
    #[arg(short = 'P', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pidfile: Option<PathBuf>,
    /// User to become once the sockets are open and secrets are read; the store is opened as that user
    #[arg(short, long, value_name = "NAME")]
    user: Option<String>,
    /// Say more on standard error; repeat for still more
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print the version
    #[arg(short = 'V', long)]
    version: bool,
    /// Allow the `shutdown` command
    #[arg(short = 'A', long)]
    enable_shutdown: bool,
    /// Refuse `flush_all`
    #[arg(short = 'F', long)]
    disable_flush_all: bool,
    /// Refuse listings of keys
    #[arg(short = 'X', long)]
    disable_dumping: bool,
    /// Refuse `watch`
    #[arg(short = 'W', long)]
    disable_watch: bool,
    /// Allow `feed`, by which replicas on other machines follow the store. It keeps this many bytes of changes then,
    /// with values, unless it keeps some already
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size)]
    feed: Option<u64>,
    /// File of name:password lines; every connection has to authenticate (read again on SIGHUP)
    #[arg(short = 'Y', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    auth_file: Option<PathBuf>,
    /// Authenticate by SASL (PLAIN) in the binary protocol; accounts from -Y or MEMCACHED_SASL_PWDB
    #[arg(short = 'S', long)]
    enable_sasl: bool,
    /// TLS on the TCP sockets, with -o ssl_chain_cert=FILE,ssl_key=FILE[,ssl_ca_cert=FILE,ssl_verify_mode=2]; read
    /// again on SIGHUP and on `refresh_certs`
    #[arg(short = 'Z', long)]
    enable_ssl: bool,
    /// Further options: idle_timeout=SECONDS, drain=SECONDS, lease_time=SECONDS, input_max=SIZE, access_times,
    /// event_loop=auto|epoll|io_uring, ssl_...; those of memcached's slabs and LRU are accepted and do nothing
    #[arg(short = 'o', long, value_name = "NAME=VALUE", value_delimiter = ',')]
    extended: Vec<String>,
    /// Serve keys, a dashboard and metrics over HTTP: a port (of this machine only), host:port, [v6]:port; several, or
    /// with commas between
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    http: Vec<String>,
    /// File with a token that HTTP clients have to send as `Authorization: Bearer TOKEN` (read again on SIGHUP)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    http_token: Option<PathBuf>,
    /// Allow changes over HTTP; on an address of other machines only with a token
    #[arg(long)]
    http_write: bool,
    /// Name of this server that HTTP clients may use, beside IP addresses and localhost; several, or with commas
    /// between
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    http_host: Vec<String>,
    /// UDP port: only 0, there is no UDP
    #[arg(short = 'U', long, value_name = "PORT", hide_short_help = true)]
    udp_port: Option<u32>,
    /// Keep the memory of this process, not the store's, from being paged out; says so and goes on if that is not
    /// allowed
    #[arg(short = 'k', long)]
    lock_memory: bool,
    /// Print the licence
    #[arg(short = 'i', long)]
    license: bool,
    /// What ends the prefix of a key in `stats detail`, which is then on from the start (default a colon, and off)
    #[arg(short = 'D', value_name = "CHAR", hide_short_help = true)]
    delimiter: Option<String>,
    /// Accepted, does nothing: slab growth, smallest chunk, core files, large pages
    #[command(flatten)]
    harmless: Harmless,
}

/// Options of memcached that mean nothing to a store.
#[derive(Args, Debug)]
struct Harmless {
    #[arg(short = 'f', long = "slab-growth-factor", value_name = "FACTOR", hide = true)]
    _growth: Option<String>,
    #[arg(short = 'n', long = "slab-min-size", value_name = "BYTES", hide = true)]
    _chunk: Option<String>,
    #[arg(short = 'r', long = "enable-coredumps", hide = true)]
    _core: bool,
    #[arg(short = 'L', long = "enable-largepages", hide = true)]
    _pages: bool,
}

/// `-B`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dialects {
    /// Whichever the first byte says
    Auto,
    /// Text only
    Ascii,
    /// Binary only
    Binary,
}

/// Why serving ended.
enum Ended {
    /// The store could not be opened.
    Store(Failure),
    /// The server could not start.
    Server(String),
}

impl From<String> for Ended {
    fn from(text: String) -> Ended {
        Ended::Server(text)
    }
}

impl Serve {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        if self.version {
            return crate::output::print_line(concat!("hashmere ", env!("CARGO_PKG_VERSION")));
        }
        if self.license {
            return crate::output::print_line(LICENSE);
        }
        if self.daemon && !daemon::is_child() {
            return daemon::start();
        }
        let config = self.config()?;
        if self.lock_memory {
            if let Err(error) = hashmere_os::process::lock_memory() {
                eprintln!("hashmere serve: cannot lock memory (-k): {error}; going on without");
            }
        }
        let pidfile = self.pidfile.as_deref();
        let ready = |store: &Store, addresses: &[String]| {
            if !quiet {
                eprintln!("hashmere serve: {} on {}", store.path().display(), addresses.join(" "));
            }
            if let Some(pidfile) = pidfile {
                if let Err(error) = std::fs::write(pidfile, format!("{}\n", std::process::id())) {
                    eprintln!("hashmere serve: cannot write {}: {error}", pidfile.display());
                }
            }
            daemon::tell_parent();
        };
        let served = hashmere_server::serve(config, || self.open().map_err(Ended::Store), ready);
        if let Some(pidfile) = pidfile {
            // It may never have been written.
            let _ = std::fs::remove_file(pidfile);
        }
        served.map_err(|ended| match ended {
            Ended::Store(failure) => failure,
            Ended::Server(text) => Failure::error(crate::failure::code::SERVE, text),
        })
    }

    fn config(&self) -> Result<Config, Failure> {
        let usage = |text: String| Failure::Usage(text);
        if self.udp_port.is_some_and(|port| port != 0) {
            return Err(usage("there is no UDP (-U); use TCP or a Unix socket".into()));
        }
        if !(ITEM_BOUNDS.0..=ITEM_BOUNDS.1).contains(&self.max_item_size) {
            return Err(usage("the largest item (-I) must be from 1k to 1g".into()));
        }
        if self.conn_limit == 0 {
            return Err(usage("the number of connections (-c) must be at least 1".into()));
        }
        if self.memory_limit == Some(0) {
            return Err(usage("the size of the store (-m) must be at least 1".into()));
        }
        let delimiter = match self.delimiter.as_deref().map(str::as_bytes) {
            None => None,
            Some([byte]) => Some(*byte),
            Some(_) => return Err(usage("the end of prefixes (-D) must be one character".into())),
        };
        let extended = Extended::parse(&self.extended).map_err(usage)?;
        let inherited = hashmere_os::process::handed_sockets();
        let endpoints = self.endpoints(inherited.is_empty()).map_err(usage)?;
        if endpoints.is_empty() && inherited.is_empty() {
            return Err(usage("nothing to listen on: -p 0 needs -s FILE, --http ADDRESS or --resp ADDRESS".into()));
        }
        let default = Config::default();
        let threads = self.threads.unwrap_or(default.threads);
        if !(1..=64).contains(&threads) {
            return Err(usage("the number of event loops (-t) must be from 1 to 64".into()));
        }
        Ok(Config {
            endpoints,
            unix_mode: self.unix_mask,
            inherited,
            inherited_protocol: self.memcached(),
            threads,
            event_loop: extended.event_loop,
            connections: self.conn_limit,
            backlog: self.backlog,
            item_max: self.max_item_size,
            // Every event loop can receive a few values of the largest size at a time.
            input_max: extended.input_max.unwrap_or(default.input_max).max(8 * self.max_item_size as usize),
            idle: extended.idle_timeout.filter(|seconds| *seconds != 0).map(Duration::from_secs),
            lease_time: extended.lease_time.unwrap_or(default.lease_time),
            drain: extended.drain.map_or(default.drain, Duration::from_secs),
            cas: !self.disable_cas,
            may_flush: !self.disable_flush_all,
            may_dump: !self.disable_dumping,
            access_times: extended.access_times,
            may_watch: !self.disable_watch,
            feed: self.feed,
            may_shutdown: self.enable_shutdown,
            verbosity: self.verbose,
            accounts: self.accounts()?,
            sasl: self.enable_sasl,
            tls: self.tls(&extended)?,
            delimiter,
            http: HttpOptions { token: self.http_token.clone(), write: self.http_write, hosts: self.http_host.clone() },
            user: self.user.clone(),
            keyspace_events: self.notify_keyspace_events.clone().unwrap_or_default(),
        })
    }

    /// Where to listen: for clients of memcached unless the service manager has handed sockets over, for others beside
    /// those.
    fn endpoints(&self, for_memcached: bool) -> Result<Vec<Endpoint>, String> {
        let is_http = self.all_protocols || !self.http.is_empty();
        if !is_http && (self.http_write || self.http_token.is_some() || !self.http_host.is_empty()) {
            return Err("--http-write, --http-token and --http-host need --http ADDRESS or --all-protocols".into());
        }
        if self.all_protocols && (self.enable_sasl || !matches!(self.protocol, Dialects::Auto)) {
            return Err("--all-protocols excludes -S and -B: these leave one protocol of memcached's".into());
        }
        let mut endpoints = Vec::new();
        let mut listen = |addresses: Vec<Address>, protocol: Protocol| {
            endpoints.extend(addresses.into_iter().map(|address| Endpoint { address, protocol }));
        };
        if for_memcached {
            let tcp = addresses::resolve(self.port, &self.listen, self.unix_socket.is_some())?.into_iter();
            listen(
                tcp.map(Address::Tcp).chain(self.unix_socket.clone().map(Address::Unix)).collect(),
                self.memcached(),
            );
        }
        for (texts, option, protocol) in
            [(&self.resp, "--resp", Protocol::Resp), (&self.http, "--http", Protocol::Http)]
        {
            for text in texts {
                listen(addresses::named(text, option)?, protocol);
            }
        }
        Ok(endpoints)
    }

    /// What clients of memcached speak.
    fn memcached(&self) -> Protocol {
        match self.protocol {
            _ if self.all_protocols => Protocol::All,
            _ if self.enable_sasl => Protocol::Binary,
            Dialects::Auto => Protocol::Memcached,
            Dialects::Ascii => Protocol::Text,
            Dialects::Binary => Protocol::Binary,
        }
    }

    fn accounts(&self) -> Result<Option<PathBuf>, Failure> {
        let environment = || std::env::var_os("MEMCACHED_SASL_PWDB").map(PathBuf::from);
        match (&self.auth_file, self.enable_sasl) {
            (Some(file), _) => Ok(Some(file.clone())),
            (None, false) => Ok(None),
            (None, true) => environment()
                .map(Some)
                .ok_or_else(|| Failure::Usage("SASL (-S) needs accounts: -Y FILE or MEMCACHED_SASL_PWDB".into())),
        }
    }

    fn tls(&self, extended: &Extended) -> Result<Option<TlsFiles>, Failure> {
        match (self.enable_ssl, &extended.chain, &extended.key) {
            (false, None, None) => Ok(None),
            (true, Some(chain), Some(key)) => {
                let clients = extended.authorities.clone().filter(|_| extended.verify_clients);
                Ok(Some(TlsFiles { chain: chain.clone(), key: key.clone(), clients }))
            }
            _ => Err(Failure::Usage("TLS needs all of -Z, -o ssl_chain_cert=FILE and -o ssl_key=FILE".into())),
        }
    }

    /// Opens what exists as it is; creates what is missing.
    fn open(&self) -> Result<Store, Failure> {
        let name = self.store.clone().unwrap_or_else(|| DEFAULT_STORE.into());
        let bytes = self.memory_limit.map(|megabytes| megabytes.saturating_mul(1 << 20));
        // The megabyte that a store needs for itself would leave too little of so few.
        let bytes = bytes.map(|bytes| if bytes < SMALL_STORE { bytes + (1 << 20) } else { bytes });
        let mut existing = Options::new().create(false);
        if let Some(bytes) = bytes {
            existing = existing.max_bytes(bytes);
        }
        match existing.open(&name) {
            Err(OpenError::NotFound { .. }) => {}
            done => return Ok(done?),
        }
        let mode = if self.disable_evictions { Mode::Strict } else { Mode::Cache };
        let bytes = bytes.unwrap_or(64 << 20);
        let mut new = Options::new().mode(mode).max_bytes(bytes);
        if self.memory_limit.is_some_and(|megabytes| megabytes < SMALL_STORE >> 20) {
            new = new.segment_bytes(SMALL_SEGMENT);
        }
        Ok(new.open(&name)?)
    }
}

fn parse_octal(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("expected permissions in octal, such as 0700".into()),
    }
}
