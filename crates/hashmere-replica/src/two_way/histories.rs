//! Promise: two sites become equal, whichever of their replicators got how far, and was killed where.
//! Catches: a stamp that becomes smaller; what is passed over and needed; a delete or a clear that is lost between the
//! two directions.
//!
//! Small steps of both directions and of both writers in every order by chance, for a hundred short histories of each
//! pair of stores. A seed is printed; `HASHMERE_SEED` begins with another one, `HASHMERE_HISTORIES` runs more pairs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests: what is not there ends them")]

use super::death::die_at;
use super::deaths::Folder;
use super::follower::Follower;
use hashmere::{Attributes, Key, Store, Ttl, Version};
use hashmere_os::random::SplitMix64;
use std::collections::BTreeMap;
use std::time::Duration;

const KEYS: u64 = 12;

/// Key and supplied hash; value and expiry.
type All = BTreeMap<(Vec<u8>, Option<u64>), (Vec<u8>, Option<u64>)>;

fn all(store: &Store) -> All {
    let pairs = store.iter().map(|pair| pair.unwrap());
    pairs.map(|pair| ((pair.key, pair.supplied_hash), (pair.value, pair.metadata.expires_at_ms))).collect()
}

fn change(store: &Store, dice: &mut SplitMix64) -> String {
    let key = format!("k{}", dice.next() % KEYS);
    let value = (dice.next() % 1000).to_string();
    match dice.next() % 12 {
        0..=2 => {
            store.delete(&key).unwrap();
            format!("delete {key}")
        }
        3 if dice.next() % 4 == 0 => {
            store.clear().unwrap();
            "clear".into()
        }
        4 if dice.next() % 8 == 0 => {
            // More than the feed keeps.
            (0..400).for_each(|_| _ = store.set(&key, &[b'v'; 4000]).unwrap());
            format!("set {key} until the feed is overrun")
        }
        4 => {
            let at = 9_000_000_000_000 + dice.next() % 1000;
            store.touch(&key, Ttl::At(at)).unwrap();
            format!("touch {key} {at}")
        }
        5 => {
            store.set(Key::with_hash(&key, 1), value.as_bytes()).unwrap();
            format!("set {key} with a hash {value}")
        }
        _ => {
            store.set(&key, value.as_bytes()).unwrap();
            format!("set {key} {value}")
        }
    }
}

/// What two new stores have been through, between two moments at which they were equal.
fn histories(folder: &Folder, seed: u64) -> Result<(), String> {
    let mut dice = SplitMix64(seed);
    let names = [format!("a{seed}.mere"), format!("b{seed}.mere")];
    // Without values an event is of no use once its key was cleared.
    let stores = [0, 1].map(|n: usize| folder.store_with(&names[n], seed % 2 == 0));
    let open = |n: usize| Follower::open(&stores[1 - n], &stores[n]).unwrap();
    let mut followers = [open(0), open(1)].map(Some);
    for _ in 0..100 {
        let mut happened = Vec::new();
        for _ in 0..8 + dice.next() % 40 {
            let n = (dice.next() % 2) as usize;
            let events = 1 + dice.next() as usize % 12;
            let what = match dice.next() % 16 {
                0..=5 => {
                    let changes: Vec<String> =
                        (0..1 + dice.next() % 8).map(|_| change(&stores[n], &mut dice)).collect();
                    changes.join(", ")
                }
                6..=12 => {
                    followers[n].as_mut().unwrap().step_of(events, Duration::ZERO).unwrap();
                    format!("is brought {events} events")
                }
                13 => {
                    // Killed before it noted any, or in the middle of one.
                    let moment = dice.next() as u32 % 8;
                    die_at(moment);
                    let is_whole = followers[n].take().unwrap().die_within(events).is_ok();
                    die_at(0);
                    followers[n] = Some(open(n));
                    format!("is brought {events} events, killed at moment {moment} or behind them: {is_whole}")
                }
                14 => {
                    // The place of a replicator is free only when the one before is gone.
                    followers[n] = None;
                    followers[n] = Some(open(n));
                    "has another replicator".into()
                }
                _ => {
                    // As where the feed was overrun.
                    followers[n].as_mut().unwrap().begin_again(true).unwrap();
                    "begins a first copy".into()
                }
            };
            happened.push(format!("{} {what}", ["a", "b"][n]));
        }
        let mut idle = 0;
        for turn in 0.. {
            let is_idle = !followers[turn % 2].as_mut().unwrap().step_of(4, Duration::ZERO).unwrap();
            idle = if is_idle { idle + 1 } else { 0 };
            if idle == 4 {
                break;
            }
            assert!(turn < 10_000, "they do not come to rest: seed {seed}, {happened:#?}");
        }
        let [a, b] = [0, 1].map(|n: usize| all(&stores[n]));
        if a != b {
            return Err(format!("seed {seed}: {a:?} and {b:?} after {happened:#?}"));
        }
    }
    drop((followers, stores));
    for name in names {
        for name in [format!("{name}.sidecar"), name] {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
    }
    Ok(())
}

#[test]
fn equal_whatever_happened() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = number("HASHMERE_SEED").unwrap_or(39);
    let folder = Folder::new("histories");
    println!("histories: replay with HASHMERE_SEED={first}");
    for seed in first..first + number("HASHMERE_HISTORIES").unwrap_or(8) {
        histories(&folder, seed).unwrap_or_else(|differs| panic!("{differs}"));
    }
}

/// A write won at one site, and its value is lost before the other one reads it. Where it has expired the older value
/// goes too; where it was cleared, what was written unknown to that site stays, at both.
#[test]
fn an_older_value_beside_one_that_is_gone() {
    let folder = Folder::new("gone");
    let (a, b) = (folder.store_with("a.mere", false), folder.store_with("b.mere", false));
    let (mut of_a, mut of_b) = (Follower::open(&b, &a).unwrap(), Follower::open(&a, &b).unwrap());
    let rest = |of_a: &mut Follower, of_b: &mut Follower| {
        while of_a.step(Duration::ZERO).unwrap() | of_b.step(Duration::ZERO).unwrap() {}
    };
    rest(&mut of_a, &mut of_b);
    type Go<'a> = &'a dyn Fn(&str);
    let expire: Go<'_> = &|key| assert!(a.touch(key, Ttl::At(1000)).unwrap());
    let clear: Go<'_> = &|_| a.clear().unwrap();
    for (key, go, left) in [("expired", expire, None), ("cleared", clear, Some(b"older".to_vec()))] {
        let older = b.set(key, b"older").unwrap().version;
        let later = Attributes { min_version: Version(older.0 + 1000), ..Attributes::NONE };
        a.set_with(key, b"later", later).unwrap();
        // Here the older one loses. There the later one is not known yet.
        while of_a.step(Duration::ZERO).unwrap() {}
        assert_eq!((a.get(key).unwrap().unwrap(), b.get(key).unwrap().unwrap()), (b"later".into(), b"older".into()));
        go(key);
        rest(&mut of_a, &mut of_b);
        assert_eq!((a.get(key).unwrap(), b.get(key).unwrap()), (left.clone(), left), "{key}");
    }
}
