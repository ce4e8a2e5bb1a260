//! Reading.

use crate::abi::HmMetadata;
use crate::args::{Buffer, Maybe, Out, Plain};
use crate::result::{ABSENT, BUFFER_TOO_SMALL, MISMATCH, OK};
use hashmere::{Expiry, Key, Metadata, ReadError, Store, Version, View};
use hashmere_engine::{Address, FileEngine, StoreHandle};
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
pub(crate) fn item_into<'k>(
    store: &Store,
    key: impl Into<Key<'k>>,
    buffer: &mut [u8],
) -> Result<Option<Metadata>, ReadError> {
    let shared = store.shared();
    let engine = shared.engine();
    let (key, kh) = match key.into() {
        Key::Bytes(key) => (key, engine.hash(key)),
        Key::Hashed(key, hash) => (key, engine.supplied(hash)),
        Key::Id(id) => return item_at_into(store, id.into(), buffer),
        Key::Uid(uid) => return item_at_into(store, uid.into(), buffer),
    };
    shared.copy_hashed(engine, key, kh, buffer, FileEngine::meta_of_found, View::metadata)
}

#[cold]
fn item_at_into(store: &Store, at: Address, buffer: &mut [u8]) -> Result<Option<Metadata>, ReadError> {
    let shared = store.shared();
    let engine = shared.engine();
    shared.use_at(at, |found| {
        engine.copy_value(found, buffer);
        Ok(engine.meta_of_found(found))
    })
}

/// Yes or no.
pub(crate) fn present(is: bool) -> c_int {
    if is {
        OK
    } else {
        ABSENT
    }
}

export_by_key! {
    /// See `hashmere.h`.
    fn hm_get | hm_get_at(
        store,
        key,
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        Ok(copied(store.get_into(key, buffer)?, buffer, &len))
    }

    /// See `hashmere.h`.
    fn hm_get_item | hm_get_item_at(
        store,
        key,
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        meta: Out<HmMetadata> = (meta: *mut HmMetadata),
    ) {
        Ok(copied_item(item_into(store, key, buffer)?, buffer, &meta))
    }

    /// See `hashmere.h`.
    fn hm_get_metadata | hm_get_metadata_at(
        store,
        key,
        meta: Maybe<HmMetadata> = (meta: *mut HmMetadata),
    ) {
        let Some(found) = store.metadata(key)? else { return Ok(ABSENT) };
        meta.put(found);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_contains | hm_contains_at(store, key) {
        Ok(present(store.contains_key(key)?))
    }

    /// See `hashmere.h`.
    fn hm_is_up_to_date | hm_is_up_to_date_at(
        store,
        key,
        version: Plain = (version: u64),
    ) {
        Ok(if store.is_up_to_date(key, Version(version))? { OK } else { MISMATCH })
    }

    /// See `hashmere.h`.
    fn hm_value_len | hm_value_len_at(
        store,
        key,
        len: Out<usize> = (len: *mut usize),
    ) {
        let Some(found) = store.metadata(key)? else { return Ok(ABSENT) };
        len.put(found.value_len as usize);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_ttl | hm_ttl_at(
        store,
        key,
        ms: Out<i64> = (ms: *mut i64),
    ) {
        let Some(Expiry { remaining }) = store.ttl(key)? else { return Ok(ABSENT) };
        ms.put(remaining.map_or(-1, |left| i64::try_from(left.as_millis()).unwrap_or(i64::MAX)));
        Ok(OK)
    }
}
