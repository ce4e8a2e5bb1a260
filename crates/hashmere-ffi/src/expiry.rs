//! Expiry.

use crate::abi::HmMetadata;
use crate::args::{Buffer, Expiry, Out};
use crate::reading::{copied_item, present};
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
