//! Marks: readers agree on them, one of several sets them, any ordinary write clears them. Caught by this: two winners
//! of one stale key, marks that outlive the value they were set for, a frame that is written twice.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Attributes, Item, Store, Ttl};
use hashmere_engine::{Framed, StoreHandle};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::small;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn stage(name: &str) -> (Scratch, Store) {
    let scratch = Scratch::new(name);
    let store = small().open(scratch.store("marks")).unwrap();
    (scratch, store)
}

fn item(store: &Store, key: &[u8]) -> Item {
    store.get_item(key).unwrap().unwrap()
}

#[test]
fn marks_stay_with_a_value_and_go_with_it() {
    let (_scratch, store) = stage("marks_stay");
    let attributes = Attributes { flags: 7, ttl: Ttl::After(Duration::from_secs(100)), ..Attributes::NONE };
    assert!(store.shared().set_marked(b"k", b"v", attributes, 3, None).unwrap().is_some());
    assert!(store.shared().set_marked(b"k", b"w", attributes, 3, None).unwrap().is_none(), "the key is there");
    let first = item(&store, b"k");
    assert_eq!((first.metadata.marks, first.metadata.flags, &first.value[..]), (3, 7, &b"v"[..]));
    assert!(store.shared().remark(b"k", &first, 5).unwrap());
    assert!(!store.shared().remark(b"k", &first, 9).unwrap(), "the marks are not those that were seen");
    let second = item(&store, b"k");
    assert_eq!((second.metadata.marks, second.metadata.flags, second.metadata.version), (5, 7, first.metadata.version));
    assert_eq!(second.metadata.expires_at_ms, first.metadata.expires_at_ms);
    assert!(store.touch(b"k", Ttl::Never).unwrap());
    assert_eq!(item(&store, b"k").metadata.marks, 5, "a touch keeps them");
    store.set_with(b"k", b"v", attributes).unwrap();
    assert_eq!(item(&store, b"k").metadata.marks, 0, "a write clears them");
}

#[test]
fn a_touch_that_writes_a_record_keeps_marks() {
    let (_scratch, store) = stage("marks_touch");
    store.shared().set_marked(b"k", b"v", Attributes::NONE, 2, None).unwrap();
    assert!(store.touch(b"k", Ttl::After(Duration::from_secs(50))).unwrap());
    let item = item(&store, b"k");
    assert_eq!(item.metadata.marks, 2);
    assert!(item.metadata.expires_at_ms.is_some());
}

#[test]
fn one_of_many_sets_a_mark() {
    let (_scratch, store) = stage("marks_race");
    for round in 0..200u32 {
        store.set(b"k", &round.to_string().into_bytes()).unwrap();
        let seen = item(&store, b"k");
        let winners = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    if store.shared().remark(b"k", &seen, 1).unwrap() {
                        winners.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(winners.into_inner(), 1);
    }
}

#[test]
fn frames_are_before_their_values() {
    let (_scratch, store) = stage("marks_frames");
    store.set(b"short", b"abc").unwrap();
    let long = vec![b'x'; 100_000];
    store.set(b"long", &long).unwrap();
    let mut buffer = b"<".to_vec();
    let mut seen = Vec::new();
    let keys: Vec<&[u8]> = vec![b"short", b"none", b"long", b"short"];
    store
        .shared()
        .get_many_framed(
            &keys,
            &mut buffer,
            |key, meta, buffer| {
                buffer.extend_from_slice(key);
                buffer.extend_from_slice(format!(" {} ", meta.value_len).as_bytes());
            },
            |i, framed, buffer| {
                match framed {
                    Framed::Absent => seen.push((i, None)),
                    Framed::Copied(meta) => {
                        buffer.push(b';');
                        seen.push((i, Some(meta.value_len)));
                    }
                    Framed::Long(view) => {
                        assert!(*view == long[..]);
                        seen.push((i, Some(view.len() as u64)));
                    }
                }
                true
            },
        )
        .unwrap();
    assert_eq!(buffer, b"<short 3 abc;short 3 abc;");
    assert_eq!(seen, [(0, Some(3)), (1, None), (2, Some(100_000)), (3, Some(3))]);
}
