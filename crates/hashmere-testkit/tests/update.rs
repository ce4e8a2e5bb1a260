//! Promise: the function given to `update` may use the store as it likes, except that it writes its own key; that write
//! gets an error, and no call hangs. Catches: an update that is asked again without end because its own function
//! changes the key.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Change, Counter, Cursor, Expected, Filter, Key, Store, Ttl, Update, Updated, WriteError};
use hashmere_engine::StoreHandle;
use hashmere_testkit::limits::{SetOnDrop, Watchdog};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::tiny;

fn is_refused<T>(done: Result<T, WriteError>) -> bool {
    match done {
        Err(error @ WriteError::Reentered { .. }) => {
            assert_eq!(error.code(), 39);
            assert!(error.to_string().contains("\"own\""), "{error}");
            true
        }
        _ => false,
    }
}

/// Every way to write `own`, each of which must say no.
fn writes(store: &Store) -> Vec<(&'static str, bool)> {
    let item = store.get_item(b"own").unwrap().unwrap();
    let (meta, uid) = (item.metadata, item.metadata.uid);
    let clone = store.clone();
    vec![
        ("set", is_refused(store.set(b"own", b"x"))),
        ("set, by a clone", is_refused(clone.set(b"own", b"x"))),
        ("set_with", is_refused(store.set_with(b"own", b"x", Attributes::NONE))),
        ("set_many", is_refused(store.set_many(&[(b"beside", b"x")]).and_then(|_| store.set_many(&[(b"own", b"x")])))),
        ("add", is_refused(store.add(b"own", b"x", Attributes::NONE))),
        ("replace", is_refused(store.replace(b"own", b"x", Attributes::NONE))),
        ("append", is_refused(store.append(b"own", b"x"))),
        ("prepend", is_refused(store.prepend(b"own", b"x"))),
        ("reserve", is_refused(store.reserve(b"own", 1, Attributes::NONE))),
        ("delete", is_refused(store.delete(b"own"))),
        ("delete_many", is_refused(store.delete_many(&[b"own"]))),
        ("take", is_refused(store.take(b"own"))),
        ("cas", is_refused(store.cas(b"own", Expected::Version(meta.version), Change::Set(b"x")))),
        ("cas, removing", is_refused(store.cas(b"own", Expected::Value(b"0"), Change::Remove))),
        ("incr", is_refused(store.incr(b"own", 1, Counter::EXISTING))),
        ("dec_ref", is_refused(store.dec_ref(b"own", 1))),
        ("touch", is_refused(store.touch(b"own", Ttl::Never))),
        ("get_and_touch", is_refused(store.get_and_touch(b"own", Ttl::Never))),
        ("set, by UID", is_refused(store.set(uid, b"x"))),
        ("delete, by UID", is_refused(store.delete(uid))),
        ("incr, by UID", is_refused(store.incr(uid, 1, Counter::EXISTING))),
        ("touch, by UID", is_refused(store.touch(uid, Ttl::Never))),
        ("take, by UID", is_refused(store.take(uid))),
        ("update, by UID", is_refused(store.update_with(uid, |_| Update::Set(b"x".into())))),
        ("update", is_refused(store.update_with(b"own", |_| Update::Set(b"x".into())))),
        ("set_marked", is_refused(store.shared().set_marked(b"own", b"x", Attributes::NONE, 1, Some(&meta)))),
        ("remark", is_refused(store.shared().remark(b"own", &item, 1))),
        ("clear", is_refused(store.clear())),
    ]
}

