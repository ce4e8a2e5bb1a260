//! Promise: a backup of a store in use is the store of one moment, also when those who write or copy are killed.
//! Catches: a write in the copy without one that came before it, also by way of another process; a copy that is half
//! there; room or locks that a dead backup holds forever; an option, version or attribute that is not copied.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, BackupError, Key, Mode, OpenError, Options, Store, Ttl, WriteError};
use hashmere_testkit::limits::lasting;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::roles::backup::{key, number};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{rng, small, tiny};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

const KEYS: u64 = 500;

/// The numbers of a sequence are those of one moment: each key has the last one up to the highest.
fn is_cut(copy: &Store, name: &str, keys: u64) -> u64 {
    let found: Vec<u64> =
        (0..keys).map(|k| copy.get(&key(name, k, keys)).unwrap().map_or(0, |text| number(&text))).collect();
    let highest = found.iter().copied().max().unwrap();
    for (k, n) in found.into_iter().enumerate() {
        let last = highest - (highest + keys - k as u64) % keys;
        // Between its deletion and its new value a key is not there: only that of the next number can be so.
        let between = n == 0 && (highest + 1) % keys == k as u64 && (highest + 1) % 11 == 0;
        assert!(n == last || between, "{name}: key {k} has {n} beside {highest}, not {last}");
    }
    highest
}

fn open_copy(path: &Path) -> Store {
    let copy = Options::new().create(false).open(path).unwrap();
    let report = copy.check();
    assert!(report.is_clean(), "{:#?}", report.problems);
    copy
}

/// Copies are made while processes write, one of which is killed, and the last of the processes reads what the first
/// writes.
fn beside_writers(name: &str, options: Options, seconds: u64) {
    let scratch = Scratch::new(name);
    let path = scratch.store("source");
    let store = options.open(&path).unwrap();
    let start = |role: &str, arguments: &[&dyn ToString]| {
        let mut all: Vec<&dyn ToString> = vec![];
        let text = path.display().to_string();
        all.push(&text);
        all.extend(arguments);
        let mut worker = Worker::start(hashmere_testkit::worker!(), role, &all);
        worker.expect("ready");
        worker
    };
    let mut workers = vec![
        start("sequence", &[&"a", &KEYS]),
        start("sequence", &[&"one", &1]),
        start("echo", &[&"one", &"echo"]),
        start("sequence", &[&"b", &KEYS]),
    ];
    let (mut before, mut made, end) = (0, 0, Instant::now() + lasting(Duration::from_secs(seconds)));
    while Instant::now() < end || made < 3 {
        let file = scratch.path().join(format!("copy{made}"));
        store.set(b"acknowledged", made.to_string().as_bytes()).unwrap();
        let least = number(&store.get(b"one 0").unwrap().unwrap_or_else(|| b"0 ".to_vec()));
        store.backup(&file).run().unwrap_or_else(|error| panic!("copy {made}: {error}"));
        let copy = open_copy(&file);
        let cut = is_cut(&copy, "a", KEYS);
        assert!(cut >= before, "the copy is older than the one before");
        is_cut(&copy, "b", KEYS);
        let one = copy.get(b"one 0").unwrap().map(|text| number(&text));
        let echo = copy.get(b"echo").unwrap().map_or(0, |text| number(&text));
        assert!(one.is_none_or(|one| one >= least), "what was visible before the backup is not in it");
        assert!(one.is_none_or(|one| echo <= one), "the copy has {echo} that was read of {one:?}");
        assert_eq!(copy.get(b"acknowledged").unwrap(), Some(made.to_string().into_bytes()));
        drop(copy);
        std::fs::remove_file(&file).unwrap();
        (before, made) = (cut, made + 1);
        if made == 2 {
            drop(workers.pop().map(Worker::kill));
        }
    }
    println!("{name}: {made} copies, {before} numbers");
    for worker in workers {
        worker.finish(LIMIT).ok(name);
    }
    let report = store.check();
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert_eq!(store.stats().backup_pid, None);
}

#[test]
fn of_one_moment_beside_writers() {
    beside_writers("backup-plain", Options::new(), 4);
    beside_writers("backup-tiny", tiny(), 3);
    beside_writers("backup-durable", small().durable(), 3);
}

#[test]
fn a_killed_backup_leaves_nothing() {
    let scratch = Scratch::new("backup-killed");
    let path = scratch.store("source");
    let store = small().open(&path).unwrap();
    let write = |round: u64| (0..3000u64).for_each(|i| _ = store.set(&i.to_le_bytes(), &[round as u8; 100]).unwrap());
    write(0);
    let mut rng = rng::Rng::for_test("backup-killed");
    let file = scratch.path().join("copy");
    let (mut whole, mut none) = (0, 0);
    for round in 1..40 {
        // Every other one dies where it surely has no name yet, whatever else the machine does.
        let role = if round % 2 == 0 { "backup" } else { "half-a-backup" };
        let mut worker = Worker::start(hashmere_testkit::worker!(), role, &[&path.display(), &file.display()]);
        worker.expect("ready");
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_micros(rng.below(20_000)));
        } else {
            worker.expect("half");
        }
        worker.kill();
        match open_if_there(&file) {
            Some(copy) => {
                assert_eq!(copy.len(), 3000);
                assert!(copy.check().is_clean());
                std::fs::remove_file(&file).unwrap();
                whole += 1;
            }
            None => none += 1,
        }
        let left = std::fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(left, 1, "a killed backup left a file behind");
        write(round);
    }
    println!("killed before the name was given: {none}, after: {whole}");
    assert!(none >= 20);
    // Neither marks nor room of a killed backup are in the way of the next one.
    store.delete(&7u64.to_le_bytes()).unwrap();
    assert_eq!(store.backup(&file).run().unwrap().items, 2999);
    let copy = open_copy(&file);
    assert!((0..3000u64).filter(|i| *i != 7).all(|i| copy.get(&i.to_le_bytes()).unwrap() == Some(vec![39; 100])));
    assert!(store.check().is_clean());
}

