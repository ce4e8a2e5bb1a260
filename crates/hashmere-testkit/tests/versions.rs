//! Promise: every change of a key gives it a version larger than any it had before, also across deletion, clearing,
//! growth, cleaning and reopening; reading and cleaning change no version. Catches: compare-and-set by version that
//! succeeds on a value its caller never saw (ABA).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, CasOutcome, Change, Expected, Options, Store, Update, Updated, Version};
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::payload;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{small, tiny};
use std::collections::HashMap;

/// The largest version each key ever had.
#[derive(Default)]
struct Newest(HashMap<Vec<u8>, Version>);

impl Newest {
    fn set(&mut self, store: &Store, key: &[u8], when: &str) {
        let version = store.set(key, b"some value").unwrap().version;
        assert_eq!(store.metadata(key).unwrap().unwrap().version, version);
        self.rises(key, version, when);
    }

    fn rises(&mut self, key: &[u8], version: Version, when: &str) {
        let before = self.0.insert(key.to_vec(), version).unwrap_or_default();
        assert!(version > before, "{key:?} got {version:?} after {before:?}: {when}");
    }
}

#[test]
fn rise_across_deletion_and_clearing_however_fast() {
    let _watchdog = Watchdog::start("versions-clear");
    let scratch = Scratch::new("versions-clear");
    let store = tiny().open(scratch.store("versions")).unwrap();
    let mut newest = Newest::default();
    for round in 0..20 {
        for _ in 0..20_000 {
            newest.set(&store, b"hot", "overwriting");
        }
        store.delete(b"hot").unwrap();
        newest.set(&store, b"hot", "after a delete");
        store.take(b"hot").unwrap();
        newest.set(&store, b"hot", "after a take");
        store.clear().unwrap();
        newest.set(&store, b"hot", &format!("after clear {round}"));
    }
}

