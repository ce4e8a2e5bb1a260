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
    fn hm_incr_by(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        by: Plain = (by: i64),
        create: Create = (create: *const HmCounter),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.incr_by(key, by, create)?, &now))
    }

    /// See `hashmere.h`.
    fn hm_inc_ref(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(Some(store.inc_ref(key)?), &now))
    }

    /// See `hashmere.h`.
    fn hm_dec_ref(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.dec_ref(key)?, &now))
    }
}
