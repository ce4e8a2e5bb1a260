//! Valid stores of several shapes, small enough to be changed and tried hundreds of times a second.

use crate::payload;
use crate::scratch::Scratch;
use crate::{small, tiny, BASE};
use hashmere::{Attributes, Counter, Key, Mode, Options, Store, Ttl};
use hashmere_format::header::at;
use std::time::Duration;

/// Keys whose number the driver knows.
pub const KEYS: u64 = 120;
/// The hash under which some keys are stored, so that they collide.
pub const COLLIDING: u64 = 42;

/// Name and bytes of a valid file.
#[derive(Clone, Debug)]
pub struct Shape {
    /// What it is.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// All of them, each closed in order, as the death of its user would leave it, and, if it is durable, as that of the
/// machine would.
pub fn all() -> Vec<Shape> {
    let scratch = Scratch::new("shapes");
    type Fill = fn(&Store);
    let kinds: [(&str, Options, Fill); 8] = [
        ("many leaves", tiny(), plain),
        ("collisions", tiny(), collisions),
        ("large values", small(), large),
        ("full cache", tiny().mode(Mode::Cache).max_bytes(BASE + (24 << 12)), cache),
        ("fixed lengths", tiny().fixed_key_len(8).fixed_value_len(16), fixed),
        ("default geometry", Options::new(), plain),
        ("queues", small(), super::pool::fill),
        ("durable", tiny().durable(), plain),
    ];
    let mut shapes = Vec::new();
    for (name, options, fill) in kinds {
        let path = scratch.store(name);
        let store = options.open(&path).expect("create a store");
        fill(&store);
        let read = || std::fs::read(&path).expect("read a store");
        shapes.push(Shape { name: format!("{name}, open"), bytes: read() });
        if name == "durable" {
            let mut bytes = read();
            bytes[at::BOOT_LO as usize] ^= 1;
            shapes.push(Shape { name: format!("{name}, after a reboot"), bytes });
        }
        drop(store);
        shapes.push(Shape { name: name.to_owned(), bytes: read() });
    }
    shapes
}

fn plain(store: &Store) {
    for number in 0..KEYS {
        store.set(&payload::key(number), &payload::encode(number)).expect("set");
    }
    for number in (0..KEYS).step_by(3) {
        store.set(&payload::key(number), &payload::encode(number + 1000)).expect("set");
    }
    for number in (0..KEYS).step_by(7) {
        let attributes = Attributes::NONE.flags(7).ttl(Ttl::After(Duration::from_secs(1000)));
        store.set_with(&payload::key(number), b"expires", attributes).expect("set");
    }
    for number in (0..KEYS).step_by(5) {
        store.delete(&payload::key(number)).expect("delete");
    }
    store.incr(b"counter", 1, Counter::or_create(7)).expect("increment");
}

fn collisions(store: &Store) {
    plain(store);
    for number in 0..60 {
        store.set(Key::with_hash(&payload::key(number), COLLIDING), &payload::encode(number)).expect("set");
    }
}

fn large(store: &Store) {
    plain(store);
    for number in 0..8 {
        let value = payload::encode_len(number, 3000 << number.min(5));
        store.set(&payload::key(number), &value).expect("set");
    }
    store.delete(&payload::key(3)).expect("delete");
}

fn cache(store: &Store) {
    for round in 0..6 {
        for number in 0..KEYS {
            store.set(&payload::key(number), &payload::encode(number + round)).expect("set");
            store.get(&payload::key(number / 2)).expect("get");
        }
    }
}

fn fixed(store: &Store) {
    for number in 0..KEYS {
        store.set(&number.to_le_bytes(), &payload::encode_len(number, 16)).expect("set");
    }
}
