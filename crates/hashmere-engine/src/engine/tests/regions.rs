//! Regions: whole or not there after any death, owned by one client for as long as they are, and not leaked.

use super::audit::audit;
use super::crash::{is_sound, Cast, Effort, Rule, Scenario};
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use crate::error::WriteError;
use hashmere_format::region::kind::{LOG, POOL};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

const EFFORT: Effort = if cfg!(miri) { Effort { step: 97, repairs: 1 } } else { Effort { step: 1, repairs: 24 } };
/// Two segments and a half.
const BYTES: u64 = 10_000;

fn create(client: &Client, name: &str, bytes: u64) -> Result<bool, WriteError> {
    let mut writer = client.writer().unwrap();
    let fill = |spot: crate::engine::log::region::Spot| {
        client.mem.store(spot.data, 7, Ordering::Relaxed);
        client.mem.store(spot.data + (bytes & !7) - 8, 8, Ordering::Relaxed);
    };
    Ok(client.create_region(&mut writer, (POOL, name.as_bytes()), bytes, fill)?.is_some())
}

fn drop_it(client: &Client, name: &str) -> bool {
    let writer = client.writer().unwrap();
    client.drop_region(&writer, POOL, name.as_bytes()).unwrap()
}

/// What the region holds is what its maker wrote, if it is there.
fn is_whole(client: &Client, name: &str) -> bool {
    let Some(place) = client.open_region(POOL, name.as_bytes()).unwrap() else { return false };
    let word = |at: u64| client.mem.load(place.spot.data + at, Ordering::Acquire);
    assert_eq!((place.spot.bytes, word(0), word(BYTES - 8)), (BYTES, 7, 8), "half a region was seen");
    client.close_region(place);
    true
}

fn few(fixture: &Fixture) -> Cast {
    let other = fixture.client();
    other.t_set(b"other", b"of the other").unwrap();
    let victim = fixture.client();
    (0..5).for_each(|i| victim.t_set(format!("key{i}").as_bytes(), "value ".repeat(i + 1).as_bytes()).unwrap());
    Cast { victim, others: vec![other] }
}

fn with_region(fixture: &Fixture) -> Cast {
    let cast = few(fixture);
    // Made by a client that is gone when it is dropped: no process has it open.
    let mut maker = fixture.client();
    assert!(create(&maker, "pool", BYTES).unwrap());
    maker.retire();
    cast
}

fn with_open_region(fixture: &Fixture) -> Cast {
    let cast = few(fixture);
    assert!(create(&cast.victim, "pool", BYTES).unwrap());
    cast
}

fn run(name: &'static str, geometry: Geometry, setup: fn(&Fixture) -> Cast, act: fn(&mut Client)) {
    let scenario = Scenario { name, geometry, setup, act, rule: Rule::Whole };
    scenario.enumerate(EFFORT).expect_clean(name);
}

#[test]
fn death_while_one_is_made() {
    run("region", strict(24), few, |c| assert!(create(c, "pool", BYTES).unwrap()));
    run("region, durable", strict(24).durable(), few, |c| assert!(create(c, "pool", BYTES).unwrap()));
}

#[test]
fn death_while_one_of_a_single_segment_is_made_and_dropped() {
    fn small(fixture: &Fixture) -> Cast {
        let cast = few(fixture);
        assert!(create(&cast.victim, "pool", 100).unwrap());
        cast
    }
    run("small region", strict(16), few, |c| assert!(create(c, "pool", 100).unwrap()));
    run("drop small region", strict(16), small, |c| assert!(drop_it(c, "pool")));
}

#[test]
pub(super) fn death_while_one_is_dropped() {
    run("drop region", strict(24), with_region, |c| assert!(drop_it(c, "pool")));
    run("drop region, durable", strict(24).durable(), with_region, |c| assert!(drop_it(c, "pool")));
    run("drop open region", strict(24), with_open_region, |c| assert!(drop_it(c, "pool")));
}

