//! Locks: one word, an owner that can be proved dead, and no stealing.
//!
//! A waiter spins a little, then sleeps on the word. Whenever it wakes without the lock it asks the kernel whether the
//! owner still lives, by trying to take the owner's liveness lock. If it gets that, the owner is dead for certain, and
//! the waiter repairs everything the owner left before it goes on. If not, it waits on, and at the end returns `Busy`
//! with the owner's name. Time alone never gives a client a lock.

use crate::engine::client::stalled::{Blocked, SLEEP_MAX};
use crate::engine::Engine;
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::leaf::LockWord;
use hashmere_format::row::{self, Stat};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The first sleep. Later ones are twice as long each, up to [`SLEEP_MAX`]: this bounds how long a death goes
/// unnoticed.
const SLEEP_MIN: Duration = Duration::from_millis(1);

impl<M: Mem, H: Host> Engine<M, H> {
    /// Takes the lock word at `offset` for the client `slot`, and returns the word as it was when free.
    ///
    /// The caller has written `offset` to its row first, so that a death is repaired.
    #[inline(always)]
    pub(in crate::engine) fn acquire(&self, slot: u32, offset: u64) -> Result<LockWord, WriteError> {
        match self.try_acquire(slot, offset) {
            Some(seen) => Ok(seen),
            None => self.acquire_slowly(slot, offset),
        }
    }

    /// The same if it is free.
    #[inline(always)]
    pub(in crate::engine) fn try_acquire(&self, slot: u32, offset: u64) -> Option<LockWord> {
        let seen = LockWord(self.mem.load(offset, Ordering::Relaxed));
        // SYNC(bucket lock): pairs with the release store in `release`: we see everything that the last owner did.
        let taken = Self::may_take(seen) && self.mem.compare_exchange(offset, seen.0, seen.held_by(slot).0).is_ok();
        taken.then_some(seen)
    }

