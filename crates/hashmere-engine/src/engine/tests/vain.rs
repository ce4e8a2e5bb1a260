//! A request that cannot succeed is refused before anything is done for it: not one store into the file, no memory
//! asked for, nothing cleaned, nothing evicted, no file grown.

use super::fixture::{cache, strict, Client, Fixture, Geometry};
use crate::engine::{Tick, Unsigned, When};
use crate::error::WriteError;
use crate::types::{Attributes, CasOutcome, Change, Counter, Expected, Version};
use hashmere_format::header::{at, flag, limit};
use hashmere_format::region::kind::POOL;
use hashmere_format::row;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// Values longer than a number, and than a segment.
const LONG: u32 = 9000;

fn fixed(key: Option<u32>, value: Option<u32>) -> Geometry {
    Geometry { fixed: (key, value), ..strict(32) }
}

/// The request is refused with this code, and nothing at all happened.
fn in_vain<R>(client: &Client, code: i32, what: &str, act: impl FnOnce() -> Result<R, WriteError>) {
    let error = idle(client, what, act).map(drop).unwrap_err();
    assert_eq!(error.code(), code, "{what}: {error}");
}

/// What it returns, having done nothing.
fn idle<R>(client: &Client, what: &str, act: impl FnOnce() -> R) -> R {
    drop(client.writer().unwrap());
    let requests = client.probe.requests();
    client.probe.rewind();
    let done = act();
    let did = (client.probe.stores(), client.probe.requests() - requests);
    assert_eq!(did, (0, 0), "{what}: stores, requests for memory");
    done
}

fn tick(client: &Client, key: &[u8], counter: Counter) -> Result<Option<u64>, WriteError> {
    client.tick(&mut *client.writer()?, (key, client.hash(key)), &Unsigned, counter, |n| Ok(Tick::Set(n + 1)))
}

fn compare(client: &Client, expected: Expected<'_>, value: &[u8]) -> Result<CasOutcome, WriteError> {
    let kh = client.hash(b"key");
    client.cas(&mut *client.writer()?, b"key", kh, expected, Change::Set(value))
}

#[test]
fn counting_where_no_number_is_long_enough() {
    let fixture = Fixture::new(fixed(None, Some(LONG)));
    let client = fixture.client();
    client.t_set(b"key", &[b'0'; LONG as usize]).unwrap();
    for counter in [Counter::EXISTING, Counter::or_create(7)] {
        in_vain(&client, 34, "present", || tick(&client, b"key", counter));
        in_vain(&client, 34, "absent", || tick(&client, b"none", counter));
    }
    // Zeros in front make a number of it, and it is one digit too long for all.
    for length in [21, 25, 32] {
        let fixture = Fixture::new(fixed(None, Some(length)));
        fixture.client().t_set(b"key", &vec![b'0'; length as usize]).unwrap();
        let client = fixture.client();
        assert_eq!(tick(&client, b"key", Counter::EXISTING).unwrap_err().code(), 34, "{length}");
        assert_eq!(client.t_get(b"key").unwrap().unwrap(), vec![b'0'; length as usize]);
    }
    // Where each number has its room, one can count; in a shorter one up to where it ends.
    let fixture = Fixture::new(fixed(None, Some(20)));
    assert_eq!(tick(&fixture.client(), b"key", Counter::or_create(7)).unwrap(), Some(7));
    let fixture = Fixture::new(fixed(None, Some(1)));
    assert_eq!(tick(&fixture.client(), b"key", Counter::or_create(9)).unwrap(), Some(9));
    assert_eq!(tick(&fixture.client(), b"key", Counter::EXISTING).unwrap_err().code(), 34);
}

#[test]
fn keys_and_values_of_the_wrong_length() {
    let fixture = Fixture::new(fixed(Some(3), Some(LONG)));
    let client = fixture.client();
    let right = vec![b'x'; LONG as usize];
    client.t_set(b"key", &right).unwrap();
    for (key, value) in [(&b"key"[..], &b""[..]), (b"key", &right[1..]), (b"keys", &right), (b"", &right)] {
        for when in [When::Always, When::Present, When::Absent] {
            let there = key == b"key";
            if when == When::Always || there == (when == When::Present) {
                in_vain(&client, 34, "set", || client.t_put(key, value, Attributes::NONE, when));
            }
        }
        let kh = client.hash(key);
        in_vain(&client, 34, "reserve", || {
            client.begin(&mut *client.writer()?, key, kh, value.len() as u64, Attributes::NONE).map(drop)
        });
    }
    in_vain(&client, 34, "compare and set", || compare(&client, Expected::Absent, b"short"));
    // It looks at the value first, which counts as a look.
    let requests = client.probe.requests();
    assert_eq!(client.t_append(b"key", b"more").unwrap_err().code(), 34);
    assert_eq!(client.probe.requests(), requests, "append");
}

