//! A log in an event loop: what the descriptors of a drainer and of a follower are readable for.

use crate::handle::Handle;
use crate::layout::{at, wake_flag};
use hashmere_engine::Watched;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// A sleep ends by itself after this time, and a thread that is to end sees that too.
const SLEEP: Duration = Duration::from_millis(100);
/// Sleeps in vain before it looks for rings of crashed processes.
const IDLE: u32 = 10;

/// Lines in the rings; only the thread that has the role of the drainer waits for them.
#[derive(Debug)]
pub(crate) struct NewLines(pub(crate) Arc<Handle>);

impl Watched for NewLines {
    type Since = ();

    fn wait(&self, (): (), is_stopped: &dyn Fn() -> bool) {
        let core = self.0.core();
        // That it was dropped is for the drainer to find.
        let is_ready = || self.0.region.is_dropped() || core.has_lines() || core.get(at::SENT) < core.get(at::END);
        let mut sleeps = 0;
        while !is_stopped() && !is_ready() {
            sleeps += 1;
            if sleeps == IDLE {
                // What crashed processes left may have to be reported. Whatever fails here is found again.
                let _ = core.recover_rings(self.0.client, &*self.0);
            }
            core.sleep_for_lines(SLEEP);
            // The thread that wakes it has done so; the drainer, which is gone, may have said otherwise.
            let _ = core.mem.compare_exchange(core.base + at::WAKE_FLAG, wake_flag::SLEEPS, wake_flag::AWAKE);
        }
    }

    fn wake(&self) {
        self.0.core().wake_drainer();
    }

    fn is_ours(&self) -> bool {
        self.0.region.is_ours()
    }
}

/// Lines in the history, behind a position.
#[derive(Debug)]
pub(crate) struct NewHistory(pub(crate) Arc<Handle>);

impl Watched for NewHistory {
    type Since = u64;

    fn wait(&self, position: u64, is_stopped: &dyn Fn() -> bool) {
        let core = self.0.core();
        while !is_stopped() && core.get(at::END) <= position {
            core.sleep_for_news(position, SLEEP);
        }
    }

    fn wake(&self) {
        let core = self.0.core();
        core.mem.fetch_add(core.base + at::NEWS, 1, Ordering::AcqRel);
        core.mem.wake(core.base + at::NEWS);
    }

    fn is_ours(&self) -> bool {
        self.0.region.is_ours()
    }
}
