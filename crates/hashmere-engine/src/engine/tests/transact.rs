//! Transactions: what they do when no process dies.

use super::fixture::{strict, Client, Fixture, TestEngine};
use crate::engine::transact::{Change, Guard, Outcome, Part, Span, Value};
use crate::engine::{Engine, KeyHash, Room, When, Writer};
use crate::error::WriteError;
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

/// A transaction of a test: its parts, and their keys and values.
#[derive(Default)]
pub(super) struct Parts {
    bytes: Vec<u8>,
    pub(super) parts: Vec<Part>,
}

impl Parts {
    pub(super) fn of<M: Mem, H: Host>(engine: &Engine<M, H>, ops: &[Op<'_>]) -> Parts {
        let mut parts = Parts::default();
        ops.iter().for_each(|op| parts.add(engine, *op));
        parts
    }

    fn add<M: Mem, H: Host>(&mut self, engine: &Engine<M, H>, op: Op<'_>) {
        let put = |bytes| Change::Put(Value { bytes, ..Value::default() });
        let (key, guard, change) = match op {
            Op::Set(key, value) => (key, Guard::Any, put(self.keep(value))),
            Op::Delete(key) => (key, Guard::Any, Change::Remove),
            Op::Look(key) => (key, seen(engine, key), Change::Same),
            Op::Absent(key, value) => (key, ABSENT, put(self.keep(value))),
            Op::Touch(key, value, expires) => {
                let bytes = self.keep(value);
                let value = Value { bytes, expires: Some(expires), keeps_version: true, ..Value::default() };
                (key, Guard::Any, Change::Put(value))
            }
        };
        self.push(key, engine.hash(key), guard, change);
    }

    fn push(&mut self, key: &[u8], kh: KeyHash, guard: Guard, change: Change) {
        let mut part = Part::new(self.keep(key), kh);
        (part.guard, part.change) = (guard, change);
        self.parts.push(part);
    }

    fn keep(&mut self, bytes: &[u8]) -> Span {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        Span { start, end: self.bytes.len() }
    }

    pub(super) fn commit<M: Mem, H: Host>(
        &mut self,
        engine: &Engine<M, H>,
        writer: &mut Writer,
    ) -> Result<Outcome, WriteError> {
        engine.transact(writer, &self.bytes, &mut self.parts, &mut Room::default())
    }
}

/// A key must be absent. (The version of its bucket is for who reads again.)
const ABSENT: Guard = Guard::Absent(0);

fn seen<M: Mem, H: Host>(engine: &Engine<M, H>, key: &[u8]) -> Guard {
    engine.peek(key, engine.hash(key)).unwrap().map_or(ABSENT, Guard::Seen)
}

pub(super) fn apply<M: Mem, H: Host>(engine: &Engine<M, H>, ops: &[Op<'_>]) {
    let done = Parts::of(engine, ops).commit(engine, &mut engine.writer().unwrap()).unwrap();
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
    let mut refused = Parts::of(&*client, &ops);
    let other = client.peek(b"k1", client.hash(b"k1")).unwrap().unwrap();
    refused.push(b"z", client.hash(b"z"), Guard::Seen(other), Change::Same);
    assert_eq!(refused.commit(&client, &mut client.writer().unwrap()).unwrap(), Outcome::Conflict(41));
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
    let mut all = Parts::of(&*client, &ops);
    all.commit(&client, &mut client.writer().unwrap()).unwrap();
    let [a, b, c, _] = &all.parts[..] else { unreachable!() };
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
        let mut parts = Parts::default();
        parts.push(b"e", client.hash(b"e"), guard, Change::Same);
        parts.add(&*client, Op::Set(b"x", b"y"));
        parts.commit(&client, &mut client.writer().unwrap()).unwrap()
    };
    assert_eq!(go(guard), Outcome::Committed);
    assert!(client.t_touch(b"e", Ttl::At(60_000)).unwrap());
    assert_eq!(go(guard), Outcome::Conflict(0));
    assert_eq!(go(ABSENT), Outcome::Conflict(0));
    let guard = seen(&*client, b"e");
    assert_eq!(go(guard), Outcome::Committed);
    fixture.peers.set_now_ms(70_000);
    assert_eq!(go(guard), Outcome::Conflict(0));
    assert_eq!(go(ABSENT), Outcome::Committed);
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
        let mut parts = Parts::default();
        for (key, kh) in chunk {
            let bytes = parts.keep(key);
            parts.push(key, *kh, Guard::Any, Change::Put(Value { bytes, ..Value::default() }));
        }
        match parts.commit(&client, &mut client.writer().unwrap()) {
            Ok(done) => assert_eq!(done, Outcome::Committed),
            Err(error) => panic!("{error}"),
        }
    }
    client.check().sound().unwrap();
    assert!(client.stats(0, 0).index_overflow > 20);
    for (key, kh) in &keys {
        assert_eq!(client.t_item(key, *kh).unwrap().unwrap().value, *key);
    }
    let mut gone = Parts::default();
    keys.iter().take(25).for_each(|(key, kh)| gone.push(key, *kh, Guard::Any, Change::Remove));
    assert_eq!(gone.commit(&client, &mut client.writer().unwrap()).unwrap(), Outcome::Committed);
    assert!(gone.parts.iter().all(|part| part.was_there));
    assert_eq!(client.items(), 15);
    client.check().sound().unwrap();
}

#[test]
fn a_snapshot_of_keys_that_change_all_the_time_names_one_of_them() {
    let fixture = Fixture::new(strict(24));
    let client = fixture.client();
    ["a", "b"].iter().for_each(|key| client.t_set(key.as_bytes(), b"0").unwrap());
    let keys = [&b"a"[..], b"b"].map(|key| (key, client.hash(key)));
    // Behind each look at the second key it is changed: at no moment between two looks do both stay.
    let changes = std::cell::Cell::new(0);
    let read = |key: &[u8], kh: KeyHash| {
        let item = client.t_item(key, kh);
        if key == b"b" {
            changes.set(changes.get() + 1);
            client.t_set(b"b", changes.get().to_string().as_bytes()).unwrap();
        }
        item
    };
    assert_eq!(client.snapshot_of(&keys, &read).unwrap().map(|items| items.len()), Err(1));
    assert_eq!(changes.get(), 1000);
    // The first try is good if nothing changes.
    let items = client.snapshot_of(&keys, &|key, kh| client.t_item(key, kh)).unwrap().unwrap();
    assert_eq!(items[1].as_ref().unwrap().value, b"1000");
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
    let error = Parts::of(&*client, &ops).commit(&client, &mut client.writer().unwrap()).unwrap_err();
    assert!(error.is_no_room(), "{error}");
    assert_eq!(client.t_get(b"a").unwrap().unwrap(), b"before");
    assert_eq!(client.items(), 1);
    client.check().sound().unwrap();
    assert!(segments(&client) + 2 >= free);
    apply(&*client, &[Op::Set(b"a", b"after"), Op::Set(b"b", &value)]);
}
