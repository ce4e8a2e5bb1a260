//! Promise: keys and values of any length from zero up to 4 GiB together; one byte more is refused with the limit
//! named. Catches: length encodings that overflow, values that span segments wrongly, off-by-one at 7, 8, 127, 250,
//! 4096.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Options, ReadError, Store, WriteError};
use hashmere_testkit::limits::{memory_available, Watchdog};
use hashmere_testkit::payload;
use hashmere_testkit::rng::mix;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, small, tiny};

const KEYS: [usize; 10] = [0, 1, 7, 8, 127, 128, 250, 251, 255, 65_536];
const VALUES: [usize; 12] = [0, 1, 7, 8, 9, 255, 256, 4095, 4096, 4097, 70_000, 1 << 20];

fn key(len: usize) -> Vec<u8> {
    (0..len).map(|at| mix(at as u64 + len as u64) as u8).collect()
}

fn value(len: usize, salt: u64) -> Vec<u8> {
    let mut value = payload::encode_len(len as u64 ^ salt, len.max(8));
    value.truncate(len);
    value
}

fn all_pairs(name: &'static str, options: Options) {
    let _watchdog = Watchdog::start(name);
    let scratch = Scratch::new(name);
    let store = options.open(scratch.store("sizes")).unwrap();
    // Longer and shorter values under the same key, so that each length replaces each other one.
    for (round, len) in VALUES.into_iter().chain(VALUES.into_iter().rev()).enumerate() {
        for key_len in KEYS {
            store.set(&key(key_len), &value(len, round as u64)).unwrap();
        }
        for key_len in KEYS {
            check(&store, &key(key_len), &value(len, round as u64));
        }
    }
    assert_eq!(store.len(), KEYS.len() as u64);
    for key_len in KEYS {
        assert_eq!(store.take(&key(key_len)).unwrap(), Some(value(0, 23)));
    }
    assert_eq!(store.len(), 0);
    assert_clean(&store);
}

fn check(store: &Store, key: &[u8], expected: &[u8]) {
    assert!(store.get(key).unwrap().as_deref() == Some(expected), "{} + {} bytes", key.len(), expected.len());
    assert_eq!(store.metadata(key).unwrap().map(|meta| meta.value_len), Some(expected.len() as u64));
    assert!(*store.view(key).unwrap().unwrap() == *expected);
    let id = store.id_of(key).unwrap().unwrap();
    assert!(store.key_of(id).unwrap().as_deref() == Some(key) && store.get(id).unwrap().as_deref() == Some(expected));
}

#[test]
fn every_key_length_with_every_value_length_in_tiny_segments() {
    all_pairs("sizes-tiny", tiny());
}

#[test]
fn every_key_length_with_every_value_length_in_default_segments() {
    all_pairs("sizes-default", Options::new());
}

#[test]
fn growing_by_append_and_prepend_through_every_length() {
    let scratch = Scratch::new("sizes-append");
    let store = small().open(scratch.store("append")).unwrap();
    let mut expected = Vec::new();
    store.set(b"k", b"").unwrap();
    for step in 0..1500u64 {
        let piece = value(1 + step as usize % 23, step);
        if step % 2 == 0 {
            store.append(b"k", &piece).unwrap().unwrap();
            expected.extend_from_slice(&piece);
        } else {
            store.prepend(b"k", &piece).unwrap().unwrap();
            expected.splice(0..0, piece);
        }
        assert!(store.get(b"k").unwrap().as_ref() == Some(&expected), "{} bytes", expected.len());
    }
    assert_clean(&store);
}

#[test]
fn a_hundred_megabytes() {
    let _watchdog = Watchdog::start("sizes-large");
    let scratch = Scratch::new("sizes-large");
    let store = Options::new().open(scratch.store("large")).unwrap();
    for round in 0..3 {
        let large = payload::encode_len(round, 100_000_000);
        store.set(b"large", &large).unwrap();
        store.set(b"small", b"neighbour").unwrap();
        check(&store, b"large", &large);
    }
    assert_eq!(store.get(b"small").unwrap().as_deref(), Some(&b"neighbour"[..]));
    store.delete(b"large").unwrap();
    store.compact().unwrap();
    assert_clean(&store);
    // Overwritten and deleted large values are given back: three were written.
    let allocated = hashmere_testkit::files::allocated(store.path());
    assert!(allocated < 50_000_000, "{allocated} bytes are allocated for one small key");
}

/// Whether what needs several gigabytes is wanted, and there are as many.
fn is_big() -> bool {
    std::env::var_os("HASHMERE_BIG").is_some() && memory_available() >= 8 << 30
}

