//! The kinds of arguments: how raw ones become Rust's own, and which are refused.
//!
//! All `read` functions have the same contract.
//!
//! # Safety
//! What the raw arguments point at is valid, of the given length, and not changed by others (for an output: not used by
//! others) for as long as what was read is used; or they are NULL.

use crate::abi::{
    HmAttributes, HmBackupReport, HmCounter, HmFilter, HmFloatCounter, HmOptions, HmPoolOptions, HmPoolStats,
    HmQueueOptions, HmReport, HmSignedCounter, HmStats,
};
use crate::failure::Failure;
use crate::handle::HmStore;
use hashmere::{Attributes, Counter, Store, Ttl, Version};
use std::ffi::{c_char, c_void, CStr, OsStr};
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

/// Longest key or value.
const LEN_MAX: usize = u32::MAX as usize;

/// An open store.
pub(crate) struct Open;
impl Open {
    #[inline(always)]
    pub(crate) unsafe fn read<'a>(_: &'static str, store: *const HmStore) -> Result<&'a Store, Failure> {
        // SAFETY: as ours.
        unsafe { HmStore::store(store) }
    }
}

/// A key or a value.
pub(crate) struct Bytes;
impl Bytes {
    #[inline(always)]
    pub(crate) unsafe fn read<'a>(name: &'static str, data: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
        if len == 0 {
            return Ok(&[]);
        }
        if len > LEN_MAX {
            return Err(Failure::TooLarge(name, len));
        }
        if data.is_null() {
            return Err(Failure::Argument(name, "it is NULL, but its length is not 0"));
        }
        // SAFETY: not NULL and not empty, so `len` bytes are valid.
        Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
    }
}

/// Room for a key or a value.
pub(crate) struct Buffer;
impl Buffer {
    #[inline(always)]
    pub(crate) unsafe fn read<'a>(name: &'static str, data: *mut c_void, room: usize) -> Result<&'a mut [u8], Failure> {
        // No value is longer, and no slice may be as long as the largest `room` that can be passed.
        let room = room.min(LEN_MAX);
        if room == 0 {
            return Ok(&mut []);
        }
        if data.is_null() {
            return Err(Failure::Argument(name, "it is NULL, but its room is not 0"));
        }
        // SAFETY: not NULL and not empty, so `room` bytes are valid for writes. They come from outside of Rust, to
        // which they are bytes like any others.
        Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), room) })
    }
}

/// A name or path of a store.
pub(crate) struct Name;
impl Name {
    pub(crate) unsafe fn read<'a>(name: &'static str, text: *const c_char) -> Result<&'a Path, Failure> {
        if text.is_null() {
            return Err(Failure::Argument(name, "it is NULL"));
        }
        // SAFETY: not NULL, so NUL-terminated.
        let text = unsafe { CStr::from_ptr(text) };
        Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
    }
}

/// A name of a pool or a queue.
pub(crate) struct Label;
impl Label {
    pub(crate) unsafe fn read<'a>(name: &'static str, text: *const c_char) -> Result<&'a str, Failure> {
        if text.is_null() {
            return Err(Failure::Argument(name, "it is NULL"));
        }
        // SAFETY: not NULL, so NUL-terminated.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_str().map_err(|_| Failure::Argument(name, "it is not UTF-8"))
    }
}

/// Something that the library made, which several threads may use.
pub(crate) struct Shared;
impl Shared {
    #[inline(always)]
    pub(crate) unsafe fn read<'a, T: Sync>(name: &'static str, shared: *mut T) -> Result<&'a T, Failure> {
        // SAFETY: NULL or valid.
        unsafe { shared.as_ref() }.ok_or_else(|| Failure::Argument(name, "it is NULL"))
    }
}

/// Something that the library made for one thread at a time, or a structure of the caller's that is changed.
pub(crate) struct Owned;
impl Owned {
    #[inline(always)]
    pub(crate) unsafe fn read<'a, T>(name: &'static str, owned: *mut T) -> Result<&'a mut T, Failure> {
        // SAFETY: NULL or valid, and no other thread uses it during the call.
        unsafe { owned.as_mut() }.ok_or_else(|| Failure::Argument(name, "it is NULL"))
    }
}

/// Something that is passed on as it is: numbers, and the `user` of callbacks.
pub(crate) struct Plain;
impl Plain {
    #[inline(always)]
    pub(crate) unsafe fn read<T>(_: &'static str, value: T) -> Result<T, Failure> {
        Ok(value)
    }
}

