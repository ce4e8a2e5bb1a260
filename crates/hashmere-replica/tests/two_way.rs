//! Two stores that both write, with partitions: they become equal, what was written last is there, and what was deleted
//! last stays deleted. No clock is set or read: stamps are versions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests: what is not there ends them")]

use hashmere::{Attributes, Key, Options, Store, Ttl, Version, WriteBatch};
use hashmere_os::random::SplitMix64;
use hashmere_replica::{TwoWay, ORIGIN};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A folder that goes with the test, and two stores in it: those of writers, and those of the replicator.
struct Sites {
    folder: PathBuf,
    users: [Store; 2],
    stores: [Store; 2],
}

impl Sites {
    fn new(name: &str, feed: u64) -> Sites {
        let root = if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
        let folder: PathBuf = root.join(format!("hashmere-two-way-{name}-{}", std::process::id()));
        // What a process of the same number left that was killed.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let small = || Options::new().segment_bytes(8192).leaf_bytes(512);
        let users = [
            Options::new().feed(feed).open(folder.join("a.mere")).unwrap(),
            small().feed(feed).open(folder.join("b.mere")).unwrap(),
        ];
        let stores = ["a.mere", "b.mere"].map(|name| Options::new().origin(ORIGIN).open(folder.join(name)).unwrap());
        Sites { folder, users, stores }
    }

    fn open(&self) -> TwoWay {
        TwoWay::open(&self.stores[0], &self.stores[1]).unwrap()
    }

    fn heal(&self, two_way: &mut TwoWay) {
        while two_way.step(Duration::ZERO).unwrap() {}
        let [a, b] = [all(&self.users[0]), all(&self.users[1])];
        if let Some(key) = a.keys().chain(b.keys()).find(|key| a.get(*key) != b.get(*key)) {
            panic!("{:?}: {:?} and {:?}", String::from_utf8_lossy(&key.0), a.get(key), b.get(key));
        }
    }
}

