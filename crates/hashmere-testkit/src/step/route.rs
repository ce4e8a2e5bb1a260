//! The way of an operation through the program, so that its k-th instruction is reached without executing those before
//! it one by one.
//!
//! An address that the operation passes for the first time is reached at full speed, by a breakpoint; only what lies
//! between the last such address and the k-th instruction is stepped through. So to be killed behind each of `n`
//! instructions takes a multiple of `n` steps, not `n * n / 2`.

use super::trace::{Stop, Tracee};
use std::collections::HashSet;

/// Twice as many instructions without a new address are a long loop: one that copies bytes, word by word.
const DEEP: u64 = 2048;

/// Where one run passed an address for the first time: after how many instructions, and the address.
#[derive(Debug, Default)]
pub(super) struct Route {
    firsts: Vec<(u64, u64)>,
}

impl Route {
    /// Follows a run to its end; how many instructions it has.
    pub(super) fn of(tracee: &Tracee) -> (Route, u64) {
        let (mut route, mut passed) = (Route::default(), HashSet::new());
        for count in 0.. {
            // The first one is reached already.
            if let Some(address) = tracee.address().filter(|address| passed.insert(*address) && count > 0) {
                route.firsts.push((count, address));
            }
            if tracee.steps(1).1 == Stop::Marker {
                return (route, count);
            }
        }
        unreachable!("an operation ends")
    }

    /// How many instructions have to be stepped through to reach this one.
    fn distance(&self, at: u64) -> u64 {
        let near = self.firsts.partition_point(|(count, _)| *count <= at);
        let first = near.checked_sub(1).and_then(|near| self.firsts.get(near));
        first.map_or(at, |(count, _)| at - count)
    }

    /// Whether to die there: behind every instruction, except deep in a loop, where every second will do, then every
    /// third.
    pub(super) fn is_worth_it(&self, at: u64) -> bool {
        let deep = self.distance(at) / DEEP;
        deep < 2 || self.distance(at) % deep == 0
    }

    /// Executes the first `at` instructions of a run that has just begun, fewer if it ends before: its instruction
    /// then. (A run whose way differs from the one that was followed, by a clock or a lock, may end up some
    /// instructions away.)
    pub(super) fn lead(&self, tracee: &Tracee, at: u64) -> Stop {
        let near = self.firsts.partition_point(|(count, _)| *count <= at);
        let Some((count, address)) = near.checked_sub(1).and_then(|near| self.firsts.get(near)) else {
            return tracee.steps(at).1;
        };
        match tracee.run_to(*address) {
            Some(Stop::Marker) => Stop::Marker,
            Some(Stop::Stepped) => tracee.steps(at - count).1,
            // No breakpoint can be set there.
            None => tracee.steps(at).1,
        }
    }
}
