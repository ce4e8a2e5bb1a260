//! The role of the drainer, and what wakes those who sleep. Generic over memory, as the rings are: models try every
//! order.

use crate::fault::{self, Fault};
use crate::layout::{at, wake_flag, LogCore};
use crate::ring::Liveness;
use hashmere_engine::{ClientId, WriteError};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl<M: Mem> LogCore<'_, M> {
    /// Takes the role of the drainer for a client. `false`: a living client has it.
    pub(crate) fn take_role(&self, me: ClientId, peers: &impl Liveness) -> Result<bool, WriteError> {
        let word = self.base + at::DRAINER;
        loop {
            let owner = self.get(at::DRAINER);
            let gone = match ClientId::unpack(owner) {
                Some(client) => peers.is_gone(client)?,
                // A word that names no client can only be damage.
                None => true,
            };
            if !gone && !fault::is(Fault::DrainerOverwritten) {
                return Ok(false);
            }
            if fault::is(Fault::RoleStored) {
                self.put(at::DRAINER, me.pack());
                return Ok(true);
            }
            // SYNC(drainer): we see what the last one did.
            if self.mem.compare_exchange(word, owner, me.pack()).is_ok() {
                return Ok(true);
            }
        }
    }

    /// Gives the role back.
    pub(crate) fn give_role_back(&self) {
        // A thread that logs from here on drains by itself, or keeps its lines.
        self.mem.swap(self.base + at::WAKE_FLAG, wake_flag::NO_DRAINER, Ordering::SeqCst);
        // SYNC(drainer): the next one sees what we did.
        self.mem.swap(self.base + at::DRAINER, 0, Ordering::SeqCst);
    }

    /// The drainer sleeps until it is woken, unless there is something in a ring.
    pub(crate) fn sleep_for_lines(&self, timeout: Duration) {
        let seen = self.get(at::EVENT) as u32;
        // SYNC(wake_flag): a thread that logs a line sees this, or we see the line; see `Thread::put`.
        self.mem.swap(self.base + at::WAKE_FLAG, wake_flag::SLEEPS, Ordering::SeqCst);
        if !self.has_lines() || fault::is(Fault::WakeFlagUnchecked) {
            self.mem.wait(self.base + at::EVENT, seen, timeout);
        }
    }

    /// Wakes the drainer from what it was seen to do. The writer that clears the wake flag wakes it: once for each
    /// sleep.
    pub(crate) fn clear_wake_flag(&self, state: u64) {
        if self.mem.compare_exchange(self.base + at::WAKE_FLAG, state, wake_flag::AWAKE).is_ok() {
            self.wake_drainer();
        }
    }

    /// A follower sleeps until the history goes beyond a position, unless it does.
    pub(crate) fn sleep_for_news(&self, position: u64, timeout: Duration) {
        let seen = self.get(at::NEWS) as u32;
        // SYNC(followers): our flag is there before the last look; see `wake_followers`.
        self.mem.swap(self.base + at::FOLLOWERS, 1, Ordering::SeqCst);
        if self.get(at::END) <= position || fault::is(Fault::NewsUnchecked) {
            self.mem.wait(self.base + at::NEWS, seen, timeout);
        }
    }
}
