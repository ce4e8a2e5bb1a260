//! The longest single set while a table grows from nothing.

use super::{say, Call};
use crate::histogram::Histogram;
use crate::tables::Table;
use crate::workload::{eight_digits, shuffled};
use crate::Outcome;
use rustix::time::{clock_gettime, ClockId};
use std::time::Instant;

/// Runs it; then reads the clocks as often and as long and does nothing else, which tells the machine's own pauses.
pub fn run<T: Table>(call: &Call, table: &mut T) -> Outcome {
    let order = shuffled(call.records, call.seed);
    let begun = Instant::now();
    let mut sets = Steps::new();
    for &n in &order {
        let text = eight_digits(n);
        sets.time(|| table.set(&text, &text))?;
    }
    let length = begun.elapsed();
    say("p50_us", sets.clock.quantile(0.5) as f64 / 1e3);
    say("p99_us", sets.clock.quantile(0.99) as f64 / 1e3);
    say("p999_us", sets.clock.quantile(0.999) as f64 / 1e3);
    say("max_us", sets.clock.max as f64 / 1e3);
    say("core_max_us", sets.core.max as f64 / 1e3);
    say("core_above_1ms", sets.core.above(1_000_000) as f64);

    let begun = Instant::now();
    let mut idle = Steps::new();
    while begun.elapsed() < length {
        idle.time(|| Ok(()))?;
    }
    say("idle_max_us", idle.clock.max as f64 / 1e3);
    Ok(())
}

/// Durations by the clock on the wall, and as time that this thread had a core.
struct Steps {
    clock: Histogram,
    core: Histogram,
    core_before: u64,
}

impl Steps {
    fn new() -> Steps {
        Steps { clock: Histogram::new(), core: Histogram::new(), core_before: core_ns() }
    }

    #[inline]
    fn time(&mut self, step: impl FnOnce() -> Outcome) -> Outcome {
        let begun = Instant::now();
        step()?;
        self.clock.add(begun.elapsed().as_nanos() as u64);
        let core = core_ns();
        self.core.add(core.saturating_sub(self.core_before));
        self.core_before = core;
        Ok(())
    }
}

fn core_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
