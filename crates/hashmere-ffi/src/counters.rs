//! Counters and references.

use crate::abi::HmCounter;
use crate::arg::{Bytes, Create, Maybe, Open, Plain};
use crate::handle::HmStore;
use crate::result::{ABSENT, OK};
use std::ffi::{c_int, c_void};

/// Reports what a counter is now.
pub(crate) fn counted(number: Option<u64>, now: &Maybe<u64>) -> c_int {
    let Some(number) = number else { return ABSENT };
    now.put(number);
    OK
}

entry! {
    /// See `hashmere.h`.
    fn hm_incr(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        by: Plain = (by: u64),
        create: Create = (create: *const HmCounter),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.incr(key, by, create)?, &now))
    }

    /// See `hashmere.h`.
    fn hm_decr(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        by: Plain = (by: u64),
        create: Create = (create: *const HmCounter),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.decr(key, by, create)?, &now))
    }

    /// See `hashmere.h`.
    fn hm_add_signed(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        by: Plain = (by: i64),
        create: Create = (create: *const HmCounter),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.add_signed(key, by, create)?, &now))
    }

    /// See `hashmere.h`.
    fn hm_ref_retain(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(Some(store.retain_ref(key)?), &now))
    }

    /// See `hashmere.h`.
    fn hm_ref_release(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.release_ref(key)?, &now))
    }
}
