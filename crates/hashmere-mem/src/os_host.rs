//! The real host: byte locks of the kernel, `/proc` and the clocks.

use crate::{Host, PeerInfo};
use hashmere_os::{clock, fork, process, ByteLocks};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// [`Host`] on the machine: slot `n` is byte lock `n` of the store's file.
///
/// Locks of one `OsHost` do not conflict in the kernel, so it remembers which slots it holds. Two
/// `OsHost`s of one file exclude each other, in one process as in two. Its death, by drop
/// or with its process, frees all of its slots.
///
/// After a fork the child's copy holds nothing and goes on by itself: the first use there opens a
/// lock descriptor of the child's own. The parent's claims stay the parent's.
#[derive(Debug)]
pub struct OsHost {
    /// To open the lock descriptor again after a fork.
    file: Arc<File>,
    /// The present [`Claims`], owned by us, with those of earlier generations linked behind.
    claims: AtomicPtr<Claims>,
}

/// What one process holds.
#[derive(Debug)]
struct Claims {
    generation: u64,
    locks: Arc<ByteLocks>,
    /// One bit per slot that is held, or is being tried for. Atomics and no mutex, since a mutex
    /// that some other thread held during a fork would stay locked in the child forever.
    held: Box<[AtomicU64]>,
    /// Those of the process that we were forked from; freed with ours.
    inherited: *mut Claims,
}

// SAFETY: the pointers own heap objects that are themselves `Send` and `Sync`; they are freed by
// drop only.
unsafe impl Send for OsHost {}
// SAFETY: as above; `claims` only ever changes to a newer object that keeps the older alive.
unsafe impl Sync for OsHost {}

impl OsHost {
    /// How many slots there can be; higher ones are an `InvalidInput` error.
    pub const SLOTS: u32 = 1 << 10;

    /// A host whose locks are on `file`.
    ///
    /// It needs a file open for writing: on one open for reading only, slots can be looked at but
    /// not claimed.
    ///
    /// # Errors
    /// Those of [`ByteLocks::new`], of which a `/proc` that is not mounted is the likeliest.
    pub fn new(file: impl Into<Arc<File>>) -> io::Result<OsHost> {
        let file = file.into();
        let claims = Claims::new(&file, std::ptr::null_mut())?;
        Ok(OsHost { file, claims: AtomicPtr::new(Box::into_raw(claims)) })
    }

    /// The locks through which slots are claimed, for locks beyond the slots: one descriptor serves both.
    ///
    /// # Errors
    /// Those of [`OsHost::new`], in a forked child that has not used this host yet.
    pub fn locks(&self) -> io::Result<Arc<ByteLocks>> {
        Ok(self.claims()?.locks.clone())
    }

    /// The claims of this very process.
    fn claims(&self) -> io::Result<&Claims> {
        loop {
            let current = self.claims.load(Ordering::Acquire);
            // SAFETY: made by `Box::into_raw`, and freed only when `self` is dropped.
            let claims = unsafe { &*current };
            if claims.generation == fork::generation() {
                return Ok(claims);
            }
            let fresh = Box::into_raw(Claims::new(&self.file, current)?);
            let swapped = self.claims.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire);
            if swapped.is_err() {
                // Another thread was faster. SAFETY: no other thread has seen `fresh`.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
    }
}

impl Drop for OsHost {
    fn drop(&mut self) {
        let mut next = *self.claims.get_mut();
        while !next.is_null() {
            // SAFETY: each was made by `Box::into_raw` and is in the chain once.
            let claims = unsafe { Box::from_raw(next) };
            next = claims.inherited;
        }
    }
}

impl Claims {
    fn new(file: &File, inherited: *mut Claims) -> io::Result<Box<Claims>> {
        let locks = Arc::new(ByteLocks::new(file.as_fd())?);
        let words = OsHost::SLOTS / 64;
        Ok(Box::new(Claims {
            generation: fork::generation(),
            locks,
            held: (0..words).map(|_| AtomicU64::new(0)).collect(),
            inherited,
        }))
    }

    /// The word and the bit of a slot.
    fn mark(&self, slot: u32) -> io::Result<(&AtomicU64, u64)> {
        let word = self.held.get((slot / 64) as usize);
        let word = word.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no such slot"))?;
        Ok((word, 1 << (slot % 64)))
    }
}

impl Host for OsHost {
    /// # Errors
    /// `PermissionDenied` if the file is open for reading only, `InvalidInput` for a slot not below
    /// [`OsHost::SLOTS`], and those of the kernel (`ENOLCK`).
    fn try_claim(&self, slot: u32) -> io::Result<bool> {
        let claims = self.claims()?;
        let (word, bit) = claims.mark(slot)?;
        // Marked first: of two threads that try at once, one finds it held, which
        // is at worst too early, but never do both believe they hold it.
        if word.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return Ok(false);
        }
        let outcome = claims.locks.try_exclusive(u64::from(slot));
        if !matches!(outcome, Ok(true)) {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
        outcome
    }

    fn release(&self, slot: u32) {
        // What a forked child inherited was released by the fork.
        let Ok(claims) = self.claims() else { return };
        let Ok((word, bit)) = claims.mark(slot) else {
            return;
        };
        if word.load(Ordering::Acquire) & bit == 0 {
            return;
        }
        // Unlocked first: once unmarked, another thread may claim it, and must not lose its lock to
        // us.
        let _ = claims.locks.unlock(u64::from(slot));
        word.fetch_and(!bit, Ordering::AcqRel);
    }

    fn is_claimed(&self, slot: u32) -> io::Result<bool> {
        let claims = self.claims()?;
        let (word, bit) = claims.mark(slot)?;
        if word.load(Ordering::Acquire) & bit != 0 {
            return Ok(true);
        }
        claims.locks.is_locked_by_other(u64::from(slot))
    }

    fn pid(&self) -> u32 {
        process::pid()
    }

    fn describe(&self, pid: u32) -> PeerInfo {
        let found = process::describe(pid);
        PeerInfo { pid, state: found.as_ref().map(|found| found.state), name: found.map(|found| found.name) }
    }

    fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    fn coarse_ms(&self) -> u64 {
        clock::coarse_ms()
    }

    fn monotonic(&self) -> Duration {
        clock::monotonic()
    }
}
