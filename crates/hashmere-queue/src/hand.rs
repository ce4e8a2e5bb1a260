//! A hand: what one thread does with the queues of a pool, and what it holds meanwhile.

use crate::element::{bytes_of, bytes_of_mut, Element};
use crate::error::QueueError;
use crate::layout::{hand, queue, Held};
use crate::moves::{pull_many, pull_one, push_many, push_one, wake_sleepers, Push};
use crate::pool::Inner;
use crate::queue::Queue;
use crate::ring::Grip;
use crate::sleep::{rest, SPINS_MIN};
use hashmere_mem::{MapMem, Mem};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a pull must find nothing before it looks whether the dead hold what it waits for.
const LOOK_EVERY: u32 = 4096;
/// And how long at least from one such look to the next.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// Takes part in a pool. Not shared between threads: each has its own. What it holds is known to everybody: should this
/// process die, it is given back.
///
/// A hand has up to 64 elements that were pulled one by one, and a batch. Dropping it gives back all that it holds.
pub struct Hand {
    pub(crate) pool: Arc<Inner>,
    pub(crate) grip: Grip,
    /// Single slots that are free, one bit each.
    free: Cell<u64>,
    empty: Cell<u32>,
    looked: Cell<Instant>,
    pub(crate) spins: Cell<u32>,
}

impl Hand {
    pub(crate) fn new(pool: &Arc<Inner>) -> Result<Hand, QueueError> {
        if !pool.region.is_ours() {
            return Err(QueueError::Forked);
        }
        let me = pool.region.store().client()?;
        let mut grip = pool.core().take_hand(me);
        if grip.is_none() {
            pool.recover()?;
            grip = pool.core().take_hand(me);
        }
        let grip =
            grip.ok_or(QueueError::TooMany("all hands of the pool are in use; drop some, or create it with more"))?;
        let spins = Cell::new(SPINS_MIN);
        let looked = Cell::new(Instant::now());
        Ok(Hand { pool: pool.clone(), grip, free: Cell::new(u64::MAX), empty: Cell::new(0), looked, spins })
    }

    #[inline(always)]
    pub(crate) fn mem(&self) -> &MapMem {
        self.pool.mem()
    }

    #[inline(always)]
    pub(crate) fn offset_of(&self, number: u32) -> u64 {
        self.pool.region.offset() + self.pool.geometry.element(u64::from(number))
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
        if self.mem().load(queue.ring.entry + role, Ordering::Relaxed) == self.grip.who {
            return Ok(());
        }
        self.take_role(queue, role)
    }

    #[cold]
    #[inline(never)]
    fn take_role(&self, queue: &Queue, role: u64) -> Result<(), QueueError> {
        let word = queue.ring.entry + role;
        // SYNC(role): who had it before left everything as it should be.
        if self.mem().compare_exchange(word, 0, self.grip.who).is_ok() {
            return Ok(());
        }
        self.pool.recover()?;
        match self.mem().compare_exchange(word, 0, self.grip.who) {
            Ok(_) => Ok(()),
            Err(_) => Err(QueueError::Taken(if role == queue::PRODUCER { "producer" } else { "consumer" })),
        }
    }

