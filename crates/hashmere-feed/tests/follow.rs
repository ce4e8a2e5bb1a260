//! A consumer on real files: what it gets, where it resumes, when it begins again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests: what is not there ends them")]

use hashmere::{Attributes, Key, Options, Store, Ttl, Version, WriteBatch};
use hashmere_feed::{
    disable, enable, info, Event, Feed, FeedError, FeedOptions, FeedStart, Operation, ResetReason, Value,
};
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

const AT_ONCE: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(60);

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let root = if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
        let path = root.join(format!("hashmere-feed-{name}-{}", std::process::id()));
        // What a process of the same number left that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    fn store(&self) -> Store {
        Options::new().feed(1 << 20).feed_values(true).open(self.path("store.mere")).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn with_values() -> FeedOptions {
    FeedOptions::new().values(true)
}

fn all(feed: &mut Feed) -> Vec<Event> {
    std::iter::from_fn(|| feed.next_within(AT_ONCE).unwrap()).collect()
}

fn text(event: &Event) -> String {
    match event {
        Event::Reset { reason } => format!("reset {reason:?}"),
        Event::Synced { .. } => "synced".into(),
        Event::Clear { .. } => "clear".into(),
        Event::Read(change) | Event::Change(change) => {
            let value = match &change.value {
                Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                other => format!("{other:?}"),
            };
            format!("{} {} {value}", change.operation.name(), String::from_utf8_lossy(&change.key))
        }
        other => format!("{other:?}"),
    }
}

fn texts(events: &[Event]) -> Vec<String> {
    events.iter().map(text).collect()
}

/// What a consumer makes of events.
fn apply(state: &mut BTreeMap<Vec<u8>, (Version, Vec<u8>)>, event: &Event) {
    match event {
        Event::Reset { .. } | Event::Clear { .. } => state.clear(),
        Event::Read(change) | Event::Change(change) if change.operation.removes() => drop(state.remove(&change.key)),
        Event::Read(change) | Event::Change(change) => match &change.value {
            Value::Bytes(value) => drop(state.insert(change.key.clone(), (change.version, value.clone()))),
            // A later event has it.
            Value::Superseded => {}
            other => panic!("{other:?}"),
        },
        _ => {}
    }
}

fn stored(store: &Store) -> BTreeMap<Vec<u8>, (Version, Vec<u8>)> {
    store.iter().map(|pair| pair.unwrap()).map(|pair| (pair.key, (pair.metadata.version, pair.value))).collect()
}

/// The place of a consumer, asked for behind any event, misses none of those that were ready already.
#[test]
fn a_place_behind_any_event_misses_nothing() {
    let folder = Folder::new("place");
    let store = folder.store();
    for n in 0..600u32 {
        store.set(&n.to_le_bytes(), b"v").unwrap();
    }
    let mut batch = WriteBatch::new();
    batch.set("a", "1").set("b", "2");
    for stop in [0, 1, 2, 255, 256, 257, 258, 600, 601, 602, 603, 604, 606] {
        let mut feed = Feed::open(&store, FeedStart::Start, with_values()).unwrap();
        let mut seen: std::collections::BTreeSet<Vec<u8>> = Default::default();
        let mut see = |event: Event| {
            if let Some(change) = event.change() {
                seen.insert(change.key.clone());
            }
        };
        for taken in 0..stop {
            if taken == 300 {
                store.write_batch(&batch).unwrap();
            }
            let Some(event) = feed.next_within(AT_ONCE).unwrap() else { break };
            see(event);
        }
        let mut feed = Feed::open(&store, FeedStart::At(feed.token()), with_values()).unwrap();
        all(&mut feed).into_iter().for_each(see);
        assert_eq!(seen.len() as u64, store.len(), "after {stop} events");
    }
}

