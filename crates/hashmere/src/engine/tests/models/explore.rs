//! Runs a story under the schedulers.

use super::bursts::Bursts;
use crate::engine::canary::{self, Canary};
use hashmere_mem::shuttle::scheduler::{PctScheduler, Scheduler};
use hashmere_mem::shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// How often a story is told under each scheduler, unless `HASHMERE_MODELS` says otherwise.
const TIMES: u64 = 500;
/// A fault must be found within this many times as many.
const PATIENCE: u64 = 100;
/// Tellings under one scheduler before the other has its turn.
const TURN: u64 = 100;
/// Steps after which a story is taken to hang.
const TOO_MANY: usize = 400_000;
/// Interruptions under PCT, and one.
const DEPTH: usize = 3;
/// The seed when `HASHMERE_SEED` is not set.
const SEED: u64 = 0x4d45_5245_2026;

fn number(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Err(_) => otherwise,
        Ok(text) => match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).expect("not a number"),
            None => text.parse().expect("not a number"),
        },
    }
}

fn run(scheduler: impl Scheduler + 'static, story: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(TOO_MANY);
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    // A schedule of a thousand steps tells nobody anything; the seed replays it.
    config.failure_persistence = FailurePersistence::None;
    Runner::new(scheduler, config).run(story);
}

/// Tells a story under both schedulers. It fails by a panic, and then says how to see that again.
pub(super) fn explore(name: &str, story: impl Fn() + Send + Sync + 'static) {
    let times = number("HASHMERE_MODELS", TIMES);
    explore_times(name, times, &Arc::new(story), &AtomicU64::new(0));
}

fn explore_times<F: Fn() + Send + Sync + 'static>(name: &str, times: u64, story: &Arc<F>, told: &AtomicU64) {
    let seed = number("HASHMERE_SEED", SEED);
    println!("{name}: replay with HASHMERE_SEED={seed:#x} HASHMERE_MODELS={times}");
    let count = Arc::new(AtomicU64::new(0));
    let counted = || {
        let (count, story) = (count.clone(), story.clone());
        move || {
            count.fetch_add(1, Ordering::Relaxed);
            story();
        }
    };
    let both = panic::catch_unwind(AssertUnwindSafe(|| {
        // Turn and turn about, so that what only one of them finds is found as soon as by the other.
        for round in 0..times.div_ceil(TURN) {
            let turn = TURN.min(times - round * TURN);
            let seed = seed ^ round << 40;
            run(Bursts::new(seed, turn), counted());
            run(PctScheduler::new_from_seed(seed, DEPTH, turn as usize), counted());
        }
    }));
    told.store(count.load(Ordering::Relaxed), Ordering::Relaxed);
    if let Err(panic) = both {
        println!("{name}: failed at the {}th telling", count.load(Ordering::Relaxed));
        panic::resume_unwind(panic);
    }
}

/// Tells a story in an engine with a fault, which must be found, and not by hanging.
pub(super) fn must_find(canary: Canary, story: impl Fn() + Send + Sync + 'static) {
    let times = number("HASHMERE_MODELS", TIMES) * PATIENCE;
    let told = AtomicU64::new(0);
    let outcome = canary::with(canary, || {
        panic::catch_unwind(AssertUnwindSafe(|| explore_times("canary", times, &Arc::new(story), &told)))
    });
    let told = told.into_inner();
    let panic = outcome.expect_err("a known fault was not found");
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or_default();
    println!("{canary:?} was found at the {told}th telling: {text}");
    assert!(text.starts_with(FOUND), "{canary:?} showed itself by another failure: {text}");
}

/// What the complaints of stories begin with.
pub(super) const FOUND: &str = "wrong: ";

/// Complains.
pub(super) fn wrong(text: impl std::fmt::Display) -> ! {
    panic!("{FOUND}{text}")
}
