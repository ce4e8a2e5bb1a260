//! Waiting for keys to change: a waiter sets the bit of its key's group in one word and sleeps on the group's event; a
//! writer looks at that word after its commit, which costs a load of a line that is not written while there is no waiter.
//!
//! A wake-up can be lost in two ways: a writer on a machine of weak ordering looks before its commit is seen, and a writer dies
//! between taking the bit off and counting the event. So no waiter sleeps longer than [`SLEEP_MAX`] before it looks again.

use crate::engine::{Engine, KeyHash};
use crate::error::ReadError;
use crate::types::Version;
use hashmere_format::header::{at, WAIT_GROUPS};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The first sleep; the next ones are twice as long each.
const SLEEP_MIN: Duration = Duration::from_millis(1);
/// The longest.
const SLEEP_MAX: Duration = Duration::from_millis(128);
/// The group of those who wait for several keys.
const SEVERAL: u64 = WAIT_GROUPS - 1;

/// A key, and the version it had when the caller last looked; `None`: it was not there.
pub(crate) type Seen<'a> = (&'a [u8], KeyHash, Option<Version>);

/// The group of a key: bits of its hash that nothing else uses.
#[inline(always)]
fn group(hash: u64) -> u64 {
    (hash >> 26 & (WAIT_GROUPS - 1)).min(SEVERAL - 1)
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// A key of this hash was changed: wakes those who wait for it.
    #[inline(always)]
    pub(in crate::engine) fn changed(&self, hash: u64) {
        // SYNC(waited): pairs with the exchange in `wait_for_change`. Between a commit and this look lies an atomic operation on
        // shared memory (the slot's own, or the count of dead bytes), which orders them where stores are ordered.
        let waited = self.mem.load(at::WAITED, Ordering::Acquire);
        if waited != 0 {
            self.wake_waiters(waited & (1 << group(hash)));
        }
    }

    /// Every key was changed.
    pub(in crate::engine) fn all_changed(&self) {
        let waited = self.mem.load(at::WAITED, Ordering::SeqCst);
        (0..SEVERAL).filter(|group| waited >> group & 1 != 0).for_each(|group| self.wake_waiters(1 << group));
    }

    #[cold]
    #[inline(never)]
    fn wake_waiters(&self, group: u64) {
        if group == 0 {
            return;
        }
        let wanted = group | 1 << SEVERAL;
        let mut waited = self.mem.load(at::WAITED, Ordering::Acquire);
        while waited & wanted != 0 {
            // The bits go before the events are counted: a waiter that sets one again before that finds its event changed.
            match self.mem.compare_exchange(at::WAITED, waited, waited & !wanted) {
                Ok(_) => break,
                Err(now) => waited = now,
            }
        }
        for group in [group.trailing_zeros().into(), SEVERAL] {
            if waited >> group & 1 != 0 {
                let event = at::EVENTS + 8 * group;
                self.mem.fetch_add(event, 1, Ordering::AcqRel);
                self.mem.wake(event);
            }
        }
    }

    /// Waits until one of these keys has another version than it was seen with; returns which, and what it has now. `None`:
    /// none had when the time was up.
    pub(crate) fn wait_for_change(
        &self,
        keys: &[Seen],
        timeout: Duration,
    ) -> Result<Option<(usize, Option<Version>)>, ReadError> {
        let groups = keys.iter().fold(0u64, |bits, (_, kh, _)| bits | 1 << group(kh.hash));
        let (bits, event) = match keys.len() {
            1 => (groups, at::EVENTS + 8 * u64::from(groups.trailing_zeros())),
            _ => (groups | 1 << SEVERAL, at::EVENTS + 8 * SEVERAL),
        };
        let start = self.host.monotonic();
        let mut sleep = SLEEP_MIN;
        loop {
            let before = self.mem.load(event, Ordering::Acquire);
            // SYNC(waited): our bit is seen by every writer that changes a key after we have looked at it.
            self.mem.fetch_or(at::WAITED, bits, Ordering::SeqCst);
            self.mem.fence(Ordering::SeqCst);
            for (i, (key, kh, seen)) in keys.iter().enumerate() {
                let now = self.peek(key, *kh)?.map(|meta| meta.version);
                if now != *seen {
                    return Ok(Some((i, now)));
                }
            }
            let left = timeout.saturating_sub(self.host.monotonic().saturating_sub(start));
            if left.is_zero() {
                return Ok(None);
            }
            self.mem.wait(event, before as u32, sleep.min(left));
            sleep = (sleep * 2).min(SLEEP_MAX);
        }
    }
}
