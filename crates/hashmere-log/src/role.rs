//! The role of the drainer, and what wakes those who sleep. Generic over memory, as the rings are: models try every order.

use crate::canary::{self, Canary};
use crate::layout::{at, bell, Core};
use crate::ring::Peers;
use hashmere_engine::{ClientId, WriteError};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl<M: Mem> Core<'_, M> {
    /// Takes the role of the drainer for a client. `false`: somebody who lives has it.
    pub(crate) fn take_role(&self, me: ClientId, peers: &impl Peers) -> Result<bool, WriteError> {
        let word = self.base + at::DRAINER;
        loop {
            let owner = self.get(at::DRAINER);
            let gone = match ClientId::unpack(owner) {
                Some(client) => peers.is_gone(client)?,
                // A word that names nobody can only be damage.
                None => true,
            };
            if !gone && !canary::is(Canary::DrainerRobbed) {
                return Ok(false);
            }
            if canary::is(Canary::RoleStored) {
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
        // Whoever writes from here on drains by itself, or keeps its lines.
        self.mem.swap(self.base + at::BELL, bell::NOBODY, Ordering::SeqCst);
        // SYNC(drainer): the next one sees what we did.
        self.mem.swap(self.base + at::DRAINER, 0, Ordering::SeqCst);
    }

    /// The drainer sleeps until somebody rings, unless there is something in a ring.
    pub(crate) fn sleep_for_lines(&self, timeout: Duration) {
        let seen = self.get(at::EVENT) as u32;
        // SYNC(bell): whoever writes a line sees this, or we see the line; see `Thread::put`.
        self.mem.swap(self.base + at::BELL, bell::SLEEPS, Ordering::SeqCst);
        if !self.has_lines() || canary::is(Canary::BellBelieved) {
            self.mem.wait(self.base + at::EVENT, seen, timeout);
        }
    }

    /// Wakes the drainer from what it was seen to do. Whoever takes the bell off rings it: once for each sleep.
    pub(crate) fn take_bell_off(&self, state: u64) {
        if self.mem.compare_exchange(self.base + at::BELL, state, bell::AWAKE).is_ok() {
            self.ring_bell();
        }
    }

    /// A follower sleeps until the history goes beyond a position, unless it does.
    pub(crate) fn sleep_for_news(&self, position: u64, timeout: Duration) {
        let seen = self.get(at::NEWS) as u32;
        // SYNC(followers): our flag is there before the last look; see `wake_followers`.
        self.mem.swap(self.base + at::FOLLOWERS, 1, Ordering::SeqCst);
        if self.get(at::END) <= position || canary::is(Canary::NewsBelieved) {
            self.mem.wait(self.base + at::NEWS, seen, timeout);
        }
    }
}
