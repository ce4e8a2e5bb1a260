//! The change feed when no process dies: what it tells, how it goes round, how it is switched on and off.

use super::crash::State;
use super::fixture::{cache, strict, Fixture, TestEngine};
use super::transact::{apply, Op};
use crate::engine::{FeedStep, When};
use crate::types::{Attributes, Change, Expected, Ttl};
use hashmere_format::feed::{self, bit, decode, Decoded, EntryHead, Geometry, Operation};
use hashmere_format::header::at;
use hashmere_format::region::kind;
use hashmere_mem::{Host, Mem};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) type Entry = (u64, EntryHead, Vec<Decoded>);

/// Every entry from a position on.
pub(super) fn entries(client: &TestEngine, from: u64) -> Result<Vec<Entry>, String> {
    let number = client.feed_info().ok_or("the feed is off")?.number;
    let (mut found, mut words) = (Vec::new(), Vec::new());
    for position in from.. {
        match client.read_feed(number, position, &mut words).map_err(|e| e.to_string())? {
            FeedStep::Entry => {
                let (head, changes) = decode(&words).ok_or(format!("no entry at {position}: {words:x?}"))?;
                found.push((position, head, changes));
            }
            FeedStep::End => break,
            step => return Err(format!("{step:?} at {position}")),
        }
    }
    Ok(found)
}

/// Whether all entries together tell what the store holds, in an order that agrees with each key's versions.
pub(super) fn tells(client: &TestEngine, state: &State) -> Result<(), String> {
    let generation = client.root_generation() as u32;
    let mut known: BTreeMap<Vec<u8>, (u64, Option<Decoded>)> = BTreeMap::new();
    let mut last = 0;
    for (position, head, changes) in entries(client, 0)? {
        if head.generation > last {
            (last, known) = (head.generation, BTreeMap::new());
        }
        for change in changes.into_iter().filter(|_| head.generation == last) {
            let (version, key) = (change.head.version, change.key.clone());
            let (before, was) = known.get(&key).map_or((0, None), |(version, was)| (*version, was.clone()));
            let text = || format!("{} at {position}: {:?}", key.escape_ascii(), change.head);
            // A repetition is the same, or a removal that a repair numbered.
            let repeated = was.as_ref().map_or(change.head.operation.removes(), |was| was.value == change.value);
            if version < before || version == before && !repeated && change.head.operation != Operation::Touch {
                return Err(format!("version {before} comes before {}", text()));
            }
            let now = (!change.head.operation.removes()).then_some(change);
            known.insert(key, (version, now));
        }
    }
    if generation > last {
        known.clear();
    }
    let now_ms = client.host.now_ms();
    for (key, (version, told)) in &known {
        let there = client.peek(key, client.t_hash(key)).map_err(|e| e.to_string())?;
        let Some(told) = told else {
            if there.is_some() {
                return Err(format!("{} is there, and reported to be gone", key.escape_ascii()));
            }
            continue;
        };
        if told.head.expires.is_some_and(|at| at <= now_ms) && there.is_none() {
            continue;
        }
        let Some(there) = there else { return Err(format!("{} is reported to be there", key.escape_ascii())) };
        let same = there.version.0 == *version
            && there.expires_at_ms == told.head.expires
            && u64::from(there.flags) == told.head.flags & u64::from(u32::MAX);
        let value = told.value.as_ref().or(state.get(key).filter(|_| told.head.bits & bit::OMITTED != 0));
        if !same || value != state.get(key) {
            return Err(format!("{} is reported as {:?}, and is {there:?}", key.escape_ascii(), told.head));
        }
    }
    match state.keys().find(|key| !known.contains_key(*key)) {
        Some(key) => Err(format!("{} has no entry", key.escape_ascii())),
        None => Ok(()),
    }
}

fn state(client: &TestEngine) -> State {
    client.t_scan().unwrap().into_iter().collect()
}

fn operations(entries: &[Entry]) -> Vec<(Operation, &str)> {
    let changes = entries.iter().flat_map(|(.., changes)| changes);
    changes.map(|change| (change.head.operation, std::str::from_utf8(&change.key).unwrap())).collect()
}

