//! Promise: a key with a time to live is gone when that has passed, for every call, and not before; touching changes
//! the time and nothing else; flags and expiry survive what must keep them. Catches: expired keys that some call still
//! returns, times lost by append or counters, wrong remaining times.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, CasOutcome, Change, Counter, Expected, Expiry, Key, Options, Store, Ttl, Update};
use hashmere_testkit::limits::wall_ms;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, payload, small, tiny, BASE};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn stage(name: &str) -> (Scratch, Store) {
    let scratch = Scratch::new(name);
    let store = small().open(scratch.store("ttl")).unwrap();
    (scratch, store)
}

fn after(ms: u64) -> Attributes {
    Attributes::NONE.ttl(Ttl::After(Duration::from_millis(ms)))
}

/// Acts with times to live of `ms` milliseconds, and longer ones, until it took less than that: then nothing can have
/// expired in between. Returns the result and that time.
fn in_time<T>(mut ms: u64, mut act: impl FnMut(u64) -> T) -> (T, u64) {
    loop {
        let begin = Instant::now();
        let result = act(ms);
        if begin.elapsed() < Duration::from_millis(ms / 2) {
            return (result, ms);
        }
        ms *= 2;
    }
}

/// In a store so small that all of it is in the segments that threads append to.
#[test]
fn counted_or_not_and_dropped_on_request() {
    let (_scratch, store) = stage("ttl-count");
    let again = small().open(store.path()).unwrap();
    store.set(b"stays", b"1").unwrap();
    store.set_with(Key::with_hash(b"hashed", 7), b"1", after(1)).unwrap();
    store.set_with(b"touched", b"1", after(60_000)).unwrap();
    assert!(store.touch(b"touched", Ttl::After(Duration::from_millis(1))).unwrap());
    store.set_with(b"large", &[7; 300_000], after(1)).unwrap();
    for n in 0..500 {
        store.set_with(format!("mine {n}").as_bytes(), b"1", after(1)).unwrap();
        again.set_with(format!("other's {n}").as_bytes(), b"1", after(1)).unwrap();
    }
    sleep(Duration::from_millis(20));
    assert_eq!((store.len(), store.len_exact().unwrap(), store.keys().count()), (1004, 1, 1));
    let before = store.stats().expiries;
    store.compact().unwrap();
    assert_eq!((store.len(), store.len_exact().unwrap()), (1, 1));
    assert_eq!(store.stats().expiries - before, 1003);
    assert_clean(&store);
    assert_eq!(store.get(b"stays").unwrap().as_deref(), Some(&b"1"[..]));
    // What has not expired stays, also what was touched in time.
    store.set_with(b"later", b"1", after(60_000)).unwrap();
    store.compact().unwrap();
    assert_eq!((again.len(), again.len_exact().unwrap()), (2, 2));
}

#[test]
fn gone_for_every_call() {
    let (_scratch, store) = stage("ttl-gone");
    let names: Vec<String> = (0..16).map(|n| format!("k{n}")).collect();
    let ((found, uid), ms) = in_time(150, |ms| {
        let found = names.iter().map(|name| {
            store.set_with(name.as_bytes(), b"7", after(ms)).unwrap();
            store.get(name.as_bytes()).unwrap()
        });
        (found.collect::<Vec<_>>(), store.id_of(b"k0").unwrap())
    });
    assert!(found.iter().all(|value| value.as_deref() == Some(&b"7"[..])), "expired before its time: {found:?}");
    let id = uid.unwrap();
    sleep(Duration::from_millis(ms + 50));
    let k = |n: usize| names[n].as_bytes();
    assert_eq!(store.get(k(0)).unwrap(), None);
    assert_eq!(store.get_into(k(0), &mut Vec::new()).unwrap(), None);
    assert_eq!(store.get_item(k(0)).unwrap(), None);
    assert_eq!(store.metadata(k(0)).unwrap(), None);
    assert!(store.view(k(0)).unwrap().is_none());
    assert!(!store.contains_key(k(0)).unwrap());
    assert_eq!(store.ttl(k(0)).unwrap(), None);
    assert_eq!(store.get_many(&[k(0), k(1)]).unwrap(), [None, None]);
    assert!(store.id_of(k(0)).unwrap().is_none());
    assert_eq!((store.get(id).unwrap(), store.key_of(id.uid()).unwrap()), (None, None));
    assert_eq!(store.iter().count(), 0);
    assert_eq!(store.keys().count(), 0);
    assert_eq!(store.random().unwrap(), None);
    assert!(!store.touch(k(1), Ttl::Never).unwrap(), "touching does not bring it back");
    assert_eq!(store.get_and_touch(k(2), Ttl::Never).unwrap(), None);
    assert_eq!(store.replace(k(3), b"x", Attributes::NONE).unwrap(), None);
    assert_eq!(store.append(k(4), b"x").unwrap(), None);
    assert_eq!(store.prepend(k(4), b"x").unwrap(), None);
    assert!(!store.delete(k(5)).unwrap());
    assert_eq!(store.take(k(6)).unwrap(), None);
    assert_eq!(store.incr(k(7), 1, Counter::EXISTING).unwrap(), None);
    assert_eq!(store.incr(k(8), 1, Counter::or_create(100)).unwrap(), Some(100));
    assert_eq!(store.dec_ref(k(9), 1).unwrap(), None);
    assert_eq!(store.cas(k(10), Expected::Value(b"7"), Change::Remove).unwrap(), CasOutcome::Absent);
    let absent = store.cas(k(11), Expected::Absent, Change::Set(b"new")).unwrap();
    assert!(matches!(absent, CasOutcome::Stored(stored) if stored.created), "{absent:?}");
    let mut seen = Some(());
    store
        .update_with(k(12), |item| {
            seen = item.map(drop);
            Update::Keep
        })
        .unwrap();
    assert_eq!(seen, None, "a visitor saw an expired value");
    assert!(store.add(k(13), b"new", Attributes::NONE).unwrap().is_some());
    assert!(store.set(k(14), b"new").unwrap().created);
    assert_eq!(store.delete_many(&[k(15), k(0)]).unwrap(), 0);
    assert_clean(&store);
}