impl Drop for Sites {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Key and supplied hash; value, flags, expiry.
type All = BTreeMap<(Vec<u8>, Option<u64>), (Vec<u8>, u32, Option<u64>)>;

fn all(store: &Store) -> All {
    let pairs = store.iter().map(|pair| pair.unwrap());
    let item = |meta: &hashmere::Metadata, value| (value, meta.flags, meta.expires_at_ms);
    pairs.map(|pair| ((pair.key, pair.supplied_hash), item(&pair.metadata, pair.value))).collect()
}

fn change(store: &Store, dice: &mut SplitMix64) {
    let key = format!("k{}", dice.next() % 40);
    let value = dice.next().to_le_bytes();
    match dice.next() % 10 {
        0..=2 => _ = store.delete(&key).unwrap(),
        3 => _ = store.set(Key::with_hash(&key, dice.next() % 2), &value).unwrap(),
        4 => _ = store.delete(Key::with_hash(&key, dice.next() % 2)).unwrap(),
        5 => _ = store.touch(&key, Ttl::At(9_000_000_000_000 + dice.next() % 1000)).unwrap(),
        6 => {
            let with = Attributes { flags: dice.next() as u32, ttl: Ttl::At(8_000_000_000_000), ..Attributes::NONE };
            store.set_with(&key, &value, with).unwrap();
        }
        7 => {
            let mut batch = WriteBatch::new();
            batch.set(&key, value).delete(format!("k{}", dice.next() % 40));
            store.write_batch(&batch).unwrap();
        }
        _ => _ = store.set(&key, &value).unwrap(),
    }
}

fn dice(name: &str) -> SplitMix64 {
    let seed: u64 = std::env::var("HASHMERE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_124);
    println!("{name}: replay with HASHMERE_SEED={seed}");
    SplitMix64(seed)
}

#[test]
fn equal_after_partitions() {
    let mut dice = dice("partitions");
    let sites = Sites::new("partitions", 8 << 20);
    let mut two_way = sites.open();
    for round in 0..200 {
        for _ in 0..dice.next() % 40 {
            change(&sites.users[(dice.next() % 2) as usize], &mut dice);
        }
        if dice.next() % 16 == 0 {
            sites.users[(dice.next() % 2) as usize].clear().unwrap();
        }
        match round % 5 {
            // A partition goes on; and the replicator is another one.
            0 => {}
            1 => {
                drop(two_way);
                two_way = sites.open();
            }
            _ => sites.heal(&mut two_way),
        }
    }
    sites.heal(&mut two_way);
    assert!(sites.users.iter().all(|store| store.check().is_clean()));
}

/// Writers of both sides never stop.
#[test]
fn equal_after_writers_beside_it() {
    let sites = Sites::new("beside", 8 << 20);
    for round in 0..10u64 {
        let threads: Vec<_> = (0..2)
            .map(|side| {
                let (store, mut dice) = (sites.users[side].clone(), SplitMix64(round * 2 + side as u64));
                std::thread::spawn(move || (0..400).for_each(|_| change(&store, &mut dice)))
            })
            .collect();
        let mut two_way = sites.open();
        for _ in 0..20 {
            two_way.step(Duration::ZERO).unwrap();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        sites.heal(&mut two_way);
    }
}

#[test]
fn the_last_writer_wins_and_its_delete_stays() {
    let sites = Sites::new("last", 8 << 20);
    let [a, b] = &sites.users;
    let mut two_way = sites.open();
    sites.heal(&mut two_way);
    // What was seen and overwritten loses, whichever side has the larger versions by itself.
    a.set_with("k", b"a", Attributes::NONE.min_version(Version(1_000_000))).unwrap();
    sites.heal(&mut two_way);
    assert_eq!(b.get("k").unwrap().unwrap(), b"a");
    b.set("k", b"b").unwrap();
    sites.heal(&mut two_way);
    assert_eq!(a.get("k").unwrap().unwrap(), b"b");
    // A delete that was seen loses against what is written after it.
    a.delete("k").unwrap();
    sites.heal(&mut two_way);
    assert_eq!(b.get("k").unwrap(), None);
    b.set("k", b"after").unwrap();
    sites.heal(&mut two_way);
    assert_eq!(a.get("k").unwrap().unwrap(), b"after");
    // In a partition: the larger version wins, whether it is a delete or a value.
    drop(two_way);
    a.delete("k").unwrap();
    (0..5).for_each(|_| _ = b.set("k", b"five times").unwrap());
    a.set("other", b"1").unwrap();
    a.set("other", b"2").unwrap();
    b.delete("other").unwrap();
    let mut two_way = sites.open();
    sites.heal(&mut two_way);
    assert_eq!(a.get("k").unwrap().unwrap(), b"five times");
    (0..3).for_each(|_| _ = a.delete("k").unwrap() || a.set("k", b"again").is_err());
    a.delete("k").unwrap();
    sites.heal(&mut two_way);
    assert_eq!((a.get("k").unwrap(), b.get("k").unwrap()), (None, None));
    // A shorter life given by one side.
    a.set("life", b"v").unwrap();
    sites.heal(&mut two_way);
    b.touch("life", Ttl::At(9_000_000_000_000)).unwrap();
    sites.heal(&mut two_way);
    assert_eq!(a.metadata("life").unwrap().unwrap().expires_at_ms, Some(9_000_000_000_000));
}

#[test]
fn it_comes_to_rest() {
    let sites = Sites::new("rest", 8 << 20);
    let mut two_way = sites.open();
    (0..100u32).for_each(|i| _ = sites.users[0].set(&i.to_le_bytes(), b"v").unwrap());
    sites.heal(&mut two_way);
    let ends = |two_way: &TwoWay| two_way.status().iter().map(|status| status.source_position).collect::<Vec<_>>();
    let positions = ends(&two_way);
    for _ in 0..5 {
        assert!(!two_way.step(Duration::ZERO).unwrap());
    }
    assert_eq!(ends(&two_way), positions);
    assert!(two_way.status().iter().all(|status| status.lag() == 0));
}

#[test]
fn after_a_reset_every_key_is_merged() {
    let sites = Sites::new("reset", 1 << 20);
    let [a, b] = &sites.users;
    let mut two_way = sites.open();
    a.set("from a", b"1").unwrap();
    b.set("from b", b"2").unwrap();
    sites.heal(&mut two_way);
    drop(two_way);
    // More than the feed keeps.
    (0..60_000u32).for_each(|i| _ = a.set(&(i % 100).to_le_bytes(), &i.to_le_bytes()).unwrap());
    b.set("from b", b"3").unwrap();
    let mut two_way = sites.open();
    sites.heal(&mut two_way);
    assert_eq!((a.len(), a.get("from b").unwrap().unwrap()), (102, b"3".to_vec()));
}

/// A clear takes what the cleared side had, wherever it was written, and nothing else.
#[test]
fn a_clear_of_one_side_is_one_of_both() {
    for (n, is_reopened) in [(0, false), (0, true), (1, false), (1, true)] {
        let sites = Sites::new(&format!("clear-{n}-{is_reopened}"), 8 << 20);
        let (a, b) = (&sites.users[n], &sites.users[1 - n]);
        let mut two_way = sites.open();
        for i in 0..50u32 {
            a.set(&format!("a{i}"), b"1").unwrap();
            b.set(&format!("b{i}"), b"2").unwrap();
            b.set(Key::Hashed(b"hashed", u64::from(i)), b"2").unwrap();
        }
        sites.heal(&mut two_way);
        assert_eq!(a.len(), 150);
        // Beside the clear: writes of either side that the other one does not know, before it and behind it.
        b.set("a1", b"of b").unwrap();
        b.set("new", b"of b").unwrap();
        a.set("gone", b"before").unwrap();
        a.clear().unwrap();
        a.set("a2", b"after").unwrap();
        a.set("b3", b"after").unwrap();
        a.set("b4", b"x").unwrap();
        a.delete("b4").unwrap();
        if is_reopened {
            drop(two_way);
            two_way = sites.open();
        }
        sites.heal(&mut two_way);
        let left: Vec<_> = all(a).into_iter().map(|((key, _), (value, ..))| (key, value)).collect();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let left: Vec<_> = left.iter().map(|(key, value)| format!("{}={}", text(key), text(value))).collect();
        assert_eq!(left, ["a1=of b", "a2=after", "b3=after", "new=of b"]);
        // What was cleared can be written again, on both sides, and is the last one then.
        b.set("b5", b"again").unwrap();
        sites.heal(&mut two_way);
        a.set("b5", b"and again").unwrap();
        sites.heal(&mut two_way);
        assert_eq!(b.get("b5").unwrap().unwrap(), b"and again");
        // Both at once, and twice.
        a.clear().unwrap();
        b.clear().unwrap();
        a.clear().unwrap();
        sites.heal(&mut two_way);
        assert!(all(a).is_empty());
        b.set("last", b"1").unwrap();
        sites.heal(&mut two_way);
        assert_eq!((a.len_exact().unwrap(), b.len_exact().unwrap()), (1, 1));
    }
}
