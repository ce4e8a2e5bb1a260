//! Promise: keys whose hashes collide are kept apart; deleting one never harms another; the file does not explode.
//! Catches: comparing hashes instead of keys, chains cut by a delete, an index that doubles forever.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Key, Options, Store, WriteError};
use hashmere_format::hash::Hasher;
use hashmere_format::header::at;
use hashmere_testkit::assert_clean;
use hashmere_testkit::files::apparent;
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;

fn key(number: u64) -> Vec<u8> {
    // All of one length: nothing but the bytes tells them apart.
    format!("{number:08}").into_bytes()
}

fn value(number: u64) -> [u8; 8] {
    (number ^ 0x5555).to_le_bytes()
}

/// Stores `count` keys whose hashes come from `hash`, deletes every second one, and checks all. How many the store
/// took before it refused with `TooManyCollisions`.
fn run(name: &'static str, count: u64, hash: impl Fn(u64) -> u64) -> u64 {
    let _watchdog = Watchdog::start(name);
    let mut rng = Rng::for_test(name);
    let scratch = Scratch::new(name);
    let path = scratch.store("collisions");
    let store = Options::new().open(&path).unwrap();
    let taken = fill(&store, count, &hash);
    // A key that was never stored, with a hash and a length that many others have.
    assert_eq!(store.get(Key::with_hash(b"notthere", hash(0))).unwrap(), None);
    let mut order: Vec<u64> = (0..taken).collect();
    rng.shuffle(&mut order);
    let (deleted, left) = order.split_at(order.len() / 2);
    for &number in deleted {
        assert!(store.delete(Key::with_hash(&key(number), hash(number))).unwrap(), "key {number} was there");
    }
    for &number in left {
        let found = store.get(Key::with_hash(&key(number), hash(number))).unwrap();
        assert_eq!(found.as_deref(), Some(&value(number)[..]), "key {number} of {taken}");
    }
    for &number in deleted {
        assert_eq!(store.get(Key::with_hash(&key(number), hash(number))).unwrap(), None, "key {number} was deleted");
    }
    assert_eq!(store.len(), left.len() as u64);
    assert_eq!(store.keys().count(), left.len());
    // And what was deleted can come back.
    for &number in deleted.iter().take(1000) {
        assert!(store.set(Key::with_hash(&key(number), hash(number)), b"again").unwrap().created);
    }
    assert_clean(&store);
    let file = apparent(&path);
    println!("{name}: {taken} keys in {file} bytes");
    assert!(file < (8 << 20) + taken * 400, "{taken} keys take {file} bytes");
    taken
}

fn fill(store: &Store, count: u64, hash: &impl Fn(u64) -> u64) -> u64 {
    for number in 0..count {
        match store.set(Key::with_hash(&key(number), hash(number)), &value(number)) {
            Ok(stored) => assert!(stored.created, "key {number}"),
            Err(WriteError::TooManyCollisions) => return number,
            Err(error) => panic!("key {number}: {error:?}"),
        }
    }
    count
}

const MANY: u64 = 100_000;

#[test]
fn hashes_differ_in_their_high_bits_only() {
    assert_eq!(run("collide-high", MANY, |number| number << 44 | 0x123), MANY);
}

#[test]
fn hashes_differ_in_their_low_bits_only() {
    assert_eq!(run("collide-low", MANY, |number| 0xabcd_0000_0000_0000 | number), MANY);
}

#[test]
fn hashes_differ_in_their_middle_bits_only() {
    assert_eq!(run("collide-middle", MANY, |number| number << 24), MANY);
}

#[test]
fn few_hashes_for_many_keys() {
    assert_eq!(run("collide-few", 20_000, |number| hashmere_testkit::rng::mix(number % 200)), 20_000);
}

/// With one hash for all, a store may refuse at some point, cleanly; the keys before that are exact.
#[test]
fn one_hash_for_all() {
    assert!(run("collide-one", 5_000, |_| 42) >= 16);
}

#[test]
fn one_hash_of_all_zeros_and_all_ones() {
    assert!(run("collide-zero", 300, |_| 0) >= 16);
    assert!(run("collide-ones", 300, |_| u64::MAX) >= 16);
}

/// Who can read the file knows its seed, and can look for keys that all want one place in the index.
#[test]
fn flooded_by_one_who_knows_the_seed() {
    const FLOOD: usize = 2000;
    let _watchdog = Watchdog::start("collide-flood");
    let scratch = Scratch::new("collide-flood");
    let path = scratch.store("flooded");
    let store = Options::new().open(&path).unwrap();
    let header = std::fs::read(&path).unwrap();
    let seed = u64::from_le_bytes(header[at::SEED as usize..][..8].try_into().unwrap());
    let hasher = Hasher::new(seed);
    // The low bits choose the leaf: with most of them alike, splitting separates nothing for long.
    let wanted = hasher.key(&key(0)) & 0xfff;
    let keys: Vec<Vec<u8>> = (0..).map(key).filter(|key| hasher.key(key) & 0xfff == wanted).take(FLOOD).collect();
    for (number, key) in keys.iter().enumerate() {
        store.set(key, &value(number as u64)).unwrap();
    }
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(store.get(key).unwrap().as_deref(), Some(&value(number as u64)[..]));
    }
    assert_clean(&store);
    let file = apparent(&path);
    println!("flooded: {FLOOD} keys in {file} bytes");
    assert!(file < 8 << 20, "{FLOOD} keys take {file} bytes");
    keys.iter().for_each(|key| assert!(store.delete(key).unwrap()));
    assert_eq!(store.len(), 0);
}

/// Every order of deleting from a small group of keys with one hash leaves the others.
#[test]
fn deleting_in_any_order_leaves_the_others() {
    let scratch = Scratch::new("collide-order");
    let store = hashmere_testkit::tiny().open(scratch.store("order")).unwrap();
    let mut rng = Rng::for_test("collide-order");
    for round in 0..2000 {
        let mut order: Vec<u64> = (0..12).collect();
        order.iter().for_each(|&number| {
            store.set(Key::with_hash(&key(number), round), &value(number)).unwrap();
        });
        rng.shuffle(&mut order);
        while let Some(number) = order.pop() {
            assert!(store.delete(Key::with_hash(&key(number), round)).unwrap());
            for &other in &order {
                let found = store.get(Key::with_hash(&key(other), round)).unwrap();
                assert_eq!(found.as_deref(), Some(&value(other)[..]), "deleting {number} dropped {other}");
            }
        }
        assert_eq!(store.len(), 0);
    }
}