#[test]
fn remaining_time_and_touch() {
    let (_scratch, store) = stage("ttl-touch");
    store.set_with(b"k", b"v", Attributes::NONE.flags(3)).unwrap();
    assert_eq!(store.ttl(b"k").unwrap(), Some(Expiry { remaining: None }));
    let uid = store.metadata(b"k").unwrap().map(|meta| meta.uid);
    let remaining = |least: u64, most: u64| {
        let Some(Expiry { remaining: Some(time) }) = store.ttl(b"k").unwrap() else { panic!("no time") };
        assert!(time > Duration::from_secs(least) && time <= Duration::from_secs(most), "{time:?}");
    };
    assert!(store.touch(b"k", Ttl::After(Duration::from_secs(100))).unwrap());
    remaining(60, 100);
    let at = wall_ms() + 5_000_000;
    let item = store.get_and_touch(b"k", Ttl::At(at)).unwrap().unwrap();
    assert_eq!(item.value, b"v");
    remaining(4900, 5000);
    let meta = store.metadata(b"k").unwrap().unwrap();
    assert_eq!((meta.expires_at_ms, meta.flags, Some(meta.uid)), (Some(at), 3, uid));
    assert!(store.touch(b"k", Ttl::Never).unwrap());
    assert_eq!(store.ttl(b"k").unwrap(), Some(Expiry { remaining: None }));
    assert!(store.touch(b"k", Ttl::After(Duration::from_millis(50))).unwrap());
    sleep(Duration::from_millis(80));
    assert!(!store.contains_key(b"k").unwrap());
    assert!(!store.touch(b"none", Ttl::Never).unwrap());
    // Who gets and expires a key gets what was there.
    store.set(b"k", b"last").unwrap();
    let item = store.get_and_touch(b"k", Ttl::After(Duration::ZERO)).unwrap();
    assert_eq!(item.map(|item| item.value).as_deref(), Some(&b"last"[..]));
    assert!(!store.contains_key(b"k").unwrap());
}

#[test]
fn what_keeps_flags_and_expiry_and_what_does_not() {
    let (_scratch, store) = stage("ttl-kept");
    let at = wall_ms() + 9_000_000;
    let reset = || {
        let attributes = Attributes::NONE.flags(42).ttl(Ttl::At(at));
        store.set_with(b"k", b"5", attributes).unwrap();
    };
    let attached = || store.metadata(b"k").unwrap().map(|meta| (meta.flags, meta.expires_at_ms));
    let kept = Some((42, Some(at)));
    let keeping: [(&str, &dyn Fn()); 6] = [
        ("append", &|| _ = store.append(b"k", b"1").unwrap().unwrap()),
        ("prepend", &|| _ = store.prepend(b"k", b"1").unwrap().unwrap()),
        ("incr", &|| _ = store.incr(b"k", 1, Counter::EXISTING).unwrap().unwrap()),
        ("inc_ref", &|| _ = store.inc_ref(b"k", 1).unwrap()),
        ("update", &|| _ = store.update_with(b"k", |_| Update::Set(b"x".to_vec())).unwrap()),
        ("update keep", &|| _ = store.update_with(b"k", |_| Update::Keep).unwrap()),
    ];
    for (name, change) in keeping {
        reset();
        change();
        assert_eq!(attached(), kept, "{name}");
    }
    let dropping: [(&str, &dyn Fn()); 4] = [
        ("set", &|| _ = store.set(b"k", b"x").unwrap()),
        ("replace", &|| _ = store.replace(b"k", b"x", Attributes::NONE).unwrap().unwrap()),
        ("cas", &|| _ = store.cas(b"k", Expected::Value(b"5"), Change::Set(b"x")).unwrap()),
        ("set_many", &|| _ = store.set_many(&[(b"k", b"x")]).unwrap()),
    ];
    for (name, change) in dropping {
        reset();
        change();
        assert_eq!(attached(), Some((0, None)), "{name}");
    }
    // Cleaning moves records with all that is attached to them.
    reset();
    (0..20_000).for_each(|number| {
        store.set(&payload::key(number % 50), &payload::encode(number)).unwrap();
    });
    store.compact().unwrap();
    assert_eq!(attached(), kept, "cleaning");
}

