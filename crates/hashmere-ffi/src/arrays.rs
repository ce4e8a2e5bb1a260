//! Several arguments in arrays: keys, keys with values, keys with versions, conditions.
//!
//! # Safety
//! That of `args`.

use crate::abi::{HmBytes, HmCondition};
use crate::args::Bytes;
use crate::failure::Failure;
use hashmere::{Condition, Version};
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

/// Room for process ids.
pub(crate) struct Pids;
impl Pids {
    pub(crate) unsafe fn read<'a>(name: &'static str, pids: *mut u32, room: usize) -> Result<&'a mut [u32], Failure> {
        // No lock has more holders, and no slice may be as long as the largest `room` that can be passed.
        let room = room.min(u32::MAX as usize);
        if room == 0 {
            return Ok(&mut []);
        }
        if pids.is_null() {
            return Err(Failure::Argument(name, "it is NULL, but its room is not 0"));
        }
        // SAFETY: not NULL, so `room` numbers are valid for writes.
        Ok(unsafe { std::slice::from_raw_parts_mut(pids, room) })
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

/// `hm_condition_kind`.
const IF_ABSENT: u32 = 0;
const IF_PRESENT: u32 = 1;
const IF_VERSION: u32 = 2;
const IF_VALUE: u32 = 3;

/// Conditions.
pub(crate) struct Conditions;
impl Conditions {
    pub(crate) unsafe fn read<'a>(
        name: &'static str,
        conditions: *const HmCondition,
        count: usize,
    ) -> Result<Vec<Condition<'a>>, Failure> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if conditions.is_null() {
            return Err(Failure::Argument(name, "it is NULL, but there is more than nothing in it"));
        }
        if count > isize::MAX as usize / size_of::<HmCondition>() {
            return Err(Failure::Argument("count", "no array can have this many elements"));
        }
        // SAFETY: not NULL, so `count` elements are valid.
        let conditions: &[HmCondition] = unsafe { std::slice::from_raw_parts(conditions, count) };
        // SAFETY: valid, as all that the arguments lead to.
        conditions.iter().map(|condition| unsafe { Self::one(name, condition) }).collect()
    }

    unsafe fn one<'a>(name: &'static str, condition: &HmCondition) -> Result<Condition<'a>, Failure> {
        let HmCondition { key, value, version, kind, reserved } = *condition;
        let wrong = |what| Err(Failure::Argument(name, what));
        // SAFETY: as ours.
        let (key, value) = unsafe {
            (Bytes::read("conditions.key", key.data, key.len)?, Bytes::read("conditions.value", value.data, value.len)?)
        };
        match kind {
            _ if reserved != 0 => wrong("a `reserved` is not 0"),
            IF_ABSENT | IF_PRESENT | IF_VALUE if version != 0 => wrong("one that is not HM_IF_VERSION has a `version`"),
            IF_ABSENT | IF_PRESENT | IF_VERSION if !value.is_empty() => {
                wrong("one that is not HM_IF_VALUE has a `value`")
            }
            IF_ABSENT => Ok(Condition::Absent(key)),
            IF_PRESENT => Ok(Condition::Present(key)),
            IF_VERSION => Ok(Condition::Version(key, Version(version))),
            IF_VALUE => Ok(Condition::Value(key, value)),
            _ => wrong("a `kind` is none of HM_IF_ABSENT, HM_IF_PRESENT, HM_IF_VERSION and HM_IF_VALUE"),
        }
    }
}
