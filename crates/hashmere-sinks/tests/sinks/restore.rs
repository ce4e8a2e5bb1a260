//! Any moment of a store, from a backup and a feed directory.

use hashmere::{Attributes, Options, Store, Ttl};
use hashmere_feed::{Event, Feed, FeedOptions, FeedStart};
use hashmere_os::clock::{coarse_ms, now_ms};
use hashmere_sinks::{
    pump, restore, DirSink, Position, PumpOptions, RestoreError, RestoreOptions, Source, SourceError,
};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

type Contents = BTreeMap<Vec<u8>, (Vec<u8>, u32, Option<u64>, u64)>;

fn contents(store: &Store) -> Contents {
    let pair = |pair: hashmere::Pair| {
        let metadata = pair.metadata;
        (pair.key, (pair.value, metadata.flags, metadata.expires_at_ms, metadata.version.0))
    };
    store.iter().map(|found| pair(found.unwrap())).collect()
}

/// A moment behind all that happened and before all that happens next, for the feed too: its clock is the coarse one,
/// which is behind the other by 4 ms, and by more where a virtual machine was not run.
fn moment() -> u64 {
    let pass = |ms| {
        while coarse_ms() <= ms {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    pass(now_ms());
    let moment = coarse_ms();
    pass(moment);
    moment
}

/// One feed for all rounds, so that it can begin with the next change.
struct Shared(Rc<RefCell<Feed>>);

impl Source for Shared {
    fn next_batch(&mut self, max: usize, timeout: Duration) -> Result<Vec<Event>, SourceError> {
        Ok(self.0.borrow_mut().next_batch(max, timeout)?)
    }
}

fn open(store: &Store, start: FeedStart) -> Rc<RefCell<Feed>> {
    Rc::new(RefCell::new(Feed::open(store, start, FeedOptions::new().values(true)).unwrap()))
}

fn follow(feed: &Rc<RefCell<Feed>>, dir: &Path) {
    let mut sink = DirSink::new(dir).rotate_bytes(20_000);
    let open = |_: Option<&Position>| Ok(Box::new(Shared(feed.clone())) as Box<dyn Source>);
    let options = PumpOptions { once: true, ..PumpOptions::default() };
    pump(&mut sink, open, &options, &|| false, &mut |error| panic!("{error}")).unwrap();
}

fn write(store: &Store, rng: &mut Rng) {
    for _ in 0..60 {
        let key = format!("key{}", rng.below(40));
        let attributes = Attributes::NONE.flags(rng.below(3) as u32);
        match rng.below(20) {
            0..=2 => {
                store.delete(key.as_bytes()).unwrap();
            }
            3 | 4 => {
                store.touch(key.as_bytes(), Ttl::At(now_ms() + 100_000_000 + rng.below(1000))).unwrap();
            }
            5 => store
                .transaction(|t| -> Result<(), hashmere::WriteError> {
                    t.set(&key, "in a transaction")?;
                    t.delete("key1")?;
                    t.set("key2", rng.below(1000).to_string())
                })
                .unwrap(),
            6 => store.transaction(|t| t.delete(&key)).unwrap(),
            _ => {
                let value = rng.bytes(5);
                store.set_with(key.as_bytes(), &value, attributes).unwrap();
            }
        }
    }
}

#[test]
fn every_moment_comes_back_from_the_changes_alone() {
    every_moment_comes_back(FeedStart::Now);
}

#[test]
fn every_moment_comes_back_where_the_directory_has_a_copy() {
    every_moment_comes_back(FeedStart::Start);
}

fn every_moment_comes_back(start: FeedStart) {
    let scratch = Scratch::new("restore");
    let mut rng = Rng::for_test("restore");
    let store = Options::new().feed(4 << 20).feed_values(true).open(scratch.store("store")).unwrap();
    let (dir, backup) = (scratch.path().join("feed"), scratch.store("backup"));
    write(&store, &mut rng);
    let feed = open(&store, start);
    write(&store, &mut rng);
    follow(&feed, &dir);
    write(&store, &mut rng);
    // The file of the backup has its time by the coarse clock, and must not seem older than the directory.
    moment();
    store.backup(&backup).run().unwrap();
    let mut moments = Vec::new();
    for round in 0..8 {
        moments.push((moment(), contents(&store)));
        write(&store, &mut rng);
        if round == 4 {
            store.clear().unwrap();
            write(&store, &mut rng);
        }
        follow(&feed, &dir);
    }
    let without_version = |contents: &Contents| -> Vec<_> {
        contents
            .iter()
            .map(|(key, (value, flags, expires, _))| (key.clone(), value.clone(), *flags, *expires))
            .collect()
    };
    let target = scratch.store("target");
    for (number, (until_ms, expected)) in moments.iter().enumerate() {
        let options = RestoreOptions { until_ms: Some(*until_ms), replace: number != 0 };
        let report = restore(&backup, &dir, &target, options).unwrap();
        let restored = Options::new().create(false).open(&target).unwrap();
        assert_eq!(without_version(&contents(&restored)), without_version(expected), "moment {number}: {report:?}");
        assert!(restored.check().is_clean() && report.items == expected.len() as u64);
    }
    let report = restore(&backup, &dir, &target, RestoreOptions { until_ms: None, replace: true }).unwrap();
    let restored = Options::new().create(false).open(&target).unwrap();
    assert_eq!(without_version(&contents(&restored)), without_version(&contents(&store)), "{report:?}");
    drop(restored);

    assert!(start == FeedStart::Start || report.passed_over > 0);
}

#[test]
fn a_backup_of_a_later_moment_is_refused() {
    let scratch = Scratch::new("restore");
    let store = Options::new().feed(4 << 20).feed_values(true).open(scratch.store("store")).unwrap();
    let (dir, backup, target) = (scratch.path().join("feed"), scratch.store("backup"), scratch.store("target"));
    let feed = open(&store, FeedStart::Now);
    follow(&feed, &dir);
    store.set("a", b"1").unwrap();
    let until_ms = Some(moment());
    store.set("a", b"2").unwrap();
    store.backup(&backup).run().unwrap();
    store.set("a", b"3").unwrap();
    follow(&feed, &dir);
    let error = restore(&backup, &dir, &target, RestoreOptions { until_ms, replace: false }).unwrap_err();
    assert!(matches!(&error, RestoreError::Unfit(text) if text.contains("later moment")), "{error}");
    restore(&backup, &dir, &target, RestoreOptions::default()).unwrap();
    assert_eq!(Store::open(&target).unwrap().get("a").unwrap().unwrap(), b"3");
}

#[test]
fn a_directory_that_was_begun_too_late_is_refused() {
    let scratch = Scratch::new("restore");
    let store = Options::new().feed(4 << 20).feed_values(true).open(scratch.store("store")).unwrap();
    store.set("a", b"1").unwrap();
    let (dir, backup, target) = (scratch.path().join("feed"), scratch.store("backup"), scratch.store("target"));
    store.backup(&backup).run().unwrap();
    moment();
    store.set("b", b"2").unwrap();
    let feed = open(&store, FeedStart::Now);
    store.set("c", b"3").unwrap();
    follow(&feed, &dir);
    let error = restore(&backup, &dir, &target, RestoreOptions::default()).unwrap_err();
    assert!(error.to_string().contains("after the backup"), "{error}");
    assert!(!target.exists());
}
