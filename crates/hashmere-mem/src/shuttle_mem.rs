//! Memory whose every access is a scheduling point of the model checker `shuttle`.

use crate::words::Words;
use crate::{BackError, HeapMem, Mem};
use shuttle::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// [`Mem`] under the scheduler of `shuttle`: threads can change places before every access.
///
/// The bytes are a [`HeapMem`]'s and not one `shuttle` atomic per word: of those a memory of a
/// megabyte would hold a hundred thousand, and [`Mem::slice`] has to give out plain
/// bytes. Instead each access is preceded by one to a single `shuttle` atomic, which is where the
/// scheduler steps in; since only one thread runs at a time, that is the same. What
/// it explores is interleavings: memory is sequentially consistent, whatever the orders say.
///
/// Only to be used inside a `shuttle` execution. [`Mem::zero`], [`Mem::back`] and
/// [`Mem::unback`] are one step each.
#[derive(Debug)]
pub struct ShuttleMem {
    heap: HeapMem,
    point: AtomicU64,
}

impl ShuttleMem {
    /// Memory of `capacity` bytes, as [`HeapMem::new`].
    pub fn new(capacity: u64) -> ShuttleMem {
        ShuttleMem::from_heap(HeapMem::new(capacity))
    }

    /// Memory on what `heap` holds, with its limits: an image prepared outside the scheduler.
    pub fn from_heap(heap: HeapMem) -> ShuttleMem {
        ShuttleMem { heap, point: AtomicU64::new(0) }
    }

    /// The bytes themselves, whose use is no scheduling point.
    pub fn heap(&self) -> &HeapMem {
        &self.heap
    }

    /// Lets the scheduler choose who goes on.
    #[inline]
    fn step(&self) -> &HeapMem {
        self.point.load(Ordering::SeqCst);
        &self.heap
    }
}

impl Words for ShuttleMem {
    fn load_word(&self, off: u64) -> u64 {
        self.step().load_word(off)
    }

    fn store_word(&self, off: u64, value: u64) {
        self.step().store_word(off, value);
    }
}

impl Mem for ShuttleMem {
    const STEPPED: bool = true;

    fn capacity(&self) -> u64 {
        self.heap.capacity()
    }

    fn load(&self, off: u64, order: Ordering) -> u64 {
        self.step().load(off, order)
    }

    fn store(&self, off: u64, value: u64, order: Ordering) {
        self.step().store(off, value, order);
    }

    fn compare_exchange(&self, off: u64, current: u64, new: u64) -> Result<u64, u64> {
        self.step().compare_exchange(off, current, new)
    }

    fn has_pairs(&self) -> bool {
        self.heap.has_pairs()
    }

    fn compare_exchange_pair(&self, off: u64, current: [u64; 2], new: [u64; 2]) -> bool {
        self.step().compare_exchange_pair(off, current, new)
    }

    fn swap(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.step().swap(off, value, order)
    }

    fn fetch_add(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.step().fetch_add(off, value, order)
    }

    fn fetch_or(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.step().fetch_or(off, value, order)
    }

    fn fence(&self, order: Ordering) {
        self.heap.fence(order);
    }

    crate::bytes_by_words!();

    fn zero(&self, off: u64, len: u64) {
        self.step().zero(off, len);
    }

    unsafe fn slice(&self, off: u64, len: usize) -> &[u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { self.step().slice(off, len) }
    }

    unsafe fn slice_mut(&self, off: u64, len: usize) -> &mut [u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { self.step().slice_mut(off, len) }
    }

    fn back(&self, off: u64, len: u64) -> Result<(), BackError> {
        self.step().back(off, len)
    }

    fn unback(&self, off: u64, len: u64) -> bool {
        self.step().unback(off, len)
    }

    fn wait(&self, off: u64, expected: u32, _timeout: Duration) {
        if self.heap.load(off, Ordering::Acquire) as u32 == expected {
            shuttle::thread::yield_now();
        }
    }

    fn wake(&self, _off: u64) {}

    fn relax(&self) {
        shuttle::thread::yield_now();
    }
}
