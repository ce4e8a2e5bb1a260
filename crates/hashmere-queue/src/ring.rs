//! A queue and an endpoint as places in memory.

use crate::fault::{self, Fault};
use crate::layout::{endpoint, queue, End, Geometry, Intent, Kind, Op};
use hashmere_mem::Mem;
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// A queue's place in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    pub(crate) id: u64,
    pub(crate) kind: Kind,
    pub(crate) bound: u64,
    /// Whether it is smaller than its pool: then a push looks at the head first.
    pub(crate) bounded: bool,
    pub(crate) entry: u64,
    cells: u64,
    pub(crate) mask: u64,
    shift: u32,
    /// The first element, and how far it is to the next.
    elements: u64,
    stride: u64,
}

/// An endpoint's place in memory, and what only its owner needs to know.
#[derive(Debug)]
pub(crate) struct EndpointLayout {
    /// The endpoint plus one.
    pub(crate) who: u64,
    pub(crate) at: u64,
    /// Every endpoint of the pool, for [`intent_of`](EndpointLayout::intent_of).
    endpoints: u64,
    endpoint_bytes: u64,
    endpoints_many: u64,
    /// The range word, as it is in memory.
    range: Cell<u64>,
    pub(crate) start: Cell<u64>,
    pub(crate) end: Cell<u64>,
    pub(crate) batch: u64,
}

impl Ring {
    pub(crate) fn new(geometry: &Geometry, base: u64, id: u64, kind: Kind, bound: u64) -> Ring {
        Ring {
            id,
            kind,
            bound,
            bounded: bound < geometry.elements,
            entry: base + geometry.queue(id),
            cells: base + geometry.ring(id),
            mask: geometry.cells() - 1,
            shift: geometry.cells().trailing_zeros(),
            elements: base + geometry.element(0),
            stride: geometry.stride,
        }
    }

    #[inline(always)]
    pub(crate) fn cell(&self, position: u64) -> u64 {
        self.cells + 8 * (position & self.mask)
    }

    /// Where an element is. It may be any number: for a hint to the processor.
    #[inline(always)]
    pub(crate) fn element(&self, number: u32) -> u64 {
        self.elements.wrapping_add(self.stride.wrapping_mul(u64::from(number)))
    }

    /// What the upper half of a cell holds once the element of this position is in it.
    #[inline(always)]
    pub(crate) fn tag(&self, position: u64) -> u32 {
        ((position >> self.shift) + 1) as u32
    }

    /// Whether a cell holds the element of this position.
    #[inline(always)]
    pub(crate) fn is_present(&self, position: u64, cell: u64) -> bool {
        (cell >> 32) as u32 == self.tag(position) || fault::is(Fault::CellUnchecked)
    }

    /// Whether a cell that this position was given still holds what it held before: the element of the round before, or
    /// nothing.
    pub(crate) fn is_unfilled(&self, position: u64, cell: u64) -> bool {
        let before = End::advance(position, 0u64.wrapping_sub(self.mask + 1));
        cell == 0 || (cell >> 32) as u32 == self.tag(before)
    }

    #[inline(always)]
    pub(crate) fn head<M: Mem>(&self, mem: &M) -> End {
        End(mem.load(self.entry + queue::HEAD, Ordering::Acquire))
    }

    #[inline(always)]
    pub(crate) fn tail<M: Mem>(&self, mem: &M) -> End {
        End(mem.load(self.entry + queue::TAIL, Ordering::Acquire))
    }

    /// Elements in it, those that are being pushed included.
    pub(crate) fn len<M: Mem>(&self, mem: &M) -> u64 {
        let head = self.head(mem);
        let len = self.tail(mem).since(head);
        // Read at two moments: of a busy queue this is a figure of about now.
        if len > self.mask + 1 {
            0
        } else {
            len
        }
    }

    /// Elements that this queue still takes, as of a tail.
    #[inline(always)]
    pub(crate) fn room<M: Mem>(&self, mem: &M, tail: End) -> u64 {
        if self.bounded {
            // SYNC(queue head): pairs with `move_head`: the cells before it were read, and may be filled again.
            let len = tail.since(self.head(mem));
            // The head may have passed a tail that is of the past: then it is not to be moved either, and is looked at
            // again.
            if len > self.mask + 1 {
                return self.bound;
            }
            self.bound.saturating_sub(len)
        } else {
            // A queue has room for every element that there is.
            u64::MAX
        }
    }
}

impl EndpointLayout {
    pub(crate) fn new(geometry: &Geometry, base: u64, index: u64) -> EndpointLayout {
        EndpointLayout {
            who: index + 1,
            at: base + geometry.endpoint(index),
            endpoints: base + geometry.endpoint(0),
            endpoint_bytes: geometry.endpoint(1) - geometry.endpoint(0),
            endpoints_many: geometry.endpoints,
            range: Cell::new(u64::MAX),
            start: Cell::new(0),
            end: Cell::new(0),
            batch: geometry.batch,
        }
    }

    #[inline(always)]
    pub(crate) fn slot(&self, slot: u64) -> u64 {
        self.at + endpoint::SLOTS + 8 * slot
    }

    /// The intent of another endpoint, by what an end says of it; `None`: there is no such endpoint.
    pub(crate) fn intent_of(&self, who: u64) -> Option<u64> {
        (1..=self.endpoints_many)
            .contains(&who)
            .then(|| self.endpoints + (who - 1) * self.endpoint_bytes + endpoint::INTENT)
    }

    #[inline(always)]
    pub(crate) fn intend<M: Mem>(&self, mem: &M, op: Op, ring: &Ring, end: u64, (slot, n): (u64, u64)) {
        let range = slot | n << 32;
        if self.range.get() != range {
            self.range.set(range);
            mem.store(self.at + endpoint::RANGE, range, Ordering::Release);
        }
        let intent = Intent { op, queue: ring.id, end };
        if fault::is(Fault::IntentOmitted) {
            return;
        }
        mem.store(self.at + endpoint::INTENT, intent.pack(), Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn done<M: Mem>(&self, mem: &M) {
        mem.store(self.at + endpoint::INTENT, 0, Ordering::Release);
    }
}
