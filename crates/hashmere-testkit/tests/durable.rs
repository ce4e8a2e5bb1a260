//! Promise: a durable store that was open when the machine went down is rebuilt by the next to open it for writing;
//! what was synced is there. (What a disk may make of unsynced writes is simulated in the engine's own tests.) Catches:
//! a rebuild that is not begun, is begun by two at once, or is begun by those who must not write; a clean flag that
//! stays on the disk while the store is open.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Counter, Mode, OpenError, Options, Store, Ttl, WriteError};
use hashmere_engine::StoreHandle;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, small, tiny};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Boot id and status word of the header: the machine went down while the store was open.
fn reboot(path: &Path) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.write_all_at(&[0xee; 16], 128).unwrap();
    let mut status = [0; 8];
    file.read_exact_at(&mut status, 152).unwrap();
    status[0] &= !1;
    file.write_all_at(&status, 152).unwrap();
}

fn key(i: u32) -> Vec<u8> {
    format!("key {i}").into_bytes()
}

fn value(i: u32) -> Vec<u8> {
    format!("{i} ").repeat(i as usize % 300).into_bytes()
}

fn expect(store: &Store, n: u32) {
    assert_eq!(store.len(), u64::from(n) * 2 / 3);
    for i in 0..n {
        let there = (i % 3 != 0).then(|| value(i));
        assert_eq!(store.get(&key(i)).unwrap(), there, "key {i}");
    }
    assert_clean(store);
}

fn fill(store: &Store, n: u32) {
    for value in [|_| b"overwritten".to_vec(), value] {
        for i in 0..n {
            store.set(&key(i), &value(i)).unwrap();
        }
    }
    (0..n).step_by(3).for_each(|i| assert!(store.delete(&key(i)).unwrap()));
}

/// Each way to write a record, and one more record behind it: a segment is read up to the first that is not whole.
#[test]
fn marked_records_are_rebuilt() {
    let scratch = Scratch::new("durable-marks");
    let path = scratch.store("durable");
    let store = tiny().durable().open(&path).unwrap();
    store.shared().set_marked(b"marked", b"value", Attributes::NONE, 1, None).unwrap().unwrap();
    store.set(b"plain", b"behind it").unwrap();
    let item = store.get_item(b"plain").unwrap().unwrap();
    assert!(store.shared().remark(b"plain", &item, 2).unwrap());
    let mut reserved = store.reserve(b"reserved", 5, Attributes::NONE).unwrap();
    reserved.copy_from_slice(b"bytes");
    reserved.commit().unwrap();
    store.touch(b"reserved", Ttl::After(Duration::from_secs(3600))).unwrap();
    store.incr(b"counter", 3, Counter::or_create(1)).unwrap();
    store.append(b"plain", b", and more").unwrap();
    store.set(b"last", b"of all").unwrap();
    assert_clean(&store);
    store.sync().unwrap();
    drop(store);
    reboot(&path);
    let store = Options::new().create(false).open(&path).unwrap();
    let expected: [(&[u8], &[u8]); 5] = [
        (b"marked", b"value"),
        (b"plain", b"behind it, and more"),
        (b"reserved", b"bytes"),
        (b"counter", b"1"),
        (b"last", b"of all"),
    ];
    for (key, value) in expected {
        assert_eq!(store.get(key).unwrap().as_deref(), Some(value), "{}", key.escape_ascii());
    }
    assert_eq!(store.get_item(b"marked").unwrap().unwrap().metadata.marks, 1);
}

#[test]
fn rebuilt_after_a_reboot() {
    for (name, options) in [("durable-tiny", tiny()), ("durable-small", small()), ("durable", Options::new())] {
        let scratch = Scratch::new(name);
        let path = scratch.store("durable");
        let store = options.durable().open(&path).unwrap();
        fill(&store, 3000);
        store.sync().unwrap();
        drop(store);
        for _ in 0..2 {
            reboot(&path);
            static CALLS: AtomicU64 = AtomicU64::new(0);
            let progress = |done, of| {
                assert!(done <= of);
                CALLS.fetch_add(1, Ordering::Relaxed);
            };
            let store = Options::new().on_recovery(progress).open(&path).unwrap();
            assert!(CALLS.load(Ordering::Relaxed) > 0);
            expect(&store, 3000);
            store.set(b"more", b"after").unwrap();
            assert!(store.delete(b"more").unwrap());
        }
        expect(&Options::new().open(&path).unwrap(), 3000);
    }
}

#[test]
fn fixed_lengths_are_rebuilt() {
    let scratch = Scratch::new("durable-fixed");
    let path = scratch.store("durable");
    let store = tiny().durable().fixed_key_len(4).fixed_value_len(8).open(&path).unwrap();
    for i in 0..2000u32 {
        store.set(&i.to_le_bytes(), &[0; 8]).unwrap();
        store.set(&i.to_le_bytes(), &u64::from(i).to_le_bytes()).unwrap();
    }
    drop(store);
    reboot(&path);
    let store = Options::new().open(&path).unwrap();
    assert_eq!(store.len(), 2000);
    (0..2000u32).for_each(|i| assert_eq!(store.get(&i.to_le_bytes()).unwrap().unwrap(), u64::from(i).to_le_bytes()));
    assert!(store.check().is_clean());
}

