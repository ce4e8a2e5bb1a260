//! The calls of a store in small, quick enough for Miri: it follows every access, and finds undefined behaviour, data
//! races, and loads for whose ordering nothing vouches.

use super::audit::audit;
use super::crash::{dump, is_sound, State};
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use super::transact::{apply, Op};
use crate::engine::When;
use crate::types::{Attributes, Ttl};
use hashmere_format::segment::{self, Word};
use hashmere_format::uid::Scan;
use std::thread;
use std::time::Duration;

/// A store that must be sound at the end, and what it must hold then.
struct Case {
    fixture: Fixture,
    state: State,
}

impl Case {
    fn new(geometry: Geometry) -> Case {
        Case { fixture: Fixture::plain(geometry), state: State::new() }
    }

    fn set(&mut self, client: &Client, key: String, value: &[u8]) {
        client.t_set(key.as_bytes(), value).unwrap();
        self.state.insert(key.into_bytes(), value.to_vec());
    }

    /// What a newcomer sees is right.
    fn end(&self, client: &Client) {
        assert_eq!(dump(&self.fixture.reader(), &self.state).unwrap(), self.state);
        is_sound(client, self.state.len() as u64).unwrap();
        audit(client).unwrap();
    }
}

#[test]
fn calls_of_every_kind() {
    let mut case = Case::new(strict(12));
    let mut client = case.fixture.client();
    case.set(&client, "short".into(), b"1");
    case.set(&client, "empty".into(), b"");
    case.set(&client, "large".into(), &[b'l'; 5000]);
    assert_eq!(client.t_incr(b"n", 5, Some(7)).unwrap(), Some(7));
    assert_eq!(client.t_incr(b"n", 5, Some(7)).unwrap(), Some(12));
    client.t_append(b"short", b"234").unwrap();
    let with = Attributes { flags: 9, ttl: Ttl::At(50_000), ..Attributes::NONE };
    assert!(client.t_put(b"ttl", b"expires", with, When::Absent).unwrap().is_some());
    assert!(client.t_put(b"ttl", b"again", with, When::Absent).unwrap().is_none());
    assert!(client.t_touch(b"ttl", Ttl::Never).unwrap());
    case.set(&client, "gone".into(), b"soon");
    assert!(client.t_del(b"gone").unwrap());
    assert!(!client.t_del(b"gone").unwrap());
    case.state.remove(&b"gone"[..]);
    for (key, value) in [("short", "1234"), ("n", "12"), ("ttl", "expires")] {
        case.state.insert(key.into(), value.into());
    }
    assert_eq!(client.t_view(b"ttl", client.hash(b"ttl")).unwrap().unwrap().metadata.flags, 9);
    case.end(&client);
    client.t_clear().unwrap();
    case.state.clear();
    case.end(&client);
    client.retire();
}

#[test]
pub(super) fn leaves_split_and_overflow() {
    let mut case = Case::new(strict(12).small_leaves());
    let client = case.fixture.client();
    (0..30).for_each(|n| case.set(&client, format!("k{n}"), b"spread"));
    (0..16).for_each(|n| case.set(&client, format!("#{n}"), b"collides"));
    assert!(client.stats(0, 0).splits > 0 && client.stats(0, 0).index_overflow > 0);
    case.end(&client);
}

/// Neither length is in the record then, and it takes several segments all the same.
#[test]
fn fixed_lengths_that_are_longer_than_a_segment() {
    let mut case = Case::new(Geometry { fixed: (Some(4), Some(9000)), ..strict(24) });
    let mut client = case.fixture.client();
    for round in 0..6 {
        (0..3).for_each(|i| case.set(&client, format!("key{i}"), &[b'a' + round + i; 9000]));
        assert!(client.t_del(b"key1").unwrap());
        assert_eq!(client.t_get(b"key2").unwrap(), Some(vec![b'c' + round; 9000]));
        case.state.remove(&b"key1"[..]);
    }
    assert!(client.t_touch(b"key0", Ttl::At(u64::MAX / 2)).unwrap());
    client.retire();
    case.end(&case.fixture.client());
}

