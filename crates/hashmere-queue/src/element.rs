//! An element in the endpoint: its bytes, exclusively.

use crate::endpoint::Endpoint;
use crate::error::QueueError;
use crate::queue::Queue;
use hashmere_mem::{MapMem, Mem};
use std::ops::{Deref, DerefMut};

/// Types that may be looked at in the bytes of an element.
///
/// # Safety
/// - Every pattern of bits is a value of the type: no padding, references, `bool` or enums in it.
/// - It needs no more alignment than 64 bytes, and is not changed through a shared reference, except by atomics.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($type:ty),*) => {$(
        // SAFETY: a number without padding.
        unsafe impl Plain for $type {}
    )*};
}
plain!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);
// SAFETY: elements of an array have no gaps.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// An element that this process holds: no other process reads or writes its bytes. Dropping it puts it back to where it
/// came from.
#[must_use = "dropping an element puts it back into the queue it came from"]
pub struct Element<'h> {
    endpoint: &'h Endpoint,
    slot: u32,
    index: u32,
}

impl<'h> Element<'h> {
    #[inline(always)]
    pub(crate) fn new(endpoint: &'h Endpoint, slot: u32, index: u32) -> Element<'h> {
        Element { endpoint, slot, index }
    }

    /// Its index in the pool, from 0: it stays the same forever.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Puts it at the end of a queue. If that has reached its bound the element is returned.
    ///
    /// # Errors
    /// [`Taken`](QueueError::Taken), [`OtherPool`](QueueError::OtherPool), [`Forked`](QueueError::Forked); the element
    /// goes back to where it came from.
    #[inline]
    pub fn push(self, to: &Queue) -> Result<Option<Element<'h>>, QueueError> {
        if self.endpoint.push_slot(to, self.slot, self.index)? {
            std::mem::forget(self);
            return Ok(None);
        }
        Ok(Some(self))
    }

    /// The element as a value of another type, at its start.
    ///
    /// # Panics
    /// If the type is longer than an element, or needs more alignment than one has.
    #[inline]
    pub fn view<T: Plain>(&self) -> &T {
        let bytes = aligned::<T>(self);
        // SAFETY: `aligned` checked length and alignment, and any bits are a value of `T`.
        unsafe { &*bytes.as_ptr().cast() }
    }

    /// The same to write.
    ///
    /// # Panics
    /// As [`view`](Self::view).
    #[inline]
    pub fn view_mut<T: Plain>(&mut self) -> &mut T {
        aligned::<T>(self);
        // SAFETY: as in `view`; the slice is borrowed mutably.
        unsafe { &mut *self.as_mut_ptr().cast() }
    }
}

#[inline(always)]
fn aligned<T>(bytes: &[u8]) -> &[u8] {
    let fits = size_of::<T>() <= bytes.len() && bytes.as_ptr().align_offset(align_of::<T>()) == 0;
    assert!(fits, "the type does not fit an element of {} bytes", bytes.len());
    bytes
}

/// The bytes of an element.
///
/// # Safety
/// The caller holds the element and endpoints the bytes out in keeping with Rust's rules: shared, or once mutably.
#[inline(always)]
pub(crate) unsafe fn bytes_of(mem: &MapMem, offset: u64, len: usize) -> &[u8] {
    // SAFETY: the offset was computed from a checked index; who holds an element is alone with it.
    unsafe { mem.slice(offset, len) }
}

/// The same to write.
///
/// # Safety
/// As [`bytes_of`], mutably.
#[inline(always)]
#[allow(clippy::mut_from_ref)]
pub(crate) unsafe fn bytes_of_mut(mem: &MapMem, offset: u64, len: usize) -> &mut [u8] {
    // SAFETY: as above.
    unsafe { mem.slice_mut(offset, len) }
}

impl Deref for Element<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the endpoint holds the element, and borrows follow those of `self`.
        unsafe { bytes_of(self.endpoint.mem(), self.endpoint.offset_of(self.index), self.endpoint.element_len()) }
    }
}

impl DerefMut for Element<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, mutably.
        unsafe { bytes_of_mut(self.endpoint.mem(), self.endpoint.offset_of(self.index), self.endpoint.element_len()) }
    }
}

impl Drop for Element<'_> {
    fn drop(&mut self) {
        self.endpoint.put_back(self.slot);
    }
}

impl std::fmt::Debug for Element<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Element").field("index", &self.index).finish_non_exhaustive()
    }
}
