//! Promise: a process may be killed behind any machine instruction of an operation; everything acknowledged is there,
//! the operation is there whole or not at all, and its key can be written at once. A process stopped there is no
//! obstacle to readers, and has not lost its place when it goes on. Catches: what the compiler reorders or splits, and
//! what the kernel does at a real death.
//!
//! This is a sample of `make step`, which kills the release build behind every instruction. `HASHMERE_DEATHS=n`: n of
//! each operation.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere_testkit::limits::{sampled, times, Watchdog};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::step::{hold, is_allowed, run, run_queue, Counts, Effort, HELD, QUEUE_SCENARIOS, SCENARIOS};
use std::time::Duration;

/// Operations of more than a hundred thousand instructions each, which take longer than all others: one of them is
/// tried, unless `HASHMERE_WHOLE` is set.
const LONG: [&str; 4] = ["transaction, long", "set with cleaning", "clean", "open, set, close"];

#[test]
fn killed_and_stopped_behind_single_instructions() {
    if !is_allowed() {
        return;
    }
    let _watchdog = Watchdog::start("step");
    let mut rng = Rng::for_test("step");
    let deaths = std::env::var("HASHMERE_DEATHS").ok().and_then(|n| n.parse().ok());
    let effort = Effort { deaths: deaths.unwrap_or_else(|| times(40) as _), walk: false, stops: 2 };
    let mut broken = 0;
    let program = env!("CARGO_BIN_EXE_hashmere-testkit-step");
    assert!(LONG.iter().all(|long| SCENARIOS.iter().any(|scenario| scenario.name == *long)));
    let mut is_chosen = sampled(LONG.len());
    let tried = SCENARIOS.iter().filter(|scenario| !LONG.contains(&scenario.name) || is_chosen());
    let keys = tried.map(|scenario| run(program, scenario, effort, &mut rng));
    let counts: Vec<Counts> = keys.collect();
    let queues = QUEUE_SCENARIOS.iter().map(|scenario| run_queue(program, scenario, effort, &mut rng));
    for counts in counts.into_iter().chain(queues) {
        assert!(counts.deaths > 0 && counts.states > 0);
        println!("{counts:?}");
        broken += counts.failures.len();
    }
    assert_eq!(broken, 0, "see above");
}

/// Half of them, unless `HASHMERE_WHOLE` is set. `make hold` does the same for a minute each.
#[test]
fn stopped_inside_critical_sections() {
    if !is_allowed() {
        return;
    }
    let _watchdog = Watchdog::start("hold");
    let mut rng = Rng::for_test("hold");
    let mut is_chosen = sampled(2);
    for scenario in SCENARIOS[..HELD].iter().filter(|_| is_chosen()) {
        let held = hold(env!("CARGO_BIN_EXE_hashmere-testkit-step"), scenario, Duration::from_millis(50), &mut rng);
        println!("{}: {:?}", scenario.name, held.unwrap_or_else(|broken| panic!("{}: {broken}", scenario.name)));
    }
}
