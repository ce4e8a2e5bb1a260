//! Keys of every kind, and what names them.

use crate::abi::HmKey;
use crate::args::{Buffer, Bytes, Open, Out};
use crate::failure::Failure;
use crate::handle::HmStore;
use crate::reading::fits;
use crate::result::{ABSENT, OK};
use hashmere::{EntryId, Key, Uid};
use std::ffi::c_void;

/// `hm_key_kind`.
const BYTES: u32 = 0;
const HASHED: u32 = 1;
const UID: u32 = 2;
const ID: u32 = 3;

/// A key, by whatever names it.
pub(crate) struct Named;
impl Named {
    /// # Safety
    /// That of `args`.
    #[inline(always)]
    pub(crate) unsafe fn read<'a>(name: &'static str, key: *const HmKey) -> Result<Key<'a>, Failure> {
        let wrong = |what| Err(Failure::Argument(name, what));
        // SAFETY: NULL or valid.
        let Some(&HmKey { data, len, number, kind, reserved }) = (unsafe { key.as_ref() }) else {
            return wrong("it is NULL");
        };
        if reserved != 0 {
            return wrong("its `reserved` is not 0");
        }
        match kind {
            BYTES if number != 0 => wrong("its `number` is not 0, but it is HM_KEY_BYTES; a hash needs HM_KEY_HASHED"),
            // SAFETY: as ours.
            BYTES => Ok(Key::Bytes(unsafe { Bytes::read(name, data, len) }?)),
            // SAFETY: as ours.
            HASHED => Ok(Key::Hashed(unsafe { Bytes::read(name, data, len) }?, number)),
            UID | ID if !data.is_null() || len != 0 => wrong("it is a UID or entry id, but has `data` or `len`"),
            UID => match u32::try_from(number) {
                Ok(uid) => Ok(Key::Uid(Uid(uid))),
                Err(_) => wrong("its `number` is no UID: that has 32 bits; an entry id needs HM_KEY_ID"),
            },
            ID => Ok(Key::Id(EntryId(number))),
            _ => wrong("its `kind` is none of HM_KEY_BYTES, HM_KEY_HASHED, HM_KEY_UID and HM_KEY_ID"),
        }
    }
}

export! {
    /// See `hashmere.h`.
    fn hm_key_of_at(
        store: Open = (store: *mut HmStore),
        key: Named = (key: *const HmKey),
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        let Some(found) = store.key_of(key)? else { return Ok(ABSENT) };
        if let Some(room) = buffer.get_mut(..found.len()) {
            room.copy_from_slice(&found);
        }
        len.put(found.len());
        Ok(fits(found.len(), buffer))
    }
}

export_by_key! {
    /// See `hashmere.h`.
    fn hm_uid_of | hm_uid_of_at(store, key, uid: Out<u32> = (uid: *mut u32)) {
        let Some(found) = store.metadata(key)? else { return Ok(ABSENT) };
        uid.put(found.uid.0);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_id_of | hm_id_of_at(store, key, id: Out<u64> = (id: *mut u64)) {
        let Some(found) = store.id_of(key)? else { return Ok(ABSENT) };
        id.put(found.0);
        Ok(OK)
    }
}
