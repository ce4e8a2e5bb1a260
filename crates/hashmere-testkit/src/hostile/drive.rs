//! The child: opens each file whose path it reads, and does everything that can be done with a store. What comes back
//! does not matter, only that it comes back.

use super::pool::use_pools;
use super::shapes::{COLLIDING, KEYS};
use super::timed::timed;
use crate::payload;
use crate::rng::Rng;
use crate::roles::limit;
use hashmere::{Attributes, Change, Counter, Cursor, Expected, Filter, Key, Options, Store, Ttl, Uid, Update, Version};
use nix::sys::resource::{Resource, RLIM_INFINITY};
use std::io::BufRead;
use std::time::Duration;

/// Heap that the child may take. (Its mappings of the file do not count. A sanitizer, whose own memory would, has its
/// own limit: see `scripts/asan`.)
const HEAP: u64 = 512 << 20;
/// Largest file that it may make of a damaged one.
const FILE: u64 = 256 << 20;
/// Pairs after which a scan has shown that it goes on.
const PAIRS: usize = 20_000;
/// A lock whose owner seems to live is waited for so long.
const BUSY: Duration = Duration::from_micros(200);

/// Reads lines `SEED PATH` and says `done` after each.
///
/// # Panics
/// If a call takes too long.
pub fn drive() {
    crate::procs::die_with_parent();
    let heap = if std::env::var_os("ASAN_OPTIONS").is_some() { RLIM_INFINITY } else { HEAP };
    limit(Resource::RLIMIT_DATA, heap);
    limit(Resource::RLIMIT_FSIZE, FILE);
    limit(Resource::RLIMIT_CORE, 0);
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let (seed, path) = line.split_once(' ').expect("a seed and a path");
        let mut rng = Rng::from_seed(seed.parse().expect("a seed"));
        timed("open read-only", || {
            if let Ok(store) = Options::new().read_only().open(path) {
                read(&store, &mut rng);
            }
        });
        let options = Options::new().create(false).busy_timeout(BUSY);
        let opened = timed("open", || options.open(path));
        if let Ok(store) = opened {
            use_it(&store, &mut rng);
            if rng.chance(15) {
                timed("backup", || drop(store.backup(format!("{path}.copy")).replace(true).run()));
            }
            timed("close", || drop(store));
        }
        println!("done");
    }
}

fn use_it(store: &Store, rng: &mut Rng) {
    timed("reading", || read(store, rng));
    for _ in 0..2 {
        timed("writing", || (0..40).for_each(|_| write(store, rng)));
        timed("by number", || by_number(store, rng));
        use_pools(store, rng);
        timed("sync", || drop(store.sync()));
        timed("compact", || drop(store.compact()));
        timed("reading again", || read(store, rng));
    }
    if rng.chance(30) {
        timed("clear", || drop(store.clear()));
        timed("writing after a clear", || (0..20).for_each(|_| write(store, rng)));
        timed("check after a clear", || drop(store.check()));
    }
}

fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(12) {
        0 => b"counter".to_vec(),
        1 => rng.below(KEYS).to_le_bytes().to_vec(),
        _ => payload::key(rng.below(KEYS)),
    }
}

