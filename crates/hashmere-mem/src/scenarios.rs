//! Scenarios of a few clients of a [`ShuttleMem`](crate::ShuttleMem), run many times under schedulers that let them
//! change places before every access. For tests only: what goes wrong is a panic.
#![allow(clippy::panic, clippy::expect_used, reason = "for tests")]

use crate::scheduler::BurstScheduler;
use shuttle::scheduler::{PctScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// How often a scenario is run under each scheduler with `HASHMERE_WHOLE`, unless `HASHMERE_MODELS` says otherwise.
const TIMES: u64 = 500;
/// How often otherwise.
const FEWER: u64 = 100;
/// A fault must be found within this many times as many.
const HUNT: u64 = 100;
/// Runs under one scheduler before the other has its turn.
const TURN: u64 = 100;
/// Steps after which a scenario is taken to hang.
const TOO_MANY: usize = 400_000;
/// Interruptions under PCT, and one.
const DEPTH: usize = 3;
/// The seed when `HASHMERE_SEED` is not set.
const SEED: u64 = 0x4d45_5245_2026;

/// How often a scenario was run up to its first failure, and that.
pub type Runs = (u64, std::thread::Result<()>);

fn number(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Err(_) => otherwise,
        Ok(text) => match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).expect("not a number"),
            None => text.parse().expect("not a number"),
        },
    }
}

/// How often a scenario is run under each scheduler.
fn times() -> u64 {
    number("HASHMERE_MODELS", if whole() { TIMES } else { FEWER })
}

/// Whether enumerations try every case: `HASHMERE_WHOLE=1`, or a seeded fault is on. Otherwise they take a [`sample`]
/// of those that are many.
pub fn whole() -> bool {
    ["HASHMERE_WHOLE", "HASHMERE_FAULT"].iter().any(|name| std::env::var_os(name).is_some())
}

/// Which of `n` cases are tried: the first one, and every how manieth from there on. All with `HASHMERE_WHOLE`,
/// otherwise about `most`, spread evenly from one that `HASHMERE_SEED` chooses.
pub fn sample(n: u64, most: u64) -> (u64, u64) {
    let step = if whole() { 1 } else { n.div_ceil(most).max(1) };
    (number("HASHMERE_SEED", SEED) % step, step)
}

fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(TOO_MANY);
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    // A schedule of a thousand steps explains nothing; the seed replays it.
    config.failure_persistence = FailurePersistence::None;
    Runner::new(scheduler, config).run(scenario);
}

/// Runs a scenario `times` times under both schedulers.
fn run_times(seed: u64, times: u64, scenario: impl Fn() + Send + Sync + 'static) -> Runs {
    let (scenario, told) = (Arc::new(scenario), Arc::new(AtomicU64::new(0)));
    let counted = || {
        let (scenario, told) = (scenario.clone(), told.clone());
        move || {
            told.fetch_add(1, Ordering::Relaxed);
            scenario();
        }
    };
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        // Turn and turn about, so that what only one of them finds is found as soon as by the other.
        for round in 0..times.div_ceil(TURN) {
            let turn = TURN.min(times - round * TURN);
            let seed = seed ^ round << 32;
            run(BurstScheduler::new(seed, turn), counted());
            run(PctScheduler::new_from_seed(seed, DEPTH, turn as usize), counted());
        }
    }));
    (told.load(Ordering::Relaxed), outcome)
}

/// Explores a scenario. It fails by a panic, and says how to see that again.
///
/// # Panics
/// If the scenario does.
pub fn explore(name: &str, scenario: impl Fn() + Send + Sync + 'static) {
    let times = times();
    println!("{name}: replay with HASHMERE_SEED={:#x} HASHMERE_MODELS={times}", number("HASHMERE_SEED", SEED));
    let (told, outcome) = run_times(number("HASHMERE_SEED", SEED), times, scenario);
    if let Err(panic) = outcome {
        println!("{name}: failed at run {told}");
        panic::resume_unwind(panic);
    }
}

/// Explores a scenario with a fault, which must be found, and not by hanging: what hangs may be the fault's doing or an
/// unfair schedule's, so then the hunt goes on from another seed. With a fault switched on any panic will do. `with`
/// calls what it is given while the fault is switched on.
///
/// # Panics
/// If it was not found.
pub fn must_find(fault: &str, with: impl Fn(&dyn Fn() -> Runs) -> Runs, scenario: impl Fn() + Send + Sync + 'static) {
    let times = number("HASHMERE_MODELS", TIMES).max(TIMES) * HUNT;
    let scenario = Arc::new(scenario);
    let (mut all, mut hung) = (0, 0);
    while all < times {
        let seed = number("HASHMERE_SEED", SEED) ^ hung << 24;
        let (told, outcome) = with(&|| {
            let scenario = scenario.clone();
            run_times(seed, times - all, move || scenario())
        });
        all += told;
        let Err(panic) = outcome else { break };
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or_default();
        if !text.starts_with(HUNG) {
            println!("fault {fault} | models, run {all} | {text}");
            return;
        }
        hung += 1;
    }
    panic!("{fault} was not found in {all} runs, of which {hung} hung");
}

/// What the scheduler says of a scenario that hangs.
const HUNG: &str = "exceeded max_steps";

/// What the complaints of scenarios begin with.
pub const FOUND: &str = "wrong: ";

/// Complains.
///
/// # Panics
/// Always.
pub fn wrong(text: impl std::fmt::Display) -> ! {
    panic!("{FOUND}{text}")
}
