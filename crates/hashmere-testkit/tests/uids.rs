//! Promise: a key keeps its UID as long as it exists, through overwriting, growth and cleaning, for every process; an
//! entry id whose key is gone is reported as stale.
//! Catches: UIDs that move with the record or with a split, two keys with one UID, stale entry ids that lead elsewhere.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{
    Attributes, CasOutcome, Change, Counter, EntryId, Expected, Key, Options, Store, Ttl, Uid, Update, Updated,
    Version, WriteError,
};
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::payload;
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{small, tiny};
use std::collections::HashSet;
use std::time::Duration;

fn check(store: &Store, number: u64, uid: Uid) {
    let key = payload::key(number);
    assert_eq!(store.metadata(&key).unwrap().map(|meta| meta.uid), Some(uid), "key {number}");
    let (named, item) = (store.key_of(uid).unwrap().unwrap(), store.get_item(uid).unwrap().unwrap());
    assert!(named == key && item.metadata.uid == uid, "UID {uid:?} names {named:?}: {item:?}");
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

/// How many calls [`all_do_nothing`] knows.
const CALLS: u64 = 31;

/// A call by the number of an entry that is gone: says that it is absent, or, where it would have to create it, fails.
fn all_do_nothing(store: &Store, gone: Key<'_>, call: u64) {
    fn stale<T>(result: Result<T, WriteError>) -> bool {
        matches!(result, Err(WriteError::Stale))
    }
    let (none, existing) = (Attributes::NONE, Counter::EXISTING);
    let did_nothing = match call {
        0 => store.get_item(gone).unwrap().is_none(),
        1 => store.view(gone).unwrap().is_none(),
        2 => store.metadata(gone).unwrap().is_none(),
        3 => !store.contains_key(gone).unwrap(),
        4 => store.ttl(gone).unwrap().is_none(),
        5 => store.key_of(gone).unwrap().is_none(),
        6 => store.id_of(gone).unwrap().is_none(),
        7 => store.get_into(gone, &mut [0; 4]).unwrap().is_none(),
        8 => !store.delete(gone).unwrap(),
        9 => store.take(gone).unwrap().is_none(),
        10 => store.replace(gone, b"wrong", none).unwrap().is_none(),
        11 => store.append(gone, b"wrong").unwrap().is_none(),
        12 => store.prepend(gone, b"wrong").unwrap().is_none(),
        13 => !store.touch(gone, Ttl::Never).unwrap(),
        14 => store.get_and_touch(gone, Ttl::Never).unwrap().is_none(),
        15 => store.incr(gone, 1, existing).unwrap().is_none(),
        16 => store.decr(gone, 1, existing).unwrap().is_none(),
        17 => store.dec_ref(gone, 1).unwrap().is_none(),
        18 => store.cas(gone, Expected::Value(b"1"), Change::Set(b"2")).unwrap() == CasOutcome::Absent,
        19 => stale(store.cas(gone, Expected::Absent, Change::Set(b"wrong"))),
        20 => stale(store.set(gone, b"wrong")),
        21 => stale(store.add(gone, b"wrong", none)),
        22 => stale(store.update_with(gone, |_| Update::Set(b"wrong".to_vec()))),
        23 => stale(store.reserve(gone, 3, none)),
        24 => stale(store.incr_by(gone, 1, Counter::or_create(1))),
        25 => !store.is_up_to_date(gone, Version(7)).unwrap(),
        26 => store.incr_signed(gone, 1, Counter::EXISTING).unwrap().is_none(),
        27 => stale(store.incr_signed(gone, 1, Counter::or_create(1))),
        28 => store.incr_float(gone, 1.0, Counter::EXISTING).unwrap().is_none(),
        29 => stale(store.incr_float(gone, 1.0, Counter::or_create(1.0))),
        _ => stale(store.inc_ref(gone, 1)),
    };
    assert!(did_nothing, "call {call} on {gone:?}");
}

#[test]
fn stale_ids_are_noticed() {
    let _watchdog = Watchdog::start("uids-stale");
    let mut rng = Rng::for_test("uids-stale");
    let scratch = Scratch::new("uids-stale");
    let store = tiny().open(scratch.store("uids")).unwrap();
    let mut gone: Vec<(u64, EntryId)> = Vec::new();
    for round in 0..30_000u64 {
        let key = payload::key(round);
        store.set(&key, &payload::encode(round)).unwrap();
        let id = store.id_of(&key).unwrap().unwrap();
        assert_eq!(store.key_of(id).unwrap().as_deref(), Some(&key[..]));
        if rng.chance(80) {
            store.delete(&key).unwrap();
            gone.push((round, id));
        }
        // Their places have been given to other keys many times by now.
        for _ in 0..3 {
            if gone.is_empty() {
                break;
            }
            let &(number, id) = rng.pick(&gone);
            let found = store.get(id).unwrap();
            assert!(found.is_none(), "the id of deleted key {number} leads to {found:?}");
            all_do_nothing(&store, id.into(), rng.below(CALLS));
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
        let found = store.get_item(Uid(number)).unwrap();
        assert!(found.is_none(), "{number:#x}: {found:?}");
    }
    assert!(store.delete(uid).unwrap());
    (0..CALLS).for_each(|call| all_do_nothing(&store, uid.into(), call));
    assert_eq!((store.len(), store.id_of(b"only").unwrap()), (0, None));
}

/// A record whose key was overwritten in the file: its UID leads to it, its key to nothing.
#[test]
fn a_damaged_key_ends_in_an_error() {
    let _watchdog = Watchdog::start("uids-damaged");
    let scratch = Scratch::new("uids-damaged");
    let path = scratch.store("uids");
    let store = tiny().open(&path).unwrap();
    let uid = store.set(b"the key of it", b"value").unwrap().uid;
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(13).position(|some| some == b"the key of it").unwrap();
    bytes[at..at + 3].copy_from_slice(b"XYZ");
    std::fs::write(&path, bytes).unwrap();
    let store = tiny().open(&path).unwrap();
    assert_eq!(store.key_of(uid).unwrap().as_deref(), Some(&b"XYZ key of it"[..]));
    for result in [
        store.set(uid, b"x").map(drop),
        store.delete(uid).map(drop),
        store.cas(uid, Expected::Value(b"value"), Change::Set(b"x")).map(drop),
    ] {
        assert!(matches!(result, Err(WriteError::Corrupt { .. })), "{result:?}");
    }
    assert!(matches!(store.incr(uid, 1, Counter::EXISTING), Ok(None)));
    assert!(!store.touch(uid, Ttl::Never).unwrap());
}

/// Each call does the same whatever names the key.
#[test]
fn every_call_by_every_kind_of_key() {
    let scratch = Scratch::new("uids-all");
    let store = small().open(scratch.store("uids")).unwrap();
    for number in 0..400 {
        let bytes = payload::key(number);
        let hashed = Key::with_hash(&bytes, number / 7);
        for named in [Key::Bytes(&bytes), hashed] {
            let first = store.set(named, b"first").unwrap();
            let id = store.id_of(named).unwrap().unwrap();
            assert_eq!(id.uid(), first.uid);
            for key in [named, id.into(), first.uid.into()] {
                one_after_the_other(&store, key, &bytes, first.uid);
            }
            assert!(store.delete(id).unwrap() && !store.contains_key(named).unwrap());
        }
    }
    assert_eq!(store.len(), 0);
}

fn one_after_the_other(store: &Store, key: Key<'_>, bytes: &[u8], uid: Uid) {
    assert_eq!(store.key_of(key).unwrap().as_deref(), Some(bytes));
    assert_eq!(store.id_of(key).unwrap().unwrap().uid(), uid);
    let stored = store.set(key, b"one").unwrap();
    assert!(!stored.created && stored.uid == uid);
    let (mut buffer, mut array, mut short) = (vec![1, 2], [0; 3], [0; 2]);
    assert_eq!(store.get_into(key, &mut buffer).unwrap(), Some(3));
    assert_eq!(store.get_into(key, &mut array).unwrap(), Some(3));
    assert_eq!(store.get_into(key, &mut short[..]).unwrap(), Some(3));
    assert_eq!((&buffer[..], &array), (&b"one"[..], b"one"));
    assert_eq!(store.add(key, b"other", Attributes::NONE).unwrap(), None);
    assert!(store.replace(key, b"two", Attributes::NONE.flags(5)).unwrap().unwrap().version > stored.version);
    assert!(store.append(key, b">").unwrap().is_some() && store.prepend(key, b"<").unwrap().is_some());
    let item = store.get_item(key).unwrap().unwrap();
    assert_eq!((&item.value[..], item.metadata.flags, item.metadata.uid), (&b"<two>"[..], 5, uid));
    let view = store.view(key).unwrap().unwrap();
    assert_eq!(((*view).to_vec(), view.metadata()), (item.value.clone(), item.metadata));
    assert_eq!(store.metadata(key).unwrap(), Some(item.metadata));
    assert!(store.is_up_to_date(key, item.metadata.version).unwrap());
    assert!(!store.is_up_to_date(key, stored.version).unwrap());

    let cas = |expected, value| store.cas(key, expected, Change::Set(value)).unwrap();
    assert_eq!(cas(Expected::Absent, b"no"), CasOutcome::Mismatch(item.metadata.version));
    assert_eq!(cas(Expected::Value(b"<one>"), b"no"), CasOutcome::Mismatch(item.metadata.version));
    assert!(matches!(cas(Expected::Version(item.metadata.version), b"7"), CasOutcome::Stored(_)));
    assert!(matches!(cas(Expected::Value(b"7"), b"8"), CasOutcome::Stored(_)));

    assert_eq!(store.incr(key, 2, Counter::EXISTING).unwrap(), Some(10));
    assert_eq!(store.decr(key, 3, Counter::or_create(99)).unwrap(), Some(7));
    assert_eq!(store.incr_by(key, -6, Counter::EXISTING).unwrap(), Some(1));
    assert_eq!(store.incr_signed(key, -3, Counter::or_create(9)).unwrap(), Some(-2));
    assert_eq!(store.incr_float(key, 2.5, Counter::or_create(9.0)).unwrap(), Some(0.5));
    let seen = store.set(key, b"1").unwrap().version;
    assert!(store.is_up_to_date(key, seen).unwrap());
    assert!(store.touch(key, Ttl::After(Duration::from_secs(9))).unwrap());
    assert!(store.is_up_to_date(key, seen).unwrap(), "a touch is no change");
    // In place, too.
    assert_eq!(store.incr(key, 1, Counter::EXISTING).unwrap(), Some(2));
    assert!(!store.is_up_to_date(key, seen).unwrap());
    assert_eq!(store.decr(key, 1, Counter::EXISTING).unwrap(), Some(1));
    assert_eq!((store.inc_ref(key, 1).unwrap(), store.dec_ref(key, 1).unwrap()), (2, Some(1)));
    let updated = store.update_with(key, |item| Update::Set([&item.unwrap().value[..], b"!"].concat()));
    assert!(matches!(updated.unwrap(), Updated::Stored(stored) if stored.uid == uid));
    assert!(matches!(store.incr(key, 1, Counter::EXISTING), Err(WriteError::NotANumber)));

    assert!(store.touch(key, Ttl::After(Duration::from_secs(500))).unwrap());
    assert!(store.ttl(key).unwrap().unwrap().remaining.is_some());

    let mut room = store.reserve(key, 4, Attributes::NONE.flags(6)).unwrap();
    room.copy_from_slice(b"room");
    assert_eq!(store.get(key).unwrap().as_deref(), Some(&b"1!"[..]));
    assert_eq!(room.commit().unwrap().uid, uid);
    assert_eq!(store.get_and_touch(key, Ttl::Never).unwrap().unwrap().value, b"room");
    assert_eq!(store.ttl(key).unwrap().unwrap().remaining, None);
    assert!(store.contains_key(key).unwrap());
}

/// What was reserved for an entry neither creates its key again, nor becomes the value of the entry that the key has
/// later.
#[test]
fn a_reservation_for_an_entry_that_goes() {
    let scratch = Scratch::new("uids-reserved");
    let store = tiny().open(scratch.store("uids")).unwrap();
    let mut moved = 0;
    for round in 0..600 {
        let key = payload::key(round % 2);
        let uid = store.set(&key, b"old").unwrap().uid;
        let named: Key<'_> = if round % 4 < 2 { uid.into() } else { store.id_of(uid).unwrap().unwrap().into() };
        let mut one = store.reserve(named, 3, Attributes::NONE).unwrap();
        one.copy_from_slice(b"one");
        let mut two = store.reserve(named, 3, Attributes::NONE).unwrap();
        two.copy_from_slice(b"two");
        store.delete(&key).unwrap();
        assert!(matches!(one.commit(), Err(WriteError::Stale)));
        assert!(!store.contains_key(&key).unwrap());

        store.set(&payload::key(10 + round), b"another").unwrap();
        let again = store.set(&key, b"new").unwrap().uid;
        let (done, now) = (two.commit(), store.get(&key).unwrap().unwrap());
        if again == uid {
            assert_eq!((done.unwrap().uid, &now[..]), (uid, &b"two"[..]));
        } else {
            assert!(matches!(done, Err(WriteError::Stale)) && now == b"new", "{now:?}");
            moved += 1;
        }
    }
    assert!(moved > 10, "the key had another entry only {moved} times");
}