/// What a reader finds through a cell is what the transaction's writer stored, also where loads and stores may be
/// seen in another order.
#[test]
fn transactions_beside_a_reader() {
    let fixture = Fixture::plain(strict(12));
    let (writer, reader) = (fixture.client(), fixture.client());
    let rounds = 6u8;
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=rounds {
                let value = [n; 12];
                apply(&*writer, &[Op::Set(b"x", &value), Op::Set(b"y", &value)]);
            }
        });
        scope.spawn(|| {
            let mut least = 0;
            while least < rounds {
                for key in [b"x", b"y"] {
                    let value = reader.t_get(key).unwrap().unwrap_or(vec![0; 12]);
                    assert!(value.iter().all(|byte| *byte == value[0]) && value[0] >= least, "{value:?} after {least}");
                    least = value[0];
                }
                thread::yield_now();
            }
        });
    });
    is_sound(&fixture.client(), 2).unwrap();
}

/// An empty place costs a scan nothing but a look: steps are for entries and leaves. How many places are looked at
/// stays in the caller's hands.
#[test]
fn a_scan_passes_empty_places() {
    let fixture = Fixture::plain(strict(12).small_leaves());
    let client = fixture.client();
    let steps = |most: usize| {
        let (mut at, mut steps, mut entries, root) = (Scan::START, 0_u32, 0_u32, client.root_word());
        while at.tree < 2 {
            let mut left = most;
            let step = client.scan_step(root, at, &mut left).unwrap();
            assert!(left < most, "a step that looked at nothing");
            (at, steps) = (step.next, steps + 1);
            entries += u32::from(step.entry.is_some());
        }
        (steps, entries)
    };
    let places = steps(1);
    assert_eq!(steps(usize::MAX), (2, 0), "one for the leaf, one for the overflow tree that is not there");
    assert_eq!(steps(3), ((places.0 - 1).div_ceil(3) + 1, 0));
    for n in 0..5 {
        client.t_set(format!("k{n}").as_bytes(), b"v").unwrap();
    }
    assert_eq!(steps(1), (places.0, 5));
    let (some, entries) = steps(usize::MAX);
    assert!(some <= 7 && entries == 5, "{some} steps for {entries} entries");
    assert_eq!(client.t_scan().unwrap().len(), 5);
}

#[test]
fn segments_are_cleaned_and_used_again() {
    let mut case = Case::new(strict(8));
    let client = case.fixture.client();
    for round in 0..8 {
        // One that stays, and so has to be moved, and some that do not.
        case.set(&client, format!("stays{round}"), b"s");
        (0..4).for_each(|n| case.set(&client, format!("k{n}"), &[b'0' + round; 700]));
    }
    client.t_compact().unwrap();
    let stats = client.stats(0, 0);
    assert!(stats.segments_cleaned > 0 && stats.records_moved > 0 && stats.recycle_epoch > 0);
    case.end(&client);
}

#[test]
fn a_full_cache_evicts() {
    let fixture = Fixture::plain(cache(6));
    let client = fixture.client();
    for n in 0..36 {
        client.t_set(format!("k{n}").as_bytes(), &[b'c'; 500]).unwrap();
    }
    assert!(client.stats(0, 0).evictions > 0);
    let items = dump(&client, &State::new()).unwrap().len();
    is_sound(&client, items as u64).unwrap();
    audit(&client).unwrap();
}

#[test]
fn crashed_clients_are_repaired() {
    let mut case = Case { fixture: Fixture::new(strict(12).small_leaves()), state: State::new() };
    let (victim, client) = (case.fixture.client(), case.fixture.client());
    case.set(&victim, "key".into(), b"first");
    case.set(&client, "other".into(), b"o");
    victim.probe.die_after(24);
    assert!(super::probe::until_death(|| victim.t_set(b"key", b"second")).is_none());
    victim.kill();
    case.set(&client, "key".into(), b"third");
    client.sweep().unwrap();
    case.end(&client);
}