#[test]
fn past_and_far_times() {
    let (_scratch, store) = stage("ttl-far");
    store.set_with(b"past", b"v", Attributes::NONE.ttl(Ttl::At(1000))).unwrap();
    store.set_with(b"zero", b"v", after(0)).unwrap();
    assert_eq!(store.get(b"past").unwrap(), None);
    assert_eq!(store.get(b"zero").unwrap(), None);
    let far = (1 << 48) - 1;
    store.set_with(b"far", b"v", Attributes::NONE.ttl(Ttl::At(far))).unwrap();
    assert_eq!(store.metadata(b"far").unwrap().unwrap().expires_at_ms, Some(far));
    // Longer than the format can say: as good as never, and no overflow into the past.
    store.set_with(b"longest", b"v", Attributes::NONE.ttl(Ttl::After(Duration::MAX))).unwrap();
    assert!(store.contains_key(b"longest").unwrap());
    store.set_with(b"beyond", b"v", Attributes::NONE.ttl(Ttl::At(u64::MAX))).unwrap();
    assert!(store.contains_key(b"beyond").unwrap());
    // The old value does not show through when the new one is expired.
    store.set(b"k", b"old").unwrap();
    store.set_with(b"k", b"new", after(0)).unwrap();
    assert_eq!(store.get(b"k").unwrap(), None);
}

/// What has expired gives its space back without a request for those keys.
#[test]
fn expired_records_are_cleaned() {
    let scratch = Scratch::new("ttl-space");
    let store = tiny().max_bytes(BASE + (512 << 10)).open(scratch.store("ttl")).unwrap();
    for round in 0..8 {
        for number in 0..1200u64 {
            let key = format!("{round}-{number}");
            let result = store.set_with(key.as_bytes(), &payload::encode_len(number, 200), after(40));
            assert!(result.is_ok(), "round {round}: expired records take all the room: {result:?}");
        }
        sleep(Duration::from_millis(60));
    }
    while store.compact().unwrap() > 0 {}
    assert_eq!(store.iter().count(), 0);
    assert_eq!(store.len(), 0, "after compact, which removes what has expired");
    assert!(store.stats().expiries >= 5000, "{:?}", store.stats());
    assert_clean(&store);
    drop(store);
    assert_eq!(Options::new().open(scratch.store("ttl")).unwrap().iter().count(), 0);
}

/// A long value that was touched before its time stays, whatever its segments say about when it was to go.
#[test]
fn touched_in_time() {
    let (_scratch, store) = stage("ttl-touched");
    let names: Vec<String> = (0..40).map(|n| format!("long{n}")).collect();
    let mut longest = 100;
    for (n, name) in (0..).zip(&names) {
        let (touched, ms) = in_time(100, |ms| {
            store.set_with(name.as_bytes(), &payload::encode_len(n, 5000), after(ms)).unwrap();
            let ttl = if n % 2 == 0 { Ttl::Never } else { Ttl::After(Duration::from_secs(1000)) };
            store.touch(name.as_bytes(), ttl).unwrap()
        });
        assert!(touched);
        longest = longest.max(ms);
    }
    store.set_with(b"short", &[7; 5000], after(100)).unwrap();
    sleep(Duration::from_millis(longest + 50));
    store.compact().unwrap();
    for (n, name) in (0..).zip(&names) {
        assert!(store.get(name.as_bytes()).unwrap() == Some(payload::encode_len(n, 5000)), "{name} is lost or wrong");
    }
    assert_eq!(store.len(), 40, "what was not touched is gone: those beside it do not hide it");
    assert_clean(&store);
}
