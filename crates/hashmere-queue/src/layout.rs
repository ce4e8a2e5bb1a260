//! Every byte of a pool: where things are in its region, and how each word is packed. `docs/internals/queues.md` draws
//! it.

use crate::error::QueueError;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// `"MEREPOOL"`, with the version of this layout added.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"MEREPOOL") + 1;

/// Words of the pool's header.
pub(crate) mod pool {
    pub(crate) const MAGIC: u64 = 0;
    pub(crate) const ELEMENTS: u64 = 8;
    pub(crate) const BYTES: u64 = 16;
    pub(crate) const STRIDE: u64 = 24;
    pub(crate) const QUEUES: u64 = 32;
    pub(crate) const HANDS: u64 = 40;
    pub(crate) const BATCH: u64 = 48;
    /// What happens to elements whose holder dies: 0: back to where they came from; else to this queue, less one.
    pub(crate) const ON_DEATH: u64 = 56;
    /// Elements that were given back from crashed processes.
    pub(crate) const RECOVERED: u64 = 64;
    pub(crate) const SIZE: u64 = 128;
}

/// Words of a queue's entry. Head, tail and sleepers are two lines apart each: processors fetch lines in pairs.
pub(crate) mod queue {
    /// 0: no queue; 1: a queue. The word that decides.
    pub(crate) const STATE: u64 = 0;
    pub(crate) const KIND: u64 = 8;
    /// Most elements that it takes.
    pub(crate) const BOUND: u64 = 16;
    /// The endpoint that alone may push, plus one (single producer only).
    pub(crate) const PRODUCER: u64 = 24;
    /// The endpoint that alone may pop, plus one (single consumer only).
    pub(crate) const CONSUMER: u64 = 32;
    pub(crate) const NAME_LEN: u64 = 40;
    pub(crate) const NAME: u64 = 64;
    pub(crate) const NAME_MAX: usize = 64;
    /// Position of the next pop, and the endpoint that made the last.
    pub(crate) const HEAD: u64 = 128;
    /// Position of the next push, and the endpoint that made the last.
    pub(crate) const TAIL: u64 = 256;
    /// Not 0: a process sleeps until the queue is pushed to.
    pub(crate) const SLEEPERS: u64 = 384;
    /// What they sleep on: how often they were woken.
    pub(crate) const EVENT: u64 = 392;
    pub(crate) const SIZE: u64 = 512;
}

/// Words of an endpoint.
pub(crate) mod endpoint {
    /// The client whose endpoint it is, or the one that recovers it; 0: free.
    pub(crate) const OWNER: u64 = 0;
    /// The operation under way; see [`Intent`](super::Intent). 0: none.
    pub(crate) const INTENT: u64 = 64;
    /// Its first slot (low half) and number of slots.
    pub(crate) const RANGE: u64 = 72;
    /// The part of the batch slots that counts.
    pub(crate) const START: u64 = 80;
    pub(crate) const END: u64 = 88;
    pub(crate) const SLOTS: u64 = 128;
    /// Slots for elements that are held one by one: they count if they are not 0. The batch slots follow.
    pub(crate) const SINGLES: u64 = 64;
}

/// Bounds.
pub(crate) mod limit {
    pub(crate) const ELEMENTS: u64 = 1 << 31;
    pub(crate) const QUEUES: u64 = 1 << 12;
    pub(crate) const HANDS: u64 = 1 << 12;
    pub(crate) const BATCH: u64 = 1 << 20;
}

/// What a queue allows, which decides what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// Any number of producers and consumers.
    Mpmc = 0,
    /// One consumer at a time.
    Mpsc = 1,
    /// One producer and one consumer at a time.
    Spsc = 2,
}

impl Kind {
    pub(crate) fn from_word(word: u64) -> Option<Kind> {
        [Kind::Mpmc, Kind::Mpsc, Kind::Spsc].into_iter().find(|kind| *kind as u64 == word)
    }

    #[inline(always)]
    pub(crate) fn has_one_producer(self) -> bool {
        self == Kind::Spsc
    }