#[test]
fn what_is_peeked_at_comes() {
    let folder = Folder::new("peek");
    let store = folder.store();
    let mut feed = Feed::open(&store, FeedStart::Now, with_values()).unwrap();
    assert_eq!(feed.peek_within(AT_ONCE).unwrap(), None);
    store.set("k", b"v").unwrap();
    let before = feed.token();
    let peeked = feed.peek_within(LONG).unwrap().unwrap().clone();
    assert_eq!(feed.token(), before, "what was not taken is not behind");
    assert_eq!(feed.next_within(AT_ONCE).unwrap(), Some(peeked));
    assert_eq!(feed.peek_within(AT_ONCE).unwrap(), None);
}

#[test]
fn every_key_then_the_changes() {
    let folder = Folder::new("start");
    let store = folder.store();
    store.set("a", b"1").unwrap();
    store.set("b", b"2").unwrap();
    let mut feed = Feed::open(&store, FeedStart::Start, with_values()).unwrap();
    let mut first = texts(&all(&mut feed));
    first[1..3].sort();
    assert_eq!(first, ["reset Asked", "read a 1", "read b 2", "synced"]);
    store.set("a", b"3").unwrap();
    store.delete("b").unwrap();
    let with = Attributes { flags: 7, ttl: Ttl::At(9_000_000_000_000), ..Attributes::NONE };
    store.set_with("c", b"4", with).unwrap();
    store.incr("n", 1, hashmere::Counter::or_create(5)).unwrap();
    let events = all(&mut feed);
    assert_eq!(texts(&events), ["set a 3", "delete b Absent", "set c 4", "set n 5"]);
    let change = events[2].change().unwrap();
    let item = store.get_item("c").unwrap().unwrap();
    assert_eq!((change.flags, change.expires_at_ms, change.value_len), (7, Some(9_000_000_000_000), 1));
    assert_eq!((change.version, change.origin, change.transaction), (item.metadata.version, 0, None));
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    assert!(change.ts_ms <= now && change.ts_ms + 60_000 > now);
    assert_eq!(feed.lag(), 0);
}

#[test]
fn resumed_behind_what_was_dealt_with() {
    let folder = Folder::new("resume");
    let store = folder.store();
    let mut feed = Feed::open(&store, FeedStart::Now, with_values()).unwrap();
    for i in 0..600 {
        store.set(format!("k{}", i % 9).as_bytes(), format!("{i}").as_bytes()).unwrap();
    }
    let events: Vec<_> = (0..600).map(|_| feed.next_within(LONG).unwrap().unwrap()).collect();
    for at in [0, 1, 299, 598, 599] {
        let token = *events[at].token().unwrap();
        let token = token.to_string().parse().unwrap();
        let mut again = Feed::open(&store, FeedStart::At(token), with_values()).unwrap();
        assert_eq!(texts(&all(&mut again)), texts(&events[at + 1..]));
    }
    // Also from what a consumer notes that takes some of what is ready.
    let mut feed = Feed::open(&store, FeedStart::At(*events[0].token().unwrap()), with_values()).unwrap();
    for at in 1..400 {
        assert_eq!(text(&feed.next_within(LONG).unwrap().unwrap()), text(&events[at]));
        let mut again = Feed::open(&store, FeedStart::At(feed.token()), with_values()).unwrap();
        assert_eq!(text(&again.next_within(LONG).unwrap().unwrap()), text(&events[at + 1]));
    }
}

