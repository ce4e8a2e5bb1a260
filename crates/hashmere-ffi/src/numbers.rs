//! Access by UID and by entry id.

use crate::abi::{HmMetadata, HmStored, HmVisitor};
use crate::args::{Buffer, Bytes, Callback, Maybe, Open, Out, Plain};
use crate::conditions::Asked;
use crate::handle::HmStore;
use crate::reading::fits;
use crate::result::OK;
use hashmere::{EntryId, Metadata, ReadError, Store, Uid, WriteError};
use hashmere_engine::{Address, StoreHandle};
use std::ffi::c_void;

/// Copies the value of an entry to the start of a buffer if it fits.
fn value_at(store: &Store, at: impl Into<Address>, buffer: &mut [u8]) -> Result<Metadata, ReadError> {
    let shared = store.shared();
    let engine = shared.engine();
    shared.read_at(at.into(), |found| {
        if engine.copy_value(found, buffer) {
            engine.visit(found);
        }
        Ok(engine.meta_of_found(found))
    })
}

/// The same with its key.
fn key_at(store: &Store, at: impl Into<Address>, buffer: &mut [u8]) -> Result<usize, ReadError> {
    let shared = store.shared();
    shared.read_at(at.into(), |found| {
        shared.engine().copy_key(found, buffer);
        Ok(found.key_len())
    })
}

/// The same calls by two kinds of number.
macro_rules! by_number {
    ($number:ident: $type:ty => $address:expr, $get:ident, $key:ident, $set:ident, $delete:ident, $update:ident) => {
        export! {
            /// See `hashmere.h`.
            fn $get(
                store: Open = (store: *mut HmStore),
                number: Plain = ($number: $type),
                buffer: Buffer = (buffer: *mut c_void, room: usize),
                len: Out<usize> = (len: *mut usize),
                meta: Maybe<HmMetadata> = (meta: *mut HmMetadata),
            ) {
                let found = value_at(store, $address(number), buffer)?;
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
                let found = key_at(store, $address(number), buffer)?;
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
                stored.put(store.set($address(number), value)?);
                Ok(OK)
            }

            /// See `hashmere.h`.
            fn $delete(store: Open = (store: *mut HmStore), number: Plain = ($number: $type)) {
                if store.delete($address(number))? { Ok(OK) } else { Err(WriteError::Stale.into()) }
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
                let updated = store.update_with($address(number), |item| asked.ask(&[], item));
                asked.done(updated, &stored)
            }
        }
    };
}

by_number!(id: u64 => EntryId, hm_id_get, hm_id_key, hm_id_set, hm_id_delete, hm_id_update_with);
by_number!(uid: u32 => Uid, hm_uid_get, hm_uid_key, hm_uid_set, hm_uid_delete, hm_uid_update_with);