#[test]
fn its_own_key_is_refused_and_everything_else_allowed() {
    let _watchdog = Watchdog::start("update-own");
    let scratch = Scratch::new("update-own");
    let store = tiny().open(scratch.store("update")).unwrap();
    store.set(b"own", b"0").unwrap();
    store.set(b"other", b"0").unwrap();
    let mut asked = 0;
    let updated = store.update_with(b"own", |item| {
        asked += 1;
        for (what, refused) in writes(&store) {
            assert!(refused, "{what} of the own key");
        }
        // It reads what is stored, by every way.
        assert_eq!(store.get(b"own").unwrap().as_deref(), Some(&b"0"[..]));
        assert_eq!(&*store.view(b"own").unwrap().unwrap(), b"0");
        assert_eq!(store.scan(Cursor::START, Filter::all()).filter(|p| p.as_ref().unwrap().key == b"own").count(), 1);
        store.incr(b"other", 1, Counter::EXISTING).unwrap();
        assert!(store.add(b"new", b"1", Attributes::NONE).unwrap().is_some());
        assert!(store.delete(b"new").unwrap());
        Update::Set([&item.unwrap().value[..], b"!"].concat())
    });
    assert!(matches!(updated, Ok(Updated::Stored(_))), "{updated:?}");
    assert_eq!(asked, 1);
    assert_eq!(store.get(b"own").unwrap().unwrap(), b"0!");
    assert_eq!(store.get(b"other").unwrap().unwrap(), b"1");
    // Afterwards it is a key like any other, also where the function panicked.
    let panicked = std::panic::catch_unwind(|| store.update_with(b"own", |_| panic!("on purpose")));
    assert!(panicked.is_err());
    store.set(b"own", b"2").unwrap();
    store.clear().unwrap();
}

/// What comes before the key that is refused is written, and what comes after it is not.
#[test]
fn several_keys_end_at_the_one_that_is_refused() {
    let _watchdog = Watchdog::start("update-many");
    let scratch = Scratch::new("update-many");
    let store = tiny().open(scratch.store("many")).unwrap();
    for key in [b"own", b"one", b"two"] {
        store.set(key, b"before").unwrap();
    }
    let mut seen = Vec::new();
    store
        .update_with(b"own", |_| {
            let pairs: [(&[u8], &[u8]); 4] = [(b"one", b"x"), (b"new", b"x"), (b"own", b"x"), (b"two", b"x")];
            seen.push(is_refused(store.set_many(&pairs)));
            let is = |key: &[u8], value: &[u8]| store.get(key).unwrap().as_deref() == Some(value);
            seen.extend([is(b"one", b"x"), is(b"new", b"x"), is(b"own", b"before"), is(b"two", b"before")]);
            seen.push(is_refused(store.delete_many(&[&b"one"[..], b"own", b"two"])));
            let there = |key: &[u8]| store.contains_key(key).unwrap();
            seen.extend([!there(b"one"), there(b"own"), there(b"two")]);
            Update::Keep
        })
        .unwrap();
    assert_eq!(seen, vec![true; 9]);
}

#[test]
fn within_each_other() {
    let _watchdog = Watchdog::start("update-nested");
    let scratch = Scratch::new("update-nested");
    let store = tiny().open(scratch.store("update")).unwrap();
    for key in [b"own", b"two"] {
        store.set(key, b"0").unwrap();
    }
    let updated = store.update_with(b"own", |_| {
        let inner = store.update_with(b"two", |_| {
            assert!(is_refused(store.set(b"own", b"x")));
            assert!(matches!(store.set(b"two", b"x"), Err(WriteError::Reentered { key }) if *key == *"two"));
            Update::Set(b"in".into())
        });
        assert!(matches!(inner, Ok(Updated::Stored(_))), "{inner:?}");
        assert!(is_refused(store.set(b"own", b"x")), "the inner one has ended, the outer one has not");
        store.set(b"two", b"free").unwrap();
        Update::Set(b"out".into())
    });
    assert!(matches!(updated, Ok(Updated::Stored(_))), "{updated:?}");
    assert_eq!(store.get(b"own").unwrap().unwrap(), b"out");
    assert_eq!(store.get(b"two").unwrap().unwrap(), b"free");
    // By supplied hashes too, where the same hash does not make the same key.
    let hashed = |hash: u64| Key::with_hash(b"own", hash);
    store.set(hashed(7), b"0").unwrap();
    let updated = store.update_with(hashed(7), |_| {
        assert!(is_refused(store.set(hashed(7), b"x")));
        assert!(is_refused(store.delete(hashed(7))));
        store.set(Key::with_hash(b"else", 7), b"x").unwrap();
        store.set(hashed(8), b"x").unwrap();
        store.set(b"own", b"x").unwrap();
        Update::Remove
    });
    assert_eq!(updated.unwrap(), Updated::Removed);
}

