//! Conditional changes and visitors.

use crate::abi::{HmAttributes, HmChange, HmPair, HmStored, HmVisitor};
use crate::args::{Attached, Bytes, Callback, Maybe, Plain};
use crate::failure::Failure;
use crate::result::{ABSENT, MISMATCH, OK, REMOVED, UNCHANGED};
use hashmere::{Attributes, CasOutcome, Change, Expected, Item, Key, Store, Update, Updated, Version, WriteError};
use std::ffi::{c_int, c_void};
use std::ptr;

/// Reports what a conditional change did.
fn compared(done: CasOutcome, stored: &Maybe<HmStored>) -> c_int {
    match done {
        CasOutcome::Stored(done) => {
            stored.put(done);
            OK
        }
        CasOutcome::Removed => OK,
        CasOutcome::Mismatch(version) => {
            stored.put(HmStored { version: version.0, uid: 0, created: 0 });
            MISMATCH
        }
        CasOutcome::Absent => ABSENT,
    }
}

/// Version 0 is that of an absent key.
fn at_version<'a>(version: u64) -> Expected<'a> {
    match version {
        0 => Expected::Absent,
        version => Expected::Version(Version(version)),
    }
}

/// A change as the header has it, asked of a visitor.
pub(crate) struct Asked {
    visitor: HmVisitor,
    user: *mut c_void,
    /// What was wrong with its answer.
    failure: Option<Failure>,
}

impl Asked {
    pub(crate) fn new(visitor: HmVisitor, user: *mut c_void) -> Asked {
        Asked { visitor, user, failure: None }
    }

    /// Shows a key to the visitor. A bad answer leaves the key as it is.
    pub(crate) fn ask(&mut self, key: &[u8], item: Option<&Item>) -> Update {
        let pair = item.map(|item| HmPair::of_item(key, item));
        let nothing = HmAttributes { flags: 0, expiry: 0, expiry_ms: 0, min_version: 0 };
        let value = crate::abi::HmBytes { data: ptr::null(), len: 0 };
        let mut change = HmChange { action: 0, reserved: 0, value, attributes: nothing };
        (self.visitor)(self.user, pair.as_ref().map_or(ptr::null(), ptr::from_ref), &mut change);
        update_from(&change).unwrap_or_else(|failure| {
            self.failure = Some(failure);
            Update::Keep
        })
    }

    /// The same of one key after the other, until an answer is bad: then every other key is kept.
    pub(crate) fn ask_unless_failed(&mut self, key: &[u8], item: &Item) -> Update {
        match self.failure {
            None => self.ask(key, Some(item)),
            Some(_) => Update::Keep,
        }
    }

    /// What was wrong with an answer.
    pub(crate) fn failed(self) -> Option<Failure> {
        self.failure
    }

    /// Reports what the whole call did.
    pub(crate) fn done(self, updated: Result<Updated, WriteError>, stored: &Maybe<HmStored>) -> Result<c_int, Failure> {
        let updated = updated?;
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        Ok(match updated {
            Updated::Unchanged => UNCHANGED,
            Updated::Removed => REMOVED,
            Updated::Stored(done) => {
                stored.put(done);
                OK
            }
        })
    }
}

fn update_from(change: &HmChange) -> Result<Update, Failure> {
    if change.reserved != 0 {
        return Err(Failure::Argument("change", "`reserved` is not 0"));
    }
    let value = || {
        // SAFETY: the visitor keeps what it answered with.
        unsafe { Bytes::read("change", change.value.data, change.value.len) }.map(<[u8]>::to_vec)
    };
    match change.action {
        0 => Ok(Update::Keep),
        1 => Ok(Update::Set(value()?)),
        2 => Ok(Update::SetWith(value()?, change.attributes.check()?)),
        3 => Ok(Update::Remove),
        _ => Err(Failure::Argument("change", "`action` is none of HM_KEEP, HM_SET, HM_SET_WITH and HM_REMOVE")),
    }
}

/// Changes a key as a visitor says, which is shown the key if it was named by its bytes.
fn visited<'k>(
    store: &Store,
    key: impl Into<Key<'k>>,
    mut asked: Asked,
    stored: &Maybe<HmStored>,
) -> Result<c_int, Failure> {
    let key = key.into();
    let bytes = match key {
        Key::Bytes(bytes) | Key::Hashed(bytes, _) => bytes,
        Key::Id(_) | Key::Uid(_) => &[],
    };
    let updated = store.update_with(key, |item| asked.ask(bytes, item));
    asked.done(updated, stored)
}

/// A change to a value with attributes.
fn to<'a>(value: &'a [u8], attributes: Attributes) -> Change<'a> {
    Change::SetWith(value, attributes)
}

export_by_key! {
    /// See `hashmere.h`.
    fn hm_cas_version | hm_cas_version_at(
        store,
        key,
        version: Plain = (version: u64),
        value: Bytes = (value: *const c_void, value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        Ok(compared(store.cas(key, at_version(version), to(value, attributes))?, &stored))
    }

    /// See `hashmere.h`.
    fn hm_cas_value | hm_cas_value_at(
        store,
        key,
        old: Bytes = (old: *const c_void, old_len: usize),
        value: Bytes = (value: *const c_void, value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        Ok(compared(store.cas(key, Expected::Value(old), to(value, attributes))?, &stored))
    }

    /// See `hashmere.h`.
    fn hm_delete_version | hm_delete_version_at(
        store,
        key,
        version: Plain = (version: u64),
    ) {
        let expected = Expected::Version(Version(version));
        Ok(compared(store.cas(key, expected, Change::Remove)?, &Maybe::none()))
    }

    /// See `hashmere.h`.
    fn hm_delete_value | hm_delete_value_at(
        store,
        key,
        old: Bytes = (old: *const c_void, old_len: usize),
    ) {
        Ok(compared(store.cas(key, Expected::Value(old), Change::Remove)?, &Maybe::none()))
    }

    /// See `hashmere.h`.
    fn hm_update_with | hm_update_with_at(
        store,
        key,
        visitor: Callback = (visitor: Option<HmVisitor>),
        user: Plain = (user: *mut c_void),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        visited(store, key, Asked::new(visitor, user), &stored)
    }
}
