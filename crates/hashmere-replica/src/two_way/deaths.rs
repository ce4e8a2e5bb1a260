//! What a replicator leaves that is killed between two of its steps, and what the next one makes of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests: what is not there ends them")]

use super::entry::{Entry, Name};
use super::follower::Follower;
use super::side::Side;
use super::stamp::Stamp;
use super::stamped::{Stamped, StampedFeed};
use hashmere::{Attributes, Options, Store, Version};
use hashmere_engine::{StoreHandle, APPLIED};
use hashmere_feed::{Event, FeedStart};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A site that is no store of these tests.
const ELSEWHERE: u64 = 7;

/// A folder that goes with the test.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let root = if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
        let path = root.join(format!("hashmere-deaths-{name}-{}", std::process::id()));
        // What a process of the same number left that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
    pub fn store(&self, name: &str) -> Store {
        self.store_with(name, true)
    }
    /// Whether its feed keeps values.
    pub fn store_with(&self, name: &str, values: bool) -> Store {
        Options::new().feed(1 << 20).feed_values(values).open(self.0.join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn name(key: &str) -> Name {
    Name { key: key.into(), hash: None }
}

/// What is there when a replicator is killed that has applied a value and not said so.
fn apply_unsaid(store: &Store, side: &Side, key: &str, stamp: Stamp) -> Version {
    let before = side.sidecar().get(&name(key)).unwrap().unwrap_or_default();
    side.sidecar().put(&name(key), &Entry { pending: stamp, ..before }).unwrap();
    let attributes = Attributes { min_version: Version(stamp.version), ..Attributes::NONE };
    let found = store.metadata(key).unwrap();
    let written = store.shared().set_marked_as((key.as_bytes(), None), b"v", attributes, APPLIED, found.as_ref());
    written.unwrap().unwrap().version
}

#[test]
fn a_delete_wins_against_what_was_applied_beside_it() {
    let folder = Folder::new("beside");
    let store = folder.store("a.mere");
    let (side, _) = Side::open(&store).unwrap();
    store.set("k", b"1").unwrap();
    store.delete("k").unwrap();
    // An older value of the peer, before the delete is met.
    apply_unsaid(&store, &side, "k", Stamp { version: 1, site: ELSEWHERE });
    drop(side);
    let (mut side, is_known) = Side::open(&store).unwrap();
    assert!(is_known);
    side.drain().unwrap();
    assert_eq!(store.get("k").unwrap(), None, "the delete is lost");
    assert_eq!(side.find(&name("k")).unwrap().stamp.site, side.site);
}

#[test]
fn what_was_applied_has_its_stamp_in_the_feed() {
    let folder = Folder::new("stamp");
    let store = folder.store("a.mere");
    let (side, _) = Side::open(&store).unwrap();
    let mut feed = StampedFeed::open(&store, FeedStart::Now).unwrap();
    let stamp = Stamp { version: 5, site: ELSEWHERE };
    apply_unsaid(&store, &side, "k", stamp);
    drop(side);
    let next = |feed: &mut StampedFeed| feed.next_within(Duration::ZERO).unwrap().unwrap();
    assert_eq!(next(&mut feed).stamp, stamp, "before it is said");
    let (side, _) = Side::open(&store).unwrap();
    assert_eq!(side.find(&name("k")).unwrap().stamp, stamp);
    let mut feed = StampedFeed::open(&store, FeedStart::Start).unwrap();
    let stamps: Vec<Stamped> = std::iter::from_fn(|| feed.next_within(Duration::ZERO).unwrap()).collect();
    let read = stamps.iter().find(|stamped| matches!(stamped.event, Event::Read(_))).unwrap();
    assert_eq!(read.stamp, stamp, "behind that");
}

/// An event that comes while there is none has its stamp too.
#[test]
fn an_event_that_comes_while_it_is_looked_for_has_its_stamp() {
    let folder = Folder::new("moment");
    let store = folder.store("a.mere");
    let mut feed = StampedFeed::open(&store, FeedStart::Now).unwrap();
    let (go, wait) = std::sync::mpsc::sync_channel::<()>(0);
    let writer = std::thread::spawn(move || wait.iter().for_each(|()| _ = store.set("k", b"v").unwrap()));
    for _ in 0..2000 {
        go.send(()).unwrap();
        let stamped = loop {
            if let Some(stamped) = feed.next_within(Duration::ZERO).unwrap() {
                break stamped;
            }
        };
        assert_ne!(stamped.stamp, Stamp::default());
    }
    drop(go);
    writer.join().unwrap();
}

/// A sidecar that cannot be opened is not the same as none: no event is given without its stamp, and none is passed
/// over.
#[test]
fn a_sidecar_that_cannot_be_read_holds_the_feed() {
    let folder = Folder::new("unread");
    let store = folder.store("a.mere");
    let (side, _) = Side::open(&store).unwrap();
    let mut feed = StampedFeed::open(&store, FeedStart::Now).unwrap();
    let stamp = Stamp { version: 5, site: ELSEWHERE };
    apply_unsaid(&store, &side, "k", stamp);
    drop(side);
    let path = folder.0.join("a.mere.sidecar");
    let aside = folder.0.join("aside");
    std::fs::rename(&path, &aside).unwrap();
    std::fs::write(&path, b"no store").unwrap();
    feed.next_within(Duration::ZERO).unwrap_err();
    assert_eq!(feed.next_batch(8, Duration::ZERO).unwrap_err().code(), 3);
    std::fs::rename(&aside, &path).unwrap();
    assert_eq!(feed.next_within(Duration::ZERO).unwrap().unwrap().stamp, stamp);
}

/// A clear of the peer that is read again removes nothing that was written behind it.
#[test]
fn a_clear_is_not_read_again_behind_what_follows_it() {
    let folder = Folder::new("clear");
    let [a, b] = ["a.mere", "b.mere"].map(|name| folder.store(name));
    let mut follower = Follower::open(&a, &b).unwrap();
    while follower.step(Duration::ZERO).unwrap() {}
    a.set("before", b"1").unwrap();
    while follower.step(Duration::ZERO).unwrap() {}
    let mut feed = StampedFeed::open(&a, FeedStart::Now).unwrap();
    a.clear().unwrap();
    a.set("behind", b"2").unwrap();
    let events = feed.next_batch(8, Duration::ZERO).unwrap();
    assert!(matches!(events[0].event, Event::Clear { .. }) && events.len() == 2, "{events:?}");
    // Killed behind these two, before it notes them with the rest of the batch.
    events.iter().for_each(|stamped| follower.take(stamped).unwrap());
    drop(follower);
    assert_eq!((b.get("before").unwrap(), b.get("behind").unwrap()), (None, Some(b"2".into())));
    let mut follower = Follower::open(&a, &b).unwrap();
    while follower.step(Duration::ZERO).unwrap() {}
    assert_eq!(b.get("behind").unwrap(), Some(b"2".into()), "it went with the clear");
    assert!(a.get("behind").unwrap().is_some());
}

/// A first copy behind a clear does not bring back what was cleared, also if another replicator goes on with it.
#[test]
fn a_first_copy_behind_a_clear_restores_nothing() {
    let folder = Folder::new("restores");
    let [a, b] = ["a.mere", "b.mere"].map(|name| folder.store(name));
    let (mut to_a, mut to_b) = (Follower::open(&b, &a).unwrap(), Follower::open(&a, &b).unwrap());
    a.set("k", b"of a").unwrap();
    while to_a.step(Duration::ZERO).unwrap() | to_b.step(Duration::ZERO).unwrap() {}
    assert_eq!(b.get("k").unwrap(), Some(b"of a".into()));
    a.clear().unwrap();
    // It meets the clear, begins the copy and is killed.
    to_a.begin_again(false).unwrap();
    drop(to_a);
    let mut to_a = Follower::open(&b, &a).unwrap();
    while to_a.step(Duration::ZERO).unwrap() {}
    assert_eq!(a.get("k").unwrap(), None, "what was cleared came back");
    while to_a.step(Duration::ZERO).unwrap() | to_b.step(Duration::ZERO).unwrap() {}
    assert_eq!((a.get("k").unwrap(), b.get("k").unwrap()), (None, None));
}
