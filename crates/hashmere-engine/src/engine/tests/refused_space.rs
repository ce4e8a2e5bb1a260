//! Space after a refusal: each kind of request is made again and again, and each time another of its requests for
//! memory is refused, as tmpfs does it (nothing is taken) and as ext4 does (a part is, and stays). What failed has left
//! what counts as free with memory behind it, holes without, nothing behind the end of the file, and no less room than
//! there was.

use super::audit::audit;
use super::crash::is_sound;
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use crate::engine::When;
use crate::error::WriteError;
use crate::types::Attributes;
use hashmere_format::region::kind::POOL;
use hashmere_format::segment::State;
use hashmere_mem::Mem;
use std::io::ErrorKind;
use std::ops::Range;

/// A kind of request: its name, what is there before, and what is asked.
type Kind = (&'static str, fn(&Client), fn(&Client) -> Result<(), WriteError>);

fn key(number: usize) -> Vec<u8> {
    format!("key{number}").into_bytes()
}

fn few(client: &Client) {
    (0..8).for_each(|i| client.t_set(&key(i), &[b'f'; 300]).unwrap());
}

/// Until the open segment has no more room.
fn up_to_the_end(client: &Client) {
    few(client);
    let segments = client.segments();
    for i in 8.. {
        client.t_set(&key(i), &[b'e'; 300]).unwrap();
        if client.segments() > segments {
            break;
        }
    }
    (0..11).for_each(|i| client.t_set(format!("end{i}").as_bytes(), &[b'e'; 330]).unwrap());
}

/// Large records that are gone: free segments, and holes between them.
fn with_holes(client: &Client) {
    few(client);
    (0..4).for_each(|i| client.t_set(format!("large{i}").as_bytes(), &[b'L'; 15_000]).unwrap());
    (0..4).step_by(2).for_each(|i| assert!(client.t_del(format!("large{i}").as_bytes()).unwrap()));
    client.t_compact().unwrap();
}

fn set(client: &Client, key: &[u8], len: usize) -> Result<(), WriteError> {
    client.t_put(key, &vec![b'v'; len], Attributes::NONE, When::Always).map(drop)
}

fn region(client: &Client, bytes: u64) -> Result<(), WriteError> {
    let mut writer = client.writer()?;
    let made = client.create_region(&mut writer, (POOL, b"pool"), bytes, |_| ())?;
    made.into_iter().for_each(|place| client.close_region(place));
    Ok(())
}

/// As many new keys as make a leaf split, a directory double and buckets overflow.
fn many_keys(client: &Client) -> Result<(), WriteError> {
    (0..120).try_for_each(|i| set(client, format!("#new{i}").as_bytes(), i % 9))
}

/// Those that are done in steps, each of which stays done.
const SEVERAL: [&str; 2] = ["new keys", "an index for many"];

const KINDS: &[Kind] = &[
    ("a set into a new segment", up_to_the_end, |client| set(client, b"new", 400)),
    ("a large set", few, |client| set(client, b"new", 30_000)),
    ("a large set where there are holes", with_holes, |client| set(client, b"new", 22_000)),
    ("a large set over a large one", with_holes, |client| set(client, b"large1", 22_000)),
    ("an append that makes it large", few, |client| client.t_append(&key(1), &[b'+'; 20_000]).map(drop)),
    ("a set longer than the file", few, |client| set(client, b"new", 200_000)),
    ("a region", few, |client| region(client, 30_000)),
    ("a region where there are holes", with_holes, |client| region(client, 22_000)),
    ("new keys", few, many_keys),
    ("an index for many", few, |client| client.presize(&mut *client.writer()?, 900)),
    ("clear", with_holes, |client| client.t_clear()),
];

/// What must hold of the memory behind every segment.
fn accounted(fixture: &Fixture, client: &Client) -> Result<(), String> {
    audit(client)?;
    for number in 0..client.segments() {
        if client.state(number).state == State::Hole && fixture.heap.has_memory(client.segment_offset(number)) {
            return Err(format!("segment {number} is a hole, and has memory"));
        }
    }
    let end = client.segment_offset(client.segments());
    let behind = (end..fixture.heap.capacity()).step_by(4096).find(|offset| fixture.heap.has_memory(*offset));
    behind.map_or(Ok(()), |offset| Err(format!("there is memory at {offset}, and the file ends at {end}")))
}

/// How many keys go into what is left: into a cache any number.
fn room(client: &Client) -> usize {
    let fill = |i: &usize| {
        let done = set(client, format!("fill{i}").as_bytes(), 500);
        assert!(done.is_ok() || !client.layout.is_cache(), "a cache was full after {i}: {done:?}");
        done.is_ok()
    };
    (0..300).take_while(fill).count()
}

/// Makes a store, and the request while these requests for memory are refused, if any. How many there were, and how
/// much room there is if it failed.
fn run(geometry: Geometry, (name, before, act): Kind, refuse: Range<u64>, halves: bool) -> (u64, Option<usize>) {
    let fixture = Fixture::new(geometry);
    let client = fixture.client();
    before(&client);
    client.probe.refuse(refuse.clone());
    client.probe.take_halves(halves);
    let done = act(&client);
    let requests = client.probe.requests();
    client.probe.refuse(0..0);
    let text = || format!("{name}, requests {refuse:?} of {geometry:?} refused, halves {halves}: {done:?}");
    assert!(matches!(done, Ok(()) | Err(WriteError::NoSpace(_) | WriteError::Full { .. })), "{}", text());
    let sound = accounted(&fixture, &client).and_then(|()| is_sound(&client, client.items()));
    sound.unwrap_or_else(|wrong| panic!("{}: {wrong}", text()));
    let left = done.is_err().then(|| room(&client));
    audit(&client).unwrap_or_else(|wrong| panic!("{}, in the end: {wrong}", text()));
    (requests, left)
}

pub(super) fn each_kind_of_request_leaves_space_as_it_was() {
    let step = if cfg!(miri) { 11 } else { 1 };
    for geometry in [strict(40), strict(40).small_leaves(), cache(40), strict(40).durable()] {
        for kind in KINDS {
            let (requests, _) = run(geometry, *kind, 0..0, false);
            let nothing: Kind = (kind.0, kind.1, |_| Err(WriteError::NoSpace(ErrorKind::StorageFull.into())));
            let fits = run(geometry, nothing, 0..0, false).1.unwrap();
            for at in (0..requests).step_by(step) {
                for (last, halves) in [(at + 1, false), (at + 1, true), (u64::MAX, false), (u64::MAX, true)] {
                    let left = run(geometry, *kind, at..last, halves).1;
                    // What several steps did before one failed is there. Of one alone a leaf may be left, for the next.
                    let least = if SEVERAL.contains(&kind.0) { 0 } else { fits - 8 };
                    assert!(
                        left.is_none_or(|left| left >= least),
                        "{}: {fits} fitted before, {left:?} after {at}",
                        kind.0
                    );
                }
            }
        }
    }
}

#[test]
fn each_request_refused_leaves_space_as_it_was() {
    each_kind_of_request_leaves_space_as_it_was();
}
