//! Promise: two stores on two machines that are both written to become equal when the writers rest, whichever of the
//! servers, replicators and writers was killed wherever.
//! Catches: a write that comes back and takes the place of a later one, a delete that is lost, a first copy that ends
//! too early, a stamp that is another event's.
//!
//! `HASHMERE_KILLS=200` kills 200 processes (default 12).

use crate::site::{all, assert_equal, Process, Site};
use crate::support::Server;
use hashmere::{Options, Store};
use hashmere_replica::{status, ReplicaPhase};
use hashmere_testkit::procs::LIMIT;
use hashmere_testkit::{assert_clean, rng::Rng};
use std::process::Command;
use std::time::{Duration, Instant};

/// The stores, and the sockets of their servers.
const NAMES: [&str; 2] = ["from", "to"];
const SOCKETS: [&str; 2] = ["sock", "sock2"];

fn server(site: &Site, n: usize) -> Server {
    site.serve_store(NAMES[n], SOCKETS[n], &["--feed", "1m"])
}

fn follower(site: &Site, n: usize, arguments: &[&str]) -> Command {
    let peer = format!("unix:{}", site.path(SOCKETS[1 - n]).display());
    let mut command = site.follow(&[&peer, NAMES[n], "--two-way", "-q"]);
    // What it has to say, if it ends by itself.
    command.args(arguments);
    command
}

fn replicator(site: &Site, n: usize) -> Process {
    Process(follower(site, n, &[]).spawn().unwrap())
}

