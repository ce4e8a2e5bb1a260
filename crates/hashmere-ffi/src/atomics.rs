//! `hashmere_queue.h`: shared atomics.

use crate::args::{Label, Open, Out, Plain, Shared};
use crate::handle::HmStore;
use crate::queue::close;
use crate::result::{ABSENT, OK, TIMEOUT, UNCHANGED};
use hashmere_queue::{Atomic, Atomics};
use std::ffi::c_char;
use std::ptr;
use std::time::Duration;

/// `hm_atomics`.
pub struct HmAtomics(Atomics);
/// `hm_atomic`.
pub struct HmAtomic(Atomic);

export! {
    /// See `hashmere_queue.h`.
    fn hm_atomics_open(
        store: Open = (store: *mut HmStore),
        name: Label = (name: *const c_char),
        set: Out<*mut HmAtomics> = (set: *mut *mut HmAtomics),
    ) {
        set.put(ptr::null_mut());
        let opened = Atomics::open(store, name)?;
        set.put(Box::into_raw(Box::new(HmAtomics(opened))));
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomics_remove(
        store: Open = (store: *mut HmStore),
        name: Label = (name: *const c_char),
    ) {
        Ok(if Atomics::remove(store, name)? { OK } else { ABSENT })
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_open(
        set: Shared = (set: *mut HmAtomics),
        name: Label = (name: *const c_char),
        atomic: Out<*mut HmAtomic> = (atomic: *mut *mut HmAtomic),
    ) {
        atomic.put(ptr::null_mut());
        let opened = set.0.atomic(name.as_bytes())?;
        atomic.put(Box::into_raw(Box::new(HmAtomic(opened))));
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_word(
        atomic: Shared = (atomic: *mut HmAtomic),
        word: Out<*mut u64> = (word: *mut *mut u64),
    ) {
        word.put(atomic.0.word()?.as_ptr());
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_load(
        atomic: Shared = (atomic: *mut HmAtomic),
        value: Out<u64> = (value: *mut u64),
    ) {
        value.put(atomic.0.load()?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_store(
        atomic: Shared = (atomic: *mut HmAtomic),
        value: Plain = (value: u64),
    ) {
        atomic.0.store(value)?;
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_swap(
        atomic: Shared = (atomic: *mut HmAtomic),
        value: Plain = (value: u64),
        before: Out<u64> = (before: *mut u64),
    ) {
        before.put(atomic.0.swap(value)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_fetch_add(
        atomic: Shared = (atomic: *mut HmAtomic),
        value: Plain = (value: u64),
        before: Out<u64> = (before: *mut u64),
    ) {
        before.put(atomic.0.fetch_add(value)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_fetch_and(
        atomic: Shared = (atomic: *mut HmAtomic),
        value: Plain = (value: u64),
        before: Out<u64> = (before: *mut u64),
    ) {
        before.put(atomic.0.fetch_and(value)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_fetch_or(
        atomic: Shared = (atomic: *mut HmAtomic),
        value: Plain = (value: u64),
        before: Out<u64> = (before: *mut u64),
    ) {
        before.put(atomic.0.fetch_or(value)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_fetch_xor(
        atomic: Shared = (atomic: *mut HmAtomic),
        value: Plain = (value: u64),
        before: Out<u64> = (before: *mut u64),
    ) {
        before.put(atomic.0.fetch_xor(value)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_compare_exchange(
        atomic: Shared = (atomic: *mut HmAtomic),
        current: Plain = (current: u64),
        value: Plain = (value: u64),
        before: Out<u64> = (before: *mut u64),
    ) {
        let found = atomic.0.compare_exchange(current, value)?;
        before.put(found);
        Ok(if found == current { OK } else { UNCHANGED })
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_wait(
        atomic: Shared = (atomic: *mut HmAtomic),
        seen: Plain = (seen: u64),
        timeout_ms: Plain = (timeout_ms: u64),
        value: Out<u64> = (value: *mut u64),
    ) {
        let Some(now) = atomic.0.wait(seen, Duration::from_millis(timeout_ms))? else { return Ok(TIMEOUT) };
        value.put(now);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_atomic_notify(
        atomic: Shared = (atomic: *mut HmAtomic),
    ) {
        atomic.0.notify()?;
        Ok(OK)
    }
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_atomics_close(set: *mut HmAtomics) {
    // SAFETY: as the header says.
    unsafe { close(set) }
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_atomic_close(atomic: *mut HmAtomic) {
    // SAFETY: as the header says.
    unsafe { close(atomic) }
}
