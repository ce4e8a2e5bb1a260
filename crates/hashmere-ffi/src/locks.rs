//! `hashmere_queue.h`: readers-writer locks and semaphores.

use crate::args::{Bytes, Maybe, Open, Out, Owned, Plain};
use crate::arrays::Pids;
use crate::failure::Failure;
use crate::handle::HmStore;
use crate::queue::close;
use crate::result::{ABSENT, BUFFER_TOO_SMALL, OK, TIMEOUT};
use hashmere_queue::{Holder, QueueError, RwLock, RwLockGuard, RwLockMode, RwLockWaiter, Semaphore, SemaphoreGuard};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::time::Duration;

/// `hm_rwlock_guard`.
pub struct HmRwlockGuard(#[expect(dead_code, reason = "held until it is dropped")] RwLockGuard);
/// `hm_rwlock_waiter`.
pub struct HmRwlockWaiter(RwLockWaiter);
/// `hm_semaphore_guard`.
pub struct HmSemaphoreGuard(#[expect(dead_code, reason = "held until it is dropped")] SemaphoreGuard);

/// A readers-writer lock that was waited for: what the caller gets.
fn locked(
    got: Result<Option<RwLockGuard>, QueueError>,
    guard: &Out<*mut HmRwlockGuard>,
    abandoned: &Maybe<u32>,
) -> Result<c_int, Failure> {
    guard.put(ptr::null_mut());
    let Some(got) = got? else { return Ok(TIMEOUT) };
    abandoned.put(u32::from(got.was_abandoned()));
    guard.put(Box::into_raw(Box::new(HmRwlockGuard(got))));
    Ok(OK)
}

/// Tells the caller who the holders are, as far as there is room.
fn told(holders: &[Holder], pids: &mut [u32], count: &Out<usize>) -> c_int {
    count.put(holders.len());
    for (room, holder) in pids.iter_mut().zip(holders) {
        *room = holder.pid;
    }
    if holders.len() > pids.len() {
        BUFFER_TOO_SMALL
    } else {
        OK
    }
}

fn permits_of(permits: u64) -> u32 {
    // More than there can be is refused as such.
    u32::try_from(permits).unwrap_or(u32::MAX)
}

export! {
    /// See `hashmere_queue.h`.
    fn hm_rwlock_read(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        timeout_ms: Plain = (timeout_ms: u64),
        lock: Out<*mut HmRwlockGuard> = (lock: *mut *mut HmRwlockGuard),
        abandoned: Maybe<u32> = (abandoned: *mut u32),
    ) {
        lock.put(ptr::null_mut());
        locked(RwLock::new(store, key)?.read(Duration::from_millis(timeout_ms)), &lock, &abandoned)
    }

    /// See `hashmere_queue.h`.
    fn hm_rwlock_write(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        timeout_ms: Plain = (timeout_ms: u64),
        lock: Out<*mut HmRwlockGuard> = (lock: *mut *mut HmRwlockGuard),
        abandoned: Maybe<u32> = (abandoned: *mut u32),
    ) {
        lock.put(ptr::null_mut());
        locked(RwLock::new(store, key)?.write(Duration::from_millis(timeout_ms)), &lock, &abandoned)
    }

    /// See `hashmere_queue.h`.
    fn hm_rwlock_waiter_open(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        writes: Plain = (writes: u32),
        waiter: Out<*mut HmRwlockWaiter> = (waiter: *mut *mut HmRwlockWaiter),
    ) {
        waiter.put(ptr::null_mut());
        let mode = if writes == 0 { RwLockMode::Read } else { RwLockMode::Write };
        let opened = RwLock::new(store, key)?.waiter(mode);
        waiter.put(Box::into_raw(Box::new(HmRwlockWaiter(opened))));
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_rwlock_waiter_wait(
        waiter: Owned = (waiter: *mut HmRwlockWaiter),
        timeout_ms: Plain = (timeout_ms: u64),
        lock: Out<*mut HmRwlockGuard> = (lock: *mut *mut HmRwlockGuard),
        abandoned: Maybe<u32> = (abandoned: *mut u32),
    ) {
        locked(waiter.0.wait(Duration::from_millis(timeout_ms)), &lock, &abandoned)
    }

    /// See `hashmere_queue.h`.
    fn hm_rwlock_writer(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        pid: Out<u32> = (pid: *mut u32),
    ) {
        let Some(writer) = RwLock::new(store, key)?.writer()? else { return Ok(ABSENT) };
        pid.put(writer.pid);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_rwlock_readers(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        pids: Pids = (pids: *mut u32, room: usize),
        count: Out<usize> = (count: *mut usize),
    ) {
        Ok(told(&RwLock::new(store, key)?.readers()?, pids, &count))
    }

    /// See `hashmere_queue.h`.
    fn hm_semaphore_acquire(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        permits: Plain = (permits: u64),
        timeout_ms: Plain = (timeout_ms: u64),
        permit: Out<*mut HmSemaphoreGuard> = (permit: *mut *mut HmSemaphoreGuard),
        abandoned: Maybe<u32> = (abandoned: *mut u32),
    ) {
        permit.put(ptr::null_mut());
        let semaphore = Semaphore::new(store, key, permits_of(permits))?;
        let Some(got) = semaphore.acquire(Duration::from_millis(timeout_ms))? else { return Ok(TIMEOUT) };
        abandoned.put(u32::from(got.was_abandoned()));
        permit.put(Box::into_raw(Box::new(HmSemaphoreGuard(got))));
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_semaphore_holders(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        pids: Pids = (pids: *mut u32, room: usize),
        count: Out<usize> = (count: *mut usize),
    ) {
        // Names are listed whatever the number of permits.
        Ok(told(&Semaphore::new(store, key, 1)?.holders()?, pids, &count))
    }
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_rwlock_unlock(lock: *mut HmRwlockGuard) {
    // SAFETY: as the header says.
    unsafe { close(lock) }
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_rwlock_waiter_close(waiter: *mut HmRwlockWaiter) {
    // SAFETY: as the header says.
    unsafe { close(waiter) }
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_semaphore_release(permit: *mut HmSemaphoreGuard) {
    // SAFETY: as the header says.
    unsafe { close(permit) }
}