#[test]
fn a_row_is_made_where_there_is_none() {
    let fixture = Fixture::new(strict(40));
    let client = fixture.client();
    // Records everywhere, most of which go again, but for one in each segment.
    (0..200).for_each(|i| client.t_set(format!("key{i}").as_bytes(), &[b'v'; 450]).unwrap());
    (0..200).filter(|i| i % 8 != 0).for_each(|i| assert!(client.t_del(format!("key{i}").as_bytes()).unwrap()));
    assert!(create(&client, "pool", 10 * 4096).unwrap());
    assert!(client.regions().len() == 1 && client.check().is_clean());
    assert_eq!(client.stats(0, 0).segments_region, 11);
}

#[test]
fn names_are_given_once_for_each_kind() {
    let fixture = Fixture::new(strict(32));
    let (a, b) = (fixture.client(), fixture.client());
    assert!(create(&a, "pool", BYTES).unwrap());
    assert!(!create(&b, "pool", BYTES).unwrap());
    let mut writer = b.writer().unwrap();
    assert!(b.create_region(&mut writer, (LOG, b"pool"), 1, |_| ()).unwrap().is_some());
    assert!(b.open_region(LOG, b"other").unwrap().is_none());
    let long = [b'n'; 129];
    for bad in [&b""[..], &long[..]] {
        assert!(matches!(b.create_region(&mut writer, (POOL, bad), 1, |_| ()), Err(WriteError::InvalidState(_))));
    }
    assert!(b.create_region(&mut writer, (POOL, &long[..128]), 0, |_| ()).unwrap().is_some());
    drop(writer);
    assert_eq!(b.regions().len(), 3);
    is_sound(&b, 0).unwrap();
}

#[test]
fn an_open_region_stays_after_a_drop_until_its_clients_close_it_or_die() {
    let fixture = Fixture::new(strict(24));
    let (a, b, c) = (fixture.client(), fixture.client(), fixture.client());
    assert!(create(&a, "pool", BYTES).unwrap());
    let open = b.open_region(POOL, b"pool").unwrap().unwrap();
    assert!(!b.is_dropped(open.spot) && is_whole(&c, "pool"));
    assert!(drop_it(&c, "pool") && !drop_it(&c, "pool"));
    assert!(b.is_dropped(open.spot) && !is_whole(&c, "pool"));
    // A new one of the name goes elsewhere.
    assert!(create(&c, "pool", BYTES).unwrap() && is_whole(&b, "pool"));
    assert_eq!(audit(&c).unwrap().pending_free, 1);
    a.kill();
    c.t_compact().unwrap();
    assert_eq!(audit(&c).unwrap().pending_free, 1, "b has it open still");
    let free = audit(&c).unwrap().free;
    b.close_region(open);
    let now = audit(&c).unwrap();
    assert_eq!((now.pending_free, now.free), (0, free + 3));
}

#[test]
fn it_survives_clears_cleaning_and_eviction() {
    for geometry in [strict(40), cache(24), strict(40).durable()] {
        let fixture = Fixture::new(geometry);
        let (a, b) = (fixture.client(), fixture.client());
        assert!(create(&a, "pool", BYTES).unwrap());
        for round in 0..6 {
            for i in 0..120 {
                let _ = b.t_set(format!("key{}", i % 40).as_bytes(), &[b'v'; 400]);
            }
            if round % 2 == 0 {
                b.t_clear().unwrap();
            }
            b.t_compact().unwrap();
            assert!(is_whole(&b, "pool"));
        }
        assert_eq!(audit(&b).unwrap().region, 3);
        assert!(b.check().is_clean());
    }
}

#[test]
fn too_large_ones_are_refused_and_leave_nothing() {
    let fixture = Fixture::new(strict(16));
    let client = fixture.client();
    let before = audit(&client).unwrap().free;
    for bytes in [20 * 4096, 1 << 42, u64::MAX] {
        assert!(create(&client, "pool", bytes).is_err(), "{bytes}");
    }
    assert!(client.regions().is_empty() && client.check().is_clean());
    assert!(audit(&client).unwrap().free >= before);
    assert!(create(&client, "pool", BYTES).unwrap());
}