    /// Takes the first element of a queue. `None`: it is empty.
    ///
    /// # Errors
    /// [`Taken`](QueueError::Taken) if the queue has one consumer at a time, and this is another;
    /// [`TooMany`](QueueError::TooMany) if this hand holds 64 elements already; [`OtherPool`](QueueError::OtherPool),
    /// [`Forked`](QueueError::Forked); the store's errors when it looks for the dead.
    #[inline]
    pub fn pull(&self, from: &Queue) -> Result<Option<Element<'_>>, QueueError> {
        self.check(from)?;
        if from.ring.kind.has_one_consumer() {
            self.check_role(from, queue::CONSUMER)?;
        }
        let free = self.free.get();
        if free == 0 {
            return Err(QueueError::TooMany("this hand holds 64 elements; push some, use the batch, or another hand"));
        }
        let slot = free.trailing_zeros();
        match pull_one(self.mem(), &from.ring, &self.grip, slot.into()) {
            Some(number) => {
                self.free.set(free & (free - 1));
                self.check_number(number)?;
                Ok(Some(Element::new(self, slot, number)))
            }
            None => {
                self.found_nothing()?;
                Ok(None)
            }
        }
    }

    #[inline(always)]
    fn check_number(&self, number: u32) -> Result<(), QueueError> {
        if u64::from(number) < self.pool.geometry.elements {
            return Ok(());
        }
        Err(QueueError::damaged("a queue holds an element that the pool does not have", self.pool.region.offset()))
    }

    /// Whoever finds nothing rests, for most come back at once, and from time to time looks whether somebody died with it.
    #[inline(always)]
    fn found_nothing(&self) -> Result<(), QueueError> {
        rest(self.mem());
        let empty = self.empty.get() + 1;
        self.empty.set(empty);
        if empty >= LOOK_EVERY {
            self.look_for_the_dead()?;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn look_for_the_dead(&self) -> Result<(), QueueError> {
        self.empty.set(0);
        if self.looked.get().elapsed() >= LOOK_AFTER {
            self.pool.recover()?;
            self.looked.set(Instant::now());
        }
        Ok(())
    }

    /// Pushes from a single slot. `false`: the queue is full.
    #[inline(always)]
    pub(crate) fn push_slot(&self, to: &Queue, slot: u32, number: u32) -> Result<bool, QueueError> {
        self.check(to)?;
        if to.ring.kind.has_one_producer() {
            self.check_role(to, queue::PRODUCER)?;
        }
        if push_one(self.mem(), &to.ring, &self.grip, slot.into(), number) == Push::Full {
            return Ok(false);
        }
        self.free.set(self.free.get() | 1 << slot);
        wake_sleepers(self.mem(), &to.ring);
        Ok(true)
    }

    pub(crate) fn put_back(&self, slot: u32) {
        if self.pool.region.is_ours() {
            self.pool.core().give_back(&self.grip, slot.into());
            self.free.set(self.free.get() | 1 << slot);
        }
    }

    /// Pushes an element to one queue and pulls one from another: the step of a stage that passes on what it was given. If the
    /// first queue is full the element is returned in `Err` of the inner result, and nothing was pulled.
    ///
    /// # Errors
    /// As [`pull`](Self::pull) and [`Element::push`].
    #[inline]
    pub fn push_pull<'h>(
        &'h self,
        element: Element<'h>,
        to: &Queue,
        from: &Queue,
    ) -> Result<Result<Option<Element<'h>>, Element<'h>>, QueueError> {
        match element.push(to)? {
            Some(back) => Ok(Err(back)),
            None => self.pull(from).map(Ok),
        }
    }

    /// Takes up to `max` elements in one operation, behind those of this hand's batch; returns how many.
    ///
    /// # Errors
    /// As [`pull`](Self::pull).
    #[inline]
    pub fn pull_many(&mut self, from: &Queue, max: u64) -> Result<u64, QueueError> {
        self.check(from)?;
        if from.ring.kind.has_one_consumer() {
            self.check_role(from, queue::CONSUMER)?;
        }
        let n = pull_many(self.mem(), &from.ring, &self.grip, max);
        if n == 0 {
            self.found_nothing()?;
        }
        Ok(n)
    }

    /// Pushes the first `max` elements of this hand's batch in one operation, in their order; returns how many: fewer if the
    /// batch has fewer or the queue reaches its bound.
    ///
    /// # Errors
    /// As [`Element::push`].
    #[inline]
    pub fn push_many(&mut self, to: &Queue, max: u64) -> Result<u64, QueueError> {
        self.check(to)?;
        if to.ring.kind.has_one_producer() {
            self.check_role(to, queue::PRODUCER)?;
        }
        match push_many(self.mem(), &to.ring, &self.grip, max) {
            Push::Done(n) => {
                if n > 0 {
                    wake_sleepers(self.mem(), &to.ring);
                }
                Ok(n)
            }
            Push::Full => Ok(0),
        }
    }

    /// Pushes the whole batch to one queue, as far as it takes it, then pulls up to `max` from another. Returns how many of each.
    ///
    /// # Errors
    /// As [`pull_many`](Self::pull_many) and [`push_many`](Self::push_many).
    #[inline]
    pub fn push_pull_many(&mut self, to: &Queue, from: &Queue, max: u64) -> Result<(u64, u64), QueueError> {
        Ok((self.push_many(to, u64::MAX)?, self.pull_many(from, max)?))
    }

    /// Moves everything that is in a queue when this is called to another; returns how much that was.
    ///
    /// # Errors
    /// As [`pull_many`](Self::pull_many) and [`push_many`](Self::push_many). [`BadOption`](QueueError::BadOption) if the batch is
    /// not empty.
    pub fn drain(&mut self, from: &Queue, to: &Queue) -> Result<u64, QueueError> {
        if self.batch_len() != 0 {
            return Err(QueueError::BadOption("push the hand's batch before it is used to drain a queue"));
        }
        let (all, mut moved) = (from.len(), 0);
        while moved < all {
            let n = self.pull_many(from, all - moved)?;
            let pushed = self.push_many(to, n)?;
            moved += pushed;
            if n == 0 || pushed < n {
                self.pool.core().settle_batch(&self.grip);
                break;
            }
        }
        Ok(moved)
    }

    /// Elements of the batch.
    pub fn batch_len(&self) -> u64 {
        self.grip.end.get() - self.grip.start.get()
    }

    #[inline]
    fn batch_number(&self, index: u64) -> u32 {
        assert!(index < self.batch_len(), "the batch has {} elements", self.batch_len());
        let slot = hand::SINGLES + self.grip.start.get() + index;
        let number = Held::unpack(self.mem().load(self.grip.slot(slot), Ordering::Relaxed)).element;
        // One that the pool does not have can only be damage: then it is some other.
        u64::from(number).min(self.pool.geometry.elements - 1) as u32
    }

    /// The bytes of an element of the batch.
    ///
    /// # Panics
    /// If the batch has no such element.
    #[inline]
    pub fn batch(&self, index: u64) -> &[u8] {
        let number = self.batch_number(index);
        // SAFETY: the hand holds it, and whatever would push or change it borrows the hand mutably.
        unsafe { bytes_of(self.mem(), self.offset_of(number), self.element_len()) }
    }

    /// The same to write.
    ///
    /// # Panics
    /// If the batch has no such element.
    #[inline]
    pub fn batch_mut(&mut self, index: u64) -> &mut [u8] {
        let number = self.batch_number(index);
        // SAFETY: the hand holds it, and is borrowed for as long as the slice.
        unsafe { bytes_of_mut(self.mem(), self.offset_of(number), self.element_len()) }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // In a forked child it is the parent's.
        if self.pool.region.is_ours() {
            self.pool.core().release_hand(self.grip.who - 1);
        }
    }
}

impl std::fmt::Debug for Hand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let held = u64::from((!self.free.get()).count_ones()) + self.batch_len();
        f.debug_struct("Hand").field("held", &held).finish_non_exhaustive()
    }
}
