//! Stalled locks: a split or a cleaner that can proceed without a lock does not wait for its owner again and again.
//!
//! A lock is *stalled* when its living owner, which is stopped or gets no processor time, has held it for longer than a
//! waiter was ready to wait. The process notes the lock and the word that it held. While the word is the same, a split
//! (whose key can go to the overflow tree) and a cleaner (which can leave a record) do without the lock at once. This
//! is a hint: a wrong one costs a key its place in the first tree, or a record its move.

use crate::engine::client::writer_state::Cleaning;
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::leaf::LockWord;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The shortest sleep between two looks at what another client is about to do: its commit, its mark, its lock.
pub(in crate::engine) const LOOK: Duration = Duration::from_micros(200);
/// The longest sleep between two looks at whether the owner of a lock lives.
pub(super) const SLEEP_MAX: Duration = Duration::from_millis(50);
/// How long a split that holds other locks, and a cleaner, waits for a lock.
pub(in crate::engine) const BRIEF: Duration = Duration::from_millis(1);
/// How long a split that holds no lock waits for the one that it lacks: as long as a busy scheduler may leave an owner
/// without a processor that is not stopped.
pub(in crate::engine) const LOCK_WAIT: Duration = Duration::from_millis(50);
/// Stalled locks that a process remembers.
const KNOWN: usize = 8;

/// The stalled locks that this process knows.
#[derive(Default)]
pub(super) struct Stalled {
    /// Offset of the lock and what it held; offset 0: none.
    known: [(AtomicU64, AtomicU64); KNOWN],
    next: AtomicUsize,
}

/// A living client held the lock for longer than the caller was ready to wait.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Blocked {
    pub(in crate::engine) owner: u32,
    pub(in crate::engine) waited: Duration,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Takes a lock if it comes soon; `Err(Blocked)` within: it did not, and is noted.
    pub(in crate::engine) fn acquire_soon(
        &self,
        slot: u32,
        offset: u64,
        limit: Duration,
    ) -> Result<Result<LockWord, Blocked>, WriteError> {
        if let Some(seen) = self.try_acquire(slot, offset) {
            return Ok(Ok(seen));
        }
        if let Some(blocked) = self.stalled_within(slot, offset, 1)? {
            return Ok(Err(blocked));
        }
        let done = self.acquire_within(slot, offset, limit.min(self.access.busy_timeout))?;
        if done.is_err() {
            self.note_stalled(offset);
        }
        Ok(done)
    }

    /// Takes the lock of a key. A cleaner does not wait long: it can leave a record for the next one.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn acquire_key_slowly(&self, writer: &Writer, offset: u64) -> Result<LockWord, WriteError> {
        let acquired = match writer.is_cleaning() {
            true => self.acquire_soon(writer.slot, offset, BRIEF)?,
            false => self.acquire_after(writer.slot, offset, self.access.busy_timeout, self.courtesy_of(writer))?,
        };
        acquired.map_err(|blocked| self.busy(blocked.owner, blocked.waited))
    }

    pub(in crate::engine) fn note_stalled(&self, offset: u64) {
        let word = self.mem.load(offset, Ordering::Relaxed);
        if LockWord(word).is_free() {
            return;
        }
        let known = &self.clients.stalled.known;
        let same = known.iter().position(|(at, _)| at.load(Ordering::Relaxed) == offset);
        let place = same.unwrap_or_else(|| self.clients.stalled.next.fetch_add(1, Ordering::Relaxed) % KNOWN);
        // Two words that two threads mix up are a hint that says nothing.
        known[place].1.store(word | LockWord::WAITERS, Ordering::Relaxed);
        known[place].0.store(offset, Ordering::Relaxed);
    }

    /// This process had the lock, so it is not stalled. For a lock whose word does not tell one time that its owner
    /// holds it from another.
    pub(in crate::engine) fn forget_stalled(&self, offset: u64) {
        let known = self.clients.stalled.known.iter().filter(|(at, _)| at.load(Ordering::Relaxed) == offset);
        known.for_each(|(at, _)| at.store(0, Ordering::Relaxed));
    }

    /// Repeats what a living client blocks, and what can proceed in no other way, until it succeeds or has waited for
    /// as long as a writer waits for a lock. A cleaner does not wait here: what called it does.
    pub(in crate::engine) fn patiently<R>(
        &self,
        cleaning: Cleaning,
        mut act: impl FnMut() -> Result<R, WriteError>,
    ) -> Result<R, WriteError> {
        let mut since = None;
        loop {
            match act() {
                Err(error) if cleaning == Cleaning::No => self.wait_and_retry(&mut since, error)?,
                done => return done,
            }
        }
    }

    /// Waits a moment before a blocked call is repeated. `since` is when it first was; `error` is what it got, which is
    /// returned when it has waited for `busy_timeout`, as is any error but `Busy`.
    #[cold]
    pub(in crate::engine) fn wait_and_retry(
        &self,
        since: &mut Option<Duration>,
        error: WriteError,
    ) -> Result<(), WriteError> {
        let WriteError::Busy { pid, holder, waited } = error else { return Err(error) };
        let now = self.host.monotonic();
        let waited = now.saturating_sub(*since.get_or_insert(now.saturating_sub(waited)));
        if waited >= self.access.busy_timeout || fault::is(Fault::RefusedEarly) {
            return Err(WriteError::Busy { pid, holder, waited });
        }
        // It waits for no word in particular. The epoch moves when segments become free.
        let sleep = (waited / 4).clamp(LOOK, SLEEP_MAX).min(self.access.busy_timeout - waited);
        self.mem.wait(at::EPOCH, self.mem.load(at::EPOCH, Ordering::Relaxed) as u32, sleep);
        Ok(())
    }

    /// Whether one of the locks in these bytes is known to be stalled. If its owner has died since, that is repaired.
    pub(in crate::engine) fn stalled_within(
        &self,
        slot: u32,
        start: u64,
        bytes: u64,
    ) -> Result<Option<Blocked>, WriteError> {
        for (at, word) in &self.clients.stalled.known {
            let at = at.load(Ordering::Relaxed);
            if at == 0 || at < start || at - start >= bytes {
                continue;
            }
            let now = LockWord(self.mem.load(at, Ordering::Relaxed));
            let owner = now.owner().filter(|_| now.0 | LockWord::WAITERS == word.load(Ordering::Relaxed));
            if let Some(owner) = owner {
                if !self.recover_owner(slot, owner, at)? {
                    return Ok(Some(Blocked { owner, waited: Duration::ZERO }));
                }
            }
        }
        Ok(None)
    }
}