/// A callback, which must be there.
pub(crate) struct Callback;
impl Callback {
    pub(crate) unsafe fn read<T>(name: &'static str, callback: Option<T>) -> Result<T, Failure> {
        callback.ok_or_else(|| Failure::Argument(name, "it is NULL"))
    }
}

/// Where a result goes.
pub(crate) struct Out<T>(NonNull<T>);
impl<T> Out<T> {
    #[inline(always)]
    pub(crate) unsafe fn read(name: &'static str, out: *mut T) -> Result<Out<T>, Failure> {
        // Not `ok_or`, which would make an error and drop it with every call.
        let is_null = || Failure::Argument(name, "it is NULL, but a result has to go there");
        NonNull::new(out).map(Out).ok_or_else(is_null)
    }

    #[inline(always)]
    pub(crate) fn put(&self, value: T) {
        // SAFETY: it was read as an output, so it is the caller's to write during the call. Nothing that is put
        // anywhere needs to be dropped.
        unsafe { self.0.write(value) };
    }
}

/// Where a result goes, or NULL if it is not wanted.
pub(crate) struct Maybe<T>(Option<Out<T>>);
impl<T> Maybe<T> {
    #[inline(always)]
    pub(crate) unsafe fn read(_: &'static str, out: *mut T) -> Result<Maybe<T>, Failure> {
        Ok(Maybe(NonNull::new(out).map(Out)))
    }

    /// Not wanted by the caller.
    pub(crate) fn none() -> Maybe<T> {
        Maybe(None)
    }

    #[inline(always)]
    pub(crate) fn put(&self, value: impl Into<T>) {
        if let Some(out) = &self.0 {
            out.put(value.into());
        }
    }
}

/// An expiry: its kind and its time.
pub(crate) struct Expiry;
impl Expiry {
    #[inline(always)]
    pub(crate) unsafe fn read(_: &'static str, kind: i32, ms: i64) -> Result<Ttl, Failure> {
        ttl(kind, ms)
    }
}

fn ttl(kind: i32, ms: i64) -> Result<Ttl, Failure> {
    let time = u64::try_from(ms).map_err(|_| Failure::Argument("expiry_ms", "it is negative"));
    match kind {
        0 => Ok(Ttl::Never),
        1 => Ok(Ttl::After(std::time::Duration::from_millis(time?))),
        2 => Ok(Ttl::At(time?)),
        _ => Err(Failure::Argument("expiry", "it is none of HM_NEVER, HM_AFTER and HM_AT")),
    }
}

impl HmAttributes {
    pub(crate) fn check(&self) -> Result<Attributes, Failure> {
        let (ttl, min_version) = (ttl(self.expiry, self.expiry_ms)?, Version(self.min_version));
        Ok(Attributes { flags: self.flags, ttl, min_version })
    }
}

/// Attributes; NULL is none.
pub(crate) struct Attached;
impl Attached {
    #[inline(always)]
    pub(crate) unsafe fn read(_: &'static str, attributes: *const HmAttributes) -> Result<Attributes, Failure> {
        // SAFETY: NULL or valid.
        unsafe { attributes.as_ref() }.map_or(Ok(Attributes::NONE), HmAttributes::check)
    }
}

/// How a missing counter is created.
pub(crate) trait Creation: Copy {
    /// What it counts with.
    type Number;
    /// With what, and what is attached to it.
    fn parts(self) -> (Self::Number, HmAttributes);
}

macro_rules! creations {
    ($($name:ident: $number:ty;)*) => {$(
        impl Creation for $name {
            type Number = $number;
            fn parts(self) -> ($number, HmAttributes) {
                (self.initial, self.attributes)
            }
        }
    )*};
}
creations! {
    HmCounter: u64;
    HmSignedCounter: i64;
    HmFloatCounter: f64;
}

/// How a missing counter is created; NULL: not at all.
pub(crate) struct Create;
impl Create {
    #[inline(always)]
    pub(crate) unsafe fn read<C: Creation>(_: &'static str, counter: *const C) -> Result<Counter<C::Number>, Failure> {
        // SAFETY: NULL or valid.
        let Some(counter) = (unsafe { counter.as_ref() }) else { return Ok(Counter::EXISTING) };
        let (initial, attributes) = counter.parts();
        Ok(Counter { initial: Some(initial), attributes: attributes.check()? })
    }
}