fn read(store: &Store, rng: &mut Rng) {
    let mut buffer = Vec::new();
    for _ in 0..40 {
        let key = key(rng);
        let _ = store.get(&key);
        let _ = store.get_into(&key, &mut buffer);
        let _ = store.get_item(&key);
        let _ = store.view(&key).map(|view| view.map(|view| view.iter().fold(0u8, |sum, byte| sum ^ byte)));
        let _ = (store.metadata(&key), store.contains_key(&key), store.ttl(&key));
        let hashed = Key::with_hash(&key, COLLIDING);
        let _ = (store.get(hashed), store.get_item(hashed), store.contains_key(hashed));
        let _ = (store.get_into(hashed, &mut buffer), store.id_of(&key), store.id_of(hashed));
        let uid = Uid(rng.word() as u32);
        let _ = (
            store.get_into(uid, &mut buffer),
            store.key_of(uid),
            store.view(uid).map(|view| view.map(|view| view.len())),
        );
        let _ = store.random();
    }
    let keys: Vec<Vec<u8>> = (0..70).map(|_| key(rng)).collect();
    let _ = store.get_many(&keys);
    let _ = (store.len(), store.is_empty());
    timed("stats", || drop(store.stats()));
    timed("check", || drop(store.check()));
    timed("iter", || store.iter().take(PAIRS).take_while(Result::is_ok).for_each(drop));
    timed("keys", || store.keys().take(PAIRS).take_while(Result::is_ok).for_each(drop));
    let from = Cursor(rng.word() >> rng.below(64));
    timed("scan", || {
        store.scan(from, Filter::all().prefix("key-1")).take(PAIRS).take_while(Result::is_ok).for_each(drop)
    });
    timed("parallel scan", || drop(store.parallel_scan(2, &Filter::all().keys_only(), |_| {})));
}

fn write(store: &Store, rng: &mut Rng) {
    let key = key(rng);
    let value = payload::encode_len(rng.word(), *rng.pick(&[8, 16, 16, 60, 500, 3000, 20_000]));
    let counter = Counter::or_create(rng.word());
    let attributes = Attributes::NONE.flags(3).ttl(Ttl::After(Duration::from_millis(rng.below(5))));
    let hashed = Key::with_hash(&key, COLLIDING);
    match rng.below(26) {
        0..4 => drop(store.set(&key, &value)),
        4 => drop(store.set_with(&key, &value, attributes)),
        5 => drop(store.add(&key, &value, attributes)),
        6 => drop(store.replace(&key, &value, Attributes::NONE)),
        7 => drop(store.append(&key, &value)),
        8 => drop(store.prepend(&key, &value)),
        9 => drop(store.reserve(&key, value.len() as u64, Attributes::NONE).map(|mut place| {
            place.copy_from_slice(&value);
            drop(place.commit());
        })),
        10..13 => drop(store.delete(&key)),
        13 => drop(store.take(&key)),
        14 => drop(store.cas(&key, Expected::Value(&value), Change::Remove)),
        15 => drop(store.cas(&key, Expected::Version(Version(rng.word())), Change::Set(&value))),
        16 => drop(store.update_with(&key, |item| item.map_or(Update::Keep, |_| Update::Set(value.clone())))),
        17 => drop(store.incr(&key, 3, counter)),
        18 => drop((store.decr(&key, 3, counter), store.incr_by(&key, -1, counter))),
        19 => drop((store.inc_ref(&key, 1), store.dec_ref(&key, 1))),
        20 => drop(store.touch(&key, Ttl::After(Duration::from_secs(9)))),
        21 => drop(store.get_and_touch(&key, Ttl::After(Duration::from_millis(1)))),
        22 => drop(store.set_many(&[(&key, &value), (&key, &key)])),
        23 => drop(store.delete_many(&[&key])),
        24 => drop((store.set(hashed, &value), store.incr(hashed, 1, counter))),
        _ => drop((store.add(hashed, &value, Attributes::NONE), store.delete(hashed))),
    }
}

fn by_number(store: &Store, rng: &mut Rng) {
    for _ in 0..10 {
        let key = key(rng);
        if let Ok(Some(handle)) = store.id_of(&key) {
            let _ = (store.get_item(handle), store.set(handle, b"by entry id"), store.append(handle, b"7"));
            let _ = (store.incr(handle, 1, Counter::EXISTING), store.touch(handle, Ttl::After(Duration::from_secs(9))));
            let _ = store.cas(handle, Expected::Version(Version(rng.word())), Change::Set(b"by entry id"));
            let _ = store.update_with(handle, |_| Update::Remove);
        }
        let uid = Uid(rng.word() as u32 >> rng.below(32));
        let _ = (store.get(uid), store.set(uid, b"by number"), store.take(uid), store.delete(uid));
    }
}
