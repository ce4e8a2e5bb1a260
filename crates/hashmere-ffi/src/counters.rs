//! Counters and references.

use crate::abi::{HmCounter, HmFloatCounter, HmSignedCounter};
use crate::args::{Create, Maybe, Plain};
use crate::result::{ABSENT, OK};
use std::ffi::c_int;

/// Reports what a counter is now.
pub(crate) fn counted<N>(number: Option<N>, now: &Maybe<N>) -> c_int {
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
    fn hm_incr_signed | hm_incr_signed_at(
        store,
        key,
        by: Plain = (by: i64),
        create: Create = (create: *const HmSignedCounter),
        now: Maybe<i64> = (now: *mut i64),
    ) {
        Ok(counted(store.incr_signed(key, by, create)?, &now))
    }

    /// See `hashmere.h`.
    fn hm_incr_float | hm_incr_float_at(
        store,
        key,
        by: Plain = (by: f64),
        create: Create = (create: *const HmFloatCounter),
        now: Maybe<f64> = (now: *mut f64),
    ) {
        Ok(counted(store.incr_float(key, by, create)?, &now))
    }

    /// See `hashmere.h`.
    fn hm_inc_ref | hm_inc_ref_at(
        store,
        key,
        by: Plain = (by: u64),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(Some(store.inc_ref(key, by)?), &now))
    }

    /// See `hashmere.h`.
    fn hm_dec_ref | hm_dec_ref_at(
        store,
        key,
        by: Plain = (by: u64),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.dec_ref(key, by)?, &now))
    }
}
