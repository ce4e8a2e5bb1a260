//! Promise: a key keeps its UID as long as it exists, through overwriting, growth and cleaning, for every process; a
//! handle whose key is gone is reported as stale.
//! Catches: UIDs that move with the record or with a split, two keys with one UID, stale entry ids that lead elsewhere.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{EntryId, Options, ReadError, Store, Uid, Update, Updated, WriteError};
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::payload;
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{small, tiny};
use std::collections::HashSet;

fn check(store: &Store, number: u64, uid: Uid) {
    let key = payload::key(number);
    assert_eq!(store.uid_of(&key).unwrap(), Some(uid), "key {number}");
    let pair = store.get_at(uid).unwrap();
    assert!(pair.key == key && pair.metadata.uid == uid, "UID {uid:?} leads to {pair:?}");
}

#[test]
fn survive_growth_overwriting_cleaning_and_reopening() {
    let _watchdog = Watchdog::start("uids-stable");
    let scratch = Scratch::new("uids-stable");
    let path = scratch.store("uids");
    for options in [tiny(), small(), Options::new()] {
        let mut store = options.open(&path).unwrap();
        let mut uids = Vec::new();
        for number in 0..20_000 {
            uids.push(store.set(&payload::key(number), &payload::encode(number)).unwrap().uid);
        }
        assert_eq!(uids.iter().collect::<HashSet<_>>().len(), uids.len(), "two keys have one UID");
        for (number, &uid) in uids.iter().enumerate().step_by(2) {
            let stored = store.set(&payload::key(number as u64), &payload::encode(number as u64 + 5)).unwrap();
            assert_eq!(stored.uid, uid, "changed by overwriting");
        }
        store.compact().unwrap();
        uids.iter().enumerate().for_each(|(number, &uid)| check(&store, number as u64, uid));
        for number in (0..20_000).filter(|number| number % 10 != 0) {
            store.delete(&payload::key(number)).unwrap();
        }
        store.compact().unwrap();
        drop(store);
        store = Options::new().create(false).open(&path).unwrap();
        uids.iter().enumerate().step_by(10).for_each(|(number, &uid)| check(&store, number as u64, uid));
        drop(store);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn stale_handles_are_noticed() {
    let _watchdog = Watchdog::start("uids-stale");
    let mut rng = Rng::for_test("uids-stale");
    let scratch = Scratch::new("uids-stale");
    let store = tiny().open(scratch.store("uids")).unwrap();
    let mut gone: Vec<(u64, EntryId)> = Vec::new();
    for round in 0..30_000u64 {
        let key = payload::key(round);
        store.set(&key, &payload::encode(round)).unwrap();
        let handle = store.id_of(&key).unwrap().unwrap();
        assert_eq!(store.get_at(handle).unwrap().key, key);
        if rng.chance(80) {
            store.delete(&key).unwrap();
            gone.push((round, handle));
        }
        // Their places have been given to other keys many times by now.
        for _ in 0..3 {
            if gone.is_empty() {
                break;
            }
            let &(number, handle) = rng.pick(&gone);
            let found = store.get_at(handle);
            assert!(matches!(found, Err(ReadError::Stale)), "the handle of deleted key {number} leads to {found:?}");
            match rng.below(3) {
                0 => assert!(matches!(store.set_at(handle, b"wrong"), Err(WriteError::Stale))),
                1 => assert!(matches!(store.delete_at(handle), Err(WriteError::Stale))),
                _ => assert!(matches!(store.update_with_at(handle, |_| Update::Remove), Err(WriteError::Stale))),
            }
        }
    }
    assert_eq!(store.len(), 30_000 - gone.len() as u64, "a stale entry id removed another key");
}

#[test]
fn a_plain_uid_of_nothing_is_stale() {
    let scratch = Scratch::new("uids-none");
    let store = tiny().open(scratch.store("uids")).unwrap();
    let uid = store.set(b"only", b"one").unwrap().uid;
    let mut rng = Rng::for_test("uids-none");
    // Those that differ in one bit may differ only in what a small index does not look at.
    let near = (0..32).map(|bit| uid.0 ^ 1 << bit);
    let numbers =
        near.chain((0..10_000).map(|_| rng.word() as u32)).chain(0..2000).chain([u32::MAX, u32::MAX - 1, 1 << 31]);
    for number in numbers.filter(|&number| number != uid.0) {
        let found = store.get_at(Uid(number));
        assert!(matches!(found, Err(ReadError::Stale)), "{number:#x}: {found:?}");
    }
    store.delete_at(uid).unwrap();
    assert!(matches!(store.get_at(uid), Err(ReadError::Stale)));
    assert!(matches!(store.delete_at(uid), Err(WriteError::Stale)));
    assert_eq!(store.uid_of(b"only").unwrap(), None);
}

#[test]
fn every_operation_by_number() {
    let scratch = Scratch::new("uids-all");
    let store = small().open(scratch.store("uids")).unwrap();
    for number in 0..2000 {
        let key = payload::key(number);
        let first = store.set(&key, b"first").unwrap();
        let stored = store.set_at(first.uid, &payload::encode(number)).unwrap();
        assert!(!stored.created && stored.uid == first.uid && stored.version > first.version);
        let handle = store.id_of(&key).unwrap().unwrap();
        let mut value = vec![1, 2, 3];
        store.get_at_into(handle, &mut value).unwrap();
        assert_eq!(payload::decode(&value), Ok(number));
        let updated = store.update_with_at(handle, |item| {
            let mut value = item.value.clone();
            value.push(b'!');
            Update::Set(value)
        });
        assert!(matches!(updated.unwrap(), Updated::Stored(stored) if stored.uid == first.uid));
        value.push(b'!');
        assert_eq!(store.get(&key).unwrap(), Some(value));
    }
}
