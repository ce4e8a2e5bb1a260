//! Transactions that are crashed after each of their stores: they took place whole, or not at all.

use super::crash::{Cast, Effort, Rule, Scenario};
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use super::transact::{apply, Op, Parts};
use crate::types::{Attributes, Ttl};

pub(super) const EFFORT: Effort =
    if cfg!(miri) { Effort { step: 61, repairs: 2 } } else { Effort { step: 1, repairs: 24 } };

fn few(fixture: &Fixture) -> Cast {
    let (other, victim) = (fixture.client(), fixture.client());
    other.t_set(b"other", b"of the other").unwrap();
    for i in 0..4 {
        victim.t_set(format!("key{i}").as_bytes(), "value ".repeat(i + 1).as_bytes()).unwrap();
    }
    victim.t_incr(b"n", 1, Some(9)).unwrap();
    let expires = Attributes { flags: 5, ttl: Ttl::At(50_000), ..Attributes::NONE };
    victim.t_put(b"ttl", b"expires", expires, crate::engine::When::Always).unwrap();
    Cast { victim, others: vec![other] }
}

fn with_large(fixture: &Fixture) -> Cast {
    let cast = few(fixture);
    cast.victim.t_set(b"large", &[b'L'; 9000]).unwrap();
    cast
}

/// So full that the next new key needs a split.
fn with_full_leaf(fixture: &Fixture) -> Cast {
    let cast = few(fixture);
    let splits = |client: &Client| client.stats(0, 0).splits;
    let trial = Fixture::new(SMALL);
    let there = few(&trial).victim;
    let keys = (0..).take_while(|i| {
        there.t_set(format!("s{i}").as_bytes(), b"split").unwrap();
        splits(&there) == 0
    });
    keys.for_each(|i| cast.victim.t_set(format!("s{i}").as_bytes(), b"split").unwrap());
    cast
}

const SMALL: Geometry = strict(32).small_leaves();

fn run(name: &'static str, geometry: Geometry, setup: fn(&Fixture) -> Cast, act: fn(&mut Client)) {
    Scenario { name, geometry, setup, act, rule: Rule::Whole }.enumerate(EFFORT).expect_clean(name);
}

#[test]
pub(super) fn two_keys_in_all_mixtures() {
    run("replace two", strict(24), few, |c| apply(c, &[Op::Set(b"key1", b"one"), Op::Set(b"key2", b"two")]));
    run("new and replaced", strict(24), few, |c| apply(c, &[Op::Set(b"new", b"one"), Op::Set(b"key2", b"two")]));
    run("two new", strict(24), few, |c| apply(c, &[Op::Set(b"new", b"one"), Op::Set(b"newer", b"two")]));
    run("replaced and deleted", strict(24), few, |c| apply(c, &[Op::Set(b"key1", b"one"), Op::Delete(b"key2")]));
    run("new and deleted", strict(24), few, |c| apply(c, &[Op::Set(b"new", b"one"), Op::Delete(b"key2")]));
    run("two deleted", strict(24), few, |c| apply(c, &[Op::Delete(b"key1"), Op::Delete(b"key3")]));
}

#[test]
fn three_keys_in_all_mixtures() {
    run("three replaced", strict(24), few, |c| {
        apply(c, &[Op::Set(b"key1", b"one"), Op::Set(b"key2", b"two"), Op::Set(b"n", b"3")]);
    });
    run("one of each", strict(24), few, |c| {
        apply(c, &[Op::Set(b"key1", b"one"), Op::Set(b"new", b"two"), Op::Delete(b"ttl"), Op::Look(b"key3")]);
    });
    run("new, new, deleted", strict(24), few, |c| {
        apply(c, &[Op::Set(b"new", b"one"), Op::Set(b"newer", b"two"), Op::Delete(b"other")]);
    });
    run("nothing to delete", strict(24), few, |c| apply(c, &[Op::Delete(b"absent"), Op::Set(b"key1", b"one")]));
    run("conflict", strict(24), few, |c| {
        let ops = [Op::Set(b"key1", b"one"), Op::Absent(b"key2", b"two")];
        let done = Parts::of(c, &ops).commit(c, &mut c.writer().unwrap()).unwrap();
        assert_eq!(done, crate::engine::transact::Outcome::Conflict(1));
    });
    run("expiry kept", strict(24), few, |c| {
        apply(c, &[Op::Touch(b"key1", b"value value ", 70_000), Op::Set(b"key2", b"two")]);
    });
}

#[test]
pub(super) fn large_values() {
    run("large, replaced", strict(40), with_large, |c| {
        apply(c, &[Op::Set(b"large", &[b'n'; 5000]), Op::Set(b"key2", b"two")]);
    });
    run("large, new", strict(40), few, |c| apply(c, &[Op::Set(b"large", &[b'n'; 5000]), Op::Delete(b"key2")]));
    run("large, deleted", strict(40), with_large, |c| apply(c, &[Op::Delete(b"large"), Op::Set(b"key2", b"two")]));
}

#[test]
fn drafts_that_fill_several_segments() {
    run("several segments", strict(40), few, |c| {
        let values = [[b'a'; 1300], [b'b'; 1300], [b'c'; 1300], [b'd'; 1300], [b'e'; 1300]];
        let keys = [b"key0", b"key1", b"key2", b"key3", b"key4"];
        let ops: Vec<_> = keys.iter().zip(&values).map(|(key, value)| Op::Set(*key, value)).collect();
        apply(c, &ops);
    });
}

#[test]
fn a_list_that_does_not_fit_the_clients_own_place() {
    run("twelve keys", strict(40), few, |c| {
        let keys: Vec<String> = (0..12).map(|i| format!("key{i}")).collect();
        let ops: Vec<_> = keys.iter().map(|key| Op::Set(key.as_bytes(), b"of twelve")).collect();
        apply(c, &ops);
    });
}

#[test]
pub(super) fn a_leaf_that_splits() {
    run("split", SMALL, with_full_leaf, |c| {
        let keys: Vec<String> = (0..3).map(|i| format!("new{i}")).collect();
        let mut ops: Vec<_> = keys.iter().map(|key| Op::Set(key.as_bytes(), b"new")).collect();
        ops.push(Op::Set(b"key1", b"one"));
        apply(c, &ops);
    });
}

#[test]
fn in_a_cache() {
    run("cache", cache(32), few, |c| apply(c, &[Op::Set(b"key1", b"one"), Op::Set(b"new", b"two")]));
}