#[test]
fn a_place_that_is_gone_begins_again() {
    let folder = Folder::new("gone");
    let store = folder.store();
    store.set("old", b"1").unwrap();
    let mut feed = Feed::open(&store, FeedStart::Now, with_values()).unwrap();
    let token = feed.token();
    for i in 0..60_000u32 {
        store.set(format!("k{}", i % 50).as_bytes(), &i.to_le_bytes()).unwrap();
    }
    for mut feed in [Feed::open(&store, FeedStart::At(token), with_values()).unwrap(), {
        assert_eq!(text(&feed.next_within(LONG).unwrap().unwrap()), "reset Gone");
        Feed::open(&store, FeedStart::Start, with_values()).unwrap()
    }] {
        let events = all(&mut feed);
        assert!(matches!(events[0], Event::Reset { .. }) && matches!(events.last(), Some(Event::Synced { .. })));
        let mut state = BTreeMap::new();
        events.iter().for_each(|event| apply(&mut state, event));
        assert_eq!(state, stored(&store));
        assert_eq!(events.len(), 51 + 2);
    }
    // A token of another store, and of the feed before.
    let other = Options::new().feed(1 << 20).open(folder.path("other.mere")).unwrap();
    let mut feed = Feed::open(&other, FeedStart::At(token), with_values()).unwrap();
    assert_eq!(texts(&all(&mut feed)), ["reset OtherFeed", "synced"]);
    let token = Feed::open(&store, FeedStart::Now, with_values()).unwrap().token();
    assert!(disable(&store).unwrap());
    assert!(matches!(feed.next_within(AT_ONCE), Ok(None)));
    assert!(matches!(Feed::open(&store, FeedStart::At(token), with_values()), Err(FeedError::Off)));
    enable(&store, 1 << 20, false).unwrap();
    let mut feed = Feed::open(&store, FeedStart::At(token), with_values()).unwrap();
    assert_eq!(text(&feed.next_within(LONG).unwrap().unwrap()), "reset OtherFeed");
}

#[test]
fn switched_off_and_on_again() {
    let folder = Folder::new("switch");
    let store = folder.store();
    let mut feed = Feed::open(&store, FeedStart::Now, with_values()).unwrap();
    assert!(info(&store).unwrap().values);
    assert!(disable(&store).unwrap() && !disable(&store).unwrap());
    assert_eq!(feed.next_within(AT_ONCE).unwrap_err().code(), 80);
    store.set("a", b"1").unwrap();
    assert!(info(&store).is_none());
    let error = enable(&store, 1000, true).unwrap_err();
    assert!(error.code() == 37 && error.to_string().contains("1 MiB"), "{error}");
    enable(&store, 2 << 20, true).unwrap();
    // The same consumer begins again.
    assert_eq!(texts(&all(&mut feed)), ["reset OtherFeed", "read a 1", "synced"]);
    // An option that is given again changes nothing.
    let again = Options::new().feed(8 << 20).open(store.path()).unwrap();
    assert_eq!(info(&again), info(&store));
}

#[test]
fn values_that_the_feed_does_not_keep_are_read() {
    let folder = Folder::new("values");
    let store = Options::new().feed(1 << 20).open(folder.path("store.mere")).unwrap();
    let mut plain = Feed::open(&store, FeedStart::Now, FeedOptions::new()).unwrap();
    let mut feed = Feed::open(&store, FeedStart::Now, with_values()).unwrap();
    for (key, value) in [("a", "1"), ("a", "2"), ("b", "3"), ("c", "4")] {
        store.set(key, value.as_bytes()).unwrap();
    }
    store.delete("c").unwrap();
    let lines = ["set a Superseded", "set a 2", "set b 3", "set c Superseded", "delete c Absent"];
    assert_eq!(texts(&all(&mut feed)), lines);
    assert_eq!(texts(&all(&mut plain))[..2], ["set a NotKept", "set a NotKept"]);
    // Too long for the feed, though it keeps values.
    let store = folder.path("kept.mere");
    let store = Options::new().feed(1 << 20).feed_values(true).open(store).unwrap();
    let mut feed = Feed::open(&store, FeedStart::Now, with_values()).unwrap();
    store.set("long", &vec![b'l'; 300_000]).unwrap();
    let event = feed.next_within(AT_ONCE).unwrap().unwrap();
    assert_eq!(event.change().unwrap().value, Value::Bytes(vec![b'l'; 300_000]));
}

