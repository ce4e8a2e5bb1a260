//! Promise: every call returns what a `HashMap` would have returned, in any short history of calls.
//! Catches: what needs few calls in an unusual order. A history that fails is reduced to one that still fails and has
//! nothing to spare; the long histories of `model` find more and reduce nothing.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Mode, Options};
use hashmere_testkit::limits::{times, Watchdog};
use hashmere_testkit::oracle::{Driver, Plan};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{tiny, BASE};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use std::cell::Cell;
use std::panic;
use std::sync::Once;

/// The longest history, in calls.
const LENGTH: usize = 300;

thread_local! {
    /// Whether this thread's panics are not worth a message: a reduction panics hundreds of times, and only the last
    /// one is reported.
    static REDUCES: Cell<bool> = const { Cell::new(false) };
}

fn be_quiet_while_reducing() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !REDUCES.get() {
                hook(info);
            }
        }));
    });
}

/// Runs histories on stores like this, each on one of its own.
fn hold(name: &'static str, cache: bool, options: Options) {
    let _watchdog = Watchdog::start(name);
    let scratch = Scratch::new(name);
    let cases = times(150) as u32;
    let config = Config { cases, max_shrink_iters: 3000, failure_persistence: None, ..Config::default() };
    let seed = Rng::for_test(name).bytes(32);
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let plan =
        Plan { path: scratch.store("history"), options, cache, steps: 0, whole_every: 1, keys: 12, long_values: true };
    be_quiet_while_reducing();
    REDUCES.set(true);
    let held = runner.run(&vec(any::<u64>(), 1..LENGTH), |seeds| {
        let _ = std::fs::remove_file(&plan.path);
        Driver::new(plan.clone(), Rng::from_seed(0)).run_seeds(&seeds);
        Ok(())
    });
    REDUCES.set(false);
    match held {
        Ok(()) => {}
        Err(TestError::Fail(why, seeds)) => panic!("{} calls are enough: {why}", seeds.len()),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn of_a_strict_store() {
    hold("histories-strict", false, tiny());
}

#[test]
fn of_a_store_with_a_maximum() {
    hold("histories-max", false, tiny().max_bytes(BASE + (1 << 20)));
}

#[test]
fn of_a_durable_store() {
    hold("histories-durable", false, tiny().durable());
}

#[test]
fn of_a_cache() {
    hold("histories-cache", true, tiny().max_bytes(BASE + (256 << 10)).mode(Mode::Cache));
}
