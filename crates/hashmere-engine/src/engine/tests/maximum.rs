//! Another maximum: deaths of the process that changes it, and two that take segments out of use at the same time.

use super::audit::audit;
use super::crash::{Cast, Effort, Rule, Scenario};
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use crate::engine::Resized;
use hashmere_format::header::at;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

const EFFORT: Effort = if cfg!(miri) { Effort { step: 401, repairs: 1 } } else { Effort { step: 11, repairs: 8 } };
/// Where the count and the states are changed, each store.
const EACH: Effort = if cfg!(miri) { Effort { step: 41, repairs: 1 } } else { Effort { step: 1, repairs: 12 } };

fn bytes(segments: u64) -> u64 {
    at::DATA + (segments << 12)
}

fn resize(client: &Client, segments: u64) -> Resized {
    client.set_maximum(&mut client.writer().unwrap(), bytes(segments)).unwrap()
}

/// About 40 segments in use, of which one in three values of a strict store is garbage.
fn filled(fixture: &Fixture) -> Cast {
    let (other, victim) = (fixture.client(), fixture.client());
    other.t_set(b"other", b"of the other").unwrap();
    (0..260).for_each(|i| victim.t_set(format!("f{i}").as_bytes(), &[b'f'; 480]).unwrap());
    victim.t_set(b"large", &[b'l'; 9000]).unwrap();
    (0..260).filter(|i| i % 3 != 0).for_each(|i| assert!(victim.t_del(format!("f{i}").as_bytes()).unwrap()));
    Cast { victim, others: vec![other] }
}

/// The same, with segments offline.
fn lowered(fixture: &Fixture) -> Cast {
    let cast = filled(fixture);
    assert_eq!(resize(&cast.victim, 30), Resized::Done);
    cast
}

/// The same, with nothing in the way: only states and the count are changed.
fn emptied(fixture: &Fixture) -> Cast {
    let cast = filled(fixture);
    (0..260).for_each(|i| _ = cast.victim.t_del(format!("f{i}").as_bytes()).unwrap());
    cast.victim.t_del(b"large").unwrap();
    cast.victim.t_compact().unwrap();
    cast
}

fn run(name: &'static str, geometry: Geometry, setup: fn(&Fixture) -> Cast, act: fn(&mut Client), effort: Effort) {
    let rule = if geometry.cache { Rule::Evicts } else { Rule::Whole };
    Scenario { name, geometry, setup, act, rule }.enumerate(effort).expect_clean(name);
}

#[test]
fn deaths_of_who_makes_a_store_smaller() {
    run("shrink a cache", cache(48), filled, |c| assert_eq!(resize(c, 16), Resized::Done), EFFORT);
    run("shrink a strict store", strict(48), filled, |c| assert_eq!(resize(c, 30), Resized::Done), EFFORT);
}

#[test]
pub(super) fn deaths_of_who_takes_segments_out_of_use() {
    run("shrink an empty store", strict(48), emptied, |c| assert_eq!(resize(c, 36), Resized::Done), EACH);
}

#[test]
fn deaths_of_who_makes_a_store_larger() {
    run("grow again", strict(48), lowered, |c| assert_eq!(resize(c, 44), Resized::Done), EACH);
}

/// Catches two processes that each take the last segment that is too many.
#[test]
pub(super) fn two_take_segments_out_of_use() {
    let prepared = || {
        let fixture = Fixture::new(strict(48));
        let Cast { victim, others } = emptied(&fixture);
        fixture.heap.store(at::MAX_BYTES, bytes(victim.segments() - 1), Ordering::Relaxed);
        (fixture, victim, others)
    };
    let (_fixture, actor, _others) = prepared();
    let slot = actor.writer().unwrap().slot;
    actor.probe.rewind();
    actor.trim(slot, None);
    let accesses = actor.probe.accesses();
    assert_eq!(audit(&actor).unwrap().offline, 1);
    for access in 0..accesses {
        let (_fixture, actor, others) = prepared();
        let slot = actor.writer().unwrap().slot;
        let other = others[0].clone();
        actor.probe.interrupt(access, move || other.trim(other.writer().unwrap().slot, None));
        actor.trim(slot, None);
        others[0].trim(others[0].writer().unwrap().slot, None);
        assert_eq!(audit(&actor).unwrap().offline, 1, "interrupted before access {access}");
    }
}

/// `check` compares the count with the states, except behind one who died with the lock under which both change.
#[test]
fn a_wrong_count_is_found() {
    let fixture = Fixture::new(strict(48));
    let Cast { victim, others } = lowered(&fixture);
    let right = fixture.heap.load(at::OFFLINE, Ordering::Relaxed);
    assert!(right > 0 && others[0].check().is_clean());
    for wrong in [0, right - 1, right + 1, u64::MAX] {
        fixture.heap.store(at::OFFLINE, wrong, Ordering::Relaxed);
        let problems = others[0].check().problems;
        let told = problems.iter().map(|problem| problem.code).collect::<Vec<_>>();
        assert_eq!(told, ["wrong-offline"], "{wrong}: {problems:?}");
        let lock = hashmere_format::leaf::LockWord(0).held_by(victim.writer().unwrap().slot);
        fixture.heap.store(at::SPACE_LOCK, lock.0, Ordering::Relaxed);
        assert!(others[0].check().is_clean(), "its owner may be between the two");
        fixture.heap.store(at::SPACE_LOCK, 0, Ordering::Relaxed);
    }
    // The crashed owner's change is counted again by the next client that needs the lock.
    fixture.heap.store(
        at::SPACE_LOCK,
        hashmere_format::leaf::LockWord(0).held_by(victim.writer().unwrap().slot).0,
        Ordering::Relaxed,
    );
    victim.kill();
    assert_eq!(resize(&others[0], 29), Resized::Done);
    assert!(others[0].check().is_clean(), "{:?}", others[0].check());
}

/// What is refused changes nothing, and a store that is larger again has all its room.
#[test]
fn down_and_up_again() {
    let fixture = Fixture::new(strict(48));
    let Cast { victim, others } = filled(&fixture);
    let needs = resize(&victim, 8);
    assert!(matches!(needs, Resized::Needs(bytes) if bytes > at::DATA + (9 << 12)), "{needs:?}");
    assert_eq!((victim.max_bytes(), audit(&victim).unwrap().offline), (bytes(48), 0));
    assert_eq!(resize(&victim, 30), Resized::Done);
    let offline = audit(&victim).unwrap().offline;
    assert_eq!(victim.segments() - offline, 30);
    assert_eq!(resize(&victim, 48), Resized::Done);
    assert_eq!(audit(&victim).unwrap().offline, 0);
    let fits = (0..).take_while(|i| victim.t_set(format!("g{i}").as_bytes(), &[b'g'; 480]).is_ok()).count();
    assert!(fits > 100, "{fits}");
    drop(others);
}
