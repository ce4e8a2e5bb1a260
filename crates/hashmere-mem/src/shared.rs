//! One memory with several owners: what a second client of the same process sees is the same bytes.

use crate::{AddressLimit, BackError, Mem};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

impl<M: Mem> Mem for Arc<M> {
    const STEPPED: bool = M::STEPPED;

    #[inline]
    fn capacity(&self) -> u64 {
        (**self).capacity()
    }

    fn capacity_limit(&self) -> u64 {
        (**self).capacity_limit()
    }

    fn extend(&self, end: u64) -> bool {
        (**self).extend(end)
    }

    fn address_limit(&self, end: u64) -> AddressLimit {
        (**self).address_limit(end)
    }

    fn size(&self) -> u64 {
        (**self).size()
    }

    #[inline]
    fn load(&self, off: u64, order: Ordering) -> u64 {
        (**self).load(off, order)
    }

    #[inline]
    fn store(&self, off: u64, value: u64, order: Ordering) {
        (**self).store(off, value, order);
    }

    #[inline]
    fn agreeing(&self, first: u64, second: u64, pattern: u32, mask: u32) -> u32 {
        (**self).agreeing(first, second, pattern, mask)
    }

    fn compare_exchange(&self, off: u64, current: u64, new: u64) -> Result<u64, u64> {
        (**self).compare_exchange(off, current, new)
    }

    #[inline]
    fn has_pairs(&self) -> bool {
        (**self).has_pairs()
    }

    #[inline]
    fn compare_exchange_pair(&self, off: u64, current: [u64; 2], new: [u64; 2]) -> bool {
        (**self).compare_exchange_pair(off, current, new)
    }

    #[inline]
    fn swap(&self, off: u64, value: u64, order: Ordering) -> u64 {
        (**self).swap(off, value, order)
    }

    #[inline]
    fn fetch_add(&self, off: u64, value: u64, order: Ordering) -> u64 {
        (**self).fetch_add(off, value, order)
    }

    #[inline]
    fn fetch_or(&self, off: u64, value: u64, order: Ordering) -> u64 {
        (**self).fetch_or(off, value, order)
    }

    #[inline]
    fn fence(&self, order: Ordering) {
        (**self).fence(order);
    }

    #[inline]
    fn prefetch(&self, off: u64) {
        (**self).prefetch(off);
    }

    #[inline]
    fn read(&self, off: u64, dst: &mut [u8]) {
        (**self).read(off, dst);
    }

    #[inline]
    fn append_to(&self, off: u64, len: usize, dst: &mut Vec<u8>) {
        (**self).append_to(off, len, dst);
    }

    #[inline]
    fn write(&self, off: u64, src: &[u8]) {
        (**self).write(off, src);
    }

    #[inline]
    fn matches(&self, off: u64, bytes: &[u8]) -> bool {
        (**self).matches(off, bytes)
    }

    #[inline]
    fn copy(&self, from: u64, to: u64, len: u64) {
        (**self).copy(from, to, len);
    }

    #[inline]
    fn zero(&self, off: u64, len: u64) {
        (**self).zero(off, len);
    }

    unsafe fn slice(&self, off: u64, len: usize) -> &[u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).slice(off, len) }
    }

    unsafe fn slice_mut(&self, off: u64, len: usize) -> &mut [u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).slice_mut(off, len) }
    }

    fn back(&self, off: u64, len: u64) -> Result<(), BackError> {
        (**self).back(off, len)
    }

    fn back_block(&self, off: u64) {
        (**self).back_block(off);
    }

    fn unback(&self, off: u64, len: u64) -> bool {
        (**self).unback(off, len)
    }

    fn sync(&self) -> std::io::Result<()> {
        (**self).sync()
    }

    fn wait(&self, off: u64, expected: u32, timeout: Duration) {
        (**self).wait(off, expected, timeout);
    }

    fn wake(&self, off: u64) {
        (**self).wake(off);
    }

    #[inline]
    fn relax(&self) {
        (**self).relax();
    }
}
