//! The operations that are stepped through, and the stores that they find.

use super::image::Image;
use crate::tiny;
use hashmere::{Attributes, Change, Counter, Expected, Options, Store, Ttl, WriteBatch, WriteError};
use std::path::Path;
use std::time::Duration;

/// A key that most traced processes write first.
const WARM: &[u8] = b"warm";
/// The key that most operations are about.
const KEY: &[u8] = b"key2";

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Whether the process opens and closes the store within the operation, and has done nothing before.
    pub cold: bool,
    /// Whether the store keeps its changes, which a consumer follows beside the operation.
    pub has_feed: bool,
    fill: fn(&Store),
    /// What the process does before: what a process does once only is not part of the operation.
    pub first: fn(&Store, u64),
    /// Whether the operation is to be one that makes this number grow; those that do not come before it.
    until: Option<fn(&Store) -> u64>,
    /// What is done. The number tells apart repetitions before `until`.
    pub act: fn(&Store, u64),
    /// The key that it is about; none if it changes no key.
    pub key: fn(u64) -> Option<Vec<u8>>,
}

const PLAIN: Scenario = Scenario {
    name: "",
    cold: false,
    has_feed: false,
    fill: few,
    first: |store, _| set(store, WARM, b"warm"),
    until: None,
    act: |_, _| {},
    key: |_| Some(KEY.to_vec()),
};

const FED: Scenario = Scenario { has_feed: true, ..PLAIN };

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "set, new key",
        act: |s, _| set(s, b"new", b"a new value"),
        key: |_| Some(b"new".to_vec()),
        ..PLAIN
    },
    Scenario { name: "set, replacing", act: |s, _| set(s, KEY, b"replaced by another"), ..PLAIN },
    Scenario { name: "set, growing value", act: |s, _| set(s, KEY, &[b'g'; 700]), ..PLAIN },
    Scenario { name: "delete", act: |s, _| assert!(s.delete(KEY).expect("delete")), ..PLAIN },
    Scenario { name: "compare and set", act: |s, _| compare(s), ..PLAIN },
    Scenario { name: "increment", act: |s, _| count(s), key: |_| Some(b"n".to_vec()), ..PLAIN },
    Scenario { name: "append", act: |s, _| assert!(s.append(KEY, b"tail").expect("append").is_some()), ..PLAIN },
    Scenario { name: "touch", act: |s, _| assert!(s.touch(KEY, HOUR).expect("touch")), ..PLAIN },
    Scenario { name: "transaction", act: |s, _| change_four(s), ..PLAIN },
    Scenario {
        name: "set with a split",
        fill: |_| {},
        until: Some(|store| store.stats().splits),
        act: |store, n| set(store, &split_key(n), b"splits"),
        key: |n| Some(split_key(n)),
        ..PLAIN
    },
    Scenario { name: "transaction, long", act: |s, _| change_many(s), ..PLAIN },
    Scenario { name: "set, large value", act: |s, _| set(s, KEY, &[b'L'; 9000]), ..PLAIN },
    Scenario {
        name: "set with cleaning",
        fill: wide,
        first: |store, n| (0..8).for_each(|i| set(store, &wide_key(9 * n + i), &wide_value(n))),
        until: Some(|store| store.stats().segments_cleaned),
        act: |store, n| set(store, &wide_key(9 * n + 8), &wide_value(n)),
        key: |n| Some(wide_key(9 * n + 8)),
        ..PLAIN
    },
    Scenario {
        name: "clean",
        fill: garbage,
        act: |store, _| assert_ne!(store.compact().expect("compact"), 0),
        key: |_| None,
        ..PLAIN
    },
    Scenario { name: "clear", act: |s, _| s.clear().expect("clear"), key: |_| None, ..PLAIN },
    Scenario { name: "open, set, close", cold: true, act: |s, _| set(s, KEY, b"set by a newcomer"), ..PLAIN },
    Scenario { name: "feed: set, replacing", act: |s, _| set(s, KEY, b"replaced by another"), ..FED },
    Scenario { name: "feed: delete", act: |s, _| assert!(s.delete(KEY).expect("delete")), ..FED },
    Scenario { name: "feed: increment", act: |s, _| count(s), key: |_| Some(b"n".to_vec()), ..FED },
    Scenario { name: "feed: set, large value", act: |s, _| set(s, KEY, &[b'L'; 9000]), ..FED },
    Scenario { name: "feed: transaction", act: |s, _| change_four(s), ..FED },
];

