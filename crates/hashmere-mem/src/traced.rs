//! For tests: memory on which a client dies after `n` stores, lets another client act before one of its accesses, or
//! finds something else than is there.

use crate::words::{self, Words};
use crate::{BackError, HeapMem, Mem, Scribbler};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The payload of the panic that is a client's death.
struct Killed;

type Hook = Box<dyn FnOnce() + Send>;

/// The memory as one client reaches it.
pub struct Traced<M = HeapMem> {
    heap: Arc<M>,
    stores: AtomicU64,
    fuse: AtomicU64,
    accesses: AtomicU64,
    hook: Mutex<Option<(u64, Hook)>>,
    scribbler: Mutex<Option<Scribbler>>,
}

impl<M: Mem> Traced<M> {
    /// Its view of this memory.
    pub fn new(heap: &Arc<M>) -> Traced<M> {
        Traced {
            heap: heap.clone(),
            stores: AtomicU64::new(0),
            fuse: AtomicU64::new(u64::MAX),
            accesses: AtomicU64::new(0),
            hook: Mutex::new(None),
            scribbler: Mutex::new(None),
        }
    }

    /// The client dies before its store of this number, from 0.
    pub fn die_at(&self, store: u64) {
        self.fuse.store(store, Ordering::Relaxed);
    }

    /// Runs `act` before the client's access of this number, from 0.
    pub fn interrupt(&self, access: u64, act: impl FnOnce() + Send + 'static) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some((access, Box::new(act)));
    }

    /// From now on the scribbler decides what the client finds.
    pub fn scribble(&self, scribbler: Scribbler) {
        *self.scribbler.lock().unwrap_or_else(PoisonError::into_inner) = Some(scribbler);
    }

    fn found(&self, value: u64) -> u64 {
        let mut scribbler = self.scribbler.lock().unwrap_or_else(PoisonError::into_inner);
        scribbler.as_mut().map_or(value, |scribbler| scribbler.found(value))
    }

    /// How many stores it made so far.
    pub fn stores(&self) -> u64 {
        self.stores.load(Ordering::Relaxed)
    }

    /// How many accesses it made so far.
    pub fn accesses(&self) -> u64 {
        self.accesses.load(Ordering::Relaxed)
    }

    fn access(&self) -> &M {
        let n = self.accesses.fetch_add(1, Ordering::Relaxed);
        assert!(n < 10_000_000, "the operation does not end");
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        if hook.as_ref().is_some_and(|(at, _)| *at == n) {
            if let Some((_, act)) = hook.take() {
                drop(hook);
                act();
            }
        }
        &self.heap
    }

    fn writing(&self) -> &M {
        let heap = self.access();
        if self.stores.load(Ordering::Relaxed) >= self.fuse.load(Ordering::Relaxed) {
            panic::resume_unwind(Box::new(Killed));
        }
        self.stores.fetch_add(1, Ordering::Relaxed);
        heap
    }
}

/// Runs what a client does up to its end or its death: `None`.
pub fn until_death<R>(act: impl FnOnce() -> R) -> Option<R> {
    match panic::catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => Some(result),
        Err(payload) if payload.is::<Killed>() => None,
        Err(payload) => panic::resume_unwind(payload),
    }
}

impl<M: Mem> std::fmt::Debug for Traced<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traced").field("stores", &self.stores()).finish_non_exhaustive()
    }
}

impl<M: Mem> Words for Traced<M> {
    fn load_word(&self, off: u64) -> u64 {
        self.found(self.access().load(off, Ordering::Relaxed))
    }

    fn store_word(&self, off: u64, value: u64) {
        self.writing().store(off, value, Ordering::Relaxed);
    }
}

impl<M: Mem> Mem for Traced<M> {
    const STEPPED: bool = M::STEPPED;

    fn capacity(&self) -> u64 {
        self.heap.capacity()
    }

    fn load(&self, off: u64, order: Ordering) -> u64 {
        self.found(self.access().load(off, order))
    }

    fn store(&self, off: u64, value: u64, order: Ordering) {
        self.writing().store(off, value, order);
    }

    fn compare_exchange(&self, off: u64, current: u64, new: u64) -> Result<u64, u64> {
        // One that fails stores nothing, so no crash can be placed just before it.
        match self.access().load(off, Ordering::Relaxed) {
            now if now == current => self.writing().compare_exchange(off, current, new),
            now => Err(self.found(now)),
        }
    }

    fn has_pairs(&self) -> bool {
        self.heap.has_pairs()
    }

    fn compare_exchange_pair(&self, off: u64, current: [u64; 2], new: [u64; 2]) -> bool {
        let now = [off, off + 8].map(|off| self.access().load(off, Ordering::Relaxed));
        now == current && self.writing().compare_exchange_pair(off, current, new)
    }

    fn swap(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.found(self.writing().swap(off, value, order))
    }

    fn fetch_add(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.found(self.writing().fetch_add(off, value, order))
    }

    fn fetch_or(&self, off: u64, value: u64, order: Ordering) -> u64 {
        self.found(self.writing().fetch_or(off, value, order))
    }

    fn fence(&self, order: Ordering) {
        self.heap.fence(order);
    }

    crate::bytes_by_words!();

    fn zero(&self, off: u64, len: u64) {
        words::zero(self, off, len);
    }

    unsafe fn slice(&self, off: u64, len: usize) -> &[u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { self.heap.slice(off, len) }
    }

    unsafe fn slice_mut(&self, off: u64, len: usize) -> &mut [u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { self.heap.slice_mut(off, len) }
    }

    fn back(&self, off: u64, len: u64) -> Result<(), BackError> {
        self.heap.back(off, len)
    }

    fn unback(&self, off: u64, len: u64) -> bool {
        self.heap.unback(off, len)
    }

    fn wait(&self, off: u64, expected: u32, timeout: Duration) {
        self.heap.wait(off, expected, timeout);
    }

    fn wake(&self, _off: u64) {
        self.access();
    }

    fn relax(&self) {
        self.heap.relax();
    }
}
