//! Promise: a store can be read through a file that the process may not write, while others write it; every write is
//! refused; reading changes nothing in the file.
//! Catches: readers that write (and would be killed by the read-only map), writes that get through.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{
    Attributes, Change, Counter, Cursor, Expected, Filter, OpenError, Options, Store, Ttl, Update, WriteError,
};
use hashmere_testkit::limits::{lasting, Watchdog};
use hashmere_testkit::payload;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, tiny, worker};
use nix::unistd::Uid;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

const NOBODY: u32 = 65_534;

fn prepared(scratch: &Scratch) -> Store {
    let store = tiny().open(scratch.store("shared")).unwrap();
    for number in 0..500 {
        store.set(&payload::key(number), &payload::encode(number)).unwrap();
    }
    store
}

fn read_everything(store: &Store) {
    for number in 0..500 {
        let key = payload::key(number);
        let expected = payload::encode(number);
        assert_eq!(store.get(&key).unwrap().as_ref(), Some(&expected));
        assert_eq!(*store.view(&key).unwrap().unwrap(), expected[..]);
        assert_eq!(store.metadata(&key).unwrap().unwrap().value_len, expected.len() as u64);
        let handle = store.id_of(&key).unwrap().unwrap();
        assert_eq!(store.key_of(handle).unwrap().as_deref(), Some(&key[..]));
        assert_eq!(store.get(handle).unwrap().as_ref(), Some(&expected));
        assert!(store.contains_key(&key).unwrap() && store.ttl(&key).unwrap().is_some());
    }
    assert_eq!(store.get(b"missing").unwrap(), None);
    assert_eq!(store.scan(Cursor::START, Filter::all()).count(), 500);
    assert_eq!(store.len(), 500);
    assert!(store.random().unwrap().is_some());
    assert_eq!(store.stats().items, 500);
    assert!(store.check().is_clean());
    let keys: Vec<Vec<u8>> = (0..500).map(payload::key).collect();
    assert!(store.get_many(&keys).unwrap().iter().all(Option::is_some));
}

#[test]
fn reading_changes_nothing() {
    let scratch = Scratch::new("ro-same");
    let path = prepared(&scratch).path().to_owned();
    let before = std::fs::read(&path).unwrap();
    let store = Options::new().read_only().open(&path).unwrap();
    assert!(store.is_read_only());
    read_everything(&store);
    assert!(std::fs::read(&path).unwrap() == before, "reading changed the file");
    drop(store);
    assert!(std::fs::read(&path).unwrap() == before, "closing changed the file");
}

#[test]
fn every_write_is_refused() {
    let scratch = Scratch::new("ro-refused");
    let path = prepared(&scratch).path().to_owned();
    let before = std::fs::read(&path).unwrap();
    let store = Options::new().read_only().open(&path).unwrap();
    let key = &payload::key(1)[..];
    let uid = store.metadata(key).unwrap().unwrap().uid;
    let none = Attributes::NONE;
    let results: [(&str, Result<(), WriteError>); 22] = [
        ("set", store.set(key, b"x").map(drop)),
        ("set_with", store.set_with(key, b"x", none).map(drop)),
        ("add", store.add(b"new", b"x", none).map(drop)),
        ("replace", store.replace(key, b"x", none).map(drop)),
        ("append", store.append(key, b"x").map(drop)),
        ("prepend", store.prepend(key, b"x").map(drop)),
        ("reserve", store.reserve(key, 9, Attributes::NONE).map(drop)),
        ("delete", store.delete(key).map(drop)),
        ("take", store.take(key).map(drop)),
        ("cas", store.cas(b"new", Expected::Absent, Change::Set(b"x")).map(drop)),
        ("update", store.update_with(key, |_| Update::Remove).map(drop)),
        ("incr", store.incr(b"n", 1, Counter::or_create(1)).map(drop)),
        ("decr", store.decr(b"n", 1, Counter::or_create(1)).map(drop)),
        ("incr_by", store.incr_by(b"n", 1, Counter::or_create(1)).map(drop)),
        ("inc_ref", store.inc_ref(b"n", 1).map(drop)),
        ("touch", store.touch(key, Ttl::Never).map(drop)),
        ("get_and_touch", store.get_and_touch(key, Ttl::Never).map(drop)),
        ("set_many", store.set_many(&[(key, b"x")]).map(drop)),
        ("delete_many", store.delete_many(&[key]).map(drop)),
        ("clear", store.clear()),
        ("set by UID", store.set(uid, b"x").map(drop)),
        ("delete by UID", store.delete(uid).map(drop)),
    ];
    for (name, result) in results {
        assert!(matches!(result, Err(WriteError::ReadOnly)), "{name}: {result:?}");
    }
    assert!(std::fs::read(&path).unwrap() == before, "a refused write changed the file");
    read_everything(&store);
}

