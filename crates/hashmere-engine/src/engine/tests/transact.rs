//! Transactions: what they do when no process dies.

use super::fixture::{strict, Client, Fixture, TestEngine};
use crate::engine::transact::{Change, Guard, Outcome, Part, Value};
use crate::engine::{Engine, Room, When};
use crate::types::{Attributes, Ttl};
use hashmere_mem::{Host, Mem};
use std::collections::BTreeMap;

/// One key of a transaction of a test.
#[derive(Clone, Copy)]
pub(super) enum Op<'k> {
    Set(&'k [u8], &'k [u8]),
    Delete(&'k [u8]),
    /// It must be as it is when the part is made.
    Look(&'k [u8]),
    /// It must be absent, and gets this value.
    Absent(&'k [u8], &'k [u8]),
    /// It gets this expiry and keeps its value and version.
    Touch(&'k [u8], &'k [u8], u64),
}

impl<'k> Op<'k> {
    pub(super) fn part<M: Mem, H: Host>(self, engine: &Engine<M, H>) -> Part<'k> {
        let put = |bytes| Change::Put(Value { bytes, ..Value::default() });
        let (key, guard, change) = match self {
            Op::Set(key, value) => (key, Guard::Any, put(value)),
            Op::Delete(key) => (key, Guard::Any, Change::Remove),
            Op::Look(key) => (key, seen(engine, key), Change::Same),
            Op::Absent(key, value) => (key, Guard::Absent, put(value)),
            Op::Touch(key, bytes, expires) => {
                let value = Value { bytes, expires: Some(expires), keeps_version: true, ..Value::default() };
                (key, Guard::Any, Change::Put(value))
            }
        };
        Part::new(key, engine.hash(key), guard, change)
    }
}

fn seen<M: Mem, H: Host>(engine: &Engine<M, H>, key: &[u8]) -> Guard {
    engine.peek(key, engine.hash(key)).unwrap().map_or(Guard::Absent, Guard::Seen)
}

