//! What becomes of a hand whose owner is gone: the operation that it died in is completed or undone, what it held goes back.
//!
//! Whoever clears up has put its own name in the place of the dead owner's, so it is alone; if it dies as well the next one
//! does the same to it. It acts as the hand itself, with the same four operations, so every step may be cut off and done again.

use crate::canary::{self, Canary};
use crate::layout::{hand, pool, queue, End, Geometry, Held, Intent, Kind, Op};
use crate::moves::{push_one, wake_sleepers, Push};
use crate::ring::{Grip, Ring};
use hashmere::{ClientId, WriteError};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// Who can say whether a client is gone.
pub(crate) trait Peers {
    /// Whether it is, for certain.
    fn is_gone(&self, client: ClientId) -> Result<bool, WriteError>;
}

/// A pool in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core<'a, M> {
    pub(crate) mem: &'a M,
    pub(crate) base: u64,
    pub(crate) geometry: &'a Geometry,
}

impl<M: Mem> Core<'_, M> {
    pub(crate) fn word(&self, at: u64) -> u64 {
        self.mem.load(self.base + at, Ordering::Acquire)
    }

    /// A queue that exists.
    pub(crate) fn ring(&self, id: u64) -> Option<Ring> {
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
        self.base + self.geometry.hand(index) + hand::OWNER
    }

    /// Takes a hand that is nobody's. `None`: all are taken.
    pub(crate) fn take_hand(&self, me: ClientId) -> Option<Grip> {
        let free = |index: &u64| {
            let owner = self.owner(*index);
            self.mem.load(owner, Ordering::Relaxed) == 0 && self.mem.compare_exchange(owner, 0, me.pack()).is_ok()
        };
        let index = (0..self.geometry.hands).find(free)?;
        Some(Grip::new(self.geometry, self.base, index))
    }

    /// Gives a hand back: what it holds goes where it came from. Returns how many elements that were.
    pub(crate) fn release_hand(&self, index: u64) -> u64 {
        if canary::is(Canary::HandEarly) {
            self.mem.store(self.owner(index), 0, Ordering::Release);
        }
        let returned = self.settle(index);
        // SYNC(hand): whoever takes it next finds it empty.
        self.mem.store(self.owner(index), 0, Ordering::Release);
        returned
    }

    /// Clears up after every hand whose owner is gone. Returns how many elements went back.
    pub(crate) fn recover(&self, me: ClientId, peers: &impl Peers) -> Result<u64, WriteError> {
        let mut returned = 0;
        for index in 0..self.geometry.hands {
            let word = self.mem.load(self.owner(index), Ordering::Acquire);
            if word == 0 || word == me.pack() {
                continue;
            }
            // A word that names nobody can only be damage.
            let gone = match ClientId::unpack(word) {
                Some(owner) => peers.is_gone(owner)?,
                None => true,
            };
            let gone = gone || canary::is(Canary::LivingRobbed);
            if gone && self.take_over(index, word, me) {
                let n = self.release_hand(index);
                self.mem.fetch_add(self.base + pool::RECOVERED, n, Ordering::Relaxed);
                returned += n;
            }
        }
        Ok(returned)
    }

    /// Puts our name in the place of the dead owner's: from here on nobody else clears up after it.
    fn take_over(&self, index: u64, dead: u64, me: ClientId) -> bool {
        if canary::is(Canary::HandRobbed) {
            self.mem.store(self.owner(index), me.pack(), Ordering::Release);
            return true;
        }
        self.mem.compare_exchange(self.owner(index), dead, me.pack()).is_ok()
    }

    /// Finishes what a hand was doing and empties it. The caller owns it.
    pub(crate) fn settle(&self, index: u64) -> u64 {
        let grip = Grip::new(self.geometry, self.base, index);
        self.finish(&grip);
        let mut returned = 0;
        for slot in 0..hand::SINGLES {
            returned += self.give_back(&grip, slot);
        }
        returned += self.settle_batch(&grip);
        self.give_up_roles(grip.who);
        returned
    }

    /// Gives back what is in the batch of a hand.
    pub(crate) fn settle_batch(&self, grip: &Grip) -> u64 {
        let at = |word: u64| self.mem.load(grip.at + word, Ordering::Acquire);
        let end = at(hand::END).min(self.geometry.batch);
        let mut returned = 0;
        // While it is pushed from its slot an element counts as long as `START` does not pass it.
        for slot in at(hand::START)..end {
            returned += self.give_back(grip, hand::SINGLES + slot);
            self.mem.store(grip.at + hand::START, slot + 1, Ordering::Release);
        }
        // In this order: between the two the batch is empty as well.
        self.mem.store(grip.at + hand::END, 0, Ordering::Release);
        self.mem.store(grip.at + hand::START, 0, Ordering::Release);
        grip.start.set(0);
        grip.end.set(0);
        returned
    }

    /// The operation under way: done, or as if it had never begun.
    fn finish(&self, grip: &Grip) {
        let intent = grip.at + hand::INTENT;
        let first = Intent::unpack(self.mem.load(intent, Ordering::Acquire));
        let Some(ring) = self.ring(first.queue).filter(|_| first.op != Op::None) else {
            self.mem.store(intent, 0, Ordering::Release);
            return;
        };
        // SYNC(confirm): the end first, then the intent again: whoever moved the end on has said so in the intent before.
        let ends = (ring.head(self.mem), ring.tail(self.mem));
        let now = Intent::unpack(self.mem.load(intent, Ordering::Acquire));
        let mine = End::new(now.end, grip.who);
        let range = self.mem.load(grip.at + hand::RANGE, Ordering::Acquire);
        let (slot, n) = (range & 0xffff_ffff, range >> 32);
        let fits = slot + n <= hand::SINGLES + self.geometry.batch;
        match now.op {
            _ if !fits => {}
            Op::Push if canary::is(Canary::PushUndone) => {}
            Op::Pulled => self.keep_pulled(grip, slot, n),
            Op::Pull if ends.0 == mine => self.keep_pulled(grip, slot, n),
            Op::Pull => self.drop_pulled(grip, slot),
            Op::Pushed => self.complete_push(grip, &ring, now.end, slot, n),
            // Nobody else pushes here: it may as well be done.
            Op::Push if ends.1 == mine || ring.kind.has_one_producer() => {
                self.complete_push(grip, &ring, now.end, slot, n);
            }
            Op::Push | Op::None => {}
        }
        self.mem.store(intent, 0, Ordering::Release);
    }

    /// What was pulled is in its slots. Those of a batch count from here on.
    fn keep_pulled(&self, grip: &Grip, slot: u64, n: u64) {
        if slot >= hand::SINGLES {
            self.mem.store(grip.at + hand::END, slot - hand::SINGLES + n, Ordering::Release);
        }
    }

    /// It was not pulled: the slot says nothing. Those of a batch do not count anyway.
    fn drop_pulled(&self, grip: &Grip, slot: u64) {
        if slot < hand::SINGLES {
            self.mem.store(grip.slot(slot), 0, Ordering::Release);
        }
    }

    /// The cells are this hand's: those that were not filled yet are.
    fn complete_push(&self, grip: &Grip, ring: &Ring, end: u64, slot: u64, n: u64) {
        let start = End::advance(end, 0u64.wrapping_sub(n));
        for i in 0..n {
            let position = End::advance(start, i);
            let cell = self.mem.load(ring.cell(position), Ordering::Acquire);
            let word = self.mem.load(grip.slot(slot + i), Ordering::Acquire);
            // A slot that is empty was emptied after its cell was filled.
            if word != 0 && ring.is_unfilled(position, cell) {
                let element = u64::from(Held::unpack(word).element);
                let word = u64::from(ring.tag(position)) << 32 | element;
                self.mem.store(ring.cell(position), word, Ordering::Release);
            }
        }
        if ring.kind.has_one_producer() {
            self.mem.store(ring.entry + queue::TAIL, End::new(end, grip.who).0, Ordering::Release);
        }
        if slot < hand::SINGLES {
            self.mem.store(grip.slot(slot), 0, Ordering::Release);
        } else {
            self.mem.store(grip.at + hand::START, slot - hand::SINGLES + n, Ordering::Release);
        }
        wake_sleepers(self.mem, ring);
    }

    /// Pushes what a slot holds to where it belongs now.
    pub(crate) fn give_back(&self, grip: &Grip, slot: u64) -> u64 {
        let word = self.mem.load(grip.slot(slot), Ordering::Acquire);
        if word == 0 {
            return 0;
        }
        let held = Held::unpack(word);
        let chosen = self.word(pool::ON_DEATH).checked_sub(1).unwrap_or(held.origin);
        // The first queue takes anything from anyone.
        for id in [chosen, 0] {
            let Some(ring) = self.ring(id).filter(|ring| !ring.kind.has_one_producer()) else { continue };
            if push_one(self.mem, &ring, grip, slot, held.element) == Push::Done(1) {
                wake_sleepers(self.mem, &ring);
                return 1;
            }
        }
        0
    }

    fn give_up_roles(&self, who: u64) {
        if canary::is(Canary::RolesKept) {
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
