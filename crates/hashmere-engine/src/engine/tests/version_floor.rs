//! Versions that writes ask for: given, never taken back, and known to the writers after a death, a clear, a backup or
//! a power cut.

use super::crash::{Cast, Effort, Rule, Scenario};
use super::disk::{Choice, Dice};
use super::fixture::{strict, Client, Fixture, Geometry};
use super::history::{is_whole, rescue, History};
use super::power_between::sync;
use crate::engine::{Tick, Unsigned, When};
use crate::error::WriteError;
use crate::types::{Attributes, Change, Counter, Expected, Update, Version};
use hashmere_format::record::VERSION_MAX;

const ASKED: Version = Version(1 << 30);
const FIRST: Attributes = Attributes { min_version: ASKED, ..Attributes::NONE };

fn version(client: &Client, key: &[u8]) -> u64 {
    client.peek(key, client.t_hash(key)).unwrap().unwrap().version.0
}

fn put(client: &Client, key: &[u8], attributes: Attributes) {
    assert!(client.t_put(key, b"asked", attributes, When::Always).unwrap().is_some());
}

fn few(fixture: &Fixture) -> Cast {
    let (other, victim) = (fixture.client(), fixture.client());
    other.t_set(b"other", b"of the other").unwrap();
    (0..4).for_each(|i| victim.t_set(format!("key{i}").as_bytes(), "value ".repeat(i + 1).as_bytes()).unwrap());
    victim.t_incr(b"n", 1, Some(1)).unwrap();
    Cast { victim, others: vec![other] }
}

fn dies(name: &'static str, geometry: Geometry, act: fn(&mut Client)) {
    let effort = if cfg!(miri) { Effort { step: 41, repairs: 2 } } else { Effort { step: 1, repairs: 8 } };
    Scenario { name, geometry, setup: few, act, rule: Rule::Whole }.enumerate(effort).expect_clean(name);
}

/// The survivors of each death give larger versions than the crashed one may have given.
#[test]
pub(super) fn deaths_of_who_asks() {
    dies("set, with a version asked for", strict(24), |c| put(c, b"key2", FIRST));
    dies("set, durable, with a version asked for", strict(24).durable(), |c| put(c, b"key2", FIRST));
    dies("count, with a version asked for", strict(24), |c| {
        let counter = Counter { attributes: FIRST, ..Counter::EXISTING };
        c.tick(&mut c.writer().unwrap(), (b"n", c.hash(b"n")), &Unsigned, counter, |n| Ok(Tick::Set(n + 1))).unwrap();
    });
}

#[test]
fn the_larger_of_what_is_asked_for_and_what_comes_next() {
    let fixture = Fixture::new(strict(24));
    let client = fixture.client();
    let asks = |asked: u64| Attributes::NONE.min_version(Version(asked));
    put(&client, b"k", asks(5));
    let first = version(&client, b"k");
    assert!(first > 1000, "versions begin at the time of the day");
    assert_eq!(client.raised(), 5 + (1 << 20));
    put(&client, b"k", FIRST);
    assert_eq!(version(&client, b"k"), ASKED.0);
    put(&client, b"k", FIRST);
    assert_eq!(version(&client, b"k"), ASKED.0 + 1);
    // Every kind of write.
    let kh = client.hash(b"k");
    let item = || client.t_item(b"k", kh);
    client
        .update(b"k", kh, &mut || item(), &mut |_| Ok(Update::SetMinVersion(b"7".to_vec(), Version(1 << 31))))
        .unwrap();
    assert_eq!(version(&client, b"k"), 1 << 31);
    client.update(b"k", kh, &mut || item(), &mut |_| Ok(Update::SetWith(b"7".to_vec(), asks(1 << 32)))).unwrap();
    assert_eq!(version(&client, b"k"), 1 << 32);
    let mut writer = client.writer().unwrap();
    let change = Change::SetWith(b"7", asks(1 << 33));
    client.cas(&mut writer, b"k", kh, Expected::Version(Version(1 << 32)), change).unwrap();
    assert_eq!(version(&client, b"k"), 1 << 33);
    let seen = client.peek(b"k", kh).unwrap();
    client.store_marked(&mut writer, (b"k", kh), b"7", (asks(1 << 34), 1), seen.as_ref(), false).unwrap().unwrap();
    assert_eq!(version(&client, b"k"), 1 << 34);
    let counter = Counter { initial: None, attributes: asks(1 << 35) };
    client.tick(&mut writer, (b"k", kh), &Unsigned, counter, |n| Ok(Tick::Set(n + 1))).unwrap();
    assert_eq!((version(&client, b"k"), client.t_get(b"k").unwrap().unwrap()), (1 << 35, b"8".to_vec()));
    client.t_touch(b"k", crate::types::Ttl::At(90_000)).unwrap();
    assert_eq!(version(&client, b"k"), 1 << 35);
    is_whole(&client).unwrap();
}

#[test]
fn there_is_a_limit_and_as_much_beyond_it() {
    let fixture = Fixture::new(strict(24));
    let client = fixture.client();
    put(&client, b"k", Attributes::NONE.min_version(Version::MIN_VERSION_MAX));
    assert_eq!(version(&client, b"k"), Version::MIN_VERSION_MAX.0);
    const { assert!(VERSION_MAX - Version::MIN_VERSION_MAX.0 >= Version::MIN_VERSION_MAX.0 - 1) };
    let beyond = Attributes::NONE.min_version(Version(Version::MIN_VERSION_MAX.0 + 1));
    for key in [&b"k"[..], b"new"] {
        let refused = client.t_put(key, b"beyond", beyond, When::Always).unwrap_err();
        assert!(matches!(refused, WriteError::InvalidState(text) if text.contains("2^41")), "{refused}");
    }
    let counter = Counter { initial: Some(1), attributes: beyond };
    let writer = &mut client.writer().unwrap();
    assert!(client.tick(writer, (b"n", client.hash(b"n")), &Unsigned, counter, |n| Ok(Tick::Set(n))).is_err());
    assert_eq!((client.t_get(b"k").unwrap().unwrap(), client.items()), (b"asked".to_vec(), 1));
}

#[test]
pub(super) fn nothing_goes_back_after_a_removal_or_a_clear() {
    let fixture = Fixture::new(strict(24));
    let client = fixture.client();
    put(&client, b"k", FIRST);
    client.t_del(b"k").unwrap();
    client.t_set(b"k", b"back").unwrap();
    let mut last = version(&client, b"k");
    assert!(last > ASKED.0 + 1);
    for _ in 0..3 {
        client.t_clear().unwrap();
        client.t_set(b"k", b"back").unwrap();
        assert!(version(&client, b"k") > last);
        last = version(&client, b"k");
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_power_cut_leaves_them() {
    let history = History::new(strict(64).durable(), 1);
    let client = history.fixture.client();
    put(&client, b"k", FIRST);
    client.t_set(b"other", b"value").unwrap();
    sync(&client).unwrap();
    let (given, moment) = (version(&client, b"k"), history.disk().now());
    history.disk().cuts(&[(moment, Choice::Old)], &mut Dice::new(1), |_, _, heap, len| {
        let client = rescue(&Fixture::after_cut(heap, 1000), len).unwrap();
        assert_eq!(version(&client, b"k"), given);
        client.t_set(b"k", b"next").unwrap();
        assert!(version(&client, b"k") > given);
        client.t_clear().unwrap();
        client.t_set(b"k", b"next").unwrap();
        assert!(version(&client, b"k") > given + (1 << 20));
    });
}