/// A value that says in each of its words which it is.
fn value(n: usize) -> Vec<u8> {
    format!("{n:08}").repeat(12).into_bytes()
}

/// How often a thread does what it does.
const ROUNDS: usize = if cfg!(miri) { 16 } else { 3000 };

/// Overwrites "key", so often that its segments are recycled, and counts "n" up.
fn write(client: &Client) {
    for n in 0..ROUNDS {
        client.t_set(b"key", &value(n)).unwrap();
        client.t_incr(b"n", 1, None).unwrap().unwrap();
    }
}

/// Reads "key": always there, never torn, never an earlier one again.
fn read(client: &Client) {
    client.probe.be_lenient();
    let mut last = Vec::new();
    for n in 0..ROUNDS {
        let now = if n % 2 == 0 {
            client.t_get(b"key").unwrap().unwrap()
        } else {
            client.t_view(b"key", client.hash(b"key")).unwrap().unwrap().value
        };
        assert!(now.chunks(8).all(|word| *word == now[..8]), "{}", now.escape_ascii());
        assert!(now >= last, "{} after {}", now.escape_ascii(), last.escape_ascii());
        last = now;
    }
}

/// Gives "key" a segment of its own, again and again: each time the one before is recycled.
fn turn_over(client: &Client) {
    for n in 0..ROUNDS {
        client.t_set(b"key", &value(n)).unwrap();
        let mut writer = client.writer().unwrap();
        let segment = writer.open.as_ref().unwrap().number;
        client.retire_segment(&mut writer);
        client.set_state(segment, Word::new(segment::State::Sealed));
        for segment in 0..client.segments() {
            client.free_if_dead(&writer, segment).unwrap();
        }
    }
}

/// Two threads write and two read; `clients` are their processes.
fn together(fixture: &Fixture, clients: [&Client; 4]) {
    // No client dies, so none may give up on a thread that the machine does not run just now.
    fixture.peers.set_tick(Duration::ZERO);
    clients[0].t_set(b"key", &value(0)).unwrap();
    clients[0].t_incr(b"n", 1, Some(0)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| write(clients[0]));
        scope.spawn(|| {
            for n in 0..ROUNDS {
                clients[1].t_incr(b"n", 1, None).unwrap().unwrap();
                clients[1].t_set(b"own", &value(n)).unwrap();
            }
        });
        scope.spawn(|| read(clients[2]));
        scope.spawn(|| read(clients[3]));
    });
    let expected = [("key", value(ROUNDS - 1)), ("own", value(ROUNDS - 1)), ("n", (2 * ROUNDS).to_string().into())];
    let state: State = expected.into_iter().map(|(key, value)| (key.into(), value)).collect();
    assert_eq!(dump(&fixture.reader(), &state).unwrap(), state);
    is_sound(clients[0], 3).unwrap();
    audit(clients[0]).unwrap();
}

#[test]
fn processes_work_together() {
    let fixture = Fixture::plain(strict(12));
    let clients = [(); 4].map(|()| fixture.client());
    together(&fixture, clients.each_ref());
}

#[test]
fn threads_of_one_process_work_together() {
    let fixture = Fixture::plain(strict(12));
    let client = fixture.client();
    together(&fixture, [&client; 4]);
}

#[test]
fn a_value_stays_whole_while_its_segments_are_recycled() {
    let fixture = Fixture::plain(strict(8));
    let clients = [(); 2].map(|()| fixture.client());
    clients[0].t_set(b"key", &value(0)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| turn_over(&clients[0]));
        scope.spawn(|| read(&clients[1]));
    });
    assert!(clients[0].stats(0, 0).recycle_epoch as usize > ROUNDS / 2);
    assert_eq!(clients[0].t_get(b"key").unwrap(), Some(value(ROUNDS - 1)));
    is_sound(&clients[0], 1).unwrap();
    audit(&clients[0]).unwrap();
}
