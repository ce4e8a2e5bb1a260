//! The server of these tests: this test program once more, as a process of its own that runs nothing but [`server`]. So
//! it is the library as it was just built, and it can be killed.

use crate::support::Scratch;
use hashmere::{Mode, OpenError, Options, Store};
use hashmere_server::{Address, Config, Endpoint, EventLoop, Protocol, TlsFiles};
use std::process::Command;
use std::time::Duration;

/// Its options, one a line: letters and names are those of memcached and of `hashmere serve`.
const OPTIONS: &str = "HASHMERE_TEST_SERVER";

/// The event loop of all servers of these tests: `epoll`, or `io_uring`; else what a server takes by itself.
pub const EVENT_LOOP: &str = "HASHMERE_EVENT_LOOP";

/// Starts a server with these options and with its store in this folder.
pub fn command(scratch: &Scratch, options: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child::server", "--include-ignored", "--nocapture", "--test-threads=1", "--quiet"]);
    // What the test program says of its one test.
    command.stdout(std::process::Stdio::null());
    command.env(OPTIONS, options.join("\n")).env("HASHMERE_DIR", scratch.path().join("ns"));
    command
}

#[test]
#[ignore = "no test: the other tests start it as their server"]
fn server() {
    let options = std::env::var(OPTIONS).expect("it is started by `command`");
    let plan = Plan::read(&options.lines().collect::<Vec<_>>());
    let ready = |store: &Store, addresses: &[String]| {
        eprintln!("test server: {} on {}", store.path().display(), addresses.join(" "));
    };
    if let Err(error) = hashmere_server::serve(plan.config, || open(plan.mode, plan.bytes), ready) {
        eprintln!("test server: {error}");
        std::process::exit(1);
    }
}

fn open(mode: Mode, bytes: u64) -> Result<Store, String> {
    let opened = match Options::new().create(false).open("memcached") {
        Err(OpenError::NotFound { .. }) => Options::new().mode(mode).max_bytes(bytes).open("memcached"),
        opened => opened,
    };
    opened.map_err(|error| error.to_string())
}

struct Plan {
    config: Config,
    mode: Mode,
    bytes: u64,
    /// What those speak that listen.
    protocol: Protocol,
}

impl Plan {
    fn read(options: &[&str]) -> Plan {
        let event_loop = std::env::var(EVENT_LOOP).map_or(EventLoop::Auto, |name| event_loop(&name));
        let config = Config { threads: 2, event_loop, ..Config::default() };
        let mut plan = Plan { config, mode: Mode::Cache, bytes: 64 << 20, protocol: Protocol::Memcached };
        let mut options = options.iter().copied();
        while let Some(option) = options.next() {
            let mut value = || options.next().unwrap_or_else(|| panic!("{option} needs a value"));
            let config = &mut plan.config;
            match option {
                "-p" => plan.listen(Address::Tcp(([127, 0, 0, 1], value().parse().unwrap()).into())),
                "-s" => plan.listen(Address::Unix(value().into())),
                "-c" => config.connections = value().parse().unwrap(),
                "-m" => plan.bytes = value().parse::<u64>().unwrap() << 20,
                "-M" => plan.mode = Mode::Strict,
                "-I" => config.item_max = size(value()),
                "-u" => config.user = Some(value().into()),
                "-Y" => config.accounts = Some(value().into()),
                "-S" => (config.sasl, plan.protocol) = (true, Protocol::Binary),
                "--feed" => config.feed = Some(size(value())),
                "--resp" => plan.protocol = Protocol::Resp,
                "--all-protocols" => plan.protocol = Protocol::All,
                "--notify-keyspace-events" => config.keyspace_events = value().into(),
                "-A" => config.may_shutdown = true,
                "-F" => config.may_flush = false,
                "-W" => config.may_watch = false,
                "-X" => config.may_dump = false,
                "-D" => config.delimiter = Some(value().as_bytes()[0]),
                "--http" => {
                    let address = Address::Tcp(([127, 0, 0, 1], value().parse().unwrap()).into());
                    config.endpoints.push(Endpoint { address, protocol: Protocol::Http });
                }
                "--http-write" => config.http.write = true,
                "--http-token" => config.http.token = Some(value().into()),
                "--http-host" => config.http.hosts.push(value().into()),
                // What is in `-o` says so.
                "-Z" => {}
                "-o" => value().split(',').for_each(|named| plan.named(named)),
                unknown => panic!("the test server has no option {unknown}"),
            }
        }
        let protocol = plan.protocol;
        let for_memcached = |endpoint: &&mut Endpoint| endpoint.protocol != Protocol::Http;
        plan.config.endpoints.iter_mut().filter(for_memcached).for_each(|endpoint| endpoint.protocol = protocol);
        plan.config.input_max = plan.config.input_max.max(8 * plan.config.item_max as usize);
        plan
    }

    fn listen(&mut self, address: Address) {
        self.config.endpoints.push(Endpoint { address, protocol: self.protocol });
    }

    fn named(&mut self, option: &str) {
        let config = &mut self.config;
        let files = || TlsFiles { chain: "".into(), key: "".into(), clients: None };
        match option.split_once('=') {
            None if option == "access_times" => config.access_times = true,
            Some(("idle_timeout", seconds)) => config.idle = Some(Duration::from_secs(seconds.parse().unwrap())),
            Some(("lease_time", seconds)) => config.lease_time = seconds.parse().unwrap(),
            Some(("event_loop", name)) => config.event_loop = event_loop(name),
            Some(("input_max", bytes)) => config.input_max = size(bytes) as usize,
            Some(("ssl_chain_cert", file)) => config.tls.get_or_insert_with(files).chain = file.into(),
            Some(("ssl_key", file)) => config.tls.get_or_insert_with(files).key = file.into(),
            _ => panic!("the test server has no option -o {option}"),
        }
    }
}

fn event_loop(name: &str) -> EventLoop {
    let all = [EventLoop::Auto, EventLoop::Epoll, EventLoop::IoUring];
    all.into_iter().find(|event_loop| event_loop.name() == name).unwrap_or_else(|| panic!("no event loop is {name}"))
}

/// `512k`, `4m`, or bytes.
fn size(text: &str) -> u64 {
    let (number, shift) = match text.strip_suffix('k').map(|number| (number, 10)) {
        Some(kilo) => kilo,
        None => text.strip_suffix('m').map_or((text, 0), |number| (number, 20)),
    };
    number.parse::<u64>().unwrap() << shift
}