#[test]
fn what_no_record_can_hold() {
    let fixture = Fixture::new(strict(32));
    let client = fixture.client();
    let kh = client.hash(b"key");
    for bytes in [limit::PAYLOAD, u64::MAX] {
        in_vain(&client, 33, "reserve", || {
            client.begin(&mut *client.writer()?, b"key", kh, bytes, Attributes::NONE).map(drop)
        });
    }
    let asked = Attributes { min_version: Version(Version::MIN_VERSION_MAX.0 + 1), ..Attributes::NONE };
    in_vain(&client, 37, "a version that cannot be", || client.t_put(b"key", b"", asked, When::Always));
}

/// A cache is emptied for nothing otherwise.
#[test]
fn what_the_maximum_can_never_hold() {
    for geometry in [strict(32), cache(32)] {
        let fixture = Fixture::new(geometry);
        let client = fixture.client();
        (0..200).for_each(|i| client.t_set(format!("key{i}").as_bytes(), &[b'v'; 200]).unwrap());
        let kh = client.hash(b"key");
        let create = |bytes| client.create_region(&mut *client.writer()?, (POOL, b"pool"), bytes, |_| ());
        for segments in [32, 33, 1000, 1 << 19] {
            let bytes = segments << 12;
            in_vain(&client, 31, "reserve", || {
                client.begin(&mut *client.writer()?, b"key", kh, bytes, Attributes::NONE).map(drop)
            });
            in_vain(&client, 31, "region", || create(bytes));
        }
        in_vain(&client, 33, "region", || create(u64::MAX));
        in_vain(&client, 37, "region", || {
            client.create_region(&mut *client.writer()?, (POOL, &[b'n'; 129]), 5000, |_| ())
        });
        assert_eq!(client.t_scan().unwrap().len(), 200, "evicted for what cannot be");
    }
}

#[test]
fn a_long_value_for_a_key_that_is_not_as_expected() {
    let fixture = Fixture::new(cache(32));
    let client = fixture.client();
    let long = vec![b'x'; 60_000];
    let refused = |expected, told: &str| {
        let found = idle(&client, told, || compare(&client, expected, &long)).unwrap();
        assert!(format!("{found:?}").starts_with(told), "{found:?}");
    };
    refused(Expected::Version(Version(7)), "Absent");
    refused(Expected::Value(b"this"), "Absent");
    client.t_set(b"key", b"that").unwrap();
    refused(Expected::Version(Version(7)), "Mismatch");
    refused(Expected::Value(b"this"), "Mismatch");
    refused(Expected::Absent, "Mismatch");
    assert!(matches!(compare(&client, Expected::Value(b"that"), &long), Ok(CasOutcome::Stored(_))));
}

#[test]
fn a_region_for_a_thread_without_a_free_pin() {
    let fixture = Fixture::new(strict(32));
    let client = fixture.client();
    let pins = client.writer().unwrap().row + row::at::PINS;
    for pin in 0..row::PINS {
        client.mem.store(pins + 8 * pin, 1 << 32 | 1, Ordering::Relaxed);
    }
    in_vain(&client, 37, "region", || client.create_region(&mut *client.writer()?, (POOL, b"pool"), 9000, |_| ()));
}

#[test]
fn writes_to_a_store_that_is_poisoned() {
    let fixture = Fixture::new(strict(32).durable());
    let client = fixture.client();
    client.change_status(flag::POISONED, 0);
    assert_eq!(client.mem.load(at::STATUS, Ordering::Relaxed), flag::POISONED);
    let long = vec![b'x'; 9000];
    in_vain(&client, 38, "large", || client.t_set(b"key", &long));
    in_vain(&client, 38, "small", || client.t_set(b"key", b"value"));
    in_vain(&client, 38, "region", || client.create_region(&mut *client.writer()?, (POOL, b"pool"), 9000, |_| ()));
}
