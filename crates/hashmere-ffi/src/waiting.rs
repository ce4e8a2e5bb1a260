//! `hashmere_queue.h`: waiting for each other.

use crate::abi::{HmBytes, HmCompute};
use crate::args::{Buffer, Bytes, Callback, Maybe, Open, Out, Owned, Plain};
use crate::arrays::Watched;
use crate::failure::Failure;
use crate::handle::HmStore;
use crate::queue::close;
use crate::reading::fits;
use crate::result::{ABSENT, OK, REMOVED, TIMEOUT, UNCHANGED};
use hashmere::{Version, WaitAnyOutcome, WaitOutcome};
use hashmere_queue::{once, once_holder, Barrier, Holder, Mutex, MutexGuard, QueueError};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::time::Duration;

/// `hm_mutex_guard`.
pub struct HmMutexGuard {
    /// Borrows from `mutex`; dropped first, as fields are dropped in order.
    guard: Option<MutexGuard<'static>>,
    _mutex: Box<Mutex>,
    /// The process that locked it: a forked child does not hold it.
    pid: u32,
}

impl Drop for HmMutexGuard {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            std::mem::forget(self.guard.take());
        }
    }
}

/// `hm_barrier`.
pub struct HmBarrier(Barrier);

/// Why a computation made no value.
enum Unmade {
    Failed(Failure),
    Refused,
}

impl From<QueueError> for Unmade {
    fn from(error: QueueError) -> Unmade {
        Unmade::Failed(error.into())
    }
}

/// Tells the caller who holds something.
fn told(holder: Option<Holder>, pid: &Out<u32>) -> c_int {
    let Some(holder) = holder else { return ABSENT };
    pid.put(holder.pid);
    OK
}

export! {
    /// See `hashmere_queue.h`.
    fn hm_wait(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        seen: Plain = (seen: u64),
        timeout_ms: Plain = (timeout_ms: u64),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        let seen = (seen != 0).then_some(Version(seen));
        Ok(match store.wait(key, seen, Duration::from_millis(timeout_ms))? {
            WaitOutcome::Changed(version) => {
                now.put(version.0);
                OK
            }
            WaitOutcome::Removed => {
                now.put(0u64);
                REMOVED
            }
            WaitOutcome::TimedOut => TIMEOUT,
        })
    }

    /// See `hashmere_queue.h`.
    fn hm_wait_any(
        store: Open = (store: *mut HmStore),
        watched: Watched = (keys: *const HmBytes, seen: *const u64, count: usize),
        timeout_ms: Plain = (timeout_ms: u64),
        which: Out<usize> = (which: *mut usize),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        let (keys, seen) = watched;
        let version = |seen: u64| (seen != 0).then_some(Version(seen));
        let keys: Vec<_> = keys.iter().zip(seen).map(|(key, seen)| (key.as_ref(), version(*seen))).collect();
        Ok(match store.wait_any(&keys, Duration::from_millis(timeout_ms))? {
            WaitAnyOutcome::Changed(index, version) => {
                which.put(index);
                now.put(version.0);
                OK
            }
            WaitAnyOutcome::Removed(index) => {
                which.put(index);
                now.put(0u64);
                REMOVED
            }
            WaitAnyOutcome::TimedOut => TIMEOUT,
        })
    }

    /// See `hashmere_queue.h`.
    fn hm_mutex_lock(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        timeout_ms: Plain = (timeout_ms: u64),
        lock: Out<*mut HmMutexGuard> = (lock: *mut *mut HmMutexGuard),
        abandoned: Maybe<u32> = (abandoned: *mut u32),
    ) {
        lock.put(ptr::null_mut());
        let mutex = Box::new(Mutex::new(store, key)?);
        // SAFETY: it does not move, is kept beside its guard, and dropped after it.
        let borrowed: &'static Mutex = unsafe { &*ptr::from_ref(&*mutex) };
        let Some(guard) = borrowed.lock(Duration::from_millis(timeout_ms))? else { return Ok(TIMEOUT) };
        abandoned.put(u32::from(guard.was_abandoned()));
        let held = HmMutexGuard { guard: Some(guard), _mutex: mutex, pid: std::process::id() };
        lock.put(Box::into_raw(Box::new(held)));
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_mutex_holder(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        pid: Out<u32> = (pid: *mut u32),
    ) {
        Ok(told(Mutex::new(store, key)?.holder()?, &pid))
    }

    /// See `hashmere_queue.h`.
    fn hm_once_holder(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        pid: Out<u32> = (pid: *mut u32),
    ) {
        Ok(told(once_holder(store, key)?, &pid))
    }

    /// See `hashmere_queue.h`.
    fn hm_once(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        timeout_ms: Plain = (timeout_ms: u64),
        compute: Callback = (compute: Option<HmCompute>),
        user: Plain = (user: *mut c_void),
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        let make = || {
            let mut value = HmBytes::from(&[][..]);
            if compute(user, &mut value) != 0 {
                return Err(Unmade::Refused);
            }
            // SAFETY: the header asks the callback for bytes that stay valid.
            let value = unsafe { Bytes::read("value", value.data, value.len) };
            value.map(<[u8]>::to_vec).map_err(Unmade::Failed)
        };
        match once(store, key, Duration::from_millis(timeout_ms), make) {
            Ok(None) => Ok(TIMEOUT),
            Ok(Some(value)) => {
                if let Some(room) = buffer.get_mut(..value.len()) {
                    room.copy_from_slice(&value);
                }
                len.put(value.len());
                Ok(fits(value.len(), buffer))
            }
            Err(Unmade::Refused) => Ok(UNCHANGED),
            Err(Unmade::Failed(failure)) => Err(failure),
        }
    }

    /// See `hashmere_queue.h`.
    fn hm_barrier_join(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        size: Plain = (size: u64),
        barrier: Out<*mut HmBarrier> = (barrier: *mut *mut HmBarrier),
    ) {
        barrier.put(ptr::null_mut());
        let joined = Barrier::join(store, key, size)?;
        barrier.put(Box::into_raw(Box::new(HmBarrier(joined))));
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_barrier_wait(
        barrier: Owned = (barrier: *mut HmBarrier),
        timeout_ms: Plain = (timeout_ms: u64),
        round: Maybe<u64> = (round: *mut u64),
        lost: Maybe<u64> = (lost: *mut u64),
    ) {
        let Some(start) = barrier.0.wait(Duration::from_millis(timeout_ms))? else { return Ok(TIMEOUT) };
        round.put(start.round);
        lost.put(start.lost);
        Ok(OK)
    }
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_mutex_unlock(lock: *mut HmMutexGuard) {
    // SAFETY: as the header says.
    unsafe { close(lock) }
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_barrier_leave(barrier: *mut HmBarrier) {
    // SAFETY: as the header says.
    unsafe { close(barrier) }
}