    #[inline(always)]
    pub(crate) fn has_one_consumer(self) -> bool {
        self != Kind::Mpmc
    }
}

/// A position in a queue's endless sequence of pushes and pops, and the endpoint that brought it there: one word, so
/// that one compare-exchange moves both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End(pub(crate) u64);

impl End {
    const WHO_BITS: u32 = 16;
    const POSITION_MASK: u64 = (1 << (64 - Self::WHO_BITS)) - 1;

    #[inline(always)]
    pub(crate) fn new(position: u64, who: u64) -> End {
        End(position << Self::WHO_BITS | who)
    }
    #[inline(always)]
    pub(crate) fn position(self) -> u64 {
        self.0 >> Self::WHO_BITS
    }
    /// The endpoint plus one; 0: none yet.
    #[inline(always)]
    pub(crate) fn who(self) -> u64 {
        self.0 & ((1 << Self::WHO_BITS) - 1)
    }
    /// How far it is from `other` to this.
    #[inline(always)]
    pub(crate) fn since(self, other: End) -> u64 {
        self.position().wrapping_sub(other.position()) & Self::POSITION_MASK
    }
    /// `position` and `n` more.
    #[inline(always)]
    pub(crate) fn advance(position: u64, n: u64) -> u64 {
        position.wrapping_add(n) & Self::POSITION_MASK
    }
}

/// What an endpoint is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Op {
    /// Nothing.
    None = 0,
    /// It is about to move the head.
    Pop = 1,
    /// It has moved it: the process that moved it on says so.
    Popped = 2,
    /// It is about to move the tail.
    Push = 3,
    /// It has moved it.
    Pushed = 4,
}

/// The intent word: where head or tail is to be after the operation (48 bits), the queue (12 bits), the operation (4
/// bits). No two attempts of an endpoint that could succeed have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) op: Op,
    pub(crate) queue: u64,
    pub(crate) end: u64,
}

impl Intent {
    #[inline(always)]
    pub(crate) fn pack(self) -> u64 {
        self.end << 16 | self.queue << 4 | self.op as u64
    }

    pub(crate) fn unpack(word: u64) -> Intent {
        let op = match word & 15 {
            1 => Op::Pop,
            2 => Op::Popped,
            3 => Op::Push,
            4 => Op::Pushed,
            _ => Op::None,
        };
        Intent { op, queue: word >> 4 & (limit::QUEUES - 1), end: word >> 16 }
    }
}

/// An element in an endpoint, and the queue it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) element: u32,
    pub(crate) origin: u64,
}

impl Held {
    const MARK: u64 = 1 << 63;

    #[inline(always)]
    pub(crate) fn pack(self) -> u64 {
        Self::MARK | self.origin << 32 | u64::from(self.element)
    }

    #[inline(always)]
    pub(crate) fn unpack(word: u64) -> Held {
        Held { element: word as u32, origin: word >> 32 & (limit::QUEUES - 1) }
    }
}

/// Sizes and places of a pool, as offsets in its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
    pub(crate) stride: u64,
    pub(crate) queues: u64,
    pub(crate) endpoints: u64,
    pub(crate) batch: u64,
}

impl Geometry {
    /// `None`: a size is out of bounds.
    pub(crate) fn new(elements: u64, bytes: u64, queues: u64, endpoints: u64, batch: u64) -> Option<Geometry> {
        let fine = (1..=limit::ELEMENTS).contains(&elements)
            && (1..=u64::from(u32::MAX)).contains(&bytes)
            && (1..=limit::QUEUES).contains(&queues)
            && (1..=limit::HANDS).contains(&endpoints)
            && (1..=limit::BATCH).contains(&batch);
        if !fine {
            return None;
        }
        // Small elements share a line, but none begins in one that it does not end in.
        let stride = if bytes <= 64 { bytes.next_power_of_two().max(8) } else { bytes.next_multiple_of(64) };
        Some(Geometry { elements, bytes, stride, queues, endpoints, batch })
    }

    /// Cells of a ring: a power of two, for there must be room for all elements.
    pub(crate) fn cells(&self) -> u64 {
        self.elements.next_power_of_two().max(8)
    }

