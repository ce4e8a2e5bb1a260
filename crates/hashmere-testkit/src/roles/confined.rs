//! Uses a store that others grow, with few addresses: `confined STORE MEMORY NAME`.
//!
//! `MEMORY` limits the address space of this process. Says `open CODE` and ends where the store cannot be opened; else
//! `opened`. For each `COUNT` on standard input it does everything once with the numbers below that, and says `right N
//! refused M`: what was refused, was so with the code for that. Its own sets it names `set NUMBER` first.

use super::{limit, Arguments};
use crate::payload;
use hashmere::{Options, Store};
use hashmere_log::{Level, Log, LogOptions, OnNoDrainer};
use hashmere_queue::Pool;
use nix::sys::resource::Resource;
use std::io::BufRead;
use std::path::PathBuf;

/// `AddressSpace`.
const REFUSED: i32 = 13;
/// Bytes of each value.
pub const LEN: usize = 2000;
/// Where the numbers that it stores itself begin.
pub const OWN: u64 = 1 << 32;

#[derive(Default)]
struct Counts {
    right: u64,
    refused: u64,
}

impl Counts {
    /// The result of something; `None`: it was refused.
    fn note<T>(&mut self, what: &str, done: Result<T, (i32, String)>) -> Option<T> {
        match done {
            Ok(done) => {
                self.right += 1;
                Some(done)
            }
            Err((code, text)) => {
                assert_eq!(code, REFUSED, "{what}: {text}");
                self.refused += 1;
                None
            }
        }
    }
}

/// An error's code and text.
macro_rules! told {
    ($result:expr) => {
        $result.map_err(|error| (error.code(), error.to_string()))
    };
}

pub(super) fn run(arguments: &mut Arguments) {
    let path: PathBuf = arguments.next();
    limit(Resource::RLIMIT_AS, arguments.next());
    let mut next: u64 = OWN + (arguments.next::<u64>() << 20);
    let store = match Options::new().create(false).open(&path) {
        Ok(store) => store,
        Err(error) => {
            println!("open {}", error.code());
            return;
        }
    };
    println!("opened");
    for line in std::io::stdin().lock().lines() {
        let count: u64 = line.expect("a line").parse().expect("a number");
        let mut counts = Counts::default();
        read(&store, count, &mut counts);
        write(&store, &mut next, &mut counts);
        whole(&store, &path, &mut counts);
        println!("right {} refused {}", counts.right, counts.refused);
    }
}

fn read(store: &Store, count: u64, counts: &mut Counts) {
    let mut views = Vec::new();
    for number in 0..count {
        let (key, value) = (payload::key(number), payload::encode_len(number, LEN));
        if let Some(found) = counts.note("get", told!(store.get(&key))) {
            assert!(found == Some(value.clone()), "key {number} is not what was stored");
        }
        if number % 64 == 0 {
            if let Some(view) = counts.note("view", told!(store.view(&key))) {
                views.push((number, view.expect("a key that is there")));
            }
        }
        if number % 100 == 0 {
            let keys = [key, payload::key(number / 2)];
            if let Some(found) = counts.note("bulk", told!(store.get_many(&keys))) {
                assert!(found[0] == Some(value) && found[1].is_some(), "a bulk get of {number}");
            }
        }
    }
    // Taken while the mapping had many lengths, none of them has changed.
    for (number, view) in views {
        assert!(view[..] == payload::encode_len(number, LEN)[..], "the view of {number}");
    }
    let mut seen = 0;
    for pair in store.iter() {
        match counts.note("scan", told!(pair)) {
            Some(_) => seen += 1,
            None => return,
        }
    }
    assert_eq!(seen, store.len());
}

fn write(store: &Store, next: &mut u64, counts: &mut Counts) {
    for _ in 0..40 {
        let (key, value) = (payload::key(*next), payload::encode_len(*next, LEN));
        if counts.note("set", told!(store.set(&key, &value))).is_some() {
            println!("set {next}");
            if let Some(found) = counts.note("get", told!(store.get(&key))) {
                assert!(found == Some(value), "what was set just now");
            }
        }
        *next += 1;
    }
    counts.note("set", told!(store.set(b"large", &vec![7; 400_000])));
    counts.note("append", told!(store.append(b"appended", b"+")));
    counts.note("delete", told!(store.delete(b"large")));
    counts.note("compact", told!(store.compact()));
}

fn whole(store: &Store, path: &std::path::Path, counts: &mut Counts) {
    // A check remembers every key that it saw, for which there is no memory at the very end of the addresses.
    if Vec::<u8>::new().try_reserve_exact(16 << 20).is_ok() {
        let report = store.check();
        let codes: Vec<&str> = report.problems.iter().map(|problem| problem.code).collect();
        assert!(codes.is_empty() || codes == ["not-reachable"], "{:?}", report.problems);
    }
    if let Some(pool) = counts.note("pool", told!(Pool::open(store, "pool"))) {
        let endpoint = pool.endpoint().expect("an endpoint");
        let queue = pool.queue("through").expect("the queue");
        let mut element = endpoint.pop(pool.free()).expect("pop").expect("a free element");
        element[..5].copy_from_slice(b"bytes");
        assert!(element.push(&queue).expect("push").is_none());
        let element = endpoint.pop(&queue).expect("pop").expect("what was pushed");
        assert_eq!(&element[..5], b"bytes");
        assert!(element.push(pool.free()).expect("push").is_none());
    }
    if let Some(log) =
        counts.note("log", told!(Log::open_existing(store, "log", LogOptions::new().on_no_drainer(OnNoDrainer::Keep))))
    {
        log.line(Level::Info, "a line").expect("a line of the log");
    }
    let copy = path.with_extension("copy.mere");
    if let Some(report) = counts.note("backup", told!(store.backup(&copy).run())) {
        assert_eq!(report.items, store.len());
    }
    let _ = std::fs::remove_file(copy);
}
