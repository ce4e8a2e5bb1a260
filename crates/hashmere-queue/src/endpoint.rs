//! An endpoint: what one thread does with the queues of a pool, and what it holds until that is done.

use crate::error::QueueError;
use crate::layout::{endpoint, queue, Held};
use crate::open_pool::OpenPool;
use crate::queue::Queue;
use crate::ring::EndpointLayout;
use crate::transfer::{pop_many, pop_one, push_many, push_one, wake_sleepers, Push};
use hashmere_mem::{MapMem, Mem};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a pop must find nothing before it looks whether crashed processes hold what it waits for.
const LOOK_EVERY: u32 = 4096;
/// And how long at least from one such look to the next.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// Looks at a queue before a wait of a new endpoint goes to sleep.
pub(crate) const SPINS_MIN: u32 = 16;
/// How often the processor rests between two looks. A look takes the line from the processor that is about to write to
/// it, which then has to fetch it back: looks that follow each other at once make a message a fifth slower.
const RESTS: u32 = 2;

/// Between two looks at a queue in which there was nothing.
#[inline(always)]
pub(crate) fn rest<M: Mem>(mem: &M) {
    (0..RESTS).for_each(|_| mem.relax());
}

/// Takes part in a pool. Not shared between threads: each has its own. What it holds is stored in the file: should this
/// process die, it is given back.
///
/// An endpoint has up to 64 elements that were popped one by one, and a batch. Dropping it gives back all that it
/// holds.
pub struct Endpoint {
    pub(crate) pool: Arc<OpenPool>,
    pub(crate) layout: EndpointLayout,
    /// Single slots that are free, one bit each.
    free: Cell<u64>,
    empty: Cell<u32>,
    looked: Cell<Instant>,
    pub(crate) spins: Cell<u32>,
}

impl Endpoint {
    pub(crate) fn new(pool: &Arc<OpenPool>) -> Result<Endpoint, QueueError> {
        if !pool.region.is_ours() {
            return Err(QueueError::Forked);
        }
        let me = pool.region.store().client()?;
        let mut layout = pool.core().take_endpoint(me);
        if layout.is_none() {
            pool.recover()?;
            layout = pool.core().take_endpoint(me);
        }
        let layout = layout
            .ok_or(QueueError::TooMany("all endpoints of the pool are in use; drop some, or create it with more"))?;
        let spins = Cell::new(SPINS_MIN);
        let looked = Cell::new(Instant::now());
        Ok(Endpoint { pool: pool.clone(), layout, free: Cell::new(u64::MAX), empty: Cell::new(0), looked, spins })
    }

    #[inline(always)]
    pub(crate) fn mem(&self) -> &MapMem {
        self.pool.mem()
    }

    #[inline(always)]
    pub(crate) fn offset_of(&self, element: u32) -> u64 {
        self.pool.region.offset() + self.pool.geometry.element(u64::from(element))
    }

    #[inline(always)]
    pub(crate) fn element_len(&self) -> usize {
        self.pool.geometry.bytes as usize
    }

    #[inline(always)]
    fn check(&self, queue: &Queue) -> Result<(), QueueError> {
        if !Arc::ptr_eq(&self.pool, &queue.pool) && !self.is_same_pool(queue) {
            return Err(QueueError::OtherPool);
        }
        if !self.pool.region.is_ours() {
            return Err(QueueError::Forked);
        }
        Ok(())
    }

    /// A pool that was opened twice in one process.
    #[cold]
    fn is_same_pool(&self, queue: &Queue) -> bool {
        std::ptr::eq(self.mem(), queue.pool.mem()) && self.pool.region.offset() == queue.pool.region.offset()
    }

    #[inline(always)]
    fn check_role(&self, queue: &Queue, role: u64) -> Result<(), QueueError> {
        if self.mem().load(queue.ring.entry + role, Ordering::Relaxed) == self.layout.who {
            return Ok(());
        }
        self.take_role(queue, role)
    }

