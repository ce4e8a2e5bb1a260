//! Looking several keys up ahead of their turn, so that their cache misses overlap.
//!
//! Three passes over a batch. The first hashes each key and asks for the lines of its buckets; the second looks for its
//! tag there and asks for the line of the record; the third takes the keys in order, compares, copies, and proves that
//! nothing was recycled since before the first pass. Nothing is walked twice. A key that this does not decide (absent,
//! overflowed, expired, with a tag that another key has too, or moved) is read alone, by the whole protocol.
//!
//! A value is thereby one that its key had at some moment of the call, as for each read.

use crate::engine::index::{Place, Tree};
use crate::engine::read::fetch::PIN_FROM;
use crate::engine::{Engine, Found, KeyHash};
use crate::fault::Fault;
use hashmere_format::header::at;
use hashmere_format::leaf::Slot;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Keys whose cache misses overlap: enough to hide memory latency, few enough that what was asked for is still there
/// when it is used.
pub const BATCH: usize = 32;

/// A key of a batch, and where its record most likely is.
//
// Words alone, and zero for nothing: so a batch of them is made by clearing memory.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ahead {
    hash: u64,
    leaf: u64,
    /// Offset of the slot; 0: none was found.
    slot_offset: u64,
    slot: u64,
}

impl Ahead {
    /// Whether something was found where it may be.
    pub(crate) fn is_found(&self) -> bool {
        self.slot_offset != 0
    }

    /// The key's hash.
    #[inline(always)]
    pub(crate) fn hash(&self) -> KeyHash {
        KeyHash { hash: self.hash, is_supplied: false }
    }
}

/// What was looked up for at most [`BATCH`] keys.
pub(crate) struct Lookahead {
    /// What must not change until a record was copied: see [`Engine::validate`].
    pub(crate) epoch: u64,
    keys: [Ahead; BATCH],
}

impl Lookahead {
    /// One for each key, in order.
    #[inline(always)]
    pub(crate) fn each(&self) -> impl Iterator<Item = &Ahead> {
        self.keys.iter()
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Looks up at most [`BATCH`] keys.
    #[inline(always)]
    pub(crate) fn look_ahead<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Lookahead {
        // SYNC(recycle): loaded before anything that it is to prove.
        let epoch = self.mem.load(at::EPOCH, Ordering::Acquire);
        let mut all = Lookahead { epoch, keys: [Ahead::default(); BATCH] };
        let mut places = [(0, 0); BATCH];
        // None: it is damaged, and the read of each key alone says so.
        let directory = self.directory(self.root(), Tree::First).ok().flatten();
        let mut count = 0;
        for ((key, ahead), buckets) in keys.zip(&mut all.keys).zip(&mut places) {
            ahead.hash = self.hash(key).hash;
            if let Some(Ok(path)) = directory.map(|directory| self.path_in(directory, ahead.hash)) {
                let place = self.place(path.leaf, ahead.hash);
                ahead.leaf = place.leaf;
                *buckets = (place.first, place.second);
            }
            count += 1;
        }
        for (ahead, (first, second)) in all.keys.iter_mut().zip(places).take(count) {
            if ahead.leaf == 0 {
                continue;
            }
            let place = Place { leaf: ahead.leaf, first, second };
            let mut mask = self.matching(place, ahead.hash);
            if mask != 0 {
                ahead.slot_offset = place.take_slot(&mut mask);
                let slot = self.slot(ahead.slot_offset);
                ahead.slot = slot.0;
                self.mem.prefetch(slot.offset());
            }
        }
        all
    }

    /// The record of a key that was looked up, if that is where it was expected, and has not expired. The caller copies
    /// what it needs and then asks [`validate`](Self::validate).
    #[inline(always)]
    pub(crate) fn found_ahead(&self, key: &[u8], ahead: &Ahead) -> Option<Found> {
        if ahead.slot_offset == 0 {
            return None;
        }
        let (slot, kh) = (Slot(ahead.slot), ahead.hash());
        let found =
            self.found_in(key, kh, (Tree::First, ahead.leaf), ahead.slot_offset, slot, Fault::ReadUncompared)?;
        (!self.has_expired(&found)).then_some(found)
    }

    /// Copies the value of a key that was looked up to the end of `buffer`. `false`: nothing was copied, and the key is
    /// to be read alone.
    #[inline(always)]
    pub(crate) fn fetch_ahead(&self, key: &[u8], (all, ahead): (&Lookahead, &Ahead), buffer: &mut Vec<u8>) -> bool {
        let Some(found) = self.found_ahead(key, ahead).filter(|found| found.header.value_len <= PIN_FROM) else {
            return false;
        };
        let start = buffer.len();
        self.mem.append_to(found.value(), found.value_len(), buffer);
        self.visit(&found);
        let valid = self.validate(&found, all.epoch);
        if !valid {
            buffer.truncate(start);
        }
        valid
    }
}