/// The first of them, this many, keep only writers of their own key out. (A stop while the file grows keeps out every
/// writer that needs a segment.)
pub const HELD: usize = 10;

/// Bytes of a feed: the smallest one.
const FEED: u64 = 1 << 20;
const HOUR: Ttl = Ttl::After(Duration::from_secs(3600));

fn set(store: &Store, key: &[u8], value: &[u8]) {
    store.set(key, value).expect("set");
}

fn compare(store: &Store) {
    let (seen, change) = (Expected::Value(b"value value value "), Change::Set(b"compared"));
    store.cas(KEY, seen, change).expect("compare and set");
}

fn count(store: &Store) {
    assert!(store.incr(b"n", 1, Counter::EXISTING).expect("increment").is_some());
}

/// A new key, one that is replaced, one that goes and a counter: their cells have room in the client's own place.
fn change_four(store: &Store) {
    let mut batch = WriteBatch::new();
    batch.set("new", "a new value").set(KEY, "replaced by another").delete("key1").incr("n", 1, Counter::EXISTING);
    assert_eq!(store.write_batch(&batch).expect("write a batch").len(), 4);
}

/// More keys than have room there, a large value among them. What it reads has to stay: beside a stop it runs again,
/// and does the same.
fn change_many(store: &Store) {
    store
        .transaction(|t| -> Result<(), WriteError> {
            assert!(t.get(KEY)?.is_some());
            (0..4).try_for_each(|number| t.set(format!("new{number}"), "a new value"))?;
            t.set(KEY, [b'L'; 9000])?;
            t.delete("key1")?;
            t.touch("key3", HOUR).map(drop)
        })
        .expect("a transaction");
}

fn split_key(number: u64) -> Vec<u8> {
    format!("split{number}").into_bytes()
}

/// Some keys of all kinds.
fn few(store: &Store) {
    for number in 0..4 {
        set(store, format!("key{number}").as_bytes(), "value ".repeat(number + 1).as_bytes());
    }
    assert_eq!(store.incr(b"n", 1, Counter::or_create(9)).expect("increment"), Some(9));
    set(store, b"one", &[b'1'; 2000]);
    store.set_with(b"expires", b"in an hour", Attributes::NONE.flags(5).ttl(HOUR)).expect("set");
}

fn wide_value(number: u64) -> Vec<u8> {
    crate::payload::encode_len(number, 450)
}

/// In another order than they were written in, so that no segment dies as a whole.
fn wide_key(number: u64) -> Vec<u8> {
    format!("wide{}", number * 37 % WIDE).into_bytes()
}

const WIDE: u64 = 300;

/// Records of a ninth of a segment each: enough that overwriting some fills the store.
fn wide(store: &Store) {
    for number in 0..WIDE {
        set(store, format!("wide{number}").as_bytes(), &wide_value(number));
    }
}

/// Several segments with little left in them.
fn garbage(store: &Store) {
    few(store);
    for number in 0..60 {
        set(store, format!("g{number}").as_bytes(), &wide_value(number));
    }
    (0..60).filter(|number| number % 6 != 0).for_each(|number| {
        assert!(store.delete(format!("g{number}").as_bytes()).expect("delete"));
    });
}

impl Scenario {
    /// The smallest store: three buckets a leaf, 4 KiB a segment, and not many of them; and room for a feed.
    fn options(&self) -> Options {
        let smallest = tiny().max_bytes(crate::BASE + (48 << 12));
        if self.has_feed {
            smallest.max_bytes(crate::BASE + (48 << 12) + FEED).feed(FEED).feed_values(true)
        } else {
            smallest
        }
    }

    /// The store before the operation, and the number that the operation gets. This many other keys are in it, too.
    pub fn prepare(&self, path: &Path, others: u64) -> (Image, u64) {
        let store = self.options().open(path).expect("create a store");
        (0..others).for_each(|number| set(&store, format!("other{number}").as_bytes(), b"of another"));
        set(&store, WARM, b"warm");
        (self.fill)(&store);
        drop(store);
        let Some(metric) = self.until else { return (Image::of(path), 0) };
        for number in 0..1000 {
            let before = Image::of(path);
            let store = Options::new().create(false).open(path).expect("open a store");
            (self.first)(&store, number);
            let was = metric(&store);
            (self.act)(&store, number);
            if metric(&store) != was {
                return (before, number);
            }
        }
        panic!("{}: it never happens", self.name)
    }
}
