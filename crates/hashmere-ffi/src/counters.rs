//! Counters and references.

use crate::abi::HmCounter;
use crate::args::{Create, Maybe, Plain};
use crate::result::{ABSENT, OK};
use std::ffi::c_int;

/// Reports what a counter is now.
pub(crate) fn counted(number: Option<u64>, now: &Maybe<u64>) -> c_int {
    let Some(number) = number else { return ABSENT };
    now.put(number);
    OK
}

export_by_key! {
    /// See `hashmere.h`.
    fn hm_incr | hm_incr_at(
        store,
        key,
        by: Plain = (by: u64),
        create: Create = (create: *const HmCounter),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.incr(key, by, create)?, &now))
    }

    /// See `hashmere.h`.
    fn hm_decr | hm_decr_at(
        store,
        key,
        by: Plain = (by: u64),
        create: Create = (create: *const HmCounter),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.decr(key, by, create)?, &now))
    }

    /// See `hashmere.h`.
    fn hm_incr_by | hm_incr_by_at(
        store,
        key,
        by: Plain = (by: i64),
        create: Create = (create: *const HmCounter),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.incr_by(key, by, create)?, &now))
    }

    /// See `hashmere.h`.
    fn hm_inc_ref | hm_inc_ref_at(
        store,
        key,
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(Some(store.inc_ref(key)?), &now))
    }

    /// See `hashmere.h`.
    fn hm_dec_ref | hm_dec_ref_at(
        store,
        key,
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.dec_ref(key)?, &now))
    }
}
