//! The calls of the public interface whose stores are not those of another call: what `crash_cases` has not.
//!
//! (A prepend is an append; the calls by UID, by hash and in bulk are those by key; a `get` and a touch are a touch.)

use super::crash::{Cast, Effort, Rule, Scenario};
use super::fixture::{strict, Client, Fixture};
use crate::engine::{Tick, Unsigned, When};
use crate::error::WriteError;
use crate::types::{Attributes, Change, Counter, Expected, Ttl, Update, Version};
use hashmere_mem::Mem;

const EFFORT: Effort = if cfg!(miri) { Effort { step: 41, repairs: 2 } } else { Effort { step: 1, repairs: 12 } };

fn few(fixture: &Fixture) -> Cast {
    let (other, victim) = (fixture.client(), fixture.client());
    other.t_set(b"other", b"of the other").unwrap();
    (0..4).for_each(|i| victim.t_set(format!("key{i}").as_bytes(), "value ".repeat(i + 1).as_bytes()).unwrap());
    victim.t_incr(b"n", 1, Some(1)).unwrap();
    Cast { victim, others: vec![other] }
}

fn run(name: &'static str, act: fn(&mut Client)) {
    run_after(name, few, act);
}

fn run_after(name: &'static str, setup: fn(&Fixture) -> Cast, act: fn(&mut Client)) {
    Scenario { name, geometry: strict(24), setup, act, rule: Rule::Whole }.enumerate(EFFORT).expect_clean(name);
}

fn version(client: &Client, key: &[u8]) -> Version {
    client.peek(key, client.hash(key)).unwrap().unwrap().version
}

#[test]
fn conditional_stores() {
    run("add", |c| assert!(c.t_put(b"new", b"added", Attributes::NONE, When::Absent).unwrap().is_some()));
    run("add, refused", |c| assert!(c.t_put(b"key1", b"added", Attributes::NONE, When::Absent).unwrap().is_none()));
    run("replace, if there", |c| {
        assert!(c.t_put(b"key1", b"replaced", Attributes::NONE, When::Present).unwrap().is_some());
    });
}

#[test]
fn removals() {
    run("take", |c| {
        let seen = version(c, b"key2");
        assert!(c.remove(&mut c.writer().unwrap(), b"key2", c.hash(b"key2"), Some(seen)).unwrap());
    });
    run("cas, removing", |c| {
        let seen = Expected::Version(version(c, b"key2"));
        c.cas(&mut c.writer().unwrap(), b"key2", c.hash(b"key2"), seen, Change::Remove).unwrap();
    });
    run("cas, refused", |c| {
        let (seen, change) = (Expected::Value(b"something else"), Change::Set(b"compared"));
        c.cas(&mut c.writer().unwrap(), b"key2", c.hash(b"key2"), seen, change).unwrap();
    });
    run("update, removing", |c| {
        let kh = c.hash(b"key2");
        c.update(b"key2", kh, &mut || c.t_item(b"key2", kh), &mut |_| Ok(Update::Remove)).unwrap();
    });
    run("last reference released", |c| {
        let mut writer = c.writer().unwrap();
        let last = c.tick(&mut writer, (b"n", c.hash(b"n")), &Unsigned, Counter::EXISTING, |_| Ok(Tick::Delete));
        assert_eq!(last.unwrap(), Some(0));
    });
}

#[test]
fn counting_below_zero() {
    // Below zero it is one byte longer, and within its length it is replaced in place.
    fn signed(fixture: &Fixture) -> Cast {
        let cast = few(fixture);
        cast.victim.t_incr_signed(b"s", 1, Some(-5)).unwrap();
        cast.victim.t_incr_signed(b"s", 1, None).unwrap();
        cast
    }
    run_after("signed counter", signed, |c| assert_eq!(c.t_incr_signed(b"s", 1, None).unwrap(), Some(-3)));
    run_after("signed counter, shorter", signed, |c| assert_eq!(c.t_incr_signed(b"s", 4, None).unwrap(), Some(0)));
    run_after("signed counter, overflow", signed, |c| {
        assert!(matches!(c.t_incr_signed(b"s", i64::MIN, None), Err(WriteError::Overflow)));
    });
    run("signed counter, below zero", |c| assert_eq!(c.t_incr_signed(b"n", -2, None).unwrap(), Some(-1)));
    run("signed counter, new", |c| {
        assert_eq!(c.t_incr_signed(b"m", 1, Some(i64::MIN)).unwrap(), Some(i64::MIN));
    });
}

#[test]
fn values_of_other_kinds() {
    run("update, with attributes", |c| {
        let (kh, with) = (c.hash(b"key2"), Attributes { flags: 3, ttl: Ttl::At(90_000), ..Attributes::NONE });
        let mut change = |_: Option<&_>| Ok(Update::SetWith(b"updated".to_vec(), with));
        c.update(b"key2", kh, &mut || c.t_item(b"key2", kh), &mut change).unwrap();
    });
    run("set with marks", |c| {
        let seen = c.peek(b"key2", c.hash(b"key2")).unwrap();
        let name = (&b"key2"[..], c.hash(b"key2"));
        let stored =
            c.store_marked(&mut c.writer().unwrap(), name, b"marked", (Attributes::NONE, 7), seen.as_ref(), false);
        assert!(stored.unwrap().is_some());
    });
    run("reserve, commit", |c| {
        let mut writer = c.writer().unwrap();
        let kh = c.hash(b"key2");
        let draft = c.begin(&mut writer, b"key2", kh, 30, Attributes::NONE).unwrap();
        c.mem.write(draft.value, &[b'r'; 30]);
        c.finish_reserved(&mut writer, b"key2", kh, draft, None).unwrap();
    });
    run("reserve for an entry, commit", |c| {
        let mut writer = c.writer().unwrap();
        let kh = c.hash(b"key2");
        let uid = c.peek(b"key2", kh).unwrap().map(|meta| meta.uid);
        let draft = c.begin(&mut writer, b"key2", kh, 30, Attributes::NONE).unwrap();
        c.mem.write(draft.value, &[b'r'; 30]);
        c.finish_reserved(&mut writer, b"key2", kh, draft, uid).unwrap();
    });
    run("reserve, abandon", |c| {
        let mut writer = c.writer().unwrap();
        let draft = c.begin(&mut writer, b"key2", c.hash(b"key2"), 3000, Attributes::NONE).unwrap();
        c.abandon(&writer, &draft);
    });
}