/// A structure with a `size` that may be shorter or longer than ours, all bits of which are good for any value.
///
/// # Safety
/// `repr(C)`, made of integers, pointers and such structures, beginning with `size: usize`.
pub(crate) unsafe trait Versioned: Copy {
    /// Its name in the header, for messages.
    const NAME: &'static str;
}
// SAFETY: it is.
unsafe impl Versioned for HmOptions {
    const NAME: &'static str = "options";
}
// SAFETY: it is.
unsafe impl Versioned for HmFilter {
    const NAME: &'static str = "filter";
}
// SAFETY: it is.
unsafe impl Versioned for HmStats {
    const NAME: &'static str = "stats";
}
// SAFETY: it is.
unsafe impl Versioned for HmReport {
    const NAME: &'static str = "report";
}

// SAFETY: it is.
unsafe impl Versioned for HmBackupReport {
    const NAME: &'static str = "report";
}
// SAFETY: it is.
unsafe impl Versioned for HmPoolOptions {
    const NAME: &'static str = "options";
}
// SAFETY: it is.
unsafe impl Versioned for HmQueueOptions {
    const NAME: &'static str = "options";
}
// SAFETY: it is.
unsafe impl Versioned for HmPoolStats {
    const NAME: &'static str = "stats";
}

/// Length that a caller gives its structure. One beyond a page is a mistake, or was never set.
fn size_of_versioned<T: Versioned>(size: usize) -> Result<usize, Failure> {
    if size < 2 * size_of::<usize>() || size > 4096 {
        return Err(Failure::Argument(T::NAME, "its `size` is not set to the sizeof of the structure"));
    }
    Ok(size)
}

/// A versioned structure that the caller fills; NULL is all zero. Fields that it does not have are zero; fields that we
/// do not know must be.
pub(crate) struct Input<T>(std::marker::PhantomData<T>);
impl<T: Versioned> Input<T> {
    pub(crate) unsafe fn read(_: &'static str, input: *const T) -> Result<T, Failure> {
        // SAFETY: of such a structure all bits may be zero.
        let mut known: T = unsafe { std::mem::zeroed() };
        if input.is_null() {
            return Ok(known);
        }
        // SAFETY: not NULL, so at least its size is valid.
        let size = size_of_versioned::<T>(unsafe { input.cast::<usize>().read() })?;
        let shared = size.min(size_of::<T>());
        // SAFETY: `size` bytes are valid; any bytes make a `T`.
        unsafe { std::ptr::copy_nonoverlapping(input.cast::<u8>(), (&raw mut known).cast::<u8>(), shared) };
        for at in shared..size {
            // SAFETY: `size` bytes are valid.
            if unsafe { input.cast::<u8>().add(at).read() } != 0 {
                return Err(Failure::Argument(T::NAME, "it has fields that this version of the library does not know"));
            }
        }
        Ok(known)
    }
}

/// A versioned structure that we fill, as far as the caller knows it.
pub(crate) struct Filled<T> {
    out: NonNull<T>,
    size: usize,
}
impl<T: Versioned> Filled<T> {
    pub(crate) unsafe fn read(name: &'static str, out: *mut T) -> Result<Filled<T>, Failure> {
        let out =
            NonNull::new(out).ok_or_else(|| Failure::Argument(name, "it is NULL, but a result has to go there"))?;
        // SAFETY: not NULL, so at least its size is valid.
        let size = size_of_versioned::<T>(unsafe { out.cast::<usize>().read() })?;
        Ok(Filled { out, size })
    }

    /// Fills everything behind `size`; what only the caller knows becomes zero.
    pub(crate) fn put(&self, value: T) {
        const HEAD: usize = size_of::<usize>();
        let shared = self.size.min(size_of::<T>());
        let out = self.out.cast::<u8>();
        // SAFETY: `size` bytes are the caller's to write during the call, and both ranges lie within them.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (&raw const value).cast::<u8>().add(HEAD),
                out.add(HEAD).as_ptr(),
                shared - HEAD,
            );
            out.add(shared).write_bytes(0, self.size - shared);
        }
    }
}

/// The same, or NULL if it is not wanted.
pub(crate) struct MaybeFilled<T>(Option<Filled<T>>);
impl<T: Versioned> MaybeFilled<T> {
    pub(crate) unsafe fn read(name: &'static str, out: *mut T) -> Result<MaybeFilled<T>, Failure> {
        if out.is_null() {
            return Ok(MaybeFilled(None));
        }
        // SAFETY: as ours.
        unsafe { Filled::read(name, out) }.map(|filled| MaybeFilled(Some(filled)))
    }

    pub(crate) fn put(&self, value: T) {
        if let Some(filled) = &self.0 {
            filled.put(value);
        }
    }
}
