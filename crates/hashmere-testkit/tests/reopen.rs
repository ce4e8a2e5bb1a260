//! Promise: a store survives the exit of all its processes; options of a later open are honoured or refused with an
//! error that names both values, and nothing is damaged by it; drop and delete-on-last-exit remove the file and only
//! then. Catches: data lost on close, options silently ignored, a file removed under those who still use it.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Mode, OpenError, Options, Store};
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::payload;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, small, tiny, worker};
use std::path::Path;
use std::time::Duration;

fn filled(path: &Path, options: &Options) {
    let store = options.open(path).unwrap();
    for number in 0..200 {
        store.set(&payload::key(number), &payload::encode(number)).unwrap();
    }
}

fn assert_intact(store: &Store) {
    for number in 0..200 {
        assert_eq!(store.get(&payload::key(number)).unwrap(), Some(payload::encode(number)), "key {number}");
    }
    assert_eq!(store.len(), 200);
    assert_clean(store);
}

#[test]
fn survives_every_way_to_exit() {
    let _watchdog = Watchdog::start("reopen-exit");
    let scratch = Scratch::new("reopen-exit");
    let path = scratch.store("kept");
    for (round, way) in ["closes", "exits", "is killed"].iter().enumerate() {
        let mut worker = Worker::start(worker!(), "shell", &[&path.display(), &"tiny"]);
        worker.expect("open");
        for number in 0..100 {
            worker.say(&format!("set {way}-{number} value-{number}").replace("is killed", "killed"));
            worker.expect("ok");
        }
        match round {
            0 => drop(worker.finish(LIMIT).ok("shell")),
            1 => {
                worker.say("exit");
                worker.finish(LIMIT).ok("shell");
            }
            _ => drop(worker.kill()),
        }
        // No process has it open now.
        let store = Options::new().create(false).open(&path).unwrap();
        assert_eq!(store.len(), 100 * (round as u64 + 1), "after a process {way}");
        let key = format!("{way}-99").replace("is killed", "killed");
        assert_eq!(store.get(key.as_bytes()).unwrap().as_deref(), Some(&b"value-99"[..]));
        assert_clean(&store);
    }
}

#[test]
fn what_cannot_be_honoured_is_refused_with_both_values() {
    let scratch = Scratch::new("reopen-refused");
    let path = scratch.store("options");
    filled(&path, &small().max_bytes(4 << 20));
    let before = std::fs::read(&path).unwrap();
    let asked: [(&str, Options, &str, &str); 5] = [
        ("mode", Options::new().mode(Mode::Cache), "strict", "cache"),
        ("segment_bytes", Options::new().segment_bytes(16384), "8192", "16384"),
        ("leaf_bytes", Options::new().leaf_bytes(256), "512", "256"),
        ("fixed_key_len", Options::new().fixed_key_len(8), "", "8"),
        ("fixed_value_len", Options::new().fixed_value_len(16), "", "16"),
    ];
    for (name, options, has, wants) in asked {
        let error = options.open(&path).unwrap_err();
        let OpenError::OptionMismatch { option, store, asked, .. } = &error else { panic!("{name}: {error:?}") };
        assert_eq!(*option, name);
        let text = error.to_string();
        assert!(text.contains("options.mere") && text.contains(store) && text.contains(asked), "{name}: {text}");
        let lower = text.to_lowercase();
        assert!(lower.contains(has) && lower.contains(wants), "{name}: {text}");
        assert!(std::fs::read(&path).unwrap() == before, "{name}: a refused open changed the file");
    }
    assert_intact(&Options::new().open(&path).unwrap());
}

