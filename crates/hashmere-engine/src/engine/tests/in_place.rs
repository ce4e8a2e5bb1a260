//! Values that are replaced where they are: when they are, and that every other write is as it was.

use super::crash::{is_sound, Cast, Effort, Rule, Scenario, State};
use super::fixture::{cache, strict, Client, Fixture, Geometry};
use crate::engine::When;
use crate::types::{Attributes, CasOutcome, Change, Expected, Ttl, Version};
use hashmere_mem::Mem;

/// Where the record of a key is.
fn place(client: &Client, key: &[u8]) -> u64 {
    client.read(key, client.t_hash(key), |found| Ok(found.record)).unwrap().expect("the key is there")
}

fn version(client: &Client, key: &[u8]) -> u64 {
    client.t_item(key, client.t_hash(key)).unwrap().expect("the key is there").metadata.version.0
}

/// Whether a write leaves the record where it was.
fn stays(client: &Client, key: &[u8], write: impl FnOnce(&Client)) -> bool {
    let before = place(client, key);
    write(client);
    place(client, key) == before
}

/// A client, and a key whose record is aligned.
fn aligned(geometry: Geometry, key: &[u8], value: &[u8]) -> (Fixture, Client) {
    let fixture = Fixture::new(geometry);
    let client = fixture.client();
    for n in 0.. {
        assert!(n < 8, "no record is ever aligned");
        client.t_set(key, value).unwrap();
        if place(&client, key) % 16 == 0 {
            break;
        }
        // Nothing is written in place where it is not.
        client.t_set(b"between", &[b'b'; 9]).unwrap();
    }
    (fixture, client)
}

#[test]
fn a_value_of_the_same_length_is_replaced_where_it_is() {
    for len in 0..=9 {
        let (_fixture, client) = aligned(strict(16), b"key", &vec![b'a'; len]);
        let before = (version(&client, b"key"), client.stats(0, 0));
        let in_place = stays(&client, b"key", |client| client.t_set(b"key", &vec![b'b'; len]).unwrap());
        assert_eq!(in_place, (1..=8).contains(&len) && client.mem.has_pairs(), "{len} bytes");
        assert_eq!(client.t_get(b"key").unwrap().unwrap(), vec![b'b'; len]);
        assert_eq!(version(&client, b"key"), before.0 + 1, "{len} bytes");
        let after = client.stats(0, 0);
        assert_eq!((after.items, after.bytes_live), (before.1.items, before.1.bytes_live), "{len} bytes");
        assert_eq!(after.bytes_dead == before.1.bytes_dead, in_place, "{len} bytes");
        assert_eq!(after.sets, before.1.sets + 1);
    }
}

/// The first overwrite of a record that is not aligned puts the next one where it can be replaced; a move keeps it so.
#[test]
fn one_overwrite_suffices() {
    let fixture = Fixture::new(strict(16));
    let client = fixture.client();
    let key = |n: u8| [n; 8];
    (0..80).for_each(|n| client.t_set(&key(n), b"87654321").unwrap());
    (0..80).for_each(|n| client.t_set(&key(n), b"12345678").unwrap());
    // Of keys with the same tag in one bucket the general write does not ask for a place.
    let stay = |n: &u8| stays(&client, &key(*n), |client| client.t_set(&key(*n), &[*n; 8]).unwrap());
    assert_eq!((0..80).filter(stay).count() >= 75, client.mem.has_pairs());
    let moved = client.stats(0, 0).records_moved;
    (0..80).filter(|n| n % 2 == 0).for_each(|n| assert!(client.t_del(&key(n)).unwrap()));
    client.compact(&mut client.writer().unwrap()).unwrap();
    assert!(client.stats(0, 0).records_moved > moved, "nothing was moved");
    assert_eq!((0..80).filter(|n| n % 2 != 0).filter(stay).count() >= 37, client.mem.has_pairs());
    is_sound(&client, 40).unwrap();
}

/// Keys and values of every short length, written twice, read in every way.
#[test]
fn keys_and_values_of_each_length() {
    let lengths = if cfg!(miri) { vec![0, 1, 8, 127, 128] } else { (0..=130).collect::<Vec<usize>>() };
    let fixture = Fixture::new(strict(64));
    let client = fixture.client();
    let mut state = State::new();
    for key_len in lengths {
        let key: Vec<u8> = (0..key_len).map(|i| (key_len + 3 * i) as u8).collect();
        for len in 0..=10 {
            for round in 0..3 {
                let value: Vec<u8> = (0..len).map(|i| (7 * len + i + 50 * round) as u8).collect();
                client.t_set(&key, &value).unwrap();
                let item = client.t_item(&key, client.t_hash(&key)).unwrap().unwrap();
                assert_eq!((item.value.as_slice(), item.metadata.value_len), (&value[..], len as u64));
                assert_eq!(client.t_view(&key, client.t_hash(&key)).unwrap().unwrap().value, value);
                assert_eq!(client.t_get_many(&[&key]).unwrap(), [Some(value.clone())]);
                state.insert(key.clone(), value);
            }
        }
    }
    is_sound(&client, state.len() as u64).unwrap();
    for (key, value) in &state {
        assert_eq!(client.t_get(key).unwrap().as_ref(), Some(value));
    }
}

