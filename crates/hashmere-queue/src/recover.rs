//! What happens to an endpoint whose owner is gone: the operation that it died in is completed or undone, what it held
//! goes back.
//!
//! The process that recovers has put its own name in the place of the crashed owner's, so it is alone; if it dies as
//! well the next one does the same to it. It acts as the endpoint itself, with the same four operations, so every step
//! may be cut off and done again.

use crate::fault::{self, Fault};
use crate::layout::{endpoint, pool, queue, End, Geometry, Held, Intent, Kind, Op};
use crate::ring::{EndpointLayout, Ring};
use crate::transfer::{push_one, wake_sleepers, Push};
use hashmere_engine::{ClientId, WriteError};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// Who can say whether a client is gone.
pub(crate) trait Liveness {
    /// Whether it is, for certain.
    fn is_gone(&self, client: ClientId) -> Result<bool, WriteError>;
}

/// A pool in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolCore<'a, M> {
    pub(crate) mem: &'a M,
    pub(crate) base: u64,
    pub(crate) geometry: &'a Geometry,
}

impl<M: Mem> PoolCore<'_, M> {
    pub(crate) fn word(&self, at: u64) -> u64 {
        self.mem.load(self.base + at, Ordering::Acquire)
    }

    /// A queue that exists.
    pub(crate) fn ring(&self, id: u64) -> Option<Ring> {
        // SYNC(queue): pairs with the release store of the state: kind and bound are there.
        if id >= self.geometry.queues || self.word(self.geometry.queue(id) + queue::STATE) != 1 {
            return None;
        }
        let entry = self.geometry.queue(id);
        let kind = Kind::from_word(self.word(entry + queue::KIND))?;
        Some(Ring::new(self.geometry, self.base, id, kind, self.word(entry + queue::BOUND)))
    }

    pub(crate) fn rings(&self) -> impl Iterator<Item = Ring> + '_ {
        (0..self.geometry.queues).filter_map(|id| self.ring(id))
    }

    fn owner(&self, index: u64) -> u64 {
        self.base + self.geometry.endpoint(index) + endpoint::OWNER
    }

    /// Takes an endpoint that is free. `None`: all are taken.
    pub(crate) fn take_endpoint(&self, me: ClientId) -> Option<EndpointLayout> {
        let free = |index: &u64| {
            // SYNC(endpoint): pairs with the store that frees an endpoint.
            let owner = self.owner(*index);
            self.mem.load(owner, Ordering::Relaxed) == 0 && self.mem.compare_exchange(owner, 0, me.pack()).is_ok()
        };
        let index = (0..self.geometry.endpoints).find(free)?;
        Some(EndpointLayout::new(self.geometry, self.base, index))
    }

    /// Gives an endpoint back: what it holds goes where it came from. Returns how many elements that were.
    pub(crate) fn release_endpoint(&self, index: u64) -> u64 {
        if fault::is(Fault::EndpointFreedEarly) {
            self.mem.store(self.owner(index), 0, Ordering::Release);
        }
        let returned = self.recover_endpoint(index);
        // SYNC(endpoint): the next owner finds it empty.
        self.mem.store(self.owner(index), 0, Ordering::Release);
        returned
    }

    /// Clears up after every endpoint whose owner is gone. Returns how many elements went back.
    pub(crate) fn recover(&self, me: ClientId, peers: &impl Liveness) -> Result<u64, WriteError> {
        let mut returned = 0;
        for index in 0..self.geometry.endpoints {
            let word = self.mem.load(self.owner(index), Ordering::Acquire);
            if word == 0 || word == me.pack() {
                continue;
            }
            // A word that names no client can only be damage.
            let gone = match ClientId::unpack(word) {
                Some(owner) => peers.is_gone(owner)?,
                None => true,
            };
            let gone = gone || fault::is(Fault::LiveOwnerRecovered);
            if gone && self.take_over(index, word, me) {
                let n = self.release_endpoint(index);
                self.mem.fetch_add(self.base + pool::RECOVERED, n, Ordering::Relaxed);
                returned += n;
            }
        }
        Ok(returned)
    }

    /// Puts our name in the place of the crashed owner's: from here on no other process recovers it.
    fn take_over(&self, index: u64, dead: u64, me: ClientId) -> bool {
        if fault::is(Fault::OwnerOverwritten) {
            self.mem.store(self.owner(index), me.pack(), Ordering::Release);
            return true;
        }
        self.mem.compare_exchange(self.owner(index), dead, me.pack()).is_ok()
    }

    /// Finishes what an endpoint was doing and empties it. The caller owns it.
    pub(crate) fn recover_endpoint(&self, index: u64) -> u64 {
        let endpoint = EndpointLayout::new(self.geometry, self.base, index);
        self.finish(&endpoint);
        let mut returned = 0;
        for slot in 0..endpoint::SINGLES {
            returned += self.give_back(&endpoint, slot);
        }
        returned += self.return_batch(&endpoint);
        self.give_up_roles(endpoint.who);
        returned
    }

    /// Gives back what is in the batch of an endpoint.
    pub(crate) fn return_batch(&self, endpoint: &EndpointLayout) -> u64 {
        let at = |word: u64| self.mem.load(endpoint.at + word, Ordering::Acquire);
        let end = at(endpoint::END).min(self.geometry.batch);
        let mut returned = 0;
        // While it is pushed from its slot an element counts as long as `START` does not pass it.
        for slot in at(endpoint::START)..end {
            returned += self.give_back(endpoint, endpoint::SINGLES + slot);
            self.mem.store(endpoint.at + endpoint::START, slot + 1, Ordering::Release);
        }
        // In this order: between the two the batch is empty as well.
        self.mem.store(endpoint.at + endpoint::END, 0, Ordering::Release);
        self.mem.store(endpoint.at + endpoint::START, 0, Ordering::Release);
        endpoint.start.set(0);
        endpoint.end.set(0);
        returned
    }

    /// The operation under way: done, or as if it had never begun.
    fn finish(&self, endpoint: &EndpointLayout) {
        let intent = endpoint.at + endpoint::INTENT;
        let first = Intent::unpack(self.mem.load(intent, Ordering::Acquire));
        let Some(ring) = self.ring(first.queue).filter(|_| first.op != Op::None) else {
            self.mem.store(intent, 0, Ordering::Release);
            return;
        };
        // SYNC(confirm): the end first, then the intent again: the process that moved the end on has said so in the
        // intent before.
        let ends = (ring.head(self.mem), ring.tail(self.mem));
        let now = Intent::unpack(self.mem.load(intent, Ordering::Acquire));
        let mine = End::new(now.end, endpoint.who);
        let range = self.mem.load(endpoint.at + endpoint::RANGE, Ordering::Acquire);
        let (slot, n) = (range & 0xffff_ffff, range >> 32);
        let fits = slot + n <= endpoint::SINGLES + self.geometry.batch;
        match now.op {
            _ if !fits => {}
            Op::Push if fault::is(Fault::PushUndone) => {}
            Op::Popped => self.keep_popped(endpoint, slot, n),
            Op::Pop if ends.0 == mine => self.keep_popped(endpoint, slot, n),
            Op::Pop => self.drop_popped(endpoint, slot),
            Op::Pushed => self.complete_push(endpoint, &ring, now.end, slot, n),
            // No other process pushes here: it may as well be done.
            Op::Push if ends.1 == mine || ring.kind.has_one_producer() => {
                self.complete_push(endpoint, &ring, now.end, slot, n);
            }
            Op::Push | Op::None => {}
        }
        self.mem.store(intent, 0, Ordering::Release);
    }

    /// What was popped is in its slots. Those of a batch count from here on.
    fn keep_popped(&self, endpoint: &EndpointLayout, slot: u64, n: u64) {
        if slot >= endpoint::SINGLES {
            self.mem.store(endpoint.at + endpoint::END, slot - endpoint::SINGLES + n, Ordering::Release);
        }
    }

    /// It was not popped: the slot says nothing. Those of a batch do not count anyway.
    fn drop_popped(&self, endpoint: &EndpointLayout, slot: u64) {
        if slot < endpoint::SINGLES {
            self.mem.store(endpoint.slot(slot), 0, Ordering::Release);
        }
    }

    /// The cells are this endpoint's: those that were not filled yet are.
    fn complete_push(&self, endpoint: &EndpointLayout, ring: &Ring, end: u64, slot: u64, n: u64) {
        let start = End::advance(end, 0u64.wrapping_sub(n));
        for i in 0..n {
            let position = End::advance(start, i);
            let cell = self.mem.load(ring.cell(position), Ordering::Acquire);
            let word = self.mem.load(endpoint.slot(slot + i), Ordering::Acquire);
            // A slot that is empty was emptied after its cell was filled.
            if word != 0 && ring.is_unfilled(position, cell) {
                let element = u64::from(Held::unpack(word).element);
                let word = u64::from(ring.tag(position)) << 32 | element;
                self.mem.store(ring.cell(position), word, Ordering::Release);
            }
        }
        if ring.kind.has_one_producer() {
            self.mem.store(ring.entry + queue::TAIL, End::new(end, endpoint.who).0, Ordering::Release);
        }
        if slot < endpoint::SINGLES {
            self.mem.store(endpoint.slot(slot), 0, Ordering::Release);
        } else {
            self.mem.store(endpoint.at + endpoint::START, slot - endpoint::SINGLES + n, Ordering::Release);
        }
        wake_sleepers(self.mem, ring);
    }

    /// Pushes what a slot holds to where it belongs now.
    pub(crate) fn give_back(&self, endpoint: &EndpointLayout, slot: u64) -> u64 {
        let word = self.mem.load(endpoint.slot(slot), Ordering::Acquire);
        if word == 0 {
            return 0;
        }
        let held = Held::unpack(word);
        let chosen = self.word(pool::ON_DEATH).checked_sub(1).unwrap_or(held.origin);
        // The first queue takes any element from any endpoint.
        for id in [chosen, 0] {
            let Some(ring) = self.ring(id).filter(|ring| !ring.kind.has_one_producer()) else { continue };
            if push_one(self.mem, &ring, endpoint, slot, held.element) == Push::Done(1) {
                wake_sleepers(self.mem, &ring);
                return 1;
            }
        }
        0
    }

    fn give_up_roles(&self, who: u64) {
        if fault::is(Fault::RolesRetained) {
            return;
        }
        for ring in self.rings().filter(|ring| ring.kind != Kind::Mpmc) {
            for role in [queue::PRODUCER, queue::CONSUMER] {
                if self.mem.load(ring.entry + role, Ordering::Acquire) == who {
                    // SYNC(role): the next one sees where we left off.
                    self.mem.store(ring.entry + role, 0, Ordering::Release);
                }
            }
        }
    }
}
