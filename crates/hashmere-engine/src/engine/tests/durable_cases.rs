//! Death at every store once more, in durable stores: afterwards every record must also say the truth about its life to
//! the disk, which the audit looks at.

use super::crash::{Cast, Effort, Rule, Scenario};
use super::fixture::{strict, Client, Fixture, Geometry};
use super::transact::{apply, Op};
use crate::types::{Attributes, Ttl};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

const EFFORT: Effort = if cfg!(miri) { Effort { step: 41, repairs: 2 } } else { Effort { step: 1, repairs: 8 } };
const LONG: Effort = if cfg!(miri) { Effort { step: 401, repairs: 1 } } else { Effort { step: 7, repairs: 4 } };

fn run(name: &'static str, geometry: Geometry, setup: fn(&Fixture) -> Cast, act: fn(&mut Client), effort: Effort) {
    let scenario = Scenario { name, geometry: geometry.durable(), setup, act, rule: Rule::Whole };
    scenario.enumerate(effort).expect_clean(name);
}

fn few(fixture: &Fixture) -> Cast {
    let (other, victim) = (fixture.client(), fixture.client());
    other.t_set(b"other", b"of the other").unwrap();
    (0..4).for_each(|i| victim.t_set(format!("key{i}").as_bytes(), "value ".repeat(i + 1).as_bytes()).unwrap());
    victim.t_incr(b"n", 1, Some(9)).unwrap();
    let expires = Attributes { flags: 5, ttl: Ttl::At(50_000), ..Attributes::NONE };
    victim.t_put(b"ttl", b"expires", expires, crate::engine::When::Always).unwrap();
    victim.t_set(b"large", &[b'L'; 9000]).unwrap();
    Cast { victim, others: vec![other] }
}

/// Wide records of the other client, most of them deleted, so that what is left is worth moving.
fn wide(fixture: &Fixture) -> Cast {
    let cast = few(fixture);
    let set = |i: u64| cast.others[0].t_set(format!("w{i}").as_bytes(), &[b'w'; 440]).unwrap();
    (0..60).for_each(set);
    (0..60).filter(|i| i % 7 != 0).for_each(|i| assert!(cast.others[0].t_del(format!("w{i}").as_bytes()).unwrap()));
    cast
}

#[test]
fn writes() {
    run("set new", strict(24), few, |c| c.t_set(b"new", b"new value").unwrap(), EFFORT);
    run("replace", strict(24), few, |c| c.t_set(b"key2", b"replaced").unwrap(), EFFORT);
    run("delete", strict(24), few, |c| assert!(c.t_del(b"key2").unwrap()), EFFORT);
    run("counter", strict(24), few, |c| assert_eq!(c.t_incr(b"n", 1, None).unwrap(), Some(10)), EFFORT);
    run("append", strict(24), few, |c| c.t_append(b"key1", b"tail").map(drop).unwrap(), EFFORT);
    run("touch in place", strict(24), few, |c| assert!(c.t_touch(b"ttl", Ttl::At(70_000)).unwrap()), EFFORT);
    run("touch again", strict(24), few, |c| assert!(c.t_touch(b"key1", Ttl::At(70_000)).unwrap()), EFFORT);
}

#[test]
fn transactions() {
    let act = |c: &mut Client| apply(&**c, &[Op::Set(b"key2", b"one"), Op::Set(b"new", b"two"), Op::Delete(b"ttl")]);
    run("transaction", strict(24), few, act, EFFORT);
}

#[test]
fn large_records() {
    run("large, new", strict(32), few, |c| c.t_set(b"big", &[b'n'; 5000]).unwrap(), EFFORT);
    run("large, replaced", strict(32), few, |c| c.t_set(b"large", &[b'r'; 5000]).unwrap(), EFFORT);
    run("large, deleted", strict(32), few, |c| assert!(c.t_del(b"large").unwrap()), EFFORT);
}

#[test]
fn moves() {
    run("clean", strict(48), wide, |c| assert!(c.t_compact().unwrap() > 0), LONG);
    run("clear", strict(48), wide, |c| c.t_clear().unwrap(), LONG);
}

#[test]
fn syncs() {
    run("sync", strict(48), wide, |c| assert!(super::power_between::sync(c).unwrap() > 1), EFFORT);
    fn twice(fixture: &Fixture) -> Cast {
        let cast = wide(fixture);
        cast.others[0].t_compact().unwrap();
        cast
    }
    run("sync that frees", strict(48), twice, |c| assert!(super::power_between::sync(c).unwrap() > 1), EFFORT);
    run(
        "release",
        strict(24),
        few,
        |c| {
            c.retire();
            assert_eq!(c.mem.load(hashmere_format::header::at::SYNC_NEXT, Ordering::Relaxed), 2);
        },
        EFFORT,
    );
}
