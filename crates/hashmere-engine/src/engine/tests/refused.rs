//! No memory at any point: a sequence of operations is done again and again, and each time another request for memory
//! is refused, until every one was. The operation that meets the refusal fails and changes nothing, or finds another
//! way; when there is memory again it succeeds; and in the end nothing was lost, neither a record nor a segment.

use super::audit::audit;
use super::crash::{dump, is_sound, State};
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use crate::engine::When;
use crate::error::WriteError;
use crate::types::{Attributes, Ttl};
use std::ops::Range;

/// One call of a sequence.
#[derive(Clone, Debug)]
enum Call {
    Set(Vec<u8>, Vec<u8>),
    Expiring(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Append(Vec<u8>, Vec<u8>),
    Count(Vec<u8>),
    Maintain,
    Presize(u64),
    Clear,
}

impl Call {
    fn act(&self, client: &Client) -> Result<(), WriteError> {
        match self {
            Call::Set(key, value) => client.t_set(key, value),
            Call::Expiring(key, value) => {
                let attributes = Attributes { flags: 1, ttl: Ttl::At(u64::MAX / 2), ..Attributes::NONE };
                client.t_put(key, value, attributes, When::Always).map(drop)
            }
            Call::Delete(key) => client.t_del(key).map(drop),
            Call::Append(key, tail) => client.t_append(key, tail).map(drop),
            Call::Count(key) => client.t_incr(key, 1, Some(1)).map(drop),
            Call::Maintain => client.t_compact().map(drop),
            Call::Presize(items) => client.presize(&mut *client.writer()?, *items),
            Call::Clear => client.t_clear(),
        }
    }

    /// What it makes of a store that has room for everything.
    fn apply(&self, state: &mut State) {
        match self {
            Call::Set(key, value) | Call::Expiring(key, value) => drop(state.insert(key.clone(), value.clone())),
            Call::Delete(key) => drop(state.remove(key)),
            Call::Append(key, tail) => {
                if let Some(value) = state.get_mut(key) {
                    value.extend(tail);
                }
            }
            Call::Count(key) => {
                let value = state.entry(key.clone()).or_insert_with(|| b"0".to_vec());
                let number: u64 = std::str::from_utf8(value).unwrap().parse().unwrap();
                *value = (number + 1).to_string().into_bytes();
            }
            Call::Maintain | Call::Presize(_) => {}
            Call::Clear => state.clear(),
        }
    }
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number}").into_bytes()
}

/// Grows, splits, doubles, overflows, makes garbage, cleans, and begins again.
fn calls() -> Vec<Call> {
    let mut calls = Vec::new();
    for i in 0..70 {
        calls.push(Call::Set(key(i), vec![b'a' + i as u8 % 26; 20 + i * 37 % 500]));
        calls.push(Call::Set(format!("#same{}", i % 30).into_bytes(), vec![b's'; i]));
        match i % 7 {
            0 => calls.push(Call::Set(key(i / 2), vec![b'L'; 3000 + 1500 * (i % 5)])),
            1 => calls.push(Call::Expiring(key(i), vec![b'x'; 300])),
            2 => calls.push(Call::Append(key(i / 3), vec![b'+'; 200])),
            3 => calls.push(Call::Count(b"n".to_vec())),
            4 => calls.push(Call::Delete(key(i / 2))),
            _ => calls.push(Call::Set(key(i / 4), vec![b'r'; 400])),
        }
        if i % 30 == 29 {
            calls.extend([Call::Maintain, Call::Presize(8 * i as u64)]);
        }
    }
    calls.push(Call::Clear);
    calls.extend((0..40).map(|i| Call::Set(key(i), vec![b'z'; 450])));
    calls
}