#[test]
pub(super) fn every_kind_of_change_is_told() {
    for geometry in [strict(64).with_feed(), strict(64).with_feed().durable()] {
        let fixture = Fixture::new(geometry);
        let client = fixture.client();
        client.t_set(b"a", b"12345678").unwrap();
        client.t_set(b"a", b"87654321").unwrap();
        client.t_set(b"a", b"in place").unwrap();
        client.t_incr(b"n", 1, Some(41)).unwrap();
        client.t_incr(b"n", 1, None).unwrap();
        let with = Attributes { flags: 7, ttl: Ttl::At(50_000), ..Attributes::NONE };
        client.t_put(b"t", b"expires", with, When::Always).unwrap();
        assert!(client.t_touch(b"t", Ttl::At(60_000)).unwrap());
        assert!(client.t_touch(b"a", Ttl::At(70_000)).unwrap());
        client.t_append(b"a", b" and more").unwrap();
        client.t_put(b"a", b"not stored", Attributes::NONE, When::Absent).unwrap();
        assert!(!client.t_del(b"absent").unwrap());
        let kh = client.t_hash(b"t");
        let cas = |change| {
            client.cas(&mut client.writer().unwrap(), b"t", kh, Expected::Value(b"expires"), change).unwrap();
        };
        cas(Change::Set(b"compared"));
        cas(Change::Remove);
        assert!(client.t_del(b"n").unwrap());
        apply(&client, &[Op::Set(b"t", b"of three"), Op::Delete(b"a"), Op::Set(b"x", b""), Op::Look(b"n")]);
        client.t_set(b"long", &[b'v'; 5000]).unwrap();
        tells(&client, &state(&client)).unwrap();
        let entries = entries(&client, 0).unwrap();
        use Operation::{Delete, Set, Touch};
        let expected = [
            (Set, "a"),
            (Set, "a"),
            (Set, "a"),
            (Set, "n"),
            (Set, "n"),
            (Set, "t"),
            (Touch, "t"),
            (Touch, "a"),
            (Set, "a"),
            (Set, "t"),
            (Delete, "n"),
            (Set, "t"),
            (Delete, "a"),
            (Set, "x"),
            (Set, "long"),
        ];
        assert_eq!(operations(&entries), expected);
        let (_, head, changes) = &entries[entries.len() - 2];
        assert_eq!((head.changes, head.generation, head.ts_ms > 0), (3, 1, true));
        assert_eq!(changes[0].value.as_deref(), Some(b"of three".as_slice()));
        // Too long for an eighth of these chunks.
        let long = &entries.last().unwrap().2[0];
        assert_eq!((long.head.bits, long.head.value_len, &long.value), (bit::OMITTED, 5000, &None));
        assert!(client.check().problems.is_empty());
    }
}

#[test]
fn without_values_their_lengths_are_told() {
    let small = Geometry { values: false, ..Geometry::within(1 << 20, true) };
    let fixture = Fixture::new(strict(400).feed_of(small));
    let client = fixture.client();
    client.t_set(b"key", b"value").unwrap();
    let entries = entries(&client, 0).unwrap();
    let change = &entries[0].2[0];
    assert_eq!((change.head.bits, change.head.value_len, &change.value), (bit::OMITTED, 5, &None));
    assert_eq!(entries[0].1.words, 3 + 2 + 1);
}

