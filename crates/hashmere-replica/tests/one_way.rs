//! A replica on real files: equal to its source after any history, wherever the replicator stopped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests: what is not there ends them")]

use hashmere::{Attributes, Key, Options, Store, Ttl, WriteBatch};
use hashmere_feed::disable;
use hashmere_os::random::SplitMix64;
use hashmere_replica::{status, ReplicaError, ReplicaPhase, Replicator, ORIGIN};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let root = if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
        let path = root.join(format!("hashmere-replica-{name}-{}", std::process::id()));
        // What a process of the same number left that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn source(&self) -> Store {
        Options::new().feed(1 << 20).feed_values(true).open(self.0.join("from.mere")).unwrap()
    }
    fn target(&self, options: Options) -> Store {
        options.origin(ORIGIN).open(self.0.join("to.mere")).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Key and supplied hash; value, flags, expiry.
type All = BTreeMap<(Vec<u8>, Option<u64>), (Vec<u8>, u32, Option<u64>)>;

fn all(store: &Store) -> All {
    let pairs = store.iter().map(|pair| pair.unwrap());
    let item = |meta: &hashmere::Metadata, value| (value, meta.flags, meta.expires_at_ms);
    pairs.map(|pair| ((pair.key, pair.supplied_hash), item(&pair.metadata, pair.value))).collect()
}

fn catch_up(replicator: &mut Replicator) {
    while replicator.step(Duration::ZERO).unwrap() {}
}

#[track_caller]
fn assert_equal(from: &Store, to: &Store) {
    let (source, target) = (all(from), all(to));
    if let Some(key) = source.keys().chain(target.keys()).find(|key| source.get(*key) != target.get(*key)) {
        panic!("{key:?}: {:?} in the source, {:?} in the replica", source.get(key), target.get(key));
    }
    for pair in from.iter().map(|pair| pair.unwrap()) {
        let key = pair.supplied_hash.map_or(Key::Bytes(&pair.key), |hash| Key::Hashed(&pair.key, hash));
        let version = to.metadata(key).unwrap().unwrap().version;
        assert!(version >= pair.metadata.version, "{:?}: {version:?} after {:?}", pair.key, pair.metadata.version);
    }
    assert!(to.check().is_clean());
}

/// One random change.
fn change(store: &Store, dice: &mut SplitMix64) {
    let key = format!("k{}", dice.next() % 60);
    let value = vec![b'v'; (dice.next() % 200) as usize];
    let value = [&dice.next().to_le_bytes(), &value[..]].concat();
    match dice.next() % 16 {
        0 | 1 => _ = store.delete(&key).unwrap(),
        2 => _ = store.set(Key::with_hash(&key, dice.next() % 3), &value).unwrap(),
        3 => _ = store.delete(Key::with_hash(&key, dice.next() % 3)).unwrap(),
        4 => _ = store.append(&key, b"+").unwrap(),
        5 => _ = store.touch(&key, Ttl::At(9_000_000_000_000 + dice.next() % 1000)).unwrap(),
        6 => _ = store.touch(&key, Ttl::Never).unwrap(),
        7 => {
            let with = Attributes { flags: dice.next() as u32, ttl: Ttl::At(8_000_000_000_000), ..Attributes::NONE };
            store.set_with(&key, &value, with).unwrap();
        }
        8 => _ = store.set_with(&key, &value, Attributes::NONE.ttl(Ttl::At(1))).unwrap(),
        9 | 10 => {
            let mut batch = WriteBatch::new();
            batch.set(&key, &value).delete(format!("k{}", dice.next() % 60)).set("together", &value);
            store.write_batch(&batch).unwrap();
        }
        11 if dice.next() % 40 == 0 => store.clear().unwrap(),
        12 if dice.next() % 8 == 0 => _ = store.set(&key, &vec![b'l'; 200_000]).unwrap(),
        _ => _ = store.set(&key, &value).unwrap(),
    }
}

fn histories(name: &str, target: impl Fn() -> Options, values: bool) {
    let seed: u64 = std::env::var("HASHMERE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_124);
    println!("{name}: replay with HASHMERE_SEED={seed}");
    let folder = Folder::new(name);
    let from = folder.0.join("from.mere");
    let from = Options::new().feed(1 << 20).feed_values(values).open(from).unwrap();
    let to = folder.target(target());
    let mut dice = SplitMix64(seed);
    // What the replica has of its own goes.
    (0..500u32).for_each(|i| _ = to.set(&i.to_le_bytes(), b"stale").unwrap());
    for round in 0..60 {
        (0..dice.next() % 300).for_each(|_| change(&from, &mut dice));
        let mut replicator = Replicator::open(&from, &to).unwrap();
        if round % 3 == 0 {
            // Stopped somewhere.
            (0..dice.next() % 3).for_each(|_| _ = replicator.step(Duration::ZERO).unwrap());
            continue;
        }
        while replicator.step(Duration::ZERO).unwrap() {
            if dice.next() % 4 == 0 && round % 2 == 0 {
                change(&from, &mut dice);
            }
        }
        assert_equal(&from, &to);
        let status = replicator.status();
        assert_eq!((status.phase, status.lag(), status.lag_ms), (ReplicaPhase::Live, 0, 0));
    }
}

#[test]
fn after_any_history() {
    histories("histories", Options::new, true);
}

#[test]
fn into_a_store_with_small_transactions() {
    histories("small", || Options::new().segment_bytes(4096).leaf_bytes(256), true);
}

#[test]
fn from_a_feed_without_values() {
    histories("no-values", Options::new, false);
}

#[test]
fn a_place_that_is_gone_is_a_first_copy() {
    let folder = Folder::new("gone");
    let (from, to) = (folder.source(), folder.target(Options::new()));
    (0..2000u32).for_each(|i| _ = from.set(&i.to_le_bytes(), b"value").unwrap());
    catch_up(&mut Replicator::open(&from, &to).unwrap());
    assert_eq!(status(&to).unwrap().unwrap().copied, 2000);
    // More than the feed keeps; and changes while it was off.
    for round in 0..2 {
        for i in 0..40_000u32 {
            from.set(&(1000 + i % 3000).to_le_bytes(), &i.to_le_bytes()).unwrap();
        }
        (0..1500u32).for_each(|i| _ = from.delete(&i.to_le_bytes()).unwrap());
        if round == 1 {
            assert!(disable(&from).unwrap());
            assert_eq!(Replicator::open(&from, &to).unwrap_err().code(), 80);
            from.delete(&3000u32.to_le_bytes()).unwrap();
            hashmere_feed::enable(&from, 1 << 20, true).unwrap();
        }
        let mut replicator = Replicator::open(&from, &to).unwrap();
        // Stopped within the first copy, it goes on there.
        replicator.step(Duration::ZERO).unwrap();
        replicator.step(Duration::ZERO).unwrap();
        drop(replicator);
        catch_up(&mut Replicator::open(&from, &to).unwrap());
        assert_equal(&from, &to);
    }
}

#[test]
fn a_full_replica_resumes_when_it_has_room() {
    let folder = Folder::new("full");
    let from = folder.source();
    let to = folder.target(Options::new().max_bytes(4 << 20));
    (0..60u32).for_each(|i| _ = from.set(&i.to_le_bytes(), &[i as u8; 100_000]).unwrap());
    let mut replicator = Replicator::open(&from, &to).unwrap();
    let error = loop {
        match replicator.step(Duration::ZERO) {
            Ok(more) => assert!(more, "it does not fit"),
            Err(error) => break error,
        }
    };
    assert!(error.code() == 31 && error.to_string().contains("to.mere"), "{} {error}", error.code());
    assert!(!to.is_empty(), "what fits is there");
    to.set_max_bytes(64 << 20).unwrap();
    catch_up(&mut replicator);
    assert_equal(&from, &to);
}

#[test]
fn one_replicator_for_each_target() {
    let folder = Folder::new("taken");
    let (from, to) = (folder.source(), folder.target(Options::new()));
    assert!(status(&to).unwrap().is_none());
    let replicator = Replicator::open(&from, &to).unwrap();
    let error = Replicator::open(&from, &to).unwrap_err();
    assert!(matches!(error, ReplicaError::Taken { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
    assert_eq!(status(&to).unwrap().unwrap().pid, Some(std::process::id()));
    drop(replicator);
    assert_eq!(status(&to).unwrap().unwrap().pid, None);
    assert_eq!(Replicator::open(&from, &from).unwrap_err().code(), 86);
    let mut replicator = Replicator::open(&from, &to).unwrap();
    catch_up(&mut replicator);
    assert!(!replicator.is_source_replaced());
    Store::remove(from.path()).unwrap();
    assert!(replicator.is_source_replaced());
}

/// A transaction of the source is one of the replica: of two keys that are always equal, no snapshot differs.
#[test]
fn transactions_are_applied_whole() {
    let folder = Folder::new("whole");
    let (from, to) = (folder.source(), folder.target(Options::new()));
    let mut replicator = Replicator::open(&from, &to).unwrap();
    catch_up(&mut replicator);
    let reader = to.clone();
    let seen = std::thread::spawn(move || loop {
        let items = reader.get_many_snapshot(&["a", "b"]).unwrap();
        let values: Vec<_> = items.into_iter().map(|item| item.map(|item| item.value)).collect();
        assert_eq!(values[0], values[1]);
        if values[0].as_deref() == Some(b"1999") {
            return;
        }
    });
    for i in 0..2000 {
        let mut batch = WriteBatch::new();
        batch.set("a", i.to_string()).set("b", i.to_string());
        from.write_batch(&batch).unwrap();
        if i % 7 == 0 {
            replicator.step(Duration::ZERO).unwrap();
        }
    }
    catch_up(&mut replicator);
    seen.join().unwrap();
}
