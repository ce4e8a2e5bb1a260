//! Moving elements between a queue and an endpoint: the four operations, on any memory.
//!
//! An operation takes effect with one store. Before it, the endpoint's intent says what it is about to do; if its owner
//! dies, [`recover`](crate::recover) finds out whether it was done. No endpoint waits for another: a consumer copies
//! what it is about to take before it takes it, and a producer owns its cells once it has moved the tail.

use crate::fault::{self, Fault};
use crate::layout::{endpoint, queue, End, Geometry, Held, Intent, Op};
use crate::ring::{EndpointLayout, Ring};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// Cells of a line, and how far ahead a batch asks for the next ones: as many lines as a core can wait for at a time.
const LINE: u64 = 8;
const AHEAD: u64 = 16 * 64;

/// The result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// This many were pushed.
    Done(u64),
    /// The queue has reached its bound.
    Full,
}

/// Before the word that names `who` is replaced: if that endpoint does not know yet that it succeeded, its intent says
/// so from now on.
#[inline(always)]
fn confirm<M: Mem>(mem: &M, endpoint: &EndpointLayout, ring: &Ring, end: End, op: Op) {
    if end.who() != endpoint.who && end.who() != 0 && !fault::is(Fault::SuccessUnconfirmed) {
        confirm_other(mem, endpoint, ring, end, op);
    }
}

#[cold]
#[inline(never)]
fn confirm_other<M: Mem>(mem: &M, endpoint: &EndpointLayout, ring: &Ring, end: End, op: Op) {
    let Some(intent) = endpoint.intent_of(end.who()) else { return };
    let pending = Intent { op, queue: ring.id, end: end.position() };
    let done = Intent { op: if op == Op::Pop { Op::Popped } else { Op::Pushed }, ..pending };
    // SYNC(confirm): pairs with the look of `recover`, which loads the end first and the intent after it: if it misses
    // the end that we are about to replace, it sees this.
    if mem.load(intent, Ordering::Acquire) == pending.pack() {
        let _ = mem.compare_exchange(intent, pending.pack(), done.pack());
    }
}

/// Takes the first element of a queue into a single slot. `None`: there is none, or the next one is still being pushed.
#[inline(always)]
pub(crate) fn pop_one<M: Mem>(mem: &M, ring: &Ring, endpoint: &EndpointLayout, slot: u64) -> Option<u32> {
    let mut tried = false;
    loop {
        let head = ring.head(mem);
        let position = head.position();
        // SYNC(cell): pairs with the store of `push`. Whatever was written to the element before is seen.
        let cell = mem.load(ring.cell(position), Ordering::Acquire);
        if !ring.is_present(position, cell) {
            if !ring.kind.has_one_consumer() && ring.head(mem) != head {
                continue;
            }
            if tried {
                mem.store(endpoint.slot(slot), 0, Ordering::Release);
                endpoint.done(mem);
            }
            return None;
        }
        // Most look at an element or write it when they have it; the compare-exchange would hold that up.
        mem.prefetch_write(ring.element(cell as u32));
        let after = End::new(End::advance(position, 1), endpoint.who);
        endpoint.intend(mem, Op::Pop, ring, after.position(), (slot, 1));
        let held = Held { element: cell as u32, origin: ring.id };
        if !fault::is(Fault::HeldLate) {
            mem.store(endpoint.slot(slot), held.pack(), Ordering::Release);
        }
        if move_head(mem, ring, endpoint, head, after) {
            if fault::is(Fault::HeldLate) {
                mem.store(endpoint.slot(slot), held.pack(), Ordering::Release);
            }
            endpoint.done(mem);
            return Some(cell as u32);
        }
        tried = true;
    }
}

/// The store that takes: from here on the elements are this endpoint's.
#[inline(always)]
fn move_head<M: Mem>(mem: &M, ring: &Ring, endpoint: &EndpointLayout, head: End, after: End) -> bool {
    let moved = store_head(mem, ring, endpoint, head, after);
    // SYNC(peek): pairs with the acquire fence in `peek`: who sees a byte that we write to the elements sees that the
    // head has moved. Neither a release store nor a compare-exchange keeps later stores behind it on every machine. No
    // instruction on x86-64.
    mem.fence(Ordering::Release);
    moved
}

#[inline(always)]
fn store_head<M: Mem>(mem: &M, ring: &Ring, endpoint: &EndpointLayout, head: End, after: End) -> bool {
    if ring.kind.has_one_consumer() {
        // SYNC(queue head): pairs with the load in `room`: a producer that sees it finds the cells before it read.
        mem.store(ring.entry + queue::HEAD, after.0, Ordering::Release);
        return true;
    }
    confirm(mem, endpoint, ring, head, Op::Pop);
    replace(mem, ring.entry + queue::HEAD, head, after, Fault::HeadStored)
}