    #[cold]
    #[inline(never)]
    fn take_role(&self, queue: &Queue, role: u64) -> Result<(), QueueError> {
        let word = queue.ring.entry + role;
        // SYNC(role): who had it before left everything as it should be.
        if self.mem().compare_exchange(word, 0, self.layout.who).is_ok() {
            return Ok(());
        }
        self.pool.recover()?;
        match self.mem().compare_exchange(word, 0, self.layout.who) {
            Ok(_) => Ok(()),
            Err(_) => Err(QueueError::Taken(if role == queue::PRODUCER { "producer" } else { "consumer" })),
        }
    }

    /// Pops into a single slot: the slot, and the element. `None`: the queue is empty.
    #[inline(always)]
    pub(crate) fn pop_slot(&self, from: &Queue) -> Result<Option<(u32, u32)>, QueueError> {
        self.check(from)?;
        if from.ring.kind.has_one_consumer() {
            self.check_role(from, queue::CONSUMER)?;
        }
        let free = self.free.get();
        if free == 0 {
            return Err(QueueError::TooMany(
                "this endpoint holds 64 elements; push some, use the batch, or another endpoint",
            ));
        }
        let slot = free.trailing_zeros();
        match pop_one(self.mem(), &from.ring, &self.layout, slot.into()) {
            Some(element) => {
                self.free.set(free & (free - 1));
                self.check_index(element)?;
                Ok(Some((slot, element)))
            }
            None => {
                self.found_nothing()?;
                Ok(None)
            }
        }
    }

    #[inline(always)]
    fn check_index(&self, element: u32) -> Result<(), QueueError> {
        if u64::from(element) < self.pool.geometry.elements {
            return Ok(());
        }
        Err(QueueError::damaged("a queue holds an element that the pool does not have", self.pool.region.offset()))
    }

