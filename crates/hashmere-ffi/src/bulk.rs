//! Several keys at once.

use crate::abi::{HmAttributes, HmBytes, HmShowValue};
use crate::args::{Attached, Callback, Maybe, Open, Plain};
use crate::arrays::{Many, Pairs};
use crate::handle::HmStore;
use crate::result::OK;
use hashmere::{Attributes, Store, WriteError};
use std::ffi::c_void;
use std::ptr;

/// As many pairs as the engine fetches ahead of itself.
const BATCH: usize = 32;

/// Stores pairs without attributes, from two arrays.
fn set_plain<B: AsRef<[u8]>>(store: &Store, keys: &[B], values: &[B]) -> Result<(), WriteError> {
    let empty: &[u8] = &[];
    for (keys, values) in keys.chunks(BATCH).zip(values.chunks(BATCH)) {
        let mut pairs = [(empty, empty); BATCH];
        for (pair, (key, value)) in pairs.iter_mut().zip(keys.iter().zip(values)) {
            *pair = (key.as_ref(), value.as_ref());
        }
        store.set_many(pairs.get(..keys.len()).unwrap_or(&[]))?;
    }
    Ok(())
}

export! {
    /// See `hashmere.h`.
    fn hm_get_many(
        store: Open = (store: *mut HmStore),
        keys: Many = (keys: *const HmBytes, count: usize),
        show: Callback = (show: Option<HmShowValue>),
        user: Plain = (user: *mut c_void),
    ) {
        let mut goes_on = true;
        store.get_many_with(keys, |index, value| {
            if goes_on {
                let value = value.map(HmBytes::from);
                goes_on = show(user, index, value.as_ref().map_or(ptr::null(), ptr::from_ref)) == 0;
            }
        })?;
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_set_many(
        store: Open = (store: *mut HmStore),
        pairs: Pairs = (keys: *const HmBytes, values: *const HmBytes, count: usize),
        attributes: Attached = (attributes: *const HmAttributes),
    ) {
        let (keys, values) = pairs;
        if attributes == Attributes::NONE {
            set_plain(store, keys, values)?;
        } else {
            for (key, value) in keys.iter().zip(values) {
                store.set_with(key.as_ref(), value.as_ref(), attributes)?;
            }
        }
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_delete_many(
        store: Open = (store: *mut HmStore),
        keys: Many = (keys: *const HmBytes, count: usize),
        removed: Maybe<usize> = (removed: *mut usize),
    ) {
        removed.put(store.delete_many(keys)?);
        Ok(OK)
    }
}
