//! A scheduler that lets a thread run on for a while.

use hashmere_os::random::SplitMix64;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

/// Chooses again, evenly, after a burst of steps whose mean length is drawn for each run: from one step, which shakes
/// everything, to some hundred, in which others finish what they are about.
pub(crate) struct BurstScheduler {
    seed: u64,
    left: u64,
    rng: SplitMix64,
    /// One in this many steps ends a burst.
    mean: u64,
}

/// The longest bursts have a mean of two to this many steps.
const LONGEST: u64 = 8;

impl BurstScheduler {
    /// `times` runs.
    pub(crate) fn new(seed: u64, times: u64) -> BurstScheduler {
        BurstScheduler { seed, left: times, rng: SplitMix64(0), mean: 1 }
    }
}

impl Scheduler for BurstScheduler {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.left = self.left.checked_sub(1)?;
        self.rng = SplitMix64(self.seed ^ self.left << 52);
        self.mean = 1 << (self.rng.next() % LONGEST);
        Some(Schedule::new(self.rng.0))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        let stays = current.filter(|id| !is_yielding && runnable.iter().any(|task| task.id() == *id));
        if stays.is_some() && self.rng.next() % self.mean != 0 {
            return stays;
        }
        let choice = self.rng.next() % runnable.len() as u64;
        Some(runnable[choice as usize].id())
    }

    fn next_u64(&mut self) -> u64 {
        self.rng.next()
    }
}