#[test]
fn whatever_says_more_than_a_value_writes_a_record() {
    let put = |attributes: Attributes| {
        move |client: &Client| {
            client.t_put(b"key", b"new", attributes, When::Always).unwrap().unwrap();
        }
    };
    type Write = Box<dyn Fn(&Client)>;
    let writes: [(&str, Write); 5] = [
        ("flags", Box::new(put(Attributes { flags: 1, ..Attributes::NONE }))),
        ("expiry", Box::new(put(Attributes { ttl: Ttl::At(90_000), ..Attributes::NONE }))),
        ("version", Box::new(put(Attributes { min_version: Version(900), ..Attributes::NONE }))),
        ("longer", Box::new(|client| client.t_set(b"key", b"more").unwrap())),
        ("shorter", Box::new(|client| client.t_set(b"key", b"le").unwrap())),
    ];
    for (what, write) in writes {
        let (_fixture, client) = aligned(strict(16), b"key", b"old");
        assert!(!stays(&client, b"key", write), "{what}");
    }
    for geometry in [strict(16).durable(), Geometry { fixed: (Some(3), Some(9)), ..strict(16) }] {
        let fixture = Fixture::new(geometry);
        let client = fixture.client();
        for round in 0..4u8 {
            client.t_set(b"key", &[b'0' + round; 9][..if geometry.fixed.1.is_some() { 9 } else { 3 }]).unwrap();
            assert!(!stays(&client, b"key", |client| {
                client.t_set(b"key", &[b'5'; 9][..if geometry.fixed.1.is_some() { 9 } else { 3 }]).unwrap();
            }));
        }
    }
}

#[test]
fn where_lengths_are_fixed() {
    for (key, value) in [(&b"key"[..], &b"four"[..]), (b"12345678", b"87654321"), (b"k", b"")] {
        let geometry = Geometry { fixed: (Some(key.len() as u32), Some(value.len() as u32)), ..strict(16) };
        let fixture = Fixture::new(geometry);
        let client = fixture.client();
        let mut seen = [false; 2];
        for round in 0..8u8 {
            let now: Vec<u8> = value.iter().map(|byte| byte ^ round).collect();
            let was = client.t_get(key).unwrap().is_some();
            let in_place = was && stays(&client, key, |client| client.t_set(key, &now).unwrap());
            if !was {
                client.t_set(key, &now).unwrap();
            }
            seen[usize::from(in_place)] |= was;
            assert_eq!(client.t_get(key).unwrap().unwrap(), now);
        }
        assert_eq!(seen[1], !value.is_empty() && client.mem.has_pairs(), "fixed at {} and {}", key.len(), value.len());
        is_sound(&client, 1).unwrap();
    }
}

#[test]
fn counters_stay_until_they_get_longer() {
    let (_fixture, client) = aligned(strict(16), b"hits", b"7");
    for next in 8..=9 {
        assert_eq!(
            stays(&client, b"hits", |c| assert_eq!(c.t_incr(b"hits", 1, None).unwrap(), Some(next))),
            client.mem.has_pairs()
        );
    }
    assert!(!stays(&client, b"hits", |c| assert_eq!(c.t_incr(b"hits", 1, None).unwrap(), Some(10))));
    assert_eq!(client.t_get(b"hits").unwrap().unwrap(), b"10");
}

/// The version grows with each replacement, so who compares it sees each.
#[test]
fn a_replacement_is_seen_by_compare_and_set() {
    let (_fixture, client) = aligned(strict(16), b"key", b"one");
    let seen = Version(version(&client, b"key"));
    client.t_set(b"key", b"two").unwrap();
    client.t_set(b"key", b"one").unwrap();
    let kh = client.hash(b"key");
    let mut writer = client.writer().unwrap();
    let late = client.cas(&mut writer, b"key", kh, Expected::Version(seen), Change::Set(b"lost")).unwrap();
    assert!(matches!(late, CasOutcome::Mismatch { .. }), "{late:?}");
    let seen = Version(client.t_item(b"key", kh).unwrap().unwrap().metadata.version.0);
    let done = client.cas(&mut writer, b"key", kh, Expected::Version(seen), Change::Set(b"won")).unwrap();
    assert!(matches!(done, CasOutcome::Stored(_)), "{done:?}");
    // A key that goes and comes back has none of the versions that it had.
    drop(writer);
    let before = version(&client, b"key");
    client.t_del(b"key").unwrap();
    client.t_set(b"key", b"new").unwrap();
    assert!(version(&client, b"key") > before);
}

