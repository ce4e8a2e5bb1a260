//! `hashmere_transaction.h`: transactions, call by call.

use crate::abi::{HmAttributes, HmCounter, HmFloatCounter, HmSignedCounter};
use crate::args::{Attached, Buffer, Bytes, Create, Expiry, Maybe, Open, Out, Owned, Plain};
use crate::counters::counted;
use crate::handle::HmStore;
use crate::queue::close;
use crate::reading::{fits, present};
use crate::result::{ABSENT, MISMATCH, OK};
use hashmere_engine::HeldTransaction;
use std::ffi::{c_int, c_void};

/// `hm_transaction`.
pub struct HmTransaction(HeldTransaction);

export! {
    /// See `hashmere_transaction.h`.
    fn hm_transaction_open(
        store: Open = (store: *mut HmStore),
        transaction: Out<*mut HmTransaction> = (transaction: *mut *mut HmTransaction),
    ) {
        transaction.put(Box::into_raw(Box::new(HmTransaction(HeldTransaction::new(store)))));
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_get(
        transaction: Owned = (transaction: *mut HmTransaction),
        key: Bytes = (key: *const c_void, key_len: usize),
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        let Some(value) = transaction.0.with(|t| t.get(key))? else { return Ok(ABSENT) };
        if let Some(room) = buffer.get_mut(..value.len()) {
            room.copy_from_slice(&value);
        }
        len.put(value.len());
        Ok(fits(value.len(), buffer))
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_contains(
        transaction: Owned = (transaction: *mut HmTransaction),
        key: Bytes = (key: *const c_void, key_len: usize),
    ) {
        Ok(present(transaction.0.with(|t| t.get(key))?.is_some()))
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_set(
        transaction: Owned = (transaction: *mut HmTransaction),
        key: Bytes = (key: *const c_void, key_len: usize),
        value: Bytes = (value: *const c_void, value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
    ) {
        transaction.0.with(|t| t.set(key, value, attributes))?;
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_delete(
        transaction: Owned = (transaction: *mut HmTransaction),
        key: Bytes = (key: *const c_void, key_len: usize),
    ) {
        transaction.0.with(|t| t.delete(key))?;
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_incr_by(
        transaction: Owned = (transaction: *mut HmTransaction),
        key: Bytes = (key: *const c_void, key_len: usize),
        by: Plain = (by: i64),
        create: Create = (create: *const HmCounter),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(transaction.0.with(|t| t.incr_by(key, by, create))?, &now))
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_incr_signed(
        transaction: Owned = (transaction: *mut HmTransaction),
        key: Bytes = (key: *const c_void, key_len: usize),
        by: Plain = (by: i64),
        create: Create = (create: *const HmSignedCounter),
        now: Maybe<i64> = (now: *mut i64),
    ) {
        Ok(counted(transaction.0.with(|t| t.incr_signed(key, by, create))?, &now))
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_incr_float(
        transaction: Owned = (transaction: *mut HmTransaction),
        key: Bytes = (key: *const c_void, key_len: usize),
        by: Plain = (by: f64),
        create: Create = (create: *const HmFloatCounter),
        now: Maybe<f64> = (now: *mut f64),
    ) {
        Ok(counted(transaction.0.with(|t| t.incr_float(key, by, create))?, &now))
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_append(
        transaction: Owned = (transaction: *mut HmTransaction),
        key: Bytes = (key: *const c_void, key_len: usize),
        tail: Bytes = (tail: *const c_void, tail_len: usize),
    ) {
        Ok(present(transaction.0.with(|t| t.extend(key, tail, false))?))
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_prepend(
        transaction: Owned = (transaction: *mut HmTransaction),
        key: Bytes = (key: *const c_void, key_len: usize),
        head: Bytes = (head: *const c_void, head_len: usize),
    ) {
        Ok(present(transaction.0.with(|t| t.extend(key, head, true))?))
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_touch(
        transaction: Owned = (transaction: *mut HmTransaction),
        key: Bytes = (key: *const c_void, key_len: usize),
        ttl: Expiry = (expiry: c_int, expiry_ms: i64),
    ) {
        Ok(present(transaction.0.with(|t| t.touch(key, ttl))?))
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_commit(transaction: Owned = (transaction: *mut HmTransaction)) {
        Ok(if transaction.0.commit()? { OK } else { MISMATCH })
    }

    /// See `hashmere_transaction.h`.
    fn hm_transaction_rollback(transaction: Owned = (transaction: *mut HmTransaction)) {
        Ok(if transaction.0.give_up()? { OK } else { MISMATCH })
    }
}

/// See `hashmere_transaction.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_transaction_close(transaction: *mut HmTransaction) {
    // SAFETY: as the header says.
    unsafe { close(transaction) }
}