/// Moves an end on if it is still what it was.
#[inline(always)]
fn replace<M: Mem>(mem: &M, at: u64, from: End, to: End, fault: Fault) -> bool {
    if fault::is(fault) {
        mem.store(at, to.0, Ordering::Release);
        return true;
    }
    mem.compare_exchange(at, from.0, to.0).is_ok()
}

/// Takes up to `max` elements behind those of the batch.
pub(crate) fn pop_many<M: Mem>(mem: &M, ring: &Ring, endpoint: &EndpointLayout, max: u64) -> u64 {
    if endpoint.start.get() == endpoint.end.get() && endpoint.start.get() != 0 {
        // In this order: between the two the batch is empty as well.
        mem.store(endpoint.at + endpoint::END, 0, Ordering::Release);
        mem.store(endpoint.at + endpoint::START, 0, Ordering::Release);
        endpoint.start.set(0);
        endpoint.end.set(0);
    }
    let first = endpoint::SINGLES + endpoint.end.get();
    let max = max.min(endpoint.batch - endpoint.end.get());
    if max == 0 {
        return 0;
    }
    loop {
        let head = ring.head(mem);
        let n = copy_cells(mem, ring, endpoint, head.position(), first, max);
        if n == 0 {
            if !ring.kind.has_one_consumer() && ring.head(mem) != head {
                continue;
            }
            endpoint.done(mem);
            return 0;
        }
        let after = End::new(End::advance(head.position(), n), endpoint.who);
        endpoint.intend(mem, Op::Pop, ring, after.position(), (first, n));
        if fault::is(Fault::EndEarly) {
            mem.store(endpoint.at + endpoint::END, endpoint.end.get() + n, Ordering::Release);
        }
        if move_head(mem, ring, endpoint, head, after) {
            let end = endpoint.end.get() + n;
            endpoint.end.set(end);
            mem.store(endpoint.at + endpoint::END, end, Ordering::Release);
            endpoint.done(mem);
            return n;
        }
    }
}

/// Copies what is there from a position on, up to `max`, to slots that do not count yet. It is right if the head has
/// not moved after it.
#[inline(always)]
fn copy_cells<M: Mem>(mem: &M, ring: &Ring, endpoint: &EndpointLayout, position: u64, first: u64, max: u64) -> u64 {
    let mut n = 0;
    while n < max {
        // Row by row: within one the tag is the same and cells follow each other.
        let at = End::advance(position, n);
        let row = (ring.mask + 1 - (at & ring.mask)).min(max - n);
        let (tag, cell, slot) = (u64::from(ring.tag(at)), ring.cell(at), endpoint.slot(first + n));
        let mark = Held { element: 0, origin: ring.id }.pack();
        // SYNC(cell): as in `pop_one`.
        let load = |i: u64| mem.load(cell + 8 * i, Ordering::Acquire);
        let keep = |i: u64, word: u64| mem.store(slot + 8 * i, mark | word & 0xffff_ffff, Ordering::Relaxed);
        let mut i = 0;
        // A line's worth at a time, with one branch for all of it.
        while i + LINE <= row {
            mem.prefetch(cell + 8 * i + AHEAD);
            let words: [u64; LINE as usize] = std::array::from_fn(|k| load(i + k as u64));
            if words.iter().fold(0, |other, word| other | word >> 32 ^ tag) != 0 {
                break;
            }
            words.iter().zip(i..).for_each(|(word, i)| keep(i, *word));
            i += LINE;
        }
        while i < row {
            let word = load(i);
            if word >> 32 != tag {
                return n + i;
            }
            keep(i, word);
            i += 1;
        }
        n += row;
    }
    n
}

/// Puts the element of a single slot at the end of a queue.
#[inline(always)]
pub(crate) fn push_one<M: Mem>(mem: &M, ring: &Ring, endpoint: &EndpointLayout, slot: u64, element: u32) -> Push {
    let Some((position, _)) = claim_cells(mem, ring, endpoint, slot, 1) else { return Push::Full };
    // SYNC(cell): everything written to the element before is seen by the process that takes it.
    let word = u64::from(ring.tag(position)) << 32 | u64::from(element);
    if fault::is(Fault::SlotEarly) {
        mem.store(endpoint.slot(slot), 0, Ordering::Release);
    }
    mem.store(ring.cell(position), word, Ordering::Release);
    if ring.kind.has_one_producer() {
        let after = End::new(End::advance(position, 1), endpoint.who);
        mem.store(ring.entry + queue::TAIL, after.0, Ordering::Release);
    }
    mem.store(endpoint.slot(slot), 0, Ordering::Release);
    endpoint.done(mem);
    Push::Done(1)
}

