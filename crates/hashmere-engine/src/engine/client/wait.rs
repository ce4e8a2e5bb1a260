//! Waiting for keys to change: a waiter sets the bit of its key's group in one word and sleeps on the group's event; a
//! writer looks at that word after its commit, which costs a load of a line that is not written while there is no
//! waiter.
//!
//! A wake-up can be lost in two ways: a writer on a machine of weak ordering looks before its commit is seen, and a
//! writer dies between taking the bit off and counting the event. So no waiter sleeps longer than 128 ms before it
//! looks again.

use crate::engine::{Engine, KeyHash};
use crate::types::Version;
use hashmere_format::header::{at, WAIT_GROUPS};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// The group of those who wait for several keys.
pub(in crate::engine) const SEVERAL: u64 = WAIT_GROUPS - 1;

/// A key, and the version it had when the caller last looked; `None`: it was not there.
pub(crate) type Seen<'a> = (&'a [u8], KeyHash, Option<Version>);

/// The group of a key: bits of its hash that nothing else uses.
#[inline(always)]
pub(in crate::engine) fn group(hash: u64) -> u64 {
    (hash >> 26 & (WAIT_GROUPS - 1)).min(SEVERAL - 1)
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// A key of this hash was changed: wakes those who wait for it.
    #[inline(always)]
    pub(in crate::engine) fn changed(&self, hash: u64) {
        // SYNC(waited): pairs with the exchange in `wait_for_change`. Between a commit and this look lies an atomic
        // operation on shared memory (the slot's own, or the count of dead bytes), which orders them where stores are
        // ordered.
        let waited = self.mem.load(at::WAITED, Ordering::Acquire);
        if waited != 0 {
            self.wake_waiters(waited & (1 << group(hash)));
        }
    }

    /// Whether a change of some key may have to be [told](Self::changed).
    #[inline(always)]
    pub(in crate::engine) fn is_waited(&self) -> bool {
        // SYNC(waited): as in `changed`.
        self.mem.load(at::WAITED, Ordering::Acquire) != 0
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
            // The bits go before the events are counted: a waiter that sets one again before that finds its event
            // changed.
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
}
