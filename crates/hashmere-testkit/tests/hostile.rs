//! Promise: whatever bytes a file has, and also while another process changes them, opening and using it ends in errors
//! or wrong values at worst. Catches: offsets, lengths, depths and owners that are used before they are checked, loops
//! that a file can make endless, memory taken because a file says so; words that are loaded twice and trusted once.
//!
//! This is a sample of `make hostile`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere_testkit::hostile::{run, Manner};
use hashmere_testkit::limits::{lasting, Watchdog};
use hashmere_testkit::rng::run_seed;
use std::time::Duration;

fn no_harm(manner: Manner) {
    let _watchdog = Watchdog::start("hostile");
    let seed = run_seed();
    println!("hostile: replay with HASHMERE_SEED={seed:#x}");
    let time = lasting(Duration::from_secs(14));
    let summary = run(env!("CARGO_BIN_EXE_hashmere-testkit-hostile"), manner, seed, &std::env::temp_dir(), time, 100);
    println!("{manner:?}: {} files, {} failures", summary.cases, summary.failures.len());
    assert!(summary.failures.is_empty(), "{:#?}", summary.failures);
}

#[test]
fn damaged_files_do_no_harm() {
    no_harm(Manner::Damaged);
}

#[test]
fn files_that_change_while_they_are_open_do_no_harm() {
    no_harm(Manner::Scribbled);
}