/// A record that is replaced in place never becomes the newest one, and is evicted no earlier for that.
#[test]
pub(super) fn a_counter_of_a_cache_is_used() {
    let fixture = Fixture::new(cache(16));
    let client = fixture.client();
    client.t_set(b"hits", b"10000000").unwrap();
    for n in 1..2000u64 {
        client.t_set(&n.to_le_bytes(), &[b'w'; 300]).unwrap();
        let counted = client.t_incr(b"hits", 1, None).unwrap();
        assert_eq!(counted, Some(10_000_000 + n), "after {} evictions", client.stats(0, 0).evictions);
    }
    assert!(client.stats(0, 0).evictions > 100);
}

#[test]
fn the_record_moves_and_is_replaced_again() {
    for geometry in [strict(12), cache(12)] {
        let fixture = Fixture::new(geometry);
        let client = fixture.client();
        let mut state = State::new();
        for round in 0..if cfg!(miri) { 3 } else { 60u32 } {
            for key in 0..20u32 {
                let value = format!("{:04}", (round * 31 + key) % 10_000).into_bytes();
                client.t_set(&key.to_le_bytes(), &value).unwrap();
                state.insert(key.to_le_bytes().to_vec(), value);
            }
            // Garbage around them, so that segments are cleaned.
            client.t_set(b"wide", &vec![b'w'; 900 + round as usize]).unwrap();
            let mut writer = client.writer().unwrap();
            client.compact(&mut writer).unwrap();
            drop(writer);
            for (key, value) in &state {
                assert_eq!(client.t_get(key).unwrap().as_ref(), Some(value), "round {round}");
            }
        }
        is_sound(&client, 21).unwrap();
    }
}

/// A death at each store of a replacement leaves the value of before, or the new one with its version.
#[test]
fn deaths() {
    /// With a record of 16 bytes, and a counter of 16, wherever records of other lengths put them.
    fn short(fixture: &Fixture) -> Cast {
        let (other, victim) = (fixture.client(), fixture.client());
        other.t_set(b"other", b"of the other").unwrap();
        let cast = Cast { victim, others: vec![other] };
        for round in 0..4 {
            for (key, len) in [(b"short", 3), (b"count", 1)] {
                cast.victim.t_set(key, &[b'1' + round; 3][..len]).unwrap();
            }
            cast.victim.t_set(format!("between{round}").as_bytes(), b"of another length").unwrap();
        }
        cast
    }
    /// Nothing but the lock and the pair is stored: no record, no intent.
    fn in_place(client: &Client, key: &[u8], act: impl FnOnce()) {
        let record = || client.read(key, client.hash(key), |found| Ok(found.record)).unwrap();
        let before = record();
        act();
        assert!(record() == before || !client.mem.has_pairs(), "it was not replaced in place");
    }
    /// With a record that is not aligned, and an open segment whose next record would not be.
    fn odd(fixture: &Fixture) -> Cast {
        let cast = short(fixture);
        for n in 0.. {
            cast.victim.t_set(b"odd", &[b'o'; 9]).unwrap();
            cast.victim.t_del(b"odd").unwrap();
            cast.victim.t_set(b"odd", b"odd").unwrap();
            if place(&cast.victim, b"odd") % 16 != 0 {
                break;
            }
            assert!(n < 8, "every record is aligned");
            cast.victim.t_set(b"between", &[b'b'; 9]).unwrap();
        }
        cast
    }
    fn run(name: &'static str, setup: fn(&Fixture) -> Cast, act: fn(&mut Client)) {
        let effort = if cfg!(miri) { Effort { step: 41, repairs: 2 } } else { Effort { step: 1, repairs: 24 } };
        let scenario = Scenario { name, geometry: strict(24), setup, act, rule: Rule::Whole };
        scenario.enumerate(effort).expect_clean(name);
    }
    run("set, aligned", odd, |c| {
        assert!(!stays(c, b"odd", |c| c.t_set(b"odd", b"new").unwrap()));
        assert!(place(c, b"odd") % 16 == 0 || !c.mem.has_pairs(), "it was not aligned");
    });
    run("set, in place", short, |c| in_place(c, b"short", || c.t_set(b"short", b"two").unwrap()));
    run("counter, in place", short, |c| {
        in_place(c, b"count", || assert_eq!(c.t_incr(b"count", 1, None).unwrap(), Some(5)));
    });
}
