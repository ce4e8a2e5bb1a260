//! Stores with a change feed, of which an operation is crashed after each of its stores: the feed tells what took
//! place, at least once and in order.

use super::crash::{Cast, Effort, Rule, Scenario};
use super::crash_cases::{few, two, with_large};
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use super::transact::{apply, Op};
use crate::engine::When;
use crate::types::{Attributes, Ttl};

const EFFORT: Effort = if cfg!(miri) { Effort { step: 67, repairs: 1 } } else { Effort { step: 1, repairs: 8 } };
/// For operations of a thousand stores.
const LONG: Effort = if cfg!(miri) { Effort { step: 601, repairs: 1 } } else { Effort { step: 11, repairs: 6 } };

fn run(name: &'static str, geometry: Geometry, setup: fn(&Fixture) -> Cast, act: fn(&mut Client)) {
    run_as(Scenario { name, geometry: geometry.with_feed(), setup, act, rule: Rule::Whole }, EFFORT);
}

fn run_as(scenario: Scenario, effort: Effort) {
    scenario.enumerate(effort).expect_clean(scenario.name);
}

#[test]
pub(super) fn single_keys() {
    run("feed: set new", strict(48), few, |c| c.t_set(b"new", b"new value").unwrap());
    run("feed: replace", strict(48), few, |c| c.t_set(b"key2", b"replaced").unwrap());
    run("feed: delete", strict(48), few, |c| assert!(c.t_del(b"key2").unwrap()));
    run("feed: count", strict(48), few, |c| assert_eq!(c.t_incr(b"n", 1, None).unwrap(), Some(10)));
    run("feed: append", strict(48), few, |c| {
        c.t_append(b"key1", b" and more").unwrap();
    });
    run("feed: add", strict(48), few, |c| {
        assert!(c.t_put(b"ttl", b"there", Attributes::NONE, When::Absent).unwrap().is_none());
        assert!(c.t_put(b"new", b"not there", Attributes::NONE, When::Absent).unwrap().is_some());
    });
}

/// A key whose record is at a multiple of 16.
fn aligned(fixture: &Fixture) -> Cast {
    let cast = few(fixture);
    for i in 0.. {
        assert!(i < 8, "no record is ever aligned");
        cast.victim.t_set(b"eight", b"12345678").unwrap();
        let kh = cast.victim.t_hash(b"eight");
        let at = cast.victim.read(b"eight", kh, |found| Ok(found.record)).unwrap().unwrap();
        if at % 16 == 0 {
            return cast;
        }
        cast.victim.t_set(b"between", &[b'b'; 9]).unwrap();
    }
    cast
}

#[test]
pub(super) fn in_place() {
    run("feed: in place", strict(48), aligned, |c| c.t_set(b"eight", b"87654321").unwrap());
    run("feed: touch in place", strict(48), few, |c| assert!(c.t_touch(b"ttl", Ttl::At(70_000)).unwrap()));
    run("feed: touch", strict(48), few, |c| assert!(c.t_touch(b"key1", Ttl::At(70_000)).unwrap()));
}

#[test]
pub(super) fn large_values() {
    run("feed: large, replaced", strict(48), with_large, |c| c.t_set(b"large", &[b'n'; 5000]).unwrap());
    run("feed: large, deleted", strict(48), with_large, |c| assert!(c.t_del(b"large").unwrap()));
}

#[test]
pub(super) fn transactions() {
    run("feed: replaced, new and deleted", strict(48), few, |c| {
        apply(c, &[Op::Set(b"key1", b"one"), Op::Set(b"new", b"two"), Op::Delete(b"key2"), Op::Delete(b"ttl")]);
    });
    run("feed: touched and set", strict(48), few, |c| {
        apply(c, &[Op::Touch(b"key1", b"value value ", 70_000), Op::Set(b"key2", b"two")]);
    });
    run("feed: durable", strict(48).durable(), few, |c| {
        apply(c, &[Op::Set(b"key1", b"one"), Op::Set(b"new", b"two"), Op::Delete(b"key2")]);
    });
}

#[test]
pub(super) fn durable_stores() {
    run("feed: durable replace", strict(48).durable(), few, |c| c.t_set(b"key2", b"replaced").unwrap());
    run("feed: durable delete", strict(48).durable(), few, |c| assert!(c.t_del(b"key2").unwrap()));
}

#[test]
pub(super) fn clearing() {
    run("feed: clear", strict(48), few, |c| c.t_clear().unwrap());
}

/// Its next entry needs a chunk, and all of them were written to before.
fn round(fixture: &Fixture) -> Cast {
    let cast = two(fixture);
    let mut at = 0;
    for i in 0.. {
        cast.victim.t_set(b"mine", &[i as u8; 90]).unwrap();
        let before = at;
        at = cast.victim.writer().unwrap().feed.next;
        if i > 160 && at < before {
            break;
        }
    }
    // To the end of the chunk.
    let left = |client: &Client| {
        let writer = client.writer().unwrap();
        writer.feed.end - writer.feed.next
    };
    while left(&cast.victim) >= 128 {
        cast.victim.t_set(b"mine", &[b'm'; 90]).unwrap();
    }
    cast
}

