//! Access by UID and by entry id.

use crate::abi::{HmMetadata, HmStored, HmVisitor};
use crate::arg::{Buffer, Bytes, Callback, Maybe, Open, Out, Plain};
use crate::conditions::Asked;
use crate::handle::HmStore;
use crate::reading::fits;
use crate::result::{ABSENT, OK};
use hashmere::{EntryId, Uid};
use std::ffi::c_void;

entry! {
    /// See `hashmere.h`.
    fn hm_uid_of(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        uid: Out<u32> = (uid: *mut u32),
    ) {
        let Some(found) = store.uid_of(key)? else { return Ok(ABSENT) };
        uid.put(found.0);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_id_of(
        store: Open = (store: *mut HmStore),
        key: Bytes = (key: *const c_void, key_len: usize),
        id: Out<u64> = (id: *mut u64),
    ) {
        let Some(found) = store.id_of(key)? else { return Ok(ABSENT) };
        id.put(found.0);
        Ok(OK)
    }
}

/// The same calls by two kinds of number.
macro_rules! by_number {
    ($number:ident: $type:ty => $address:expr, $get:ident, $key:ident, $set:ident, $delete:ident, $update:ident) => {
        entry! {
            /// See `hashmere.h`.
            fn $get(
                store: Open = (store: *mut HmStore),
                number: Plain = ($number: $type),
                buffer: Buffer = (buffer: *mut c_void, room: usize),
                len: Out<usize> = (len: *mut usize),
                meta: Maybe<HmMetadata> = (meta: *mut HmMetadata),
            ) {
                let found = store.copy_at_to($address(number), buffer)?;
                len.put(found.value_len as usize);
                meta.put(found);
                Ok(fits(found.value_len as usize, buffer))
            }

            /// See `hashmere.h`.
            fn $key(
                store: Open = (store: *mut HmStore),
                number: Plain = ($number: $type),
                buffer: Buffer = (buffer: *mut c_void, room: usize),
                len: Out<usize> = (len: *mut usize),
            ) {
                let found = store.copy_key_to($address(number), buffer)?;
                len.put(found);
                Ok(fits(found, buffer))
            }

            /// See `hashmere.h`.
            fn $set(
                store: Open = (store: *mut HmStore),
                number: Plain = ($number: $type),
                value: Bytes = (value: *const c_void, value_len: usize),
                stored: Maybe<HmStored> = (stored: *mut HmStored),
            ) {
                stored.put(store.set_at($address(number), value)?);
                Ok(OK)
            }

            /// See `hashmere.h`.
            fn $delete(store: Open = (store: *mut HmStore), number: Plain = ($number: $type)) {
                store.delete_at($address(number))?;
                Ok(OK)
            }

            /// See `hashmere.h`.
            fn $update(
                store: Open = (store: *mut HmStore),
                number: Plain = ($number: $type),
                visitor: Callback = (visitor: Option<HmVisitor>),
                user: Plain = (user: *mut c_void),
                stored: Maybe<HmStored> = (stored: *mut HmStored),
            ) {
                let mut asked = Asked::new(visitor, user);
                let updated = store.update_with_at($address(number), |item| asked.ask(&[], Some(item)));
                asked.done(updated, &stored)
            }
        }
    };
}

by_number!(id: u64 => EntryId, hm_id_get, hm_id_key, hm_id_set, hm_id_delete, hm_id_update_with);
by_number!(uid: u32 => Uid, hm_uid_get, hm_uid_key, hm_uid_set, hm_uid_delete, hm_uid_update_with);
