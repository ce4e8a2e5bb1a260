//! Time stamps: what a line costs is one look at the processor's counter; what time that was is found out when lines
//! are merged.

use crate::layout::{at, clock, LogCore};
use crate::merge::Times;
use hashmere_mem::Mem;
use hashmere_os::clock::{has_ticks, monotonic, ticks, wall};
use std::time::Duration;

/// Stores on their way from another core arrive within this time, by far.
pub(crate) const GRACE_NS: u64 = 5_000;
/// Two looks at both clocks this far apart say how fast the counter runs, to some millionths.
const BASELINE_NS: u64 = 2_000_000;

/// Which clock a new log should have, and what it and the monotonic clock say.
pub(crate) fn choose() -> (u64, u64, u64) {
    let kind = if has_ticks() { clock::TICKS } else { clock::MONOTONIC };
    (kind, now(kind), ns(monotonic()))
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What the clock of a log says.
#[inline(always)]
pub(crate) fn now(kind: u64) -> u64 {
    if kind == clock::TICKS {
        ticks()
    } else {
        ns(monotonic())
    }
}

/// Converts stamps that are not long ago, reckoning back from one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    stamp: u64,
    wall_ns: u64,
    /// Nanoseconds a tick.
    rate: f64,
}

impl Moment {
    /// Now, in a log.
    pub(crate) fn now<M: Mem>(core: &LogCore<'_, M>) -> Moment {
        let (kind, anchor, anchor_ns) = (core.get(at::CLOCK), core.get(at::ANCHOR_TICKS), core.get(at::ANCHOR_NS));
        if kind != clock::TICKS {
            return Moment { stamp: now(kind), wall_ns: ns(wall()), rate: 1.0 };
        }
        let left = BASELINE_NS.saturating_sub(ns(monotonic()).saturating_sub(anchor_ns));
        if left > 0 {
            std::thread::sleep(Duration::from_nanos(left));
        }
        let stamp = ticks();
        let (wall_ns, monotonic_ns) = (ns(wall()), ns(monotonic()));
        let (ticks, time) = (stamp.saturating_sub(anchor), monotonic_ns.saturating_sub(anchor_ns));
        // A counter that was set back (a machine that slept) tells nothing; nor does a damaged anchor.
        let rate = if ticks > 0 { time as f64 / ticks as f64 } else { 1.0 };
        Moment { stamp, wall_ns, rate: rate.clamp(0.01, 100.0) }
    }

    /// What a line is stamped with that is logged now.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The stamp up to which every line is there or is seen to be coming.
    pub(crate) fn horizon(&self) -> u64 {
        self.stamp.saturating_sub((GRACE_NS as f64 / self.rate) as u64)
    }
}

impl Times for Moment {
    fn ns(&self, stamp: u64) -> u64 {
        let away = self.stamp.abs_diff(stamp) as f64 * self.rate;
        if stamp > self.stamp {
            self.wall_ns.saturating_add(away as u64)
        } else {
            self.wall_ns.saturating_sub(away as u64)
        }
    }
}