fn open_if_there(file: &Path) -> Option<Store> {
    match Options::new().create(false).open(file) {
        Ok(copy) => Some(copy),
        Err(OpenError::NotFound { .. }) => None,
        Err(error) => panic!("half a copy: {error}"),
    }
}

#[test]
fn copies_are_like_their_store() {
    let scratch = Scratch::new("backup-options");
    let shapes = [
        ("strict", tiny().max_bytes(64 << 20).permissions(0o640)),
        ("cache", small().mode(Mode::Cache).max_bytes(32 << 20)),
        ("durable", Options::new().durable()),
        ("fixed", tiny().fixed_key_len(4).fixed_value_len(8)),
    ];
    for (name, options) in shapes {
        let path = scratch.store(name);
        let store = options.clone().open(&path).unwrap();
        for i in 0..500u32 {
            let with = Attributes {
                flags: i,
                ttl: if i % 3 == 0 { Ttl::After(Duration::from_secs(900)) } else { Ttl::Never },
                ..Attributes::NONE
            };
            store.set_with(&i.to_le_bytes(), &u64::from(i).to_le_bytes(), with).unwrap();
        }
        if name == "strict" {
            store.set(b"large", &vec![b'L'; 5 << 20]).unwrap();
        }
        let file = scratch.path().join(format!("{name}-copy"));
        let report = store.backup(&file).run().unwrap();
        assert_eq!((report.items, report.thinned), (store.len(), false));
        assert_eq!(file.metadata().unwrap().mode(), path.metadata().unwrap().mode());
        // It was closed in order: another boot opens it, and finds nothing to rebuild.
        File::options().write(true).open(&file).unwrap().write_all_at(&[0xee; 16], 128).unwrap();
        let copy = options.create(false).on_recovery(|_, _| panic!("nothing is to be rebuilt")).open(&file).unwrap();
        assert_eq!((copy.stats().mode, copy.stats().durable), (store.stats().mode, store.stats().durable));
        assert_eq!(copy.stats().bytes_max, store.stats().bytes_max);
        for pair in store.iter() {
            let (pair, found) = (pair.as_ref().unwrap(), copy.get_item(&pair.as_ref().unwrap().key).unwrap().unwrap());
            assert_eq!(found.value, pair.value);
            let rest = |m: &hashmere::Metadata| (m.version, m.flags, m.marks, m.expires_at_ms);
            assert_eq!(rest(&found.metadata), rest(&pair.metadata));
        }
        assert!(copy.check().is_clean());
    }
}

#[test]
fn supplied_hashes_find_their_keys() {
    let scratch = Scratch::new("backup-hashed");
    let store = Store::open(scratch.store("source")).unwrap();
    store.set(Key::with_hash(b"key", 77), b"value").unwrap();
    store.backup(scratch.path().join("copy")).run().unwrap();
    let copy = open_copy(&scratch.path().join("copy"));
    assert_eq!(copy.get(Key::with_hash(b"key", 77)).unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn names_are_respected() {
    let scratch = Scratch::new("backup-names");
    let path = scratch.store("source");
    let store = Store::open(&path).unwrap();
    store.set(b"key", b"value").unwrap();
    let file = scratch.path().join("copy");
    store.backup(&file).run().unwrap();
    let again = store.backup(&file).run().unwrap_err();
    assert!(matches!(again, BackupError::Exists { .. }) && again.code() == 52);
    assert!(again.to_string().contains("copy is there already"), "{again}");
    store.set(b"key", b"newer").unwrap();
    let held = open_copy(&file);
    store.backup(&file).replace(true).run().unwrap();
    assert_eq!(held.get(b"key").unwrap().as_deref(), Some(&b"value"[..]), "who has it open keeps it");
    assert_eq!(open_copy(&file).get(b"key").unwrap().as_deref(), Some(&b"newer"[..]));
    // Neither the store itself nor what is no store is replaced.
    assert_eq!(store.backup(&path).replace(true).run().unwrap_err().code(), 52);
    std::fs::write(scratch.path().join("text"), b"no store").unwrap();
    assert_eq!(store.backup(scratch.path().join("text")).replace(true).run().unwrap_err().code(), 3);
    assert_eq!(store.backup(scratch.path().join("no/such/folder")).run().unwrap_err().code(), 10);
    let reader = Options::new().read_only().open(&path).unwrap();
    let refused = reader.backup(scratch.path().join("other")).run().unwrap_err();
    assert!(matches!(refused, BackupError::Source(WriteError::ReadOnly)));
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 3, "something was left behind");
}

#[test]
fn progress_is_reported_and_a_panic_in_it_ends_the_backup() {
    let scratch = Scratch::new("backup-progress");
    let store = Store::open(scratch.store("source")).unwrap();
    (0..20_000u32).for_each(|i| _ = store.set(&i.to_le_bytes(), b"value").unwrap());
    let file = scratch.path().join("copy");
    let caught = std::panic::catch_unwind(|| {
        let made = store.backup(&file).on_progress(|_, _| std::panic::resume_unwind(Box::new(()))).run();
        assert!(made.is_ok());
    });
    assert!(caught.is_err() && !file.exists());
    let mut told = Vec::new();
    store.backup(&file).on_progress(|done, of| told.push((done, of))).run().unwrap();
    assert!(told.len() > 2 && told.windows(2).all(|w| w[0].0 <= w[1].0), "{told:?}");
    assert_eq!((told[0], told[told.len() - 1]), ((0, 20_000), (20_000, 20_000)));
}
