//! Random register operations on keys that all workers share, each written down for the history checker.
//!
//! `mix STORE JOURNAL WORKER SEED OPERATIONS KEYS ROUND_MS START_NS CHURN`: the workers move together from one group
//! of `KEYS` keys to the next every `ROUND_MS` since `START_NS` of the monotonic clock, so that every key has many
//! operations at once but not too many in all, and new keys are created all the time. Between two of them `CHURN`
//! operations on other keys are done that are not written down. Says `done`, and waits for the end of its input.

use super::{input_closed, Arguments};
use crate::history::{Call, Reply, State};
use crate::journal::Journal;
use crate::limits::now_ns;
use crate::payload;
use crate::register::is_counter;
use crate::rng::Rng;
use hashmere::Store;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Most operations that a worker writes down.
const JOURNAL_MAX: usize = 1 << 20;
/// Keys that are not written down, and the number of the first.
const CHURN_KEYS: u64 = 300;
const CHURN_FIRST: u64 = 1 << 40;

pub(super) fn run(arguments: &mut Arguments) {
    let store = arguments.store();
    let path: PathBuf = arguments.next();
    let worker: u32 = arguments.next();
    let mut rng = Rng::from_seed(arguments.next());
    let operations: usize = arguments.next();
    let keys: u64 = arguments.next();
    let round_ns = arguments.next::<u64>() * 1_000_000;
    let start: u64 = arguments.next();
    let churn: u64 = arguments.next();
    let closed = input_closed();
    let mut journal = Journal::create(&path, operations.min(JOURNAL_MAX));
    let mut choice = Choice::new(worker);
    while now_ns() < start {
        std::hint::spin_loop();
    }
    while !closed.load(Ordering::Relaxed) && !journal.is_full() {
        let round = (now_ns() - start) / round_ns;
        let key = (round * keys + rng.below(keys)) as u32;
        let call = choice.next(&mut rng, key);
        let reply = journal.perform(&store, key, call, rng.word());
        choice.learn(key, reply);
        (0..churn).for_each(|_| churn_once(&store, &mut rng));
    }
    println!("done");
    while !closed.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn churn_once(store: &Store, rng: &mut Rng) {
    let key = payload::key(CHURN_FIRST + rng.below(CHURN_KEYS));
    match rng.below(4) {
        0 => drop(store.delete(&key).expect("delete")),
        1 => {
            if let Some(value) = store.get(&key).expect("get") {
                payload::decode(&value).expect("a whole value");
            }
        }
        _ => _ = store.set(&key, &payload::encode(rng.word())).expect("set"),
    }
}

/// Chooses calls whose values tell who wrote them, with the knowledge of what was last seen.
#[derive(Debug)]
pub struct Choice {
    next_value: u64,
    seen_key: u32,
    seen: State,
}

impl Choice {
    /// For the worker of this number.
    pub fn new(worker: u32) -> Choice {
        Choice { next_value: u64::from(worker + 1) << 32, seen_key: u32::MAX, seen: None }
    }

    /// The next call on this key.
    pub fn next(&mut self, rng: &mut Rng, key: u32) -> Call {
        self.next_value += 1;
        let counter = is_counter(key);
        // Small numbers in counters, so that the text's length changes, too.
        let value = if counter { rng.below(120) } else { self.next_value };
        if counter && rng.chance(60) {
            return Call::Incr { by: rng.below(9) + 1, initial: rng.chance(80).then_some(value) };
        }
        let expected = if self.seen_key == key { self.seen } else { None };
        match rng.below(100) {
            0..40 => Call::Get,
            40..56 => Call::Set(value),
            56..64 => Call::Add(value),
            64..70 => Call::Replace(value),
            70..76 => Call::Delete,
            76..80 => Call::Take,
            80..96 => Call::Cas { expected, new: Some(value) },
            _ => Call::Cas { expected, new: None },
        }
    }

    /// Remembers what a call found.
    pub fn learn(&mut self, key: u32, reply: Reply) {
        if let Reply::Found(state) = reply {
            (self.seen_key, self.seen) = (key, state);
        }
    }
}
