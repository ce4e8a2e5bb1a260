//! Promise: every call returns what a `HashMap` would have returned, whatever the geometry, while segments are
//! cleaned and the index splits all the time.
//! Catches: a wrong result of any single call, lost or duplicated keys, wrong counts, UIDs or versions that change
//! when they must not, space accounting that `check` finds wrong.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{Mode, Options};
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::oracle::{Driver, Plan};
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{small, tiny, BASE};

fn plan(scratch: &Scratch, options: Options) -> Plan {
    let path = scratch.store("model");
    Plan { path, options, cache: false, steps: 60_000, whole_every: 250, keys: 300, long_values: true }
}

fn run(name: &'static str, change: impl FnOnce(Plan) -> Plan, options: Options) -> Driver {
    let _watchdog = Watchdog::start(name);
    let scratch = Scratch::new(name);
    let mut driver = Driver::new(change(plan(&scratch, options)), Rng::for_test(name));
    driver.run();
    driver
}

#[test]
fn tiny_segments() {
    let driver = run("model-tiny", |plan| plan, tiny());
    let stats = driver.store().stats();
    assert!(stats.splits > 10 && stats.segments_cleaned > 100, "this test is about splits and cleaning: {stats:?}");
}

#[test]
fn small_segments_many_keys() {
    let driver = run("model-small", |plan| Plan { keys: 3000, whole_every: 1000, steps: 80_000, ..plan }, small());
    let stats = driver.store().stats();
    assert!(stats.splits > 20, "this test is about splits: {stats:?}");
}

#[test]
fn tiny_segments_with_a_maximum_that_is_not_reached() {
    run("model-max", |plan| Plan { long_values: false, ..plan }, tiny().max_bytes(16 << 20));
}

#[test]
fn default_geometry() {
    run("model-default", |plan| Plan { keys: 2000, whole_every: 1000, ..plan }, Options::new());
}

#[test]
fn pre_sized_index() {
    run("model-presized", |plan| Plan { steps: 10_000, ..plan }, small().expected_items(5000));
}

#[test]
fn durable_store_that_syncs_for_room() {
    let options = tiny().durable().max_bytes(BASE + (1 << 20));
    let driver = run("model-durable", |plan| Plan { keys: 100, long_values: false, steps: 30_000, ..plan }, options);
    let stats = driver.store().stats();
    assert!(stats.durable && stats.syncs > 10, "this test is about syncs: {stats:?}");
}

#[test]
fn durable_store_without_a_maximum() {
    run("model-durable-free", |plan| Plan { steps: 30_000, ..plan }, tiny().durable());
}

/// In a cache a value may be absent, never wrong.
#[test]
fn cache_with_eviction() {
    let options = tiny().max_bytes(BASE + (256 << 10)).mode(Mode::Cache);
    let change = |plan| Plan { cache: true, keys: 2000, whole_every: 500, steps: 80_000, ..plan };
    let driver = run("model-cache", change, options);
    let stats = driver.store().stats();
    assert!(stats.evictions > 100, "this test is about eviction: {stats:?}");
}