#[test]
fn what_can_be_honoured_is() {
    let scratch = Scratch::new("reopen-honoured");
    let path = scratch.store("options");
    filled(&path, &small().max_bytes(2 << 20));
    assert_intact(&small().max_bytes(2 << 20).open(&path).unwrap());
    let raised = Options::new().max_bytes(8 << 20).open(&path).unwrap();
    assert!(raised.stats().bytes_max >= 8 << 20);
    assert_intact(&raised);
    drop(raised);
    let later = Options::new().mode(Mode::Strict).busy_timeout(Duration::from_millis(1)).open(&path).unwrap();
    assert!(later.stats().bytes_max >= 8 << 20, "a raised maximum stays");
    assert_intact(&later);
    let lowered = Options::new().max_bytes(2 << 20).open(&path).unwrap();
    assert_eq!((lowered.stats().bytes_max, later.stats().bytes_max), (2 << 20, 2 << 20));
    assert_intact(&lowered);
}

#[test]
fn existing_only_and_exclusive() {
    let scratch = Scratch::new("reopen-create");
    let path = scratch.store("new");
    let error = Options::new().create(false).open(&path).unwrap_err();
    assert!(matches!(error, OpenError::NotFound { .. }) && error.to_string().contains("new.mere"), "{error:?}");
    assert!(!path.exists());
    filled(&path, &tiny().create_new(true));
    let error = Options::new().create_new(true).open(&path).unwrap_err();
    assert!(matches!(error, OpenError::AlreadyExists { .. }) && error.to_string().contains("new.mere"), "{error:?}");
    assert_intact(&Options::new().create(false).open(&path).unwrap());
}

#[test]
fn bad_options_create_nothing() {
    let scratch = Scratch::new("reopen-bad");
    let path = scratch.store("bad");
    let bad = [
        Options::new().segment_bytes(5000),
        Options::new().segment_bytes(2048),
        Options::new().segment_bytes(128 << 20),
        Options::new().leaf_bytes(100),
        Options::new().segment_bytes(4096).leaf_bytes(1024),
        Options::new().leaf_bytes(1 << 20),
        Options::new().mode(Mode::Cache),
    ];
    for options in bad {
        let error = options.open(&path).unwrap_err();
        assert!(matches!(error, OpenError::BadOption { .. }), "{options:?}: {error:?}");
        assert!(!path.exists(), "{options:?}");
    }
}

#[test]
fn remove_unlinks_and_users_keep_it() {
    let scratch = Scratch::new("reopen-remove");
    let path = scratch.store("removed");
    filled(&path, &tiny());
    let store = Options::new().open(&path).unwrap();
    assert!(Store::remove(&path).unwrap());
    assert!(!path.exists() && !Store::remove(&path).unwrap());
    assert_intact(&store);
    store.set(b"more", b"still works").unwrap();
    let other = Options::new().open(&path).unwrap();
    assert_eq!(other.len(), 0, "a new store of the same name is another one");
    assert_eq!(store.len(), 201);
}

#[test]
fn removed_on_last_close_and_not_before() {
    let _watchdog = Watchdog::start("reopen-last");
    let scratch = Scratch::new("reopen-last");
    let path = scratch.store("last");
    let options = || tiny().remove_on_last_close(true);
    let first = options().open(&path).unwrap();
    let second = Options::new().open(&path).unwrap();
    let mut third = Worker::start(worker!(), "shell", &[&path.display()]);
    third.expect("open");
    drop(first);
    assert!(path.exists(), "two still have it open");
    third.finish(LIMIT).ok("shell");
    assert!(path.exists(), "one still has it open");
    second.set(b"a", b"b").unwrap();
    drop(second.clone());
    assert!(path.exists(), "one still has it open");
    drop(second);
    assert!(!path.exists(), "the last one has closed it");
    // The last one that closes finds the others dead.
    let store = options().open(&path).unwrap();
    let mut victim = Worker::start(worker!(), "shell", &[&path.display()]);
    victim.expect("open");
    victim.kill();
    drop(store);
    assert!(!path.exists(), "the other one is dead");
}

#[test]
fn permissions_of_a_created_file() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("reopen-mode");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = scratch.store("private");
    drop(tiny().open(&path).unwrap());
    assert_eq!(mode(&path), 0o600, "private by default");
    let path = scratch.store("shared");
    drop(tiny().permissions(0o640).open(&path).unwrap());
    assert_eq!(mode(&path), 0o640);
}
