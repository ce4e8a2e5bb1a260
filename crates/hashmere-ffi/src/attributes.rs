//! Expiry and marks.

use crate::abi::{HmAttributes, HmMetadata, HmStored};
use crate::args::{Attached, Buffer, Bytes, Expiry, Maybe, Open, Out, Plain, Seen};
use crate::failure::Failure;
use crate::handle::HmStore;
use crate::reading::{copied_item, present};
use crate::result::{MISMATCH, OK};
use crate::writing::written;
use hashmere::Item;
use hashmere_engine::StoreHandle;
use std::ffi::{c_int, c_void};

export_by_key! {
    /// See `hashmere.h`.
    fn hm_touch | hm_touch_at(
        store,
        key,
        ttl: Expiry = (expiry: c_int, expiry_ms: i64),
    ) {
        Ok(present(store.touch(key, ttl)?))
    }

    /// See `hashmere.h`.
    fn hm_get_and_touch | hm_get_and_touch_at(
        store,
        key,
        ttl: Expiry = (expiry: c_int, expiry_ms: i64),
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        meta: Out<HmMetadata> = (meta: *mut HmMetadata),
    ) {
        let item = store.get_and_touch(key, ttl)?;
        if let Some(item) = &item {
            if let Some(room) = buffer.get_mut(..item.value.len()) {
                room.copy_from_slice(&item.value);
            }
        }
        Ok(copied_item(item.map(|item| item.metadata), buffer, &meta))
    }
}

export! {
    /// See `hashmere.h`.
    fn hm_set_marked(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        value: Bytes = (value: *const c_void, value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
        marks: Plain = (marks: u32),
        seen: Seen = (seen: *const HmMetadata),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        Ok(written(store.shared().set_marked(key, value, attributes, marks, seen.as_ref())?, MISMATCH, &stored))
    }

    /// See `hashmere.h`.
    fn hm_remark(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        value: Bytes = (value: *const c_void, value_len: usize),
        seen: Seen = (seen: *const HmMetadata),
        marks: Plain = (marks: u32),
    ) {
        let metadata = seen.ok_or_else(|| Failure::Argument("seen", "it is NULL, but only a key that is there has marks"))?;
        let item = Item { value: value.to_vec(), metadata };
        Ok(if store.shared().remark(key, &item, marks)? { OK } else { MISMATCH })
    }
}
