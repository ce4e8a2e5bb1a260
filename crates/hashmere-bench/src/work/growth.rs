//! The longest single set while a table grows from nothing.

use super::{say, Call};
use crate::tables::Table;
use crate::workload::{durations, eight_digits, shuffled};
use crate::Outcome;
use hdrhistogram::Histogram;
use rustix::time::{clock_gettime, ClockId};
use std::time::Instant;

/// Runs it; then reads the clocks as often and as long and does nothing else, which tells the machine's own pauses.
pub fn run<T: Table>(call: &Call, table: &mut T) -> Outcome {
    let order = shuffled(call.records, call.seed);
    let begun = Instant::now();
    let mut sets = Steps::new()?;
    for &n in &order {
        let text = eight_digits(n);
        sets.time(|| table.set(&text, &text))?;
    }
    let length = begun.elapsed();
    say("p50_us", sets.clock.value_at_quantile(0.5) as f64 / 1e3);
    say("p99_us", sets.clock.value_at_quantile(0.99) as f64 / 1e3);
    say("p999_us", sets.clock.value_at_quantile(0.999) as f64 / 1e3);
    say("max_us", sets.clock.max() as f64 / 1e3);
    say("core_max_us", sets.core.max() as f64 / 1e3);
    say("core_above_1ms", sets.core.count_between(1_000_001, u64::MAX) as f64);

    let begun = Instant::now();
    let mut idle = Steps::new()?;
    while begun.elapsed() < length {
        idle.time(|| Ok(()))?;
    }
    say("idle_max_us", idle.clock.max() as f64 / 1e3);
    Ok(())
}

/// Durations by the clock on the wall, and as time that this thread had a core.
struct Steps {
    clock: Histogram<u64>,
    core: Histogram<u64>,
    core_before: u64,
}

impl Steps {
    fn new() -> Outcome<Steps> {
        Ok(Steps { clock: durations()?, core: durations()?, core_before: core_ns() })
    }

    #[inline]
    fn time(&mut self, step: impl FnOnce() -> Outcome) -> Outcome {
        let begun = Instant::now();
        step()?;
        self.clock.saturating_record(begun.elapsed().as_nanos() as u64);
        let core = core_ns();
        self.core.saturating_record(core.saturating_sub(self.core_before));
        self.core_before = core;
        Ok(())
    }
}

fn core_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