/// Earlier entries are gone, so what must be true is that the last one is there.
#[test]
pub(super) fn claiming_a_chunk() {
    let geometry = strict(48).with_feed();
    let trial = Fixture::new(geometry);
    let cast = round(&trial);
    let oldest = cast.victim.feed_info().unwrap().oldest;
    assert!(oldest > 0);
    cast.victim.probe.record();
    cast.victim.t_set(b"mine", b"in the next chunk, with some bytes more than would fit into this one: 120 of them, which is what it takes").unwrap();
    let stores = cast.victim.probe.stores();
    let now = cast.victim.feed_info().unwrap();
    assert!(now.oldest > oldest, "no chunk was claimed: {oldest}, {now:?}, {:?}", cast.victim.writer().unwrap().feed);
    for at in 0..=stores {
        let fixture = Fixture::new(geometry);
        let cast = round(&fixture);
        cast.victim.probe.die_after(at);
        let value = b"in the next chunk, with some bytes more than would fit into this one: 120 of them, which is what it takes";
        let _ = super::probe::until_death(|| cast.victim.t_set(b"mine", value).unwrap());
        cast.victim.kill();
        let survivor = fixture.client();
        survivor.sweep().unwrap();
        let info = survivor.feed_info().unwrap();
        let entries = super::feed::entries(&survivor, info.oldest).unwrap();
        let last = entries.iter().flat_map(|(.., changes)| changes).rfind(|change| change.key == b"mine");
        let there = survivor.t_get(b"mine").unwrap().unwrap();
        assert_eq!(last.unwrap().value.as_ref(), Some(&there), "death {at}");
        // Its chunk is free again: as many writers as there are chunks left find one.
        let clients: Vec<_> = (0..22).map(|_| fixture.client()).collect();
        for (i, client) in clients.iter().enumerate() {
            client.t_set(format!("w{i}").as_bytes(), b"v").unwrap();
        }
        let end = survivor.feed_info().unwrap().position;
        let mut words = Vec::new();
        let gaps = (info.position..end)
            .filter(|at| survivor.read_feed(info.number, *at, &mut words).unwrap() == crate::engine::FeedStep::Gap);
        assert_eq!(gaps.count(), 0, "death {at}");
    }
}

#[test]
pub(super) fn evicting() {
    fn full(fixture: &Fixture) -> Cast {
        let cast = two(fixture);
        (0..90u32).for_each(|i| cast.victim.t_set(format!("e{i}").as_bytes(), &[i as u8; 440]).unwrap());
        cast
    }
    fn act(victim: &mut Client) {
        (90..110u32).for_each(|i| victim.t_set(format!("e{i}").as_bytes(), &[i as u8; 440]).unwrap());
    }
    // Room for all entries, so that those of the setup are still there.
    let feed = hashmere_format::feed::Geometry { ring_shift: 10, chunk_shift: 10, chunks: 160, values: true };
    let geometry = cache(90).feed_of(feed);
    run_as(Scenario { name: "feed: evict", geometry, setup: full, act, rule: Rule::Evicts }, LONG);
}

/// Killed while it is switched on or off: the next one that asks completes it, and nothing is missing.
#[test]
pub(super) fn switching() {
    let on = |client: &Client| client.enable_feed(&mut client.writer().unwrap(), 1 << 20, true);
    let off = |client: &Client| client.disable_feed(&mut client.writer().unwrap());
    for is_on in [false, true] {
        let prepare = |fixture: &Fixture| {
            let (victim, other) = (fixture.client(), fixture.client());
            other.t_set(b"k", b"0").unwrap();
            if is_on {
                on(&victim).unwrap();
                other.t_set(b"k", b"1").unwrap();
            }
            (victim, other)
        };
        let act = |victim: &Client| if is_on { off(victim).map(|_| ()) } else { on(victim) };
        let trial = Fixture::new(strict(600));
        let (victim, _other) = prepare(&trial);
        let first = victim.feed_info().map(|info| info.number);
        victim.probe.record();
        act(&victim).unwrap();
        let stores = victim.probe.stores();
        let trace = victim.probe.recorded();
        let bulks = super::crash::bulks(&trace);
        let inside = |at: &u64| bulks.iter().any(|bulk| bulk.contains(at) && *at > bulk.start + 2);
        let deaths: Vec<u64> = (0..=stores).filter(|at| !inside(at)).collect();
        let (start, step) = super::crash::sample(deaths.len() as u64);
        for at in deaths.into_iter().skip(start as usize).step_by(step as usize) {
            let fixture = Fixture::new(strict(600));
            let (victim, other) = prepare(&fixture);
            victim.probe.die_after(at);
            let _ = super::probe::until_death(|| act(&victim));
            victim.kill();
            // Others write on, whatever it is.
            other.t_set(b"k", b"2").unwrap();
            on(&other).unwrap();
            let info = other.feed_info().expect("it is on");
            other.t_set(b"k", b"3").unwrap();
            let entries = super::feed::entries(&other, 0).unwrap();
            let values: Vec<_> = entries.iter().map(|(.., changes)| changes[0].value.clone().unwrap()).collect();
            // The same feed has all of them, and another one all since it was made.
            let whole = [b"1", b"2", b"3"].map(|value| value.to_vec());
            match (is_on, first == Some(info.number)) {
                (true, true) => assert_eq!(values, whole, "death {at}"),
                _ => assert!(values == whole[1..] || values == whole[2..], "death {at}: {values:?}"),
            }
            assert!(other.check().problems.is_empty(), "death {at}");
            assert!(off(&other).unwrap());
            assert_eq!(other.stats(0, 0).segments_region, 0, "death {at}");
        }
    }
}