#[test]
fn a_file_that_may_not_be_written() {
    let _watchdog = Watchdog::start("ro-file");
    let scratch = Scratch::new("ro-file");
    let path = prepared(&scratch).path().to_owned();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    // For root nothing is forbidden: read as another user, who owns the file.
    let user = if Uid::effective().is_root() { NOBODY } else { std::fs::metadata(&path).map(|m| owner(&m)).unwrap() };
    if user == NOBODY {
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let user_option = if user == NOBODY { format!("uid={NOBODY}") } else { "existing".to_owned() };
    let mut refused = Worker::start(worker!(), "shell", &[&path.display(), &user_option]);
    let answer = refused.hear(LIMIT);
    assert!(answer.starts_with("error") && answer.contains("shared.mere"), "opening for writing: {answer}");
    let mut reader = Worker::start(worker!(), "shell", &[&path.display(), &user_option, &"ro"]);
    reader.expect("open");
    reader.say("count");
    reader.expect("count 500");
    reader.say("set a b");
    assert!(reader.hear(LIMIT).starts_with("error 30"));
    reader.say("scan 0 1000");
    (0..500).for_each(|_| assert!(reader.hear(LIMIT).starts_with("key key-")));
    reader.expect("end");
    reader.finish(LIMIT).ok("reader");
}

fn owner(metadata: &std::fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::uid(metadata)
}

#[test]
fn reads_are_right_while_another_process_writes() {
    let _watchdog = Watchdog::start("ro-beside");
    let scratch = Scratch::new("ro-beside");
    let path = scratch.store("shared");
    drop(tiny().open(&path).unwrap());
    let mut writer = Worker::start(worker!(), "hammer", &[&path.display(), &40, &"grow"]);
    writer.expect("ready");
    let store = Options::new().read_only().open(&path).unwrap();
    let begin = Instant::now();
    let mut reads = 0u64;
    while begin.elapsed() < lasting(Duration::from_secs(2)) {
        for number in 0..40 {
            let value = store.get(&payload::key(number)).unwrap().expect("never deleted");
            assert_eq!(payload::decode(&value).unwrap() & 0xffff, number, "the value of another key");
            let view = store.view(&payload::key(number)).unwrap().expect("never deleted");
            assert_eq!(payload::decode(&view).unwrap() & 0xffff, number, "the view of another key");
            reads += 2;
        }
        let keys = store.keys().filter(|key| key.is_ok()).count();
        assert!(keys >= 40, "a scan saw {keys} of at least 40 keys");
    }
    println!("{reads} reads beside a writer");
    writer.finish(LIMIT).ok("hammer");
    assert_clean(&store);
}

#[test]
fn read_only_never_creates() {
    let scratch = Scratch::new("ro-none");
    let error = Options::new().read_only().open(scratch.store("none")).unwrap_err();
    assert!(matches!(error, OpenError::NotFound { .. }), "{error:?}");
    assert!(!scratch.store("none").exists());
}
