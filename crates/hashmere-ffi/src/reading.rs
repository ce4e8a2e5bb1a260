//! Reading.

use crate::abi::HmMetadata;
use crate::arg::{Buffer, Bytes, Maybe, Open, Out};
use crate::handle::HmStore;
use crate::result::{ABSENT, BUFFER_TOO_SMALL, OK};
use hashmere::{Expiry, Metadata, ReadError, Store, View};
use hashmere_engine::{FileEngine, StoreHandle};
use std::ffi::{c_int, c_void};

/// The answer to a read of `len` bytes into a buffer.
#[inline(always)]
pub(crate) fn fits(len: usize, buffer: &[u8]) -> c_int {
    if len <= buffer.len() {
        OK
    } else {
        BUFFER_TOO_SMALL
    }
}

/// Reports how long a value is, and whether it fitted.
#[inline(always)]
pub(crate) fn copied(found: Option<usize>, buffer: &[u8], len: &Out<usize>) -> c_int {
    let Some(found) = found else { return ABSENT };
    len.put(found);
    fits(found, buffer)
}

/// The same for an item.
#[inline(always)]
pub(crate) fn copied_item(found: Option<Metadata>, buffer: &[u8], meta: &Out<HmMetadata>) -> c_int {
    let Some(found) = found else { return ABSENT };
    meta.put(found.into());
    fits(found.value_len as usize, buffer)
}

/// Copies a value to the start of a buffer if it fits, and returns everything else about its key.
#[inline(always)]
pub(crate) fn item_into(
    store: &Store,
    key: &[u8],
    hash: Option<u64>,
    buffer: &mut [u8],
) -> Result<Option<Metadata>, ReadError> {
    let shared = store.shared();
    let engine = shared.engine();
    let kh = hash.map_or_else(|| engine.hash(key), |hash| engine.supplied(hash));
    shared.copy_hashed(engine, key, kh, buffer, FileEngine::meta_of_found, View::metadata)
}

/// Yes or no.
pub(crate) fn present(is: bool) -> c_int {
    if is {
        OK
    } else {
        ABSENT
    }
}

entry! {
    /// See `hashmere.h`.
    fn hm_get(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        Ok(copied(store.get_into(key, buffer)?, buffer, &len))
    }

    /// See `hashmere.h`.
    fn hm_get_item(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        meta: Out<HmMetadata> = (meta: *mut HmMetadata),
    ) {
        Ok(copied_item(item_into(store, key, None, buffer)?, buffer, &meta))
    }

    /// See `hashmere.h`.
    fn hm_get_metadata(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        meta: Maybe<HmMetadata> = (meta: *mut HmMetadata),
    ) {
        let Some(found) = store.metadata(key)? else { return Ok(ABSENT) };
        meta.put(found);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_contains(store: Open = (store: *mut HmStore), key: Bytes = (key: *const c_void, key_len: usize)) {
        Ok(present(store.contains_key(key)?))
    }

    /// See `hashmere.h`.
    fn hm_value_len(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        let Some(found) = store.metadata(key)? else { return Ok(ABSENT) };
        len.put(found.value_len as usize);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_ttl(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        ms: Out<i64> = (ms: *mut i64),
    ) {
        let Some(Expiry { remaining }) = store.ttl(key)? else { return Ok(ABSENT) };
        ms.put(remaining.map_or(-1, |left| i64::try_from(left.as_millis()).unwrap_or(i64::MAX)));
        Ok(OK)
    }
}
