//! A counting semaphore for each key: each permit is a lease of the kernel, the key's value names the holders.

use crate::error::QueueError;
use crate::holders::{semaphore, Holders, Name};
use crate::mutex::{refuse_cache, Holder, LOOK_EVERY};
use crate::own::{self, Own};
use hashmere_engine::{Lease, StoreHandle};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What errors call it.
const WHAT: &str = "semaphore";
/// The prefix of the index of a permit and the key in the name of a lease.
const HELD: &[u8] = b"\0semaphore\0";
/// The most permits: one that waits looks at each of them.
const PERMITS_MAX: u32 = 1024;

/// A counting semaphore between processes: at most `permits` holders at a time. The key is its own: while there are
/// holders its value names them, else the key is absent.
///
/// The death of a holder, at any instruction, gives its permit back; a holder that is stopped keeps it. A permit is
/// held by a lock of the kernel and not by the key, so it stays held when the store is cleared or the key deleted; only
/// the names of the holders go with the key. Not fair: of those that wait any may be the next.
#[derive(Clone, Debug)]
pub struct Semaphore {
    holders: Arc<Holders>,
    permits: u32,
}

/// Holds a permit of a [`Semaphore`]; dropping it, in whatever thread, gives it back. In a forked child it is the
/// parent's: dropping it there does nothing.
#[derive(Debug)]
pub struct SemaphoreGuard {
    holders: Arc<Holders>,
    lease: Option<Lease>,
    own: Arc<Own>,
    name: Name,
    abandoned: bool,
}

impl Semaphore {
    /// The semaphore of a key, with 1 to 1024 permits. All who use it give the same number; another one is refused when
    /// it is acquired while there are holders.
    ///
    /// # Errors
    /// [`BadOption`](QueueError::BadOption) if the store is a cache, or the number of permits is none of these.
    pub fn new(store: &impl StoreHandle, key: &[u8], permits: u32) -> Result<Semaphore, QueueError> {
        let store = store.shared();
        refuse_cache(store)?;
        if !(1..=PERMITS_MAX).contains(&permits) {
            return Err(QueueError::BadOption("a semaphore has 1 to 1024 permits"));
        }
        let holders = Holders { store: store.clone(), key: key.to_vec(), head: semaphore(permits) };
        Ok(Semaphore { holders: Arc::new(holders), permits })
    }

    /// Takes a permit, waiting as long as `timeout`; `None`: living processes, which [`holders`](Self::holders) names,
    /// held all of them all the while. A thread may hold several.
    ///
    /// # Errors
    /// [`Reentered`](QueueError::Reentered) if this thread holds all permits: it would wait for itself (with a
    /// `timeout` of zero there is no wait: it returns `None`). The store's; [`Broken`](QueueError::Broken) if the key
    /// holds something else, or there are holders of one with another number of permits.
    pub fn acquire(&self, timeout: Duration) -> Result<Option<SemaphoreGuard>, QueueError> {
        let (store, key) = (&self.holders.store, &self.holders.key);
        let file = store.file_id()?;
        if Own::count(WHAT, file, key) >= self.permits as usize {
            return own::refuse(WHAT, key, timeout);
        }
        let until = Instant::now().checked_add(timeout);
        loop {
            // The version before the leases: a release changes the key last, so that this is seen.
            let (seen, names) = self.holders.read()?;
            // Permits that are not named are likely to be free. One that is named may be, if its holder died.
            let is_named = |index: &u32| names.iter().any(|name| name.holds == u64::from(*index));
            let (named, unnamed): (Vec<u32>, Vec<u32>) = (0..self.permits).partition(is_named);
            for index in unnamed.into_iter().chain(named) {
                let name = [HELD, &index.to_le_bytes(), key].concat();
                let Some(lease) = store.try_lease(&name)? else { continue };
                let (name, gone) = self.holders.add(index.into(), |_| false)?;
                let own = Own::took(WHAT, file, key);
                let (holders, abandoned) = (self.holders.clone(), !gone.is_empty());
                return Ok(Some(SemaphoreGuard { holders, lease: Some(lease), own, name, abandoned }));
            }
            let left = until.map_or(LOOK_EVERY, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            store.wait(key, seen, left.min(LOOK_EVERY))?;
        }
    }

    /// The processes that hold permits at about this moment, each as often as it has one. Those that are gone are not
    /// among them, nor those whose names went when the store was cleared or the key deleted.
    ///
    /// # Errors
    /// The store's; [`Broken`](QueueError::Broken) if the key holds something else.
    pub fn holders(&self) -> Result<Vec<Holder>, QueueError> {
        self.holders.named(|_| true)
    }
}

impl SemaphoreGuard {
    /// Whether a holder died with its permit since the last one was taken: what it worked on may be half done. One of
    /// those that take permits gets this. A death behind which the store was cleared is not noticed.
    pub fn was_abandoned(&self) -> bool {
        self.abandoned
    }
}

impl Drop for SemaphoreGuard {
    fn drop(&mut self) {
        if !self.own.release() {
            return;
        }
        // First the lease, so that a waiter that the key wakes finds it free. A death in between: the next holder finds
        // it abandoned, which is nearly so.
        drop(self.lease.take());
        let _ = self.holders.remove(&self.name);
    }
}