    #[inline(always)]
    fn may_take(seen: LockWord) -> bool {
        seen.is_open() || fault::is(Fault::LockIgnored)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn acquire_slowly(&self, slot: u32, offset: u64) -> Result<LockWord, WriteError> {
        self.acquire_within(slot, offset, self.access.busy_timeout)?
            .map_err(|blocked| self.busy(blocked.owner, blocked.waited))
    }

    /// Waits for a lock, for as long as `limit` says while its owner lives. `Err(Blocked)` within: it was kept for
    /// longer.
    pub(in crate::engine) fn acquire_within(
        &self,
        slot: u32,
        offset: u64,
        limit: Duration,
    ) -> Result<Result<LockWord, Blocked>, WriteError> {
        self.acquire_after(slot, offset, limit, Duration::ZERO)
    }

    /// The same; a free lock that an update asks for is left to it for as long as `courtesy` says.
    pub(super) fn acquire_after(
        &self,
        slot: u32,
        offset: u64,
        limit: Duration,
        mut courtesy: Duration,
    ) -> Result<Result<LockWord, Blocked>, WriteError> {
        self.count_at(row::offset(slot), Stat::LockWaits, 1);
        for _ in 0..M::SPINS {
            if let Some(seen) = self.try_acquire(slot, offset) {
                return Ok(Ok(seen));
            }
            self.mem.relax();
        }
        let start = self.host.monotonic();
        let mut sleep = SLEEP_MIN.min(limit);
        loop {
            let seen = LockWord(self.mem.load(offset, Ordering::Relaxed));
            let Some(owner) = seen.owner() else {
                if seen.asks_to_yield() && !courtesy.is_zero() {
                    courtesy = self.give_way(offset, seen, courtesy);
                    continue;
                }
                // Others may be asleep still: keep the note that they are, so that our release wakes them.
                let mine = seen.held_by(slot).0 | LockWord::WAITERS;
                if self.mem.compare_exchange(offset, seen.0, mine).is_ok() {
                    return Ok(Ok(seen.released()));
                }
                continue;
            };
            let noted = seen.0 | LockWord::WAITERS;
            if seen.0 != noted && self.mem.compare_exchange(offset, seen.0, noted).is_err() {
                continue;
            }
            self.mem.wait(offset, noted as u32, sleep);
            let now = LockWord(self.mem.load(offset, Ordering::Relaxed));
            if now.owner() == Some(owner) && !self.recover_owner(slot, owner, offset)? {
                let waited = self.host.monotonic().saturating_sub(start);
                if waited >= limit {
                    return Ok(Err(Blocked { owner, waited }));
                }
                sleep = (sleep * 2).min(SLEEP_MAX);
            }
        }
    }

    /// Gives a lock back: `word` is what it holds from now on, owner and waiters aside.
    #[inline(always)]
    pub(in crate::engine) fn release(&self, offset: u64, word: LockWord) {
        // Look, then store: an exchange would cost a fifth of a write. A waiter that sets its bit between the two finds
        // the word changed when it goes to sleep, and if it is asleep already, it wakes by itself within `SLEEP_MAX`.
        let waiters = LockWord(self.mem.load(offset, Ordering::Relaxed)).has_waiters();
        // SYNC(bucket lock): everything the owner did is seen by the next owner.
        self.mem.store(offset, word.released().0, Ordering::Release);
        if waiters {
            self.mem.wake(offset);
        }
    }

    /// Repairs what `owner` left, if it is dead. `false`: it lives.
    pub(super) fn recover_owner(&self, slot: u32, owner: u32, offset: u64) -> Result<bool, WriteError> {
        if owner >= hashmere_format::header::limit::CLIENTS {
            return Err(WriteError::Corrupt {
                what: "a lock names a client that cannot exist",
                offset: u64::from(owner),
            });
        }
        if owner == slot {
            return Ok(false);
        }
        let claimed =
            self.host.try_claim(owner).map_err(|source| WriteError::Io { action: "probe a lock's owner", source })?;
        let claimed = claimed || fault::is(Fault::OwnerRobbed);
        if claimed {
            if fault::is(Fault::RepairUnguarded) {
                self.host.release(owner);
            }
            let done = self.recover(owner);
            // Its row did not name this word, then: it is free all the same, for the owner is dead.
            let word = LockWord(self.mem.load(offset, Ordering::Acquire));
            if done.is_ok() && word.owner() == Some(owner) {
                self.release(offset, self.moved_on(word));
            }
            self.host.release(owner);
            self.count_at(row::offset(slot), Stat::Takeovers, 1);
            done?;
        }
        Ok(claimed)
    }

    #[cold]
    pub(in crate::engine) fn busy(&self, owner: u32, waited: Duration) -> WriteError {
        let pid = self.mem.load(row::offset(owner) + row::at::PID, Ordering::Relaxed) as u32;
        let name = self.row_name(owner);
        // In another PID namespace the same number is another process, about which nothing is to be said.
        let info = self.host.describe(pid);
        let state = match info.state.filter(|_| info.name.as_ref() == Some(&name)) {
            Some('T' | 't') => " and is stopped",
            Some('D') => " and waits for a device",
            _ => "",
        };
        let holder = format!("pid {pid} ({name}) holds the lock{state}");
        WriteError::Busy { pid, holder, waited }
    }

    /// Takes one of the global locks for a client.
    pub(in crate::engine) fn acquire_global(&self, slot: u32, offset: u64) -> Result<(), WriteError> {
        // A repair acts under the slot of the crashed owner, which may have died with this very lock.
        if self.holds(slot, offset) {
            return Ok(());
        }
        self.acquire(slot, offset).map(|_| ())
    }

    pub(in crate::engine) fn holds(&self, slot: u32, offset: u64) -> bool {
        LockWord(self.mem.load(offset, Ordering::Acquire)).owner() == Some(slot)
    }

    /// Gives a global lock back.
    pub(in crate::engine) fn release_global(&self, offset: u64) {
        self.release(offset, LockWord(0));
    }
}