#[test]
fn a_prefix_and_a_clear() {
    let folder = Folder::new("prefix");
    let store = folder.store();
    for key in ["user:1", "page:1", "user:2"] {
        store.set(key, b"v").unwrap();
    }
    let mut feed = Feed::open(&store, FeedStart::Start, FeedOptions::new().prefix("user:")).unwrap();
    let mut first = texts(&all(&mut feed));
    first[1..3].sort();
    assert_eq!(first, ["reset Asked", "read user:1 NotKept", "read user:2 NotKept", "synced"]);
    store.set("page:2", b"v").unwrap();
    store.clear().unwrap();
    assert_eq!(texts(&all(&mut feed)), ["clear"]);
    store.set("page:3", b"v").unwrap();
    store.set("user:3", b"v").unwrap();
    store.clear().unwrap();
    store.clear().unwrap();
    store.set("user:4", b"v").unwrap();
    let events = all(&mut feed);
    assert_eq!(texts(&events), ["set user:3 NotKept", "clear", "set user:4 NotKept"]);
    // From every place in between.
    for (at, event) in events.iter().enumerate() {
        let start = FeedStart::At(*event.token().unwrap());
        let mut again = Feed::open(&store, start, FeedOptions::new().prefix("user:")).unwrap();
        assert_eq!(texts(&all(&mut again)), texts(&events[at + 1..]));
    }
}

#[test]
fn a_transaction_comes_whole() {
    let folder = Folder::new("transaction");
    let store = folder.store();
    store.set("gone", b"1").unwrap();
    let mut feed = Feed::open(&store, FeedStart::Now, with_values()).unwrap();
    let mut batch = WriteBatch::new();
    batch.set("a", b"1").set("b", b"2").delete("gone");
    store.write_batch(&batch).unwrap();
    store.set("c", b"3").unwrap();
    let events = all(&mut feed);
    assert_eq!(texts(&events), ["set a 1", "set b 2", "delete gone Absent", "set c 3"]);
    let parts: Vec<_> = events[..3].iter().map(|event| event.change().unwrap().transaction.unwrap()).collect();
    assert!(parts
        .iter()
        .enumerate()
        .all(|(n, part)| part.index == n as u32 && part.len == 3 && part.id == parts[0].id));
    // One that was not dealt with whole comes whole again.
    let mut again = Feed::open(&store, FeedStart::At(*events[1].token().unwrap()), with_values()).unwrap();
    assert_eq!(texts(&all(&mut again)), texts(&events));
    let mut again = Feed::open(&store, FeedStart::At(*events[2].token().unwrap()), with_values()).unwrap();
    assert_eq!(texts(&all(&mut again)), ["set c 3"]);
    // A batch of events does not divide it.
    let mut again = Feed::open(&store, FeedStart::At(*events[0].token().unwrap()), with_values()).unwrap();
    assert_eq!(again.next_batch(2, LONG).unwrap().len(), 3);
}

#[test]
fn keys_with_a_hash_of_the_callers() {
    let folder = Folder::new("hash");
    let store = Options::new().feed(1 << 20).open(folder.path("store.mere")).unwrap();
    let mut feed = Feed::open(&store, FeedStart::Start, with_values()).unwrap();
    all(&mut feed);
    store.set(Key::with_hash("k", 77), b"hashed").unwrap();
    store.set("k", b"plain").unwrap();
    let events = all(&mut feed);
    assert_eq!(texts(&events), ["set k hashed", "set k plain"]);
    let hashes: Vec<_> = events.iter().map(|event| event.change().unwrap().supplied_hash).collect();
    assert_eq!(hashes, [Some(77), None]);
    let mut feed = Feed::open(&store, FeedStart::Start, with_values()).unwrap();
    let mut hashes: Vec<_> = all(&mut feed).iter().filter_map(|e| e.change()).map(|c| c.supplied_hash).collect();
    hashes.sort();
    assert_eq!(hashes, [None, Some(77)]);
}

