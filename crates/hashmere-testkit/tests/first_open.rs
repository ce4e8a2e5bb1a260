//! Promise: however many processes and threads open a new store at the same moment, it is created once and all of them
//! are in it; its name appears only when it is complete.
//! Catches: two creators with a file each, an opener that finds a half-made file.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere_testkit::limits::{times, Watchdog};
use hashmere_testkit::procs::{Worker, LIMIT};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::worker;

const NAMES: [&str; 3] = ["first", "second", "third"];
const THREADS: usize = 2;

fn openers() -> Vec<Worker> {
    let mut openers: Vec<Worker> =
        NAMES.iter().map(|name| Worker::start(worker!(), "opener", &[name, &THREADS])).collect();
    openers.iter_mut().for_each(|opener| opener.expect("ready"));
    openers
}

/// Tells all of them to open the path; how many of their threads won.
fn race(openers: &mut [Worker], how: &str, path: &str) -> u64 {
    openers.iter_mut().for_each(|opener| opener.say(&format!("{how} {path}")));
    let mut won = |opener: &mut Worker| opener.hear(LIMIT).strip_prefix("won ").unwrap().parse::<u64>().unwrap();
    openers.iter_mut().map(&mut won).sum()
}

#[test]
fn created_once_and_seen_by_all() {
    let _watchdog = Watchdog::start("first-shared");
    let scratch = Scratch::new("first-shared");
    let mut openers = openers();
    for round in 0..times(1000) {
        let path = scratch.store(&format!("new-{round}"));
        assert_eq!(race(&mut openers, "shared", path.to_str().unwrap()), 1, "round {round}: creators");
        for opener in &mut openers {
            opener.say(&format!("verify {}", NAMES.join(" ")));
        }
        openers.iter_mut().for_each(|opener| opener.expect("seen"));
        std::fs::remove_file(&path).unwrap();
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "files left behind");
    openers.into_iter().for_each(|opener| drop(opener.finish(LIMIT).ok("opener")));
}

#[test]
fn exclusive_has_one_winner() {
    let _watchdog = Watchdog::start("first-exclusive");
    let scratch = Scratch::new("first-exclusive");
    let mut openers = openers();
    for round in 0..times(1000) / 4 {
        let path = scratch.store(&format!("new-{round}"));
        assert_eq!(race(&mut openers, "exclusive", path.to_str().unwrap()), 1, "round {round}: winners");
        std::fs::remove_file(&path).unwrap();
    }
    openers.into_iter().for_each(|opener| drop(opener.finish(LIMIT).ok("opener")));
}