    /// A pop that finds nothing rests, for most elements come back at once, and from time to time looks whether a
    /// process crashed with one.
    #[inline(always)]
    fn found_nothing(&self) -> Result<(), QueueError> {
        rest(self.mem());
        let empty = self.empty.get() + 1;
        self.empty.set(empty);
        if empty >= LOOK_EVERY {
            self.look_for_crashed_endpoints()?;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn look_for_crashed_endpoints(&self) -> Result<(), QueueError> {
        self.empty.set(0);
        if self.looked.get().elapsed() >= LOOK_AFTER {
            self.pool.recover()?;
            self.looked.set(Instant::now());
        }
        Ok(())
    }

    /// Pushes from a single slot. `false`: the queue is full.
    #[inline(always)]
    pub(crate) fn push_slot(&self, to: &Queue, slot: u32, element: u32) -> Result<bool, QueueError> {
        self.check(to)?;
        if to.ring.kind.has_one_producer() {
            self.check_role(to, queue::PRODUCER)?;
        }
        if push_one(self.mem(), &to.ring, &self.layout, slot.into(), element) == Push::Full {
            return Ok(false);
        }
        self.free.set(self.free.get() | 1 << slot);
        wake_sleepers(self.mem(), &to.ring);
        Ok(true)
    }

    pub(crate) fn put_back(&self, slot: u32) {
        if self.pool.region.is_ours() {
            self.pool.core().give_back(&self.layout, slot.into());
            self.free.set(self.free.get() | 1 << slot);
        }
    }

    /// Takes up to `max` elements in one operation, behind those of this endpoint's batch; returns how many.
    ///
    /// # Errors
    /// As [`pop`](Self::pop).
    #[inline]
    pub fn pop_many(&mut self, from: &Queue, max: u64) -> Result<u64, QueueError> {
        self.check(from)?;
        if from.ring.kind.has_one_consumer() {
            self.check_role(from, queue::CONSUMER)?;
        }
        let n = pop_many(self.mem(), &from.ring, &self.layout, max);
        if n == 0 {
            self.found_nothing()?;
        }
        Ok(n)
    }

    /// Pushes the first `max` elements of this endpoint's batch in one operation, in their order; returns how many:
    /// fewer if the batch has fewer or the queue reaches its bound.
    ///
    /// # Errors
    /// As [`Element::push`](crate::Element::push).
    #[inline]
    pub fn push_many(&mut self, to: &Queue, max: u64) -> Result<u64, QueueError> {
        self.check(to)?;
        if to.ring.kind.has_one_producer() {
            self.check_role(to, queue::PRODUCER)?;
        }
        match push_many(self.mem(), &to.ring, &self.layout, max) {
            Push::Done(n) => {
                if n > 0 {
                    wake_sleepers(self.mem(), &to.ring);
                }
                Ok(n)
            }
            Push::Full => Ok(0),
        }
    }

    /// Pushes the whole batch to one queue, as far as it takes it, then pops up to `max` from another. Returns how many
    /// of each.
    ///
    /// # Errors
    /// As [`pop_many`](Self::pop_many) and [`push_many`](Self::push_many).
    #[inline]
    pub fn push_pop_many(&mut self, to: &Queue, from: &Queue, max: u64) -> Result<(u64, u64), QueueError> {
        Ok((self.push_many(to, u64::MAX)?, self.pop_many(from, max)?))
    }

    /// Moves everything that is in a queue when this is called to another; returns how much that was.
    ///
    /// # Errors
    /// As [`pop_many`](Self::pop_many) and [`push_many`](Self::push_many). [`BadOption`](QueueError::BadOption) if the
    /// batch is not empty.
    pub fn drain(&mut self, from: &Queue, to: &Queue) -> Result<u64, QueueError> {
        if self.batch_len() != 0 {
            return Err(QueueError::BadOption("push the endpoint's batch before it is used to drain a queue"));
        }
        let (all, mut moved) = (from.len(), 0);
        while moved < all {
            let n = self.pop_many(from, all - moved)?;
            let pushed = self.push_many(to, n)?;
            moved += pushed;
            if n == 0 || pushed < n {
                self.pool.core().return_batch(&self.layout);
                break;
            }
        }
        Ok(moved)
    }

    /// Elements of the batch.
    pub fn batch_len(&self) -> u64 {
        self.layout.end.get() - self.layout.start.get()
    }

    #[inline]
    fn batch_element(&self, index: u64) -> u32 {
        assert!(index < self.batch_len(), "the batch has {} elements", self.batch_len());
        let slot = endpoint::SINGLES + self.layout.start.get() + index;
        let element = Held::unpack(self.mem().load(self.layout.slot(slot), Ordering::Relaxed)).element;
        // One that the pool does not have can only be damage: then it is some other.
        u64::from(element).min(self.pool.geometry.elements - 1) as u32
    }

    /// The bytes of an element of the batch.
    ///
    /// # Panics
    /// If the batch has no such element.
    #[inline]
    pub fn batch(&self, index: u64) -> &[u8] {
        let element = self.batch_element(index);
        // SAFETY: the endpoint holds it, and whatever would push or change it borrows the endpoint mutably.
        unsafe { bytes_of(self.mem(), self.offset_of(element), self.element_len()) }
    }

    /// The same to write.
    ///
    /// # Panics
    /// If the batch has no such element.
    #[inline]
    pub fn batch_mut(&mut self, index: u64) -> &mut [u8] {
        let element = self.batch_element(index);
        // SAFETY: the endpoint holds it, and is borrowed for as long as the slice.
        unsafe { bytes_of_mut(self.mem(), self.offset_of(element), self.element_len()) }
    }
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

impl Drop for Endpoint {
    fn drop(&mut self) {
        // In a forked child it is the parent's.
        if self.pool.region.is_ours() {
            self.pool.core().release_endpoint(self.layout.who - 1);
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let held = u64::from((!self.free.get()).count_ones()) + self.batch_len();
        f.debug_struct("Endpoint").field("held", &held).finish_non_exhaustive()
    }
}
