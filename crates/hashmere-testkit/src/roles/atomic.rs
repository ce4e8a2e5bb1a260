//! Shared atomics.
//!
//! `atomic STORE SET OWN`: adds 1 to the atomic OWN, then by an addition and by an exchange to `added` and `exchanged`,
//! until standard input is closed, then says `added N`.
//!
//! `atomic-waiter STORE SET NAME`: says `ready`, waits until the atomic is not 0, says `saw N`; then until it is not N,
//! and so on until it is 0 again.

use super::{input_closed, Arguments};
use hashmere_queue::Atomics;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(1000);

pub(super) fn atomic(arguments: &mut Arguments) {
    let store = arguments.store();
    let (set, name): (String, String) = (arguments.next(), arguments.next());
    let set = Atomics::open(&store, &set).expect("a set");
    let [own, added, exchanged] =
        [&name[..], "added", "exchanged"].map(|name| set.atomic(name.as_bytes()).expect("an atomic"));
    let closed = input_closed();
    println!("ready");
    let mut steps = 0u64;
    while !closed.load(Ordering::Relaxed) {
        own.fetch_add(1).expect("add");
        added.fetch_add(1).expect("add");
        let mut seen = exchanged.load().expect("load");
        loop {
            match exchanged.compare_exchange(seen, seen + 1).expect("exchange") {
                before if before == seen => break,
                before => seen = before,
            }
        }
        steps += 1;
    }
    println!("added {steps}");
}

pub(super) fn waiter(arguments: &mut Arguments) {
    let store = arguments.store();
    let (set, name): (String, String) = (arguments.next(), arguments.next());
    let atomic = Atomics::open(&store, &set).and_then(|set| set.atomic(name.as_bytes())).expect("an atomic");
    println!("ready");
    let mut seen = 0;
    loop {
        seen = atomic.wait(seen, LONG).expect("wait").expect("it changes");
        println!("saw {seen}");
        if seen == 0 {
            return;
        }
    }
}
