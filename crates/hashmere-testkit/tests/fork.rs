//! Promise: a process may fork with the store open; parent and child go on, whichever ends first.
//! Catches: a child that works under its parent's name, locks or pins that the child's exit drops, a dead parent that
//! a child keeps alive.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::Store;
use hashmere_testkit::limits::Watchdog;
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::{assert_clean, tiny, worker};

/// Runs a scenario of the role `fork`; the store and the pid of the parent.
fn scenario(name: &'static str, what: &str, says: &[&str]) -> (Scratch, Store, u32) {
    let _watchdog = Watchdog::start(name);
    let scratch = Scratch::new(name);
    let store = tiny().open(scratch.store("forked")).unwrap();
    let mut worker = Worker::start(worker!(), "fork", &[&store.path().display(), &what]);
    says.iter().for_each(|line| worker.expect(line));
    let pid = worker.pid();
    worker.finish(LIMIT).ok(what);
    assert_clean(&store);
    (scratch, store, pid)
}

fn writes(store: &Store) -> u64 {
    String::from_utf8(store.get(b"writes").unwrap().unwrap()).unwrap().parse().unwrap()
}

#[test]
fn parent_and_child_write_at_once() {
    let (_scratch, store, _) = scenario("fork-both", "both", &["done"]);
    assert_eq!(writes(&store), 200 + 2000 + 2000);
    assert_eq!(store.len(), 4200 + 1);
}

#[test]
fn the_parent_ends_first() {
    let (_scratch, store, parent) = scenario("fork-parent", "parent-first", &["parent ends", "done"]);
    assert_eq!(store.len(), 200 + 2000 + 1);
    let pids: Vec<u32> = store.stats().clients.iter().map(|client| client.pid).collect();
    assert!(!pids.contains(&parent), "the parent {parent} is dead but still a client: {pids:?}");
}

#[test]
fn many_children() {
    let (_scratch, store, _) = scenario("fork-many", "many", &["done"]);
    assert_eq!(writes(&store), 20 * 6 * 50);
    // A process that ends without closing is noticed by a process that needs its place, or looks for it.
    store.compact().unwrap();
    assert!(store.stats().clients.len() <= 2, "children left clients behind: {:?}", store.stats().clients);
}

#[test]
fn views_across_a_fork() {
    scenario("fork-view", "view", &["done"]);
}

#[test]
fn while_other_threads_write() {
    let (_scratch, store, _) = scenario("fork-threads", "threads", &["done"]);
    assert_eq!(store.len(), 40 * 50 + 20 + 20 + 1);
}
