//! Promise: a replica is equal to its source when that rests, whichever process was killed wherever; and a transaction
//! of the source is seen whole in it.
//! Catches: a change that is lost or applied out of order, a place that is ahead of what is applied, a key that is left
//! over, half a transaction.
//!
//! `HASHMERE_KILLS=200` kills 200 processes (default 15).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Options, Store};
use hashmere_feed::{Event, Feed, FeedOptions, FeedStart};
use hashmere_replica::{status, ReplicaPhase};
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, worker};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::time::Duration;

type All = BTreeMap<(Vec<u8>, Option<u64>), (Vec<u8>, u32, Option<u64>)>;

fn all(store: &Store) -> All {
    let mut all = All::new();
    for pair in store.iter() {
        let pair = pair.unwrap();
        let item = (pair.value, pair.metadata.flags, pair.metadata.expires_at_ms);
        assert!(all.insert((pair.key, pair.supplied_hash), item).is_none(), "a key twice");
    }
    all
}

/// What a side of two knows of a key: its metadata, and its entry in the sidecar.
fn known(store: &Store, (key, hash): &(Vec<u8>, Option<u64>)) -> String {
    let mut path = store.path().as_os_str().to_owned();
    path.push(".sidecar");
    let mut entry = vec![if hash.is_some() { b'h' } else { b'k' }];
    entry.extend(hash.iter().flat_map(|hash| hash.to_le_bytes()));
    entry.extend(key);
    let sidecar = Options::new().read_only().open(&path).map(|sidecar| sidecar.get(&entry));
    let words = sidecar.map(|found| {
        found.map(|bytes| {
            let words = bytes.unwrap_or_default();
            words.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect::<Vec<_>>()
        })
    });
    let name = hash.map_or(hashmere::Key::Bytes(key), |hash| hashmere::Key::Hashed(key, hash));
    format!(
        "{:?}, sidecar (stamp, applied, marks, pending, position) {words:?}\n{}",
        store.metadata(name),
        history(store, key)
    )
}

/// What happened to a key, as far as the feed reaches back.
fn history(store: &Store, key: &[u8]) -> String {
    let oldest = hashmere_feed::info(store).unwrap().oldest;
    let now = Feed::open(store, FeedStart::Now, FeedOptions::new()).unwrap().token().to_string();
    let parts: Vec<&str> = now.split('-').collect();
    let n = parts.len();
    let start = format!("{}-1-{oldest}", parts[..n - 2].join("-")).parse().unwrap();
    let mut feed = Feed::open(store, FeedStart::At(start), FeedOptions::new()).unwrap();
    let mut text = String::new();
    while let Some(event) = feed.next_within(Duration::ZERO).unwrap() {
        match event {
            Event::Change(change) if change.key == key => {
                text += &format!(
                    "    {} {:?} {} marks {} expires {:?} hash {:?} origin {}\n",
                    change.token.position(),
                    change.operation,
                    change.version.0,
                    change.marks,
                    change.expires_at_ms,
                    change.supplied_hash,
                    change.origin
                );
            }
            Event::Change(_) => {}
            other => text += &format!("    {other:?}\n"),
        }
    }
    text
}

#[track_caller]
fn assert_equal(from: &Store, to: &Store, when: &str) {
    let (source, target) = (all(from), all(to));
    let mut keys = source.keys().chain(target.keys());
    if let Some(key) = keys.find(|key| source.get(*key) != target.get(*key)) {
        let known = [from, to].map(|store| known(store, key));
        panic!(
            "{when}: {key:?} is {:?} in the source and {:?} in the replica\n{}\n{}",
            source.get(key),
            target.get(key),
            known[0],
            known[1]
        );
    }
    assert_clean(to);
}

fn kills() -> u64 {
    std::env::var("HASHMERE_KILLS").map_or(15, |text| text.parse().expect("HASHMERE_KILLS is a number"))
}

fn started(role: &str, arguments: &[&dyn ToString]) -> Worker {
    let mut worker = Worker::start(worker!(), role, arguments);
    worker.expect("ready");
    worker
}

/// The two stores, and who works on them.
struct Pair<'a> {
    from: &'a Store,
    to: &'a Store,
    writer: Worker,
    replicator: Worker,
}

