//! A store, its server, and its copy: what the tests of replicas over links share.

use crate::support::{Scratch, Server};
use hashmere::{Options, Store};
use hashmere_replica::{status, ReplicaPhase};
use hashmere_testkit::procs::LIMIT;
use hashmere_testkit::rng::Rng;
use hashmere_testkit::{assert_clean, roles};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What the writer does: `mutate` of the testkit, on this store with this seed.
const WRITER: &str = "HASHMERE_TEST_WRITER";

#[test]
#[ignore = "no test: the other tests start it as a writer"]
fn writer() {
    let arguments = std::env::var(WRITER).expect("it is started by `Site`");
    roles::run("mutate", arguments.lines().map(str::to_owned).collect());
}

/// By key and supplied hash: value, flags, expiry.
pub type All = BTreeMap<(Vec<u8>, Option<u64>), (Vec<u8>, u32, Option<u64>)>;

pub fn all(store: &Store) -> All {
    let pairs = store.iter().map(|pair| pair.unwrap());
    pairs
        .map(|pair| {
            let item = (pair.value, pair.metadata.flags, pair.metadata.expires_at_ms);
            ((pair.key, pair.supplied_hash), item)
        })
        .collect()
}

#[track_caller]
pub fn assert_equal(from: &Store, to: &Store, when: &str) {
    let (source, target) = (all(from), all(to));
    let mut keys = source.keys().chain(target.keys());
    if let Some(key) = keys.find(|key| source.get(*key) != target.get(*key)) {
        panic!("{when}: {key:?} is {:?} in the source and {:?} in the replica", source.get(key), target.get(key));
    }
    assert_clean(to);
}

/// A child that is killed when this is dropped.
pub struct Process(pub Child);

impl Process {
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A store, its server, and its copy.
pub struct Site {
    pub scratch: Scratch,
    pub from: Store,
    pub to: Store,
}

impl Site {
    pub fn new(feed: u64) -> Site {
        let scratch = Scratch::new("follow");
        let path = |name: &str| scratch.path().join("ns").join(name);
        std::fs::create_dir_all(scratch.path().join("ns")).unwrap();
        let source = Options::new().feed(feed).feed_values(true).busy_timeout(LIMIT);
        let from = source.open(path("from.mere")).unwrap();
        let to = Options::new().busy_timeout(LIMIT).open(path("to.mere")).unwrap();
        Site { from, to, scratch }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hashmere"));
        command.args(arguments).env("HASHMERE_DIR", self.scratch.path().join("ns"));
        command
    }

    /// Serves it, on this Unix socket too.
    pub fn serve(&self, arguments: &[&str]) -> Server {
        self.serve_store("from", "sock", arguments)
    }

    /// Serves one of the stores, on the Unix socket of this name too.
    pub fn serve_store(&self, store: &str, socket: &str, arguments: &[&str]) -> Server {
        let socket = self.path(socket);
        let mut all = vec!["serve", store, "-p", "-1", "-l", "127.0.0.1", "-t", "2", "-s", socket.to_str().unwrap()];
        all.extend(arguments);
        Server::spawn(&mut self.command(&all))
    }

    pub fn follow(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&["replicate"]);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub fn address(&self) -> String {
        format!("unix:{}", self.path("sock").display())
    }

    pub fn writer(&self, rng: &mut Rng) -> Process {
        self.writer_of(&self.from, rng)
    }

    pub fn writer_of(&self, store: &Store, rng: &mut Rng) -> Process {
        Process(self.writer_command(store, rng).spawn().unwrap())
    }

    pub fn writer_command(&self, store: &Store, rng: &mut Rng) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "site::writer", "--include-ignored", "--nocapture", "--quiet"]);
        command.env(WRITER, format!("{}\n{}", store.path().display(), rng.word()));
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command
    }

    /// Brings the copy up to the store, which rests.
    pub fn compare(&self, when: &str) {
        let output = self.follow(&[&self.address(), "to", "--once", "-q"]).output().unwrap();
        assert!(output.status.success(), "{when}: {}", String::from_utf8_lossy(&output.stderr));
        assert_equal(&self.from, &self.to, when);
        let status = status(&self.to).unwrap().unwrap();
        assert_eq!((status.phase, status.lag(), status.pid), (ReplicaPhase::Live, 0, None), "{when}");
    }
}
