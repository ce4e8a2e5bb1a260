//! Keys with a hash that the caller supplies.

use crate::abi::{HmAttributes, HmCounter, HmMetadata, HmStored, HmVisitor};
use crate::args::{Attached, Buffer, Bytes, Callback, Create, Maybe, Open, Out, Plain};
use crate::conditions::Asked;
use crate::counters::counted;
use crate::handle::HmStore;
use crate::reading::{copied, copied_item, item_into, present};
use crate::result::{ABSENT, EXISTS, OK};
use crate::writing::written;
use hashmere::Key;
use std::ffi::c_void;

export! {
    /// See `hashmere.h`.
    fn hm_hashed_get(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        hash: Plain = (hash: u64),
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        Ok(copied(store.get_into(Key::with_hash(key, hash), buffer)?, buffer, &len))
    }

    /// See `hashmere.h`.
    fn hm_hashed_get_item(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        hash: Plain = (hash: u64),
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        meta: Out<HmMetadata> = (meta: *mut HmMetadata),
    ) {
        Ok(copied_item(item_into(store, Key::with_hash(key, hash), buffer)?, buffer, &meta))
    }

    /// See `hashmere.h`.
    fn hm_hashed_contains(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        hash: Plain = (hash: u64),
    ) {
        Ok(present(store.contains_key(Key::with_hash(key, hash))?))
    }

    /// See `hashmere.h`.
    fn hm_hashed_uid_of(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        hash: Plain = (hash: u64),
        uid: Out<u32> = (uid: *mut u32),
    ) {
        let Some(found) = store.metadata(Key::with_hash(key, hash))? else { return Ok(ABSENT) };
        uid.put(found.uid.0);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_hashed_set(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        hash: Plain = (hash: u64),
        value: Bytes = (value: *const c_void, value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        stored.put(store.set_with(Key::with_hash(key, hash), value, attributes)?);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_hashed_add(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        hash: Plain = (hash: u64),
        value: Bytes = (value: *const c_void, value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        Ok(written(store.add(Key::with_hash(key, hash), value, attributes)?, EXISTS, &stored))
    }

    /// See `hashmere.h`.
    fn hm_hashed_delete(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        hash: Plain = (hash: u64),
    ) {
        Ok(present(store.delete(Key::with_hash(key, hash))?))
    }

    /// See `hashmere.h`.
    fn hm_hashed_incr(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        hash: Plain = (hash: u64),
        by: Plain = (by: u64),
        create: Create = (create: *const HmCounter),
        now: Maybe<u64> = (now: *mut u64),
    ) {
        Ok(counted(store.incr(Key::with_hash(key, hash), by, create)?, &now))
    }

    /// See `hashmere.h`.
    fn hm_hashed_update_with(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        hash: Plain = (hash: u64),
        visitor: Callback = (visitor: Option<HmVisitor>),
        user: Plain = (user: *mut c_void),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        let mut asked = Asked::new(visitor, user);
        let updated = store.update_with(Key::with_hash(key, hash), |item| asked.ask(key, item));
        asked.done(updated, &stored)
    }
}