#[test]
fn what_a_cache_evicts_and_what_expired_is_told() {
    let fixture =
        Fixture::new(cache(40).feed_of(Geometry { ring_shift: 12, chunks: 60, ..Geometry::within(1 << 20, true) }));
    let client = fixture.client();
    let brief = Attributes { ttl: Ttl::After(Duration::from_secs(1)), ..Attributes::NONE };
    for i in 0..60 {
        client.t_put(format!("brief{i}").as_bytes(), &[b'b'; 300], brief, When::Always).unwrap();
    }
    fixture.peers.advance(Duration::from_secs(2));
    client.t_compact().unwrap();
    let expired = entries(&client, 60).unwrap();
    assert!(expired.iter().all(|(.., changes)| changes[0].head.operation == Operation::Expire));
    assert!(expired.len() > 30, "{}", expired.len());
    let from = client.feed_info().unwrap().position;
    let mut told = State::new();
    let mut position = from;
    for i in 0..2000 {
        client.t_set(format!("k{}", i % 700).as_bytes(), &[i as u8; 100]).unwrap();
        for (at, _, changes) in entries(&client, position).unwrap() {
            position = at + 1;
            for change in changes {
                match change.head.operation {
                    Operation::Set => drop(told.insert(change.key, change.value.unwrap())),
                    Operation::Evict | Operation::Expire => drop(told.remove(&change.key)),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    assert!(client.stats(0, 0).evictions > 100);
    assert_eq!(told, state(&client));
}

/// The ring and the chunks go round many times; who follows misses nothing, and who is late learns it.
#[test]
pub(super) fn positions_that_are_gone_are_told() {
    let fixture = Fixture::new(strict(64).with_feed());
    let clients = [fixture.client(), fixture.client()];
    let mut position = 0;
    for i in 0..4000u64 {
        let client = &clients[(i % 7 == 0) as usize];
        client.t_set(format!("k{}", i % 5).as_bytes(), &vec![i as u8; (i * 13 % 200) as usize]).unwrap();
        let new = entries(client, position).unwrap();
        assert_eq!((new.len(), new[0].0), (1, i));
        assert_eq!(new[0].2[0].value.as_ref().unwrap()[..], vec![i as u8; (i * 13 % 200) as usize]);
        position = i + 1;
    }
    let client = &clients[0];
    let info = client.feed_info().unwrap();
    assert_eq!(info.position, 4000);
    // Half of what the chunks hold at least.
    assert!((3800..3990).contains(&info.oldest), "{info:?}");
    let mut words = Vec::new();
    let mut at = |position| client.read_feed(info.number, position, &mut words).unwrap();
    assert!((0..info.oldest).step_by(7).all(|position| at(position) == FeedStep::Gone));
    assert!((info.oldest..4000).all(|position| at(position) == FeedStep::Entry));
    assert_eq!(at(4000), FeedStep::End);
    assert_eq!(at(4000 + 256), FeedStep::Gone);
    assert_eq!(client.read_feed(info.number + 1, 3999, &mut Vec::new()).unwrap(), FeedStep::Off);
}

/// A writer that writes seldom keeps its chunk, and what it gives up late takes nothing newer along.
#[test]
fn a_slow_writer_costs_no_history() {
    let fixture = Fixture::new(strict(64).with_feed());
    let (fast, slow) = (fixture.client(), fixture.client());
    for round in 0..40u64 {
        slow.t_set(b"slow", &[round as u8; 150]).unwrap();
        for i in 0..50 {
            fast.t_set(format!("k{i}").as_bytes(), &[round as u8; 60]).unwrap();
            let info = fast.feed_info().unwrap();
            assert!(info.position < 150 || info.position - info.oldest >= 60, "{info:?}");
        }
    }
}

/// More writers than chunks: what has no room is a gap, and no write fails.
#[test]
pub(super) fn more_writers_than_chunks() {
    let tiny = Geometry { ring_shift: 8, chunk_shift: 10, chunks: 3, values: true };
    let fixture = Fixture::new(strict(64).feed_of(tiny));
    let mut clients: Vec<_> = (0..5).map(|_| fixture.client()).collect();
    for (i, client) in clients.iter().enumerate() {
        client.t_set(format!("k{i}").as_bytes(), b"v").unwrap();
    }
    let number = clients[0].feed_info().unwrap().number;
    let mut words = Vec::new();
    let steps: Vec<_> = (0..6).map(|at| clients[0].read_feed(number, at, &mut words).unwrap()).collect();
    use FeedStep::{End, Entry, Gap};
    assert_eq!(steps, [Entry, Entry, Entry, Gap, Gap, End]);
    // One that ends gives its chunk up.
    clients[0].retire();
    clients[4].t_set(b"k4", b"again").unwrap();
    assert_eq!(clients[1].read_feed(number, 5, &mut words).unwrap(), Entry);
    // And so does one that died, once it is repaired.
    clients[1].kill();
    clients[2].sweep().unwrap();
    clients[3].t_set(b"k3", b"again").unwrap();
    assert_eq!(clients[2].read_feed(number, 6, &mut words).unwrap(), Entry);
}

#[test]
fn a_transaction_that_is_too_long_is_a_gap() {
    let fixture =
        Fixture::new(strict(200).feed_of(Geometry { ring_shift: 8, chunk_shift: 10, chunks: 8, values: true }));
    let client = fixture.client();
    let keys: Vec<Vec<u8>> = (0..4u8).map(|i| vec![b'a' + i; 400]).collect();
    apply(&client, &keys.iter().map(|key| Op::Set(key, b"long keys")).collect::<Vec<_>>());
    apply(&client, &[Op::Set(b"short", &[b'v'; 600]), Op::Set(b"key", &[b'v'; 600])]);
    let number = client.feed_info().unwrap().number;
    let mut words = Vec::new();
    assert_eq!(client.read_feed(number, 0, &mut words).unwrap(), FeedStep::Gap);
    assert_eq!(client.read_feed(number, 1, &mut words).unwrap(), FeedStep::Entry);
    let (_, changes) = decode(&words).unwrap();
    assert!(changes.iter().all(|change| change.head.bits == bit::OMITTED && change.value.is_none()));
}

#[test]
fn a_clear_is_told_by_the_generation() {
    let fixture = Fixture::new(strict(64).with_feed());
    let client = fixture.client();
    client.t_set(b"before", b"1").unwrap();
    client.t_clear().unwrap();
    tells(&client, &State::new()).unwrap();
    assert_eq!(client.root_generation(), 2);
    client.t_set(b"after", b"2").unwrap();
    tells(&client, &state(&client)).unwrap();
    let generations: Vec<u32> = entries(&client, 0).unwrap().iter().map(|(_, head, _)| head.generation).collect();
    assert_eq!(generations, [1, 2]);
}

#[test]
fn on_and_off_and_on_again() {
    let fixture = Fixture::new(strict(600));
    let (client, other) = (fixture.client(), fixture.client());
    assert_eq!(client.feed_info(), None);
    client.t_set(b"a", b"unreported").unwrap();
    let on = |client: &TestEngine| client.enable_feed(&mut client.writer().unwrap(), 1 << 20, true);
    let off = |client: &TestEngine| client.disable_feed(&mut client.writer().unwrap());
    assert_eq!(
        on(&client).and(client.enable_feed(&mut client.writer().unwrap(), 1 << 19, true)).unwrap_err().code(),
        37
    );
    let first = other.feed_info().unwrap();
    assert_eq!((first.position, first.oldest, first.values), (0, 0, true));
    other.t_set(b"a", b"told").unwrap();
    // Again: it stays as it is.
    on(&other).unwrap();
    assert_eq!(client.feed_info().unwrap().number, first.number);
    assert_eq!(operations(&entries(&client, 0).unwrap()), [(Operation::Set, "a")]);
    let segments = client.stats(0, 0).segments_region;
    assert!(segments > 200);
    assert!(off(&other).unwrap() && !off(&client).unwrap());
    assert_eq!((client.feed_info(), client.stats(0, 0).segments_region), (None, 0));
    assert_eq!(client.read_feed(first.number, 0, &mut Vec::new()).unwrap(), FeedStep::Off);
    client.t_set(b"a", b"unreported again").unwrap();
    on(&client).unwrap();
    let second = other.feed_info().unwrap();
    assert!(second.number > first.number && second.position == 0);
    other.t_set(b"b", b"").unwrap();
    client.t_set(b"c", b"").unwrap();
    assert_eq!(operations(&entries(&client, 0).unwrap()), [(Operation::Set, "b"), (Operation::Set, "c")]);
    assert!(client.check().problems.is_empty());
}

#[test]
fn a_backup_and_a_feed_beside_each_other() {
    let fixture = Fixture::new(strict(64).with_feed());
    let (client, other) = (fixture.client(), fixture.client());
    client.t_set(b"a", b"12345678").unwrap();
    let mut writer = other.writer().unwrap();
    let snapshot = other.begin_snapshot(&mut writer).unwrap();
    client.t_set(b"a", b"87654321").unwrap();
    client.t_set(b"b", b"new").unwrap();
    drop(snapshot);
    drop(writer);
    client.t_set(b"a", b"11111111").unwrap();
    tells(&client, &state(&client)).unwrap();
    assert_eq!(entries(&client, 0).unwrap().len(), 4);
}

#[test]
fn an_origin_is_told() {
    let fixture = Fixture::new(strict(64).with_feed());
    let client = fixture.client_of(77);
    client.t_set(b"a", b"1").unwrap();
    fixture.client().t_set(b"a", b"2").unwrap();
    let origins: Vec<u32> = entries(&client, 0).unwrap().iter().map(|(_, head, _)| head.origin).collect();
    assert_eq!(origins, [77, 0]);
}

/// Whatever the words of a feed say, an access stays in the file and every call ends.
#[test]
fn no_word_of_a_feed_is_trusted() {
    let fixture = Fixture::new(strict(64).with_feed());
    let base = {
        let client = fixture.client();
        (0..9u8).for_each(|i| client.t_set(&[i], &[i; 20]).unwrap());
        let region = client.open_region(kind::FEED, feed::NAME).unwrap().unwrap();
        client.close_region(region);
        region.spot.data
    };
    let words =
        [at::FEED, base, base + 8, base + 16, base + feed::at::TAIL, base + feed::at::FLOOR, base + feed::at::HAND]
            .into_iter()
            .chain((0..12).map(|i| base + feed::at::RING + 8 * i))
            .chain((0..24).map(|i| base + feed::at::RING + (8 << 8) + 8 * i))
            .chain((0..9).map(|i| base + feed::at::RING + (8 << 8) + 8 * 24 + 8 * i));
    for word in words {
        for value in [0, 1, 7, 64, 1 << 20, 1 << 33, 1 << 40, 1 << 41 | 5, 1 << 53, 0x00ff_ffff_ffff_ffff, u64::MAX] {
            let image = fixture.image();
            image.heap.store(word, value, Ordering::Relaxed);
            let client = image.client();
            client.probe.limit(40_000_000);
            let _ = client.feed_info();
            for number in [0, client.feed_info().map_or(1, |info| info.number)] {
                (0..12).for_each(|position| drop(client.read_feed(number, position, &mut Vec::new())));
            }
            for i in 0..60u8 {
                client.t_set(&[i % 12], &[i; 20]).unwrap();
                assert_eq!(client.t_get(&[i % 12]).unwrap().unwrap(), [i; 20]);
            }
            drop(client.disable_feed(&mut client.writer().unwrap()));
            client.t_set(b"on", b"it goes").unwrap();
        }
    }
}