/// Larger than what 32 bits hold with a sign. Filled in place and looked at in place: it exists once.
#[test]
fn three_gibibytes() {
    if !is_big() {
        println!("skipped: needs 8 GiB of available memory and HASHMERE_BIG=1, which make test-more sets");
        return;
    }
    let _watchdog = Watchdog::start("sizes-big");
    let scratch = Scratch::new("sizes-big");
    let store = Options::new().open(scratch.store("big")).unwrap();
    let len = 3usize << 30;
    let mut reservation = store.reserve(b"big", len as u64, Attributes::NONE).unwrap();
    let mut chunks = reservation.chunks_exact_mut(4096);
    for (number, chunk) in chunks.by_ref().enumerate() {
        chunk[..8].copy_from_slice(&mix(number as u64).to_le_bytes());
        chunk[4095] = number as u8;
    }
    reservation.commit().unwrap();
    store.set(b"small", b"neighbour").unwrap();
    assert_eq!(store.metadata(b"big").unwrap().map(|meta| meta.value_len), Some(len as u64));
    let view = store.view(b"big").unwrap().unwrap();
    assert_eq!(view.len(), len);
    for (number, chunk) in view.chunks_exact(4096).enumerate() {
        assert_eq!(chunk[..8], mix(number as u64).to_le_bytes(), "page {number}");
        assert_eq!(chunk[4095], number as u8, "page {number}");
    }
    drop(view);
    assert!(store.delete(b"big").unwrap());
    store.compact().unwrap();
    assert_eq!(store.get(b"small").unwrap().as_deref(), Some(&b"neighbour"[..]));
    assert_clean(&store);
}

#[test]
fn too_large_is_refused_and_changes_nothing() {
    let scratch = Scratch::new("sizes-limit");
    let store = Options::new().open(scratch.store("limit")).unwrap();
    store.set(b"key", b"old").unwrap();
    let before = hashmere_testkit::files::apparent(store.path());
    for len in [(4u64 << 30) - 2, 4 << 30, 5 << 30, u64::MAX - 100, u64::MAX] {
        match store.reserve(b"key", len, Attributes::NONE) {
            Err(WriteError::TooLarge { bytes, limit }) => {
                assert!(bytes > limit && ((4 << 30) - 64..=4 << 30).contains(&limit), "{bytes} {limit}");
            }
            Err(error) => panic!("{len}: {error:?}"),
            Ok(_) => panic!("{len}: accepted"),
        }
    }
    // Untouched zero pages take no memory.
    let huge = vec![0; 4 << 30];
    let error = store.set(b"key", &huge).unwrap_err();
    assert!(matches!(error, WriteError::TooLarge { .. }), "{error:?}");
    if is_big() {
        // To hash it takes twenty seconds without optimization.
        let error = store.set(&huge, b"").unwrap_err();
        assert!(matches!(error, WriteError::TooLarge { .. }), "{error:?}");
        assert_eq!(store.get(&huge).unwrap(), None);
    }
    assert_eq!(store.get(b"key").unwrap().as_deref(), Some(&b"old"[..]));
    assert_eq!(hashmere_testkit::files::apparent(store.path()), before, "a refused write has grown the file");
}

#[test]
fn fixed_lengths_are_enforced() {
    let scratch = Scratch::new("sizes-fixed");
    let store = small().fixed_key_len(8).fixed_value_len(16).open(scratch.store("fixed")).unwrap();
    for number in 0..5000u64 {
        store.set(&number.to_le_bytes(), &value(16, number)).unwrap();
    }
    for number in 0..5000u64 {
        check(&store, &number.to_le_bytes(), &value(16, number));
    }
    for len in [0, 7, 9] {
        let error = store.set(&key(len), &value(16, 0)).unwrap_err();
        let WriteError::WrongLength { what: "key", given, fixed: 8 } = error else { panic!("{error:?}") };
        assert_eq!(given, len as u64);
        // No key of another length is there; asking for one is no error of the file.
        assert!(matches!(store.get(&key(len)), Ok(None)), "{:?}", store.get(&key(len)));
    }
    for len in [0, 15, 17] {
        let error = store.set(&1u64.to_le_bytes(), &value(len, 0)).unwrap_err();
        let WriteError::WrongLength { what: "value", given, fixed: 16 } = error else { panic!("{error:?}") };
        assert_eq!(given, len as u64);
    }
    let error = store.append(&1u64.to_le_bytes(), b"x").unwrap_err();
    assert!(matches!(error, WriteError::WrongLength { what: "value", .. }), "{error:?}");
    check(&store, &1u64.to_le_bytes(), &value(16, 1));
    let stale = store.delete(&1u64.to_le_bytes()).and_then(|_| store.delete(&1u64.to_le_bytes())).unwrap();
    assert!(!stale);
    assert!(!matches!(store.get(&1u64.to_le_bytes()), Err(ReadError::Corrupt { .. })));
    assert_clean(&store);
}