    pub(crate) fn queue(&self, queue: u64) -> u64 {
        pool::SIZE + queue * queue::SIZE
    }

    pub(crate) fn endpoint(&self, endpoint: u64) -> u64 {
        let size = (endpoint::SLOTS + 8 * (endpoint::SINGLES + self.batch)).next_multiple_of(128);
        self.queue(self.queues) + endpoint * size
    }

    pub(crate) fn ring(&self, queue: u64) -> u64 {
        self.endpoint(self.endpoints) + queue * self.cells() * 8
    }

    pub(crate) fn element(&self, element: u64) -> u64 {
        self.ring(self.queues) + element * self.stride
    }

    /// Bytes of the whole pool.
    pub(crate) fn size(&self) -> u64 {
        self.element(self.elements)
    }

    /// Writes an empty pool at `base`, whatever is there, with all elements in the first queue.
    pub(crate) fn format<M: Mem>(&self, mem: &M, base: u64, on_death: u64) {
        mem.zero(base, self.ring(self.queues));
        let put = |at: u64, value: u64| mem.store(base + at, value, Ordering::Relaxed);
        put(pool::MAGIC, MAGIC);
        put(pool::ELEMENTS, self.elements);
        put(pool::BYTES, self.bytes);
        put(pool::STRIDE, self.stride);
        put(pool::QUEUES, self.queues);
        put(pool::HANDS, self.endpoints);
        put(pool::BATCH, self.batch);
        put(pool::ON_DEATH, on_death);
        for element in 0..self.elements {
            put(self.ring(0) + 8 * element, 1 << 32 | element);
        }
        put(self.queue(0) + queue::TAIL, End::new(self.elements, 0).0);
    }

    /// Believes the header of a pool of `len` bytes if everything in it lies within.
    pub(crate) fn read<M: Mem>(mem: &M, base: u64, len: u64) -> Result<Geometry, QueueError> {
        let get = |at: u64| mem.load(base + at, Ordering::Acquire);
        let damaged = QueueError::damaged("the header of a pool is damaged", base);
        if len < pool::SIZE || get(pool::MAGIC) != MAGIC {
            return Err(damaged);
        }
        let bytes = get(pool::BYTES);
        let geometry = Geometry::new(get(pool::ELEMENTS), bytes, get(pool::QUEUES), get(pool::HANDS), get(pool::BATCH));
        match geometry {
            // No product of these overflows: 2^31 elements of 2^32 bytes.
            Some(geometry) if geometry.stride == get(pool::STRIDE) && geometry.size() <= len => Ok(geometry),
            _ => Err(damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for (op, end) in [(Op::Pop, 0), (Op::Pushed, (1 << 48) - 1), (Op::None, 7)] {
            let intent = Intent { op, queue: 4095, end };
            assert_eq!(Intent::unpack(intent.pack()), intent);
        }
        let held = Held { element: u32::MAX, origin: 4095 };
        assert_eq!(Held::unpack(held.pack()), held);
        let (near, far) = (End::new(2, 9), End::new((1 << 48) - 3, 4096));
        assert_eq!((near.since(far), far.who()), (5, 4096));
        assert_eq!(End::advance(far.position(), 5), 2);
    }

    #[test]
    fn nothing_overlaps_and_elements_are_aligned() {
        for (elements, bytes) in [(1, 1), (7, 24), (100, 65), (100_000, 4096), (1 << 31, u64::from(u32::MAX))] {
            let g = Geometry::new(elements, bytes, 9, 5, 33).unwrap();
            assert!(g.stride >= bytes && g.cells() >= elements);
            assert_eq!(g.queue(8) + queue::SIZE, g.endpoint(0));
            assert!(g.endpoint(4) + endpoint::SLOTS + 8 * (endpoint::SINGLES + 33) <= g.ring(0));
            assert_eq!(g.ring(8) + 8 * g.cells(), g.element(0));
            assert_eq!(g.element(0) % 64, 0);
        }
        assert!(Geometry::new(0, 8, 1, 1, 1).is_none() && Geometry::new(1, 8, 1, 1 << 13, 1).is_none());
    }
}