/// What the thread's own writer does not see ends too: another handle, another thread that the function waits for.
#[test]
fn by_a_way_round_it_ends() {
    let _watchdog = Watchdog::start("update-round");
    let scratch = Scratch::new("update-round");
    let store = tiny().open(scratch.store("update")).unwrap();
    let again = tiny().open(scratch.store("update")).unwrap();
    store.set(b"own", b"0").unwrap();
    let mut asked = 0;
    let lost = store.update_with(b"own", |_| {
        asked += 1;
        again.incr(b"own", 1, Counter::EXISTING).unwrap();
        Update::Set(b"never".into())
    });
    assert!(matches!(lost, Err(WriteError::InvalidState(text)) if text.contains("1,000")), "{lost:?}");
    assert!(asked >= 1000, "{asked}");
    assert_eq!(store.get(b"own").unwrap().unwrap(), asked.to_string().as_bytes());
    // One that loses now and then is asked again, as ever.
    store.set(b"own", b"0").unwrap();
    let mut asked = 0;
    let updated = store.update_with(b"own", |item| {
        asked += 1;
        if asked < 100 {
            again.incr(b"own", 1, Counter::EXISTING).unwrap();
        }
        Update::Set([&item.unwrap().value[..], b"!"].concat())
    });
    assert!(updated.is_ok());
    assert_eq!(store.get(b"own").unwrap().unwrap(), b"99!");
}

/// Beside one that writes the key without pause: the function stays until it was beaten (for 2 ms at most), so only who
/// is let through comes through.
#[test]
fn one_that_is_beaten_again_and_again_comes_through() {
    let _watchdog = Watchdog::start("update-beaten");
    let scratch = Scratch::new("update-beaten");
    let store = tiny().open(scratch.store("update")).unwrap();
    store.set(b"own", b"0").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut asked = 0u32;
    std::thread::scope(|scope| {
        let _end = SetOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                store.set(b"own", b"0").unwrap();
            }
        });
        for _ in 0..20 {
            let updated = store.update_with(b"own", |item| {
                asked += 1;
                let (seen, start) = (item.map(|item| item.metadata.version), std::time::Instant::now());
                while start.elapsed() < std::time::Duration::from_millis(2)
                    && store.get_item(b"own").unwrap().map(|item| item.metadata.version) == seen
                {}
                Update::Set(b"updated".into())
            });
            assert!(matches!(updated, Ok(Updated::Stored(_))), "{updated:?} after {asked}");
        }
    });
    println!("20 updates, asked {asked} times");
}

/// Threads beyond those that have a writer of their own.
#[test]
fn in_any_thread() {
    let _watchdog = Watchdog::start("update-threads");
    let scratch = Scratch::new("update-threads");
    let store = tiny().open(scratch.store("update")).unwrap();
    let gate = std::sync::Barrier::new(70);
    std::thread::scope(|scope| {
        for n in 0..70 {
            let (store, gate) = (&store, &gate);
            scope.spawn(move || {
                // Every thread has its number before any of them ends.
                let key = format!("key {n}");
                assert_eq!(store.get(key.as_bytes()).unwrap(), None);
                gate.wait();
                let updated = store.update_with(key.as_bytes(), |_| {
                    assert!(matches!(store.set(key.as_bytes(), b"x"), Err(WriteError::Reentered { .. })));
                    store.incr(b"all", 1, Counter::or_create(1)).unwrap();
                    Update::Set(b"done".into())
                });
                assert!(matches!(updated, Ok(Updated::Stored(_))), "{updated:?}");
            });
        }
    });
    assert_eq!(store.get(b"all").unwrap().unwrap(), b"70");
    assert_eq!(store.len(), 71);
}

#[test]
fn errors_of_reading_are_not_hidden() {
    let scratch = Scratch::new("update-stale");
    let store = tiny().open(scratch.store("update")).unwrap();
    let uid = store.set(b"own", b"0").unwrap().uid;
    store.delete(b"own").unwrap();
    assert!(matches!(store.update_with(uid, |_| Update::Keep), Err(WriteError::Stale)));
    assert_eq!(store.get(uid).unwrap(), None);
}