#[test]
fn a_reader_without_the_right_to_write() {
    let folder = Folder::new("reader");
    let store = folder.store();
    let reader = Options::new().read_only().open(store.path()).unwrap();
    let mut feed = Feed::open(&reader, FeedStart::Now, with_values()).unwrap();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        store.set("a", b"1").unwrap();
        store
    });
    assert_eq!(text(&feed.next_within(LONG).unwrap().unwrap()), "set a 1");
    drop(thread.join().unwrap());
}

fn is_readable(fd: &impl AsRawFd, timeout_ms: i32) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry that lives.
    let ready = unsafe { libc::poll(&mut poll, 1, timeout_ms) };
    ready == 1
}

#[test]
fn a_descriptor_for_event_loops() {
    let folder = Folder::new("fd");
    let store = folder.store();
    let mut feed = Feed::open(&store, FeedStart::Now, with_values()).unwrap();
    let ready = feed.ready_fd().unwrap();
    assert!(!is_readable(&ready, 20));
    store.set("a", b"1").unwrap();
    assert!(is_readable(&ready, -1));
    assert_eq!(all(&mut feed).len(), 1);
    ready.arm(&feed);
    assert!(!is_readable(&ready, 20));
    store.clear().unwrap();
    assert!(is_readable(&ready, -1));
    ready.arm(&feed);
    assert!(is_readable(&ready, -1));
    assert_eq!(texts(&all(&mut feed)), ["clear"]);
    // A first copy is something to do.
    let feed = Feed::open(&store, FeedStart::Start, with_values()).unwrap();
    assert!(is_readable(&feed.ready_fd().unwrap(), -1));
}

/// Writers never stop; a consumer that is dropped at any moment and resumed has what the store has.
#[test]
fn beside_writers_and_over_restarts() {
    let folder = Folder::new("restarts");
    let store = folder.store();
    for i in 0..3000 {
        store.set(format!("k{i}").as_bytes(), b"first").unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2u64)
        .map(|thread| {
            let (store, stop) = (Store::open(store.path()).unwrap(), stop.clone());
            std::thread::spawn(move || {
                let mut n = thread;
                while !stop.load(Ordering::Relaxed) {
                    n = n.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let key = format!("k{}", (n >> 33) % 4000);
                    match n >> 60 {
                        0..=2 => {
                            store.delete(&key).unwrap();
                        }
                        3 => {
                            store.append(&key, b"+").unwrap();
                        }
                        4 => {
                            let mut batch = WriteBatch::new();
                            batch.set(&key, b"of two").set("counter", n.to_le_bytes());
                            store.write_batch(&batch).unwrap();
                        }
                        _ => {
                            store.set(&key, &n.to_le_bytes()).unwrap();
                        }
                    }
                    // So that a busy machine's consumer is not lapped forever.
                    if n % 64 == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            })
        })
        .collect();
    let mut state = BTreeMap::new();
    let (mut token, mut resets, mut synced) = (None, 0, 0);
    for round in 0..40usize {
        let start = token.map_or(FeedStart::Start, FeedStart::At);
        let mut feed = Feed::open(&store, start, with_values()).unwrap();
        for _ in 0..100 + round * 37 {
            let event = feed.next_within(LONG).unwrap().expect("writers never stop");
            resets += usize::from(matches!(event, Event::Reset { .. }));
            synced += usize::from(matches!(event, Event::Synced { .. }));
            apply(&mut state, &event);
            token = event.token().copied().or(token);
        }
    }
    stop.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let mut feed = Feed::open(&store, FeedStart::At(token.unwrap()), with_values()).unwrap();
    for event in all(&mut feed) {
        synced += usize::from(matches!(event, Event::Synced { .. }));
        apply(&mut state, &event);
    }
    assert!(resets >= 1 && synced >= 1, "{resets} resets, {synced} synced");
    assert!(state == stored(&store), "what was reported is not what is there, after {resets} resets");
    let _ = (Operation::Set, ResetReason::Gap);
}