/// Does the sequence while these requests are refused. How many requests there were.
fn run(geometry: Geometry, refuse: Range<u64>) -> u64 {
    let fixture = Fixture::new(geometry);
    let client = fixture.client();
    client.probe.refuse(refuse.clone());
    let mut state = State::new();
    for (number, call) in calls().iter().enumerate() {
        let before = client.probe.requests();
        let done = call.act(&client);
        let met = refuse.start < client.probe.requests() && refuse.end > before;
        let text = || format!("request {refuse:?}, call {number}: {done:?}");
        match &done {
            Ok(()) => call.apply(&mut state),
            Err(WriteError::NoSpace(_)) => {
                assert!(met, "{}: nothing was refused", text());
                let seen = dump(&fixture.reader(), &state).unwrap();
                assert!(seen == state, "{}: a call that failed changed something", text());
                client.probe.refuse(0..0);
                call.act(&client).unwrap_or_else(|error| panic!("{}, and again: {error}", text()));
                call.apply(&mut state);
                // The rest of the sequence is that of a run in which nothing was refused.
                client.probe.refuse(0..0);
            }
            Err(error) => panic!("request {refuse:?}, call {number}: {error}"),
        }
    }
    let requests = client.probe.requests();
    assert!(dump(&fixture.reader(), &state).unwrap() == state, "request {refuse:?}: in the end");
    is_sound(&client, state.len() as u64).unwrap();
    no_segment_is_lost(&client);
    requests
}

/// When everything is deleted, everything is free but the index and what the client writes to.
fn no_segment_is_lost(client: &Client) {
    client.t_clear().unwrap();
    client.t_compact().unwrap();
    let audit = audit(client).unwrap();
    let nothing = audit.large == 0 && audit.pending_free == 0 && audit.index == 1 && audit.log <= 1;
    assert!(nothing && audit.free + audit.log + audit.held + audit.table + 1 == audit.total, "{audit:?}");
}

fn refuse_each(name: &str, geometry: Geometry, many: u64) {
    let requests = run(geometry, u64::MAX..u64::MAX);
    let step = if cfg!(miri) { 97 } else { 1 };
    for at in (0..requests).step_by(step) {
        run(geometry, at..at + many);
    }
    println!("{name}: each of {requests} requests for memory refused, and {} after it", many - 1);
}

#[test]
fn each_request_for_memory_refused() {
    refuse_each("roomy", strict(96).small_leaves(), 1);
    refuse_each("roomy, larger leaves", strict(96), 1);
}

#[test]
fn each_request_for_memory_refused_and_all_that_follow() {
    refuse_each("roomy", strict(96).small_leaves(), u64::MAX / 2);
}

/// In a cache the call may evict before it fails, but what it leaves is whole.
#[test]
fn each_request_refused_in_a_full_cache() {
    let sequence = |refuse: Range<u64>| {
        let fixture = Fixture::new(cache(16));
        let client = fixture.client();
        client.probe.refuse(refuse);
        for call in &calls() {
            match call.act(&client) {
                Ok(()) => {}
                Err(WriteError::NoSpace(_) | WriteError::Full { .. }) => client.probe.refuse(0..0),
                Err(error) => panic!("{call:?}: {error}"),
            }
        }
        let requests = client.probe.requests();
        let seen = dump(&fixture.reader(), &State::new()).unwrap();
        is_sound(&client, seen.len() as u64).unwrap();
        no_segment_is_lost(&client);
        requests
    };
    let requests = sequence(u64::MAX..u64::MAX);
    (0..requests).for_each(|at| _ = sequence(at..at + 1));
    println!("cache: each of {requests} requests for memory refused");
}

/// A client that gets no memory for its row is refused, and leaves no trace.
#[test]
fn a_newcomer_without_memory() {
    let fixture = Fixture::new(strict(24));
    let first = fixture.client();
    first.t_set(b"here", b"before").unwrap();
    for at in 0.. {
        let newcomer = fixture.client();
        newcomer.probe.refuse(at..at + 1);
        match newcomer.t_set(b"new", b"value") {
            Ok(()) => {
                assert!(newcomer.probe.requests() <= at, "all were tried");
                break;
            }
            Err(WriteError::NoSpace(_)) => newcomer.t_set(b"new", b"value").unwrap(),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(first.t_get(b"here").unwrap().as_deref(), Some(&b"before"[..]));
        newcomer.kill();
        first.sweep().unwrap();
        is_sound(&first, 2).unwrap();
    }
}