/// Moves the tail, or for a single producer says where it will go. `None`: the queue is full.
#[inline(always)]
fn claim_cells<M: Mem>(mem: &M, ring: &Ring, endpoint: &EndpointLayout, slot: u64, n: u64) -> Option<(u64, u64)> {
    loop {
        let tail = ring.tail(mem);
        let n = ring.room(mem, tail).min(n);
        if n == 0 {
            endpoint.done(mem);
            return None;
        }
        let after = End::new(End::advance(tail.position(), n), endpoint.who);
        endpoint.intend(mem, Op::Push, ring, after.position(), (slot, n));
        if ring.kind.has_one_producer() {
            return Some((tail.position(), n));
        }
        confirm(mem, endpoint, ring, tail, Op::Push);
        if replace(mem, ring.entry + queue::TAIL, tail, after, Fault::TailStored) {
            return Some((tail.position(), n));
        }
    }
}

/// Puts the first `max` elements of the batch at the end of a queue, in their order, or as many as it takes.
pub(crate) fn push_many<M: Mem>(mem: &M, ring: &Ring, endpoint: &EndpointLayout, max: u64) -> Push {
    let first = endpoint::SINGLES + endpoint.start.get();
    let n = max.min(endpoint.end.get() - endpoint.start.get());
    if n == 0 {
        return Push::Done(0);
    }
    let Some((position, n)) = claim_cells(mem, ring, endpoint, first, n) else { return Push::Full };
    let mut filled = 0;
    while filled < n {
        let at = End::advance(position, filled);
        let row = (ring.mask + 1 - (at & ring.mask)).min(n - filled);
        let (tag, cell, slot) = (u64::from(ring.tag(at)) << 32, ring.cell(at), endpoint.slot(first + filled));
        let pass = |i: u64| {
            let element = mem.load(slot + 8 * i, Ordering::Relaxed) & 0xffff_ffff;
            // SYNC(cell): as in `push_one`.
            mem.store(cell + 8 * i, tag | element, Ordering::Release);
        };
        let lines = row - row % LINE;
        for i in (0..lines).step_by(LINE as usize) {
            mem.prefetch_write(cell + 8 * i + AHEAD);
            (i..i + LINE).for_each(pass);
        }
        (lines..row).for_each(pass);
        filled += row;
    }
    if ring.kind.has_one_producer() {
        let after = End::new(End::advance(position, n), endpoint.who);
        mem.store(ring.entry + queue::TAIL, after.0, Ordering::Release);
    }
    let start = endpoint.start.get() + n;
    endpoint.start.set(start);
    mem.store(endpoint.at + endpoint::START, start, Ordering::Release);
    endpoint.done(mem);
    Push::Done(n)
}

/// A copy of the first element's bytes, which stays where it is; `None`: there is none.
pub(crate) fn peek<M: Mem>(mem: &M, ring: &Ring, geometry: &Geometry, base: u64) -> Option<Vec<u8>> {
    loop {
        let head = ring.head(mem);
        // SYNC(cell): as in `pop_one`.
        let cell = mem.load(ring.cell(head.position()), Ordering::Acquire);
        let element = u64::from(cell as u32);
        let is_present = ring.is_present(head.position(), cell) && element < geometry.elements;
        let bytes = is_present.then(|| {
            let mut bytes = vec![0; geometry.bytes as usize];
            mem.read(base + geometry.element(element), &mut bytes);
            bytes
        });
        // SYNC(peek): pairs with the release fence in `move_head`: as long as the head has not moved, no other endpoint
        // had the element to write to it.
        mem.fence(Ordering::Acquire);
        if ring.head(mem) == head || fault::is(Fault::PeekUnchecked) {
            return bytes;
        }
    }
}

/// Wakes those who sleep until something is pushed to this queue.
#[inline(always)]
pub(crate) fn wake_sleepers<M: Mem>(mem: &M, ring: &Ring) {
    // SYNC(sleepers): pairs with the exchange of who goes to sleep. A store buffer may hide the push from its last look
    // and the flag from us; it then looks again by itself, within a millisecond.
    if mem.load(ring.entry + queue::SLEEPERS, Ordering::Relaxed) != 0 {
        wake_now(mem, ring);
    }
}

#[cold]
#[inline(never)]
pub(crate) fn wake_now<M: Mem>(mem: &M, ring: &Ring) {
    if fault::is(Fault::FlagLate) {
        mem.fetch_add(ring.entry + queue::EVENT, 1, Ordering::AcqRel);
        mem.swap(ring.entry + queue::SLEEPERS, 0, Ordering::SeqCst);
        return mem.wake(ring.entry + queue::EVENT);
    }
    // The flag goes before the event is counted: a sleeper that sets it again before that finds its event changed.
    if mem.swap(ring.entry + queue::SLEEPERS, 0, Ordering::SeqCst) != 0 {
        mem.fetch_add(ring.entry + queue::EVENT, 1, Ordering::AcqRel);
        mem.wake(ring.entry + queue::EVENT);
    }
}