#[test]
fn killed_while_open_and_not_rebooted_needs_no_rebuild() {
    let scratch = Scratch::new("durable-open");
    let path = scratch.store("durable");
    let store = tiny().durable().open(&path).unwrap();
    fill(&store, 300);
    let other = Options::new().on_recovery(|_, _| panic!("a rebuild")).open(&path).unwrap();
    expect(&other, 300);
    drop(store);
    drop(other);
    expect(&Options::new().on_recovery(|_, _| panic!("a rebuild")).open(&path).unwrap(), 300);
}

#[test]
fn one_rebuilds_and_the_others_wait() {
    let scratch = Scratch::new("durable-many");
    let path = scratch.store("durable");
    let store = tiny().durable().open(&path).unwrap();
    fill(&store, 3000);
    drop(store);
    reboot(&path);
    let error = Options::new().read_only().open(&path).unwrap_err();
    assert!(matches!(error, OpenError::NotCleanlyClosed { durable: true, .. }) && error.code() == 9, "{error}");
    static REBUILDS: AtomicU64 = AtomicU64::new(0);
    let progress = |done, of| {
        REBUILDS.fetch_add(u64::from(done == of), Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let store = Options::new().on_recovery(progress).open(&path).unwrap();
                assert_eq!(store.get(&key(1)).unwrap().unwrap(), value(1));
            });
        }
    });
    assert_eq!(REBUILDS.load(Ordering::Relaxed), 1);
    expect(&Options::new().read_only().open(&path).unwrap(), 3000);
}

#[test]
fn options_that_do_not_go_together() {
    let scratch = Scratch::new("durable-options");
    let path = scratch.store("durable");
    let error = tiny().durable().mode(Mode::Cache).max_bytes(4 << 20).open(&path).unwrap_err();
    assert_eq!(error.code(), 5, "{error}");
    let store = tiny().open(&path).unwrap();
    assert!(matches!(store.sync().unwrap_err(), WriteError::InvalidState(_)));
    let error = Options::new().durable().open(&path).unwrap_err();
    assert_eq!(error.code(), 4, "{error}");
    drop(store);
    reboot(&path);
    let error = Options::new().open(&path).unwrap_err();
    assert!(matches!(error, OpenError::NotCleanlyClosed { durable: false, .. }), "{error}");
    let durable = tiny().durable().open(scratch.store("other")).unwrap();
    let reader = Options::new().read_only().open(scratch.store("other")).unwrap();
    assert!(matches!(reader.sync().unwrap_err(), WriteError::ReadOnly));
    durable.sync().unwrap();
    assert_eq!(reader.stats().syncs, 2);
}

#[test]
fn writes_sync_by_period() {
    let scratch = Scratch::new("durable-period");
    let store = tiny().durable().sync_every(Duration::from_millis(1)).open(scratch.store("durable")).unwrap();
    for i in 0..20 {
        std::thread::sleep(Duration::from_millis(2));
        store.set(&key(i), b"value").unwrap();
    }
    let syncs = store.stats().syncs;
    assert!((10..=30).contains(&syncs), "{syncs} syncs of 20 writes");
}

/// Not a test but a figure: `cargo test -p hashmere-testkit --test durable ten_million -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement: takes a minute and half a GiB in the temporary folder"]
fn rebuilding_ten_million_records() {
    const RECORDS: u64 = 10_000_000;
    // On a disk, if the temporary folder is on one.
    let path = std::env::temp_dir().join(format!("hashmere-figure-{}.mere", std::process::id()));
    let store = Options::new().durable().open(&path).unwrap();
    (0..RECORDS).for_each(|i| assert!(store.set(&i.to_le_bytes(), &i.to_be_bytes()).is_ok()));
    let start = Instant::now();
    store.sync().unwrap();
    println!("sync of everything: {:.2} s", start.elapsed().as_secs_f64());
    drop(store);
    reboot(&path);
    let start = Instant::now();
    let store = Options::new().open(&path).unwrap();
    let (took, stats) = (start.elapsed().as_secs_f64(), store.stats());
    assert_eq!(store.len(), RECORDS);
    println!("rebuild of {RECORDS} records: {took:.2} s, {} MiB allocated", stats.bytes_allocated >> 20);
    let get = |i: u64| store.get(&i.to_le_bytes()).unwrap().unwrap();
    (0..RECORDS).step_by(997).for_each(|i| assert_eq!(get(i), i.to_be_bytes()));
    drop(store);
    assert!(Store::remove(&path).unwrap());
}

/// Several threads that sync at a time share the work, and none returns too early.
#[test]
fn syncs_are_shared() {
    let scratch = Scratch::new("durable-shared");
    let store = tiny().durable().open(scratch.store("durable")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = store.clone();
            scope.spawn(move || {
                for i in 0..200 {
                    store.set(&key(thread * 1000 + i), b"value").unwrap();
                    store.sync().unwrap();
                }
            });
        }
    });
    let syncs = store.stats().syncs;
    assert!(syncs <= 801 && syncs > 1, "{syncs}");
    assert!(store.check().is_clean());
}