#[test]
fn rise_across_growth_cleaning_and_reopening() {
    let _watchdog = Watchdog::start("versions-growth");
    let scratch = Scratch::new("versions-growth");
    let path = scratch.store("versions");
    for options in [tiny(), small()] {
        let mut newest = Newest::default();
        let mut store = options.open(&path).unwrap();
        for round in 0..10u64 {
            for number in 0..(200 << round.min(5)) {
                newest.set(&store, &payload::key(number), "growing");
                if (number + round) % 3 == 0 {
                    store.delete(&payload::key(number)).unwrap();
                }
            }
            store.compact().unwrap();
            for number in (0..200).filter(|number| (number + round) % 3 != 0) {
                let version = store.metadata(&payload::key(number)).unwrap().unwrap().version;
                assert_eq!(version, newest.0[&payload::key(number)], "cleaning or reading changed a version");
            }
            drop(store);
            store = Options::new().open(&path).unwrap();
        }
        drop(store);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn every_kind_of_change_gives_a_new_one() {
    let scratch = Scratch::new("versions-kinds");
    let store = small().open(scratch.store("versions")).unwrap();
    let mut newest = Newest::default();
    newest.set(&store, b"k", "set");
    let key = &b"k"[..];
    newest.rises(key, store.replace(key, b"v", Attributes::NONE).unwrap().unwrap().version, "replace");
    newest.rises(key, store.append(key, b"v").unwrap().unwrap().version, "append");
    newest.rises(key, store.prepend(key, b"").unwrap().unwrap().version, "prepend of nothing");
    newest.rises(key, store.set(key, &store.get(key).unwrap().unwrap()).unwrap().version, "set to the same value");
    newest.rises(key, store.reserve(key, 3, Attributes::NONE).unwrap().commit().unwrap().version, "reserve");
    store.update_with(key, |_| Update::Set(b"7".to_vec())).unwrap();
    newest.rises(key, store.metadata(key).unwrap().unwrap().version, "update");
    store.incr(key, 0, hashmere::Counter::EXISTING).unwrap();
    newest.rises(key, store.metadata(key).unwrap().unwrap().version, "incr");
    let before = store.metadata(key).unwrap().unwrap().version;
    store.update_with(key, |_| Update::Keep).unwrap();
    assert_eq!(store.metadata(key).unwrap().unwrap().version, before, "keep keeps the version");
}

#[test]
fn what_is_asked_for_is_given_unless_it_is_past() {
    let scratch = Scratch::new("versions-asked");
    let path = scratch.store("versions");
    let mut store = small().open(&path).unwrap();
    let mut newest = Newest::default();
    newest.set(&store, b"k", "set");
    for (round, gap) in [1u64, 1 << 10, 1 << 36].into_iter().enumerate() {
        let asked = Version(newest.0[&b"k"[..]].0 + gap);
        let with = Attributes::NONE.min_version(asked);
        let given = [
            store.set_with(b"k", b"v", with).unwrap(),
            store.replace(b"k", b"v", with).unwrap().unwrap(),
            store.add(&[b'0' + round as u8], b"another key", with).unwrap().unwrap(),
        ];
        assert_eq!((given[0].version, given[1].version.0), (asked, asked.0 + 1));
        assert!(given[2].version >= asked);
        newest.rises(b"k", given[1].version, "asked for");
        store.delete(b"k").unwrap();
        newest.set(&store, b"k", "after a delete");
        store.clear().unwrap();
        newest.set(&store, b"k", "after a clear");
        drop(store);
        store = Options::new().open(&path).unwrap();
        newest.set(&store, b"k", "after it was opened again");
    }
    let beyond = Attributes::NONE.min_version(Version(Version::MIN_VERSION_MAX.0 + 1));
    assert_eq!(store.set_with(b"k", b"v", beyond).unwrap_err().code(), 37);
    assert_eq!(store.metadata(b"k").unwrap().unwrap().version, newest.0[&b"k"[..]]);
}

/// Catches a language in which version 0 is not the one of an absent key.
#[test]
fn version_0_is_that_of_an_absent_key() {
    let scratch = Scratch::new("versions-0");
    let store = small().open(scratch.store("versions")).unwrap();
    let absent = Expected::Version(Version(0));
    assert_eq!(store.cas(b"k", absent, Change::Remove).unwrap(), CasOutcome::Absent);
    let stored = store.cas(b"k", absent, Change::Set(b"A")).unwrap();
    assert!(matches!(stored, CasOutcome::Stored(stored) if stored.created), "{stored:?}");
    let seen = store.metadata(b"k").unwrap().unwrap().version;
    assert_eq!(store.cas(b"k", absent, Change::Set(b"B")).unwrap(), CasOutcome::Mismatch(seen));
    assert_eq!(store.cas(b"k", absent, Change::Remove).unwrap(), CasOutcome::Mismatch(seen));
    assert_eq!(store.get(b"k").unwrap().as_deref(), Some(&b"A"[..]));
}

#[test]
fn compare_and_set_is_not_fooled_by_a_value_that_returns() {
    let scratch = Scratch::new("versions-aba");
    let store = small().open(scratch.store("versions")).unwrap();
    let seen = store.set(b"k", b"A").unwrap().version;
    store.set(b"k", b"B").unwrap();
    store.set(b"k", b"A").unwrap();
    let swapped = store.cas(b"k", Expected::Version(seen), Change::Set(b"C")).unwrap();
    let now = store.metadata(b"k").unwrap().unwrap().version;
    assert_eq!(swapped, CasOutcome::Mismatch(now));
    store.delete(b"k").unwrap();
    store.set(b"k", b"A").unwrap();
    let swapped = store.cas(b"k", Expected::Version(seen), Change::Remove).unwrap();
    assert!(matches!(swapped, CasOutcome::Mismatch(version) if version > now), "{swapped:?}");
    // By value it is the value that counts.
    let swapped = store.cas(b"k", Expected::Value(b"A"), Change::Set(b"C")).unwrap();
    assert!(matches!(swapped, CasOutcome::Stored(stored) if !stored.created));
    assert_eq!(
        store.cas(b"k", Expected::Value(b"A"), Change::Remove).unwrap(),
        CasOutcome::Mismatch(store.metadata(b"k").unwrap().unwrap().version)
    );
}

/// Where versions begin after a clear is reckoned from how many writes there were.
#[test]
fn every_way_to_remove_a_key_is_counted() {
    let _watchdog = Watchdog::start("versions-removals");
    let scratch = Scratch::new("versions-removals");
    let store = tiny().open(scratch.store("versions")).unwrap();
    let ways: [fn(&Store); 5] = [
        |store| assert!(store.delete(b"key").unwrap()),
        |store| assert!(store.take(b"key").unwrap().is_some()),
        |store| assert_eq!(store.update_with(b"key", |_| Update::Remove).unwrap(), Updated::Removed),
        |store| {
            let version = store.metadata(b"key").unwrap().unwrap().version;
            let removed = store.cas(b"key", Expected::Version(version), Change::Remove).unwrap();
            assert_eq!(removed, CasOutcome::Removed);
        },
        |store| {
            let removed = store.cas(b"key", Expected::Value(b"value"), Change::Remove).unwrap();
            assert_eq!(removed, CasOutcome::Removed);
        },
    ];
    for (number, remove) in ways.iter().enumerate() {
        store.set(b"key", b"value").unwrap();
        remove(&store);
        assert_eq!((store.get(b"key").unwrap(), store.stats().deletes), (None, number as u64 + 1));
    }
}
