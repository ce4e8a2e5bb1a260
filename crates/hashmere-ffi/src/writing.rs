//! Writing one key.

use crate::abi::{HmAttributes, HmMetadata, HmStored};
use crate::args::{Attached, Buffer, Bytes, Maybe, Out};
use crate::reading::{item_into, present};
use crate::result::{ABSENT, BUFFER_TOO_SMALL, EXISTS, OK};
use hashmere::{CasOutcome, Change, Expected, Stored};
use std::ffi::{c_int, c_void};

/// Reports a write that may not have taken place.
pub(crate) fn written(done: Option<Stored>, otherwise: c_int, stored: &Maybe<HmStored>) -> c_int {
    let Some(done) = done else { return otherwise };
    stored.put(done);
    OK
}

export_by_key! {
    /// See `hashmere.h`.
    fn hm_set | hm_set_at(
        store,
        key,
        value: Bytes = (value: *const c_void, value_len: usize),
    ) {
        store.set(key, value)?;
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_set_with | hm_set_with_at(
        store,
        key,
        value: Bytes = (value: *const c_void, value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        stored.put(store.set_with(key, value, attributes)?);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_add | hm_add_at(
        store,
        key,
        value: Bytes = (value: *const c_void, value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        Ok(written(store.add(key, value, attributes)?, EXISTS, &stored))
    }

    /// See `hashmere.h`.
    fn hm_replace | hm_replace_at(
        store,
        key,
        value: Bytes = (value: *const c_void, value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        Ok(written(store.replace(key, value, attributes)?, ABSENT, &stored))
    }

    /// See `hashmere.h`.
    fn hm_append | hm_append_at(
        store,
        key,
        tail: Bytes = (tail: *const c_void, tail_len: usize),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        Ok(written(store.append(key, tail)?, ABSENT, &stored))
    }

    /// See `hashmere.h`.
    fn hm_prepend | hm_prepend_at(
        store,
        key,
        head: Bytes = (head: *const c_void, head_len: usize),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        Ok(written(store.prepend(key, head)?, ABSENT, &stored))
    }

    /// See `hashmere.h`.
    fn hm_delete | hm_delete_at(store, key) {
        Ok(present(store.delete(key)?))
    }

    /// See `hashmere.h`.
    fn hm_take | hm_take_at(
        store,
        key,
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        len: Out<usize> = (len: *mut usize),
        meta: Maybe<HmMetadata> = (meta: *mut HmMetadata),
    ) {
        // Not before it has arrived in the buffer is it removed, and only if it is still what arrived there.
        loop {
            let Some(item) = item_into(store, key, buffer)? else { return Ok(ABSENT) };
            let found = item.value_len as usize;
            if found > buffer.len() {
                len.put(found);
                return Ok(BUFFER_TOO_SMALL);
            }
            if let CasOutcome::Removed = store.cas(key, Expected::Version(item.version), Change::Remove)? {
                len.put(found);
                meta.put(item);
                return Ok(OK);
            }
        }
    }
}
