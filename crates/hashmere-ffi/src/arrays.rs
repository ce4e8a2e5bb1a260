//! Several arguments in arrays: keys, keys with values, keys with versions.
//!
//! # Safety
//! That of `args`.

use crate::abi::HmBytes;
use crate::args::Bytes;
use crate::failure::Failure;
use std::mem::size_of;

/// One of several keys or values, checked.
#[repr(transparent)]
pub(crate) struct Checked(HmBytes);

impl AsRef<[u8]> for Checked {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        if self.0.len == 0 {
            return &[];
        }
        // SAFETY: `Many::read` made it, so that it is not NULL, and valid for as long as this is.
        unsafe { std::slice::from_raw_parts(self.0.data.cast(), self.0.len) }
    }
}

/// An array of keys or values.
pub(crate) struct Many;
impl Many {
    pub(crate) unsafe fn read<'a>(
        name: &'static str,
        items: *const HmBytes,
        count: usize,
    ) -> Result<&'a [Checked], Failure> {
        if count == 0 {
            return Ok(&[]);
        }
        if items.is_null() {
            return Err(Failure::Argument(name, "it is NULL, but there is more than nothing in it"));
        }
        if count > isize::MAX as usize / size_of::<HmBytes>() {
            return Err(Failure::Argument("count", "no array can have this many elements"));
        }
        // SAFETY: not NULL, so `count` elements are valid. `Checked` is laid out as they are.
        let items: &[Checked] = unsafe { std::slice::from_raw_parts(items.cast(), count) };
        for item in items {
            // SAFETY: valid, as all that the arguments lead to.
            unsafe { Bytes::read(name, item.0.data, item.0.len) }?;
        }
        Ok(items)
    }
}

/// Two arrays of the same length.
pub(crate) struct Pairs;
impl Pairs {
    pub(crate) unsafe fn read<'a>(
        _: &'static str,
        keys: *const HmBytes,
        values: *const HmBytes,
        count: usize,
    ) -> Result<(&'a [Checked], &'a [Checked]), Failure> {
        // SAFETY: as ours.
        unsafe { Ok((Many::read("keys", keys, count)?, Many::read("values", values, count)?)) }
    }
}

/// Keys, and what was seen of each.
pub(crate) struct Watched;
impl Watched {
    pub(crate) unsafe fn read<'a>(
        _: &'static str,
        keys: *const HmBytes,
        seen: *const u64,
        count: usize,
    ) -> Result<(&'a [Checked], &'a [u64]), Failure> {
        // SAFETY: as ours.
        let keys = unsafe { Many::read("keys", keys, count) }?;
        if keys.is_empty() {
            return Ok((keys, &[]));
        }
        if seen.is_null() {
            return Err(Failure::Argument("seen", "it is NULL, but there are keys"));
        }
        // SAFETY: not NULL, so `count` numbers are valid, and an array of as many larger elements was found to be
        // possible.
        Ok((keys, unsafe { std::slice::from_raw_parts(seen, count) }))
    }
}