/// Waits until the two, to which no process writes, are equal and stay so: while something is on its way they may be
/// equal for a moment.
#[track_caller]
pub fn become_equal(stores: [&Store; 2], when: &str) {
    let deadline = Instant::now() + LIMIT;
    let mut looks = 0;
    while looks < 3 {
        looks = if all(stores[0]) == all(stores[1]) { looks + 1 } else { 0 };
        if looks == 0 && Instant::now() > deadline {
            println!("{when}: {:?}", stores.map(status));
            stores.into_iter().for_each(print_what_differs);
            assert_equal(stores[0], stores[1], when);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    stores.into_iter().for_each(assert_clean);
}

/// Of a store whose peer differs: what is remembered of its keys.
fn print_what_differs(store: &Store) {
    let path = format!("{}.sidecar", store.path().display());
    let Ok(sidecar) = Options::new().read_only().open(&path) else { return println!("{path} cannot be opened") };
    println!("{path}: key, then stamp, version applied, marks, what is about to be applied, position");
    for pair in sidecar.iter().map(|pair| pair.unwrap()) {
        let words: Vec<u64> = pair.value.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        let key = pair.key.get(1..).unwrap_or_default();
        println!("{:?} {words:x?} {:?}", String::from_utf8_lossy(&pair.key), store.metadata(key).unwrap());
    }
}

fn storm(name: &str, feed: u64) {
    let mut rng = Rng::for_test(name);
    let site = Site::new(feed);
    let stores = [&site.from, &site.to];
    hashmere_feed::enable(&site.to, feed, true).unwrap();
    site.from.set("of one", b"1").unwrap();
    site.to.set("of the other", b"2").unwrap();
    let kills = std::env::var("HASHMERE_KILLS").map_or(12, |text| text.parse().expect("HASHMERE_KILLS is a number"));
    let mut servers = [0, 1].map(|n| server(&site, n));
    let mut replicators = [0, 1].map(|n| replicator(&site, n));
    let mut writers = [0, 1].map(|n| site.writer_of(stores[n], &mut rng));
    let mut struck = [0; 3];
    for kill in 0..kills {
        std::thread::sleep(Duration::from_micros(rng.below(60_000)));
        let (victim, n) = (rng.index(3), rng.index(2));
        struck[victim] += 1;
        match victim {
            0 => {
                replicators[n].kill();
                replicators[n] = replicator(&site, n);
            }
            1 => {
                servers[n].child.kill().unwrap();
                servers[n].child.wait().unwrap();
                servers[n] = server(&site, n);
            }
            _ => {
                writers[n].kill();
                writers[n] = site.writer_of(stores[n], &mut rng);
            }
        }
        if kill % 4 == 3 {
            for writer in &mut writers {
                drop(writer.0.stdin.take());
                assert!(writer.ended().success(), "the writer failed");
            }
            become_equal(stores, &format!("{name}, after {} kills", kill + 1));
            writers = [0, 1].map(|n| site.writer_of(stores[n], &mut rng));
        }
    }
    println!("{name}: replicators, servers and writers killed: {struck:?}");
}

#[test]
fn equal_after_kills_of_any_side() {
    storm("two-way-kills", 64 << 20);
}

/// Feeds that are overrun while no process follows: first copies, killed too.
#[test]
fn equal_after_kills_and_first_copies() {
    storm("two-way-copies", 1 << 20);
}

/// An old value that comes back in a first copy, with a larger version where it comes from, is not put over a newer
/// one.
#[test]
fn what_comes_back_loses_against_what_was_written_since() {
    let site = Site::new(8 << 20);
    let [a, b] = [&site.from, &site.to];
    hashmere_feed::enable(b, 8 << 20, true).unwrap();
    let _servers = [0, 1].map(|n| server(&site, n));
    // Versions of this key go up at B alone.
    (0..1000).for_each(|_| _ = b.set("k", b"before").and_then(|_| b.delete("k")).unwrap());
    let once = |n: usize| {
        let mut child = Process(follower(&site, n, &["--once"]).spawn().unwrap());
        assert!(child.ended().success());
    };
    a.set("k", b"of a").unwrap();
    once(1);
    assert_eq!(b.get("k").unwrap().unwrap(), b"of a");
    a.set("k", b"newer").unwrap();
    a.delete("gone").unwrap();
    // A asks for a copy of everything; B's own replicator has met all that its feed says.
    once(0);
    assert_eq!(a.get("k").unwrap().unwrap(), b"newer");
    once(1);
    once(0);
    become_equal([a, b], "at the end");
    assert_eq!(b.get("k").unwrap().unwrap(), b"newer");
}

/// The end of a first copy waits for the deletes that its side has not dealt with.
#[test]
fn a_delete_that_a_first_copy_has_to_tell_of() {
    let site = Site::new(1 << 20);
    let [a, b] = [&site.from, &site.to];
    hashmere_feed::enable(b, 1 << 20, true).unwrap();
    let _servers = [0, 1].map(|n| server(&site, n));
    a.set("k", b"1").unwrap();
    let once = |n: usize| assert!(Process(follower(&site, n, &["--once"]).spawn().unwrap()).ended().success());
    once(1);
    once(0);
    b.delete("k").unwrap();
    // What B's replicator meets there is more than B's feed keeps for A.
    once(1);
    (0..60_000u32).for_each(|n| _ = b.set(&(n % 100).to_le_bytes(), &n.to_le_bytes()).unwrap());
    // B's replicator has not met these.
    let mut child = Process(follower(&site, 0, &["--once"]).spawn().unwrap());
    let deadline = Instant::now() + LIMIT;
    while a.len() < 100 {
        assert!(Instant::now() < deadline, "nothing is copied");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(status(a).unwrap().unwrap().phase, ReplicaPhase::Copying, "it did not wait");
    assert_eq!(child.0.try_wait().unwrap(), None);
    once(1);
    assert!(child.ended().success());
    assert_eq!(a.get("k").unwrap(), None);
    become_equal([a, b], "at the end");
}

/// A touch that no replicator of its side has met.
#[test]
fn a_touch_from_before_its_side_had_a_replicator() {
    let site = Site::new(8 << 20);
    let [a, b] = [&site.from, &site.to];
    hashmere_feed::enable(b, 8 << 20, true).unwrap();
    let _servers = [0, 1].map(|n| server(&site, n));
    let once = |n: usize| assert!(Process(follower(&site, n, &["--once"]).spawn().unwrap()).ended().success());
    a.set("k", b"v").unwrap();
    once(1);
    assert_eq!(b.get("k").unwrap().unwrap(), b"v");
    a.touch("k", hashmere::Ttl::At(9_000_000_000_000)).unwrap();
    once(1);
    once(0);
    once(1);
    become_equal([a, b], "at the end");
    assert_eq!(b.metadata("k").unwrap().unwrap().expires_at_ms, Some(9_000_000_000_000));
}

/// A store whose server is its own peer is refused.
#[test]
fn a_store_is_no_peer_of_itself() {
    let site = Site::new(8 << 20);
    site.from.set("k", b"v").unwrap();
    let _server = server(&site, 0);
    let output = site.follow(&[&site.address(), "from", "--two-way", "--once"]).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("E86"), "{said}");
}