pub(super) fn apply<M: Mem, H: Host>(engine: &Engine<M, H>, ops: &[Op<'_>]) {
    let mut parts: Vec<_> = ops.iter().map(|op| op.part(engine)).collect();
    let done = engine.transact(&mut engine.writer().unwrap(), &mut parts, &mut Room::default()).unwrap();
    assert_eq!(done, Outcome::Committed);
}

fn all(client: &Client) -> BTreeMap<Vec<u8>, Vec<u8>> {
    client.t_scan().unwrap().into_iter().collect()
}

#[test]
fn all_keys_change_or_none() {
    let fixture = Fixture::new(strict(64));
    let client = fixture.client();
    for i in 0..30 {
        client.t_set(format!("k{i}").as_bytes(), format!("old {i}").as_bytes()).unwrap();
    }
    let before = all(&client);
    let names: Vec<String> = (0..40).map(|i| format!("k{i}")).collect();
    let ops: Vec<_> = names.iter().map(|name| Op::Set(name.as_bytes(), b"new")).collect();
    let ops: Vec<_> = ops.into_iter().chain([Op::Absent(b"k0x", b"")]).collect();
    let mut refused: Vec<_> = ops.iter().map(|op| op.part(&*client)).collect();
    let other = client.peek(b"k1", client.hash(b"k1")).unwrap().unwrap();
    refused.push(Part::new(b"z", client.hash(b"z"), Guard::Seen(other), Change::Same));
    assert_eq!(
        client.transact(&mut client.writer().unwrap(), &mut refused, &mut Room::default()).unwrap(),
        Outcome::Conflict(41)
    );
    assert_eq!(all(&client), before);
    apply(&*client, &ops);
    let after = all(&client);
    assert_eq!(after.len(), 41);
    assert!(names.iter().all(|name| after[name.as_bytes()] == b"new"));
    client.check().sound().unwrap();
    assert_eq!(client.items(), 41);
}

#[test]
fn what_is_stored_is_told() {
    let fixture = Fixture::new(strict(24));
    let client = fixture.client();
    client.t_set(b"a", b"1").unwrap();
    let before = client.peek(b"a", client.hash(b"a")).unwrap().unwrap();
    let ops = [Op::Set(b"a", b"2"), Op::Set(b"b", b"3"), Op::Delete(b"c"), Op::Look(b"d")];
    let mut parts: Vec<_> = ops.iter().map(|op| op.part(&*client)).collect();
    client.transact(&mut client.writer().unwrap(), &mut parts, &mut Room::default()).unwrap();
    let [a, b, c, _] = &parts[..] else { unreachable!() };
    let meta = |key: &[u8]| client.peek(key, client.hash(key)).unwrap().unwrap();
    let [stored_a, stored_b] = [a, b].map(|part| client.stored_of(part));
    assert_eq!((stored_a.uid, stored_a.version), (meta(b"a").uid, meta(b"a").version));
    assert_eq!((stored_b.uid, stored_b.version), (meta(b"b").uid, meta(b"b").version));
    assert!(stored_a.uid == before.uid && stored_a.version > before.version);
    assert_eq!((stored_a.created, stored_b.created, c.was_there), (false, true, false));
    assert_eq!(client.t_get(b"a").unwrap().unwrap(), b"2");
    assert_eq!((client.stats(0, 0).sets, client.stats(0, 0).deletes), (3, 0));
}

#[test]
fn keys_with_one_lock_get_different_versions() {
    // Three buckets: among ten keys there are some with the same lock.
    let fixture = Fixture::new(strict(24).small_leaves());
    let client = fixture.client();
    let names: Vec<String> = (0..10).map(|i| format!("k{i}")).collect();
    for round in 0..20u8 {
        let value = [round];
        let ops: Vec<_> = names.iter().map(|name| Op::Set(name.as_bytes(), &value)).collect();
        apply(&*client, &ops);
    }
    let versions = |of: u64| {
        names
            .iter()
            .map(|name| client.hash(name.as_bytes()))
            .zip(&names)
            .filter(|(kh, _)| hashmere_format::hash::buckets(kh.hash, client.layout.buckets).0 == of)
            .map(|(kh, name)| client.peek(name.as_bytes(), kh).unwrap().unwrap().version)
            .collect::<Vec<_>>()
    };
    let mut met = 0;
    for bucket in 0..client.layout.buckets {
        let mut versions = versions(bucket);
        met = met.max(versions.len());
        versions.sort_unstable();
        assert!(versions.windows(2).all(|pair| pair[0] < pair[1]), "{versions:?}");
    }
    assert!(met > 1);
    client.check().sound().unwrap();
}

#[test]
fn guards_hold_for_versions_expiry_and_absence() {
    let fixture = Fixture::new(strict(24));
    let client = fixture.client();
    let expires = Attributes { ttl: Ttl::At(50_000), ..Attributes::NONE };
    client.t_put(b"e", b"1", expires, When::Always).unwrap();
    let guard = seen(&*client, b"e");
    let go = |guard| {
        let mut parts = [Part::new(b"e", client.hash(b"e"), guard, Change::Same), Op::Set(b"x", b"y").part(&*client)];
        client.transact(&mut client.writer().unwrap(), &mut parts, &mut Room::default()).unwrap()
    };
    assert_eq!(go(guard), Outcome::Committed);
    assert!(client.t_touch(b"e", Ttl::At(60_000)).unwrap());
    assert_eq!(go(guard), Outcome::Conflict(0));
    assert_eq!(go(Guard::Absent), Outcome::Conflict(0));
    let guard = seen(&*client, b"e");
    assert_eq!(go(guard), Outcome::Committed);
    fixture.peers.set_now_ms(70_000);
    assert_eq!(go(guard), Outcome::Conflict(0));
    assert_eq!(go(Guard::Absent), Outcome::Committed);
}

/// Every key of a store that is far too full for its leaves: some are in the overflow tree, some there under their
/// second hash.
#[test]
fn keys_of_the_overflow_tree() {
    let fixture = Fixture::new(strict(200).small_leaves());
    let client = fixture.client();
    // Their lowest bits agree, so splits are of no use.
    let name = |i: u64| client.supplied(i);
    let keys: Vec<_> = (0..40).map(|i| (format!("o{i}").into_bytes(), name(7))).collect();
    for chunk in keys.chunks(6) {
        let mut parts: Vec<_> = chunk
            .iter()
            .map(|(key, kh)| Part::new(key, *kh, Guard::Any, Change::Put(Value { bytes: key, ..Value::default() })))
            .collect();
        match client.transact(&mut client.writer().unwrap(), &mut parts, &mut Room::default()) {
            Ok(done) => assert_eq!(done, Outcome::Committed),
            Err(error) => panic!("{error}"),
        }
    }
    client.check().sound().unwrap();
    assert!(client.stats(0, 0).index_overflow > 20);
    for (key, kh) in &keys {
        assert_eq!(client.t_item(key, *kh).unwrap().unwrap().value, *key);
    }
    let mut parts: Vec<_> =
        keys.iter().take(25).map(|(key, kh)| Part::new(key, *kh, Guard::Any, Change::Remove)).collect();
    assert_eq!(
        client.transact(&mut client.writer().unwrap(), &mut parts, &mut Room::default()).unwrap(),
        Outcome::Committed
    );
    assert!(parts.iter().all(|part| part.was_there));
    assert_eq!(client.items(), 15);
    client.check().sound().unwrap();
}

#[test]
fn a_store_without_room_refuses_the_whole() {
    let fixture = Fixture::new(strict(16));
    let client = fixture.client();
    client.t_set(b"a", b"before").unwrap();
    let value = vec![b'x'; 1900];
    let names: Vec<String> = (0..60).map(|i| format!("k{i}")).collect();
    let segments = |engine: &TestEngine| engine.free_segments();
    let free = segments(&client);
    let mut ops: Vec<_> = names.iter().map(|name| Op::Set(name.as_bytes(), &value)).collect();
    ops.truncate(42);
    ops.insert(0, Op::Set(b"a", b"after"));
    ops.pop();
    let mut parts: Vec<_> = ops.iter().map(|op| op.part(&*client)).collect();
    let error = client.transact(&mut client.writer().unwrap(), &mut parts, &mut Room::default()).unwrap_err();
    assert!(error.is_no_room(), "{error}");
    assert_eq!(client.t_get(b"a").unwrap().unwrap(), b"before");
    assert_eq!(client.items(), 1);
    client.check().sound().unwrap();
    assert!(segments(&client) + 2 >= free);
    apply(&*client, &[Op::Set(b"a", b"after"), Op::Set(b"b", &value)]);
}
