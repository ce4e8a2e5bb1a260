//! An element in the endpoint: its bytes, exclusively; taken from a queue and passed on.

use crate::endpoint::{bytes_of, bytes_of_mut, Endpoint};
use crate::error::QueueError;
use crate::queue::Queue;
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

impl Endpoint {
    /// Takes the first element of a queue. `None`: it is empty.
    ///
    /// # Errors
    /// [`Taken`](QueueError::Taken) if the queue has one consumer at a time, and this is another;
    /// [`TooMany`](QueueError::TooMany) if this endpoint holds 64 elements already;
    /// [`OtherPool`](QueueError::OtherPool), [`Forked`](QueueError::Forked); the store's errors when it looks for
    /// crashed processes.
    #[inline]
    pub fn pop(&self, from: &Queue) -> Result<Option<Element<'_>>, QueueError> {
        Ok(self.pop_slot(from)?.map(|(slot, element)| Element::new(self, slot, element)))
    }

    /// Pushes an element to one queue and pops one from another: the step of a stage that passes on what it was given.
    /// If the first queue is full the element is returned in `Err` of the inner result, and nothing was popped.
    ///
    /// # Errors
    /// As [`pop`](Self::pop) and [`Element::push`].
    #[inline]
    pub fn push_pop<'h>(
        &'h self,
        element: Element<'h>,
        to: &Queue,
        from: &Queue,
    ) -> Result<Result<Option<Element<'h>>, Element<'h>>, QueueError> {
        match element.push(to)? {
            Some(back) => Ok(Err(back)),
            None => self.pop(from).map(Ok),
        }
    }
}

#[inline(always)]
fn aligned<T>(bytes: &[u8]) -> &[u8] {
    let fits = size_of::<T>() <= bytes.len() && bytes.as_ptr().align_offset(align_of::<T>()) == 0;
    assert!(fits, "the type does not fit an element of {} bytes", bytes.len());
    bytes
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