impl<'a> Pair<'a> {
    fn start(from: &'a Store, to: &'a Store, rng: &mut Rng) -> Pair<'a> {
        Pair { from, to, writer: writer(from, rng), replicator: replicator(from, to) }
    }

    /// Both end by themselves: the replica is equal then.
    fn compare(self, when: &str) {
        self.writer.finish(LIMIT).ok("mutate");
        self.replicator.finish(LIMIT).ok("replicate");
        assert_equal(self.from, self.to, when);
        let status = status(self.to).unwrap().unwrap();
        assert_eq!((status.phase, status.lag(), status.pid), (ReplicaPhase::Live, 0, None), "{when}");
    }
}

fn writer(from: &Store, rng: &mut Rng) -> Worker {
    started("mutate", &[&from.path().display(), &rng.word()])
}

fn replicator(from: &Store, to: &Store) -> Worker {
    started("replicate", &[&from.path().display(), &to.path().display()])
}

/// Kills the replicator or the writer of the source, again and again; compares now and then.
fn storm(name: &str, feed: u64, target: Options) {
    let _watchdog = Watchdog::start("replicas");
    let mut rng = Rng::for_test(name);
    let scratch = Scratch::new(name);
    let source = Options::new().feed(feed).feed_values(true).busy_timeout(LIMIT);
    let (from, to) = (source.open(scratch.store("from")).unwrap(), target.open(scratch.store("to")).unwrap());
    to.set("stale", b"goes").unwrap();
    let mut pair = Pair::start(&from, &to, &mut rng);
    let mut struck = [0; 2];
    for kill in 0..kills() {
        std::thread::sleep(Duration::from_micros(rng.below(40_000)));
        let is_writer = rng.chance(30);
        struck[usize::from(is_writer)] += 1;
        let Pair { writer: w, replicator: r, .. } = pair;
        let (victim, other) = if is_writer { (w, r) } else { (r, w) };
        let ended = victim.kill();
        assert!(ended.killed_by(Signal::SIGKILL), "it had failed by itself: {ended:?}");
        pair = match is_writer {
            true => Pair { from: &from, to: &to, writer: writer(&from, &mut rng), replicator: other },
            false => Pair { from: &from, to: &to, writer: other, replicator: replicator(&from, &to) },
        };
        if kill % 5 == 4 {
            pair.compare(&format!("after {} kills", kill + 1));
            pair = Pair::start(&from, &to, &mut rng);
        }
    }
    pair.compare("at the end");
    println!("{name}: replicators and writers killed: {struck:?}");
}

#[test]
fn equal_after_kills_of_either_side() {
    storm("replicas-kills", 64 << 20, Options::new().busy_timeout(LIMIT));
}

/// A feed that is overrun while no process follows: first copies, killed too.
#[test]
fn equal_after_kills_and_first_copies() {
    storm("replicas-copies", 1 << 20, Options::new().busy_timeout(LIMIT).segment_bytes(8192).leaf_bytes(512));
}

/// Both sides are written to; the replicator and the writers are killed.
#[test]
fn two_sites_are_equal_after_kills() {
    let _watchdog = Watchdog::start("replicas");
    let mut rng = Rng::for_test("replicas-two-way");
    let scratch = Scratch::new("replicas-two-way");
    let open = |name: &str| Options::new().feed(64 << 20).busy_timeout(LIMIT).open(scratch.store(name)).unwrap();
    let stores = [open("a"), open("b")];
    let both = || started("two-way", &[&stores[0].path().display(), &stores[1].path().display()]);
    let mut workers = vec![both(), writer(&stores[0], &mut rng), writer(&stores[1], &mut rng)];
    for kill in 0..kills() {
        std::thread::sleep(Duration::from_micros(rng.below(40_000)));
        let victim = if rng.chance(60) { 0 } else { 1 + rng.index(2) };
        let ended = workers.remove(victim).kill();
        assert!(ended.killed_by(Signal::SIGKILL), "it had failed by itself: {ended:?}");
        let next = if victim == 0 { both() } else { writer(&stores[victim - 1], &mut rng) };
        workers.insert(victim, next);
        if kill % 5 == 4 {
            workers.drain(1..).for_each(|writer| drop(writer.finish(LIMIT).ok("mutate")));
            workers.remove(0).finish(LIMIT).ok("two-way");
            assert_equal(&stores[0], &stores[1], &format!("after {} kills", kill + 1));
            workers = vec![both(), writer(&stores[0], &mut rng), writer(&stores[1], &mut rng)];
        }
    }
}
