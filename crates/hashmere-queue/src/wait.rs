//! Waiting until there is something to pop: spinning as long as that has paid lately, then asleep on a word of the
//! queue.
//!
//! A sleeper wakes by itself after a while, to see whether a process crashed with what it waits for. No process is ever
//! taken for dead because of time.

use crate::element::Element;
use crate::endpoint::{rest, Endpoint, SPINS_MIN};
use crate::error::QueueError;
use crate::fault::{self, Fault};
use crate::layout::queue;
use crate::queue::Queue;
use crate::ring::Ring;
use hashmere_mem::Mem;
use hashmere_os::backoff::Backoff;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Looks at the queue before going to sleep: from [`SPINS_MIN`], when spinning has not paid, to this many.
const SPINS_MAX: u32 = 1 << 13;
/// Whether the first element of a queue is there to be popped.
#[inline(always)]
pub(crate) fn is_ready<M: Mem>(mem: &M, ring: &Ring) -> bool {
    let head = ring.head(mem).position();
    ring.is_present(head, mem.load(ring.cell(head), Ordering::Acquire))
}

/// Sleeps until something is pushed, at most `timeout`; may return early for no reason.
pub(crate) fn sleep<M: Mem>(mem: &M, ring: &Ring, timeout: Duration) {
    let mut event = mem.load(ring.entry + queue::EVENT, Ordering::Acquire);
    let looked = fault::is(Fault::CheckedEarly) && !is_ready(mem, ring);
    // SYNC(sleepers): our flag is there before the last look. See `transfer::wake_sleepers`.
    mem.swap(ring.entry + queue::SLEEPERS, 1, Ordering::SeqCst);
    if looked || !is_ready(mem, ring) {
        if fault::is(Fault::EventLate) {
            event = mem.load(ring.entry + queue::EVENT, Ordering::Acquire);
        }
        mem.wait(ring.entry + queue::EVENT, event as u32, timeout);
    }
}

impl Endpoint {
    /// Takes the first element of a queue, waiting for one as long as `timeout`. `None`: there was none in that time.
    ///
    /// No system call is made, by neither side, while the wait is short enough to be spun through.
    ///
    /// # Errors
    /// As [`pop`](Self::pop); [`Removed`](QueueError::Removed) if the pool is removed while it waits.
    #[inline]
    pub fn pop_wait(&self, from: &Queue, timeout: Duration) -> Result<Option<Element<'_>>, QueueError> {
        if let Some(element) = self.pop(from)? {
            return Ok(Some(element));
        }
        let mut backoff = Backoff::new(timeout);
        loop {
            if !self.wait_with(from, &mut backoff)? {
                return Ok(None);
            }
            if let Some(element) = self.pop(from)? {
                return Ok(Some(element));
            }
        }
    }

    /// Waits until there is something to pop; `false`: there was nothing when the time was up.
    ///
    /// # Errors
    /// As [`pop_wait`](Self::pop_wait).
    pub fn wait(&self, from: &Queue, timeout: Duration) -> Result<bool, QueueError> {
        self.wait_with(from, &mut Backoff::new(timeout))
    }

    fn wait_with(&self, from: &Queue, backoff: &mut Backoff) -> Result<bool, QueueError> {
        if self.spin(from) {
            return Ok(true);
        }
        loop {
            let Some(time) = backoff.next() else { return Ok(is_ready(self.mem(), &from.ring)) };
            if from.pool.region.is_dropped() {
                return Err(QueueError::Removed);
            }
            self.look_for_crashed_endpoints()?;
            sleep(self.mem(), &from.ring, time);
            if is_ready(self.mem(), &from.ring) {
                return Ok(true);
            }
        }
    }

    /// Spins for twice as long as last time if that paid, and half as long if it did not.
    #[inline]
    fn spin(&self, from: &Queue) -> bool {
        let spins = self.spins.get();
        for _ in 0..spins {
            if is_ready(self.mem(), &from.ring) {
                self.spins.set((spins * 2).min(SPINS_MAX));
                return true;
            }
            rest(self.mem());
        }
        self.spins.set((spins / 2).max(SPINS_MIN));
        false
    }
}
