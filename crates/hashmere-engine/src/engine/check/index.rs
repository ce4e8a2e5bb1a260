//! The part of `check` that reads the index: every slot leads to a good record of its own key, and every key has one
//! slot.

use crate::engine::check::CheckReport;
use crate::engine::index::Tree;
use crate::engine::Engine;
use hashmere_format::checksum::ALIVE;
use hashmere_format::hash::buckets;
use hashmere_format::header::at;
use hashmere_format::leaf::{self, LockWord, Slot, LINE, LOCK_WORD};
use hashmere_format::row;
use hashmere_format::segment::State;
use hashmere_mem::{Host, Mem};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// Further looks at what moves or seems wrong: at one slot at most, and in all.
const LOOKS: (u32, u32) = (1000, 20_000);

/// A key's bytes and, if its hash was supplied, that.
type Name = (Vec<u8>, Option<u64>);

/// Where each key was met.
pub(super) struct Seats {
    keys: HashMap<Name, Seat>,
    /// Further looks that are left.
    looks: u32,
}

impl Seats {
    pub(super) fn new() -> Seats {
        Seats { keys: HashMap::new(), looks: LOOKS.1 }
    }
}

/// A slot and what it held.
#[derive(Clone, Copy)]
struct Seat {
    tree: Tree,
    leaf: u64,
    slot_offset: u64,
    slot: Slot,
    hash: u64,
}

/// What a slot holds.
enum Look {
    Nothing,
    Item(Name, Seat),
    Wrong(&'static str, String),
}

impl<M: Mem, H: Host> Engine<M, H> {
    pub(super) fn check_leaf(&self, root: u64, tree: Tree, leaf: u64, seats: &mut Seats, report: &mut CheckReport) {
        for slot_offset in self.leaf_slots(leaf) {
            match self.look_until_stable(root, tree, leaf, slot_offset, &mut seats.looks) {
                Look::Nothing => {}
                Look::Wrong(code, text) => report.add(code, slot_offset, text),
                Look::Item(name, seat) => {
                    report.items += 1;
                    let Some(other) = seats.keys.insert(name, seat) else { continue };
                    // The key may have gone from there before it came here.
                    if self.is_at(root, other) && self.is_at(root, seat) && self.is_at(root, other) {
                        let text = format!("the key of the record at {} is in the index twice", seat.slot.offset());
                        report.add("duplicate-key", slot_offset, text);
                    }
                }
            }
        }
    }

    /// Whether a key is there still.
    fn is_at(&self, root: u64, seat: Seat) -> bool {
        self.effective(seat.slot_offset) == seat.slot
            && self.leaf_of(root, seat.tree, seat.hash).ok().flatten() == Some(seat.leaf)
    }

    fn look_until_stable(&self, root: u64, tree: Tree, leaf: u64, slot_offset: u64, looks: &mut u32) -> Look {
        for _ in 0..LOOKS.0 {
            let (epoch, slot) = (self.mem.load(at::EPOCH, Ordering::Acquire), self.effective(slot_offset));
            let look = self.look_at_slot(root, tree, leaf, slot_offset, slot);
            // SYNC(recycle): as in a read, what was seen in the record was its own if nothing was recycled since.
            self.mem.fence(Ordering::Acquire);
            let is_same = self.mem.load(at::EPOCH, Ordering::Relaxed) == epoch && self.effective(slot_offset) == slot;
            if is_same && !(matches!(look, Look::Wrong(..)) && self.is_busy(leaf)) {
                return look;
            }
            if *looks == 0 {
                break;
            }
            *looks -= 1;
            self.mem.relax();
        }
        // It changed between all looks: not wrong, as far as can be said.
        Look::Nothing
    }

    /// Whether a leaf is being split, by a client, live or crashed, that then holds the lock of its first bucket.
    pub(super) fn is_splitting(&self, leaf: u64) -> bool {
        self.mem.load(leaf + leaf::at::SPLIT, Ordering::Acquire) != 0
            && self.leaf_buckets(leaf).next().is_some_and(|bucket| !self.lock_word(bucket).is_free())
    }

    /// Whether a client has yet to do what follows the commit of a slot; if it crashed, its repair does it.
    fn is_intended(&self, slot_offset: u64) -> bool {
        self.rows().any(|slot| {
            self.mem.load(row::offset(slot) + row::at::INTENT, Ordering::Acquire) == slot_offset
                || self.has_cell(slot, slot_offset)
        })
    }

    fn lock_word(&self, bucket: u64) -> LockWord {
        LockWord(self.mem.load(bucket + LOCK_WORD, Ordering::Acquire))
    }

    /// Whether a living client is at work in a leaf, or a split in it is not complete.
    fn is_busy(&self, leaf: u64) -> bool {
        self.is_splitting(leaf)
            || self.leaf_buckets(leaf).any(|bucket| {
                let owner = self.lock_word(bucket).owner();
                owner.is_some_and(|owner| self.host.is_claimed(owner).unwrap_or(true))
            })
    }

    fn look_at_slot(&self, root: u64, tree: Tree, leaf: u64, slot_offset: u64, slot: Slot) -> Look {
        if slot.is_empty() {
            return Look::Nothing;
        }
        let record = slot.offset();
        let Some((head, key_offset)) = self.parse(record) else {
            return Look::Wrong("slot-astray", format!("the slot leads to {record}, where no record is"));
        };
        let state = self.state(self.segment_of(record)).state;
        let holds = matches!(
            state,
            State::Open | State::Partial | State::Sealed | State::Cleaning | State::Large | State::LargeNew
        );
        if !holds {
            return Look::Wrong(
                "slot-into-free",
                format!("the slot leads to {record}, in a segment that is {state:?}"),
            );
        }
        if head.version == 0 || head.dead != 0 {
            return Look::Wrong("slot-to-dead", format!("the slot leads to {record}, a record that was superseded"));
        }
        let counts = || self.is_whole(record, &head) && self.checksum_word(record).stamp() == ALIVE;
        if self.layout.is_durable() && !counts() && !self.is_intended(slot_offset) {
            return Look::Wrong(
                "checksum-wrong",
                format!("a power cut would lose the record at {record}: its checksum is wrong"),
            );
        }
        let mut key = Vec::new();
        self.mem.append_to(key_offset, head.key_len as usize, &mut key);
        let hash = match tree {
            Tree::First => self.hash_of(&head, &key).hash,
            Tree::Overflow => {
                let [first, second] = self.layout.hasher.overflow(&key);
                // One is the complement of the other, so at most one has this tag.
                if Slot::new(second, record) == slot {
                    second
                } else {
                    first
                }
            }
        };
        let (a, b) = buckets(hash, self.layout.buckets);
        let line = (slot_offset - leaf) / LINE - self.layout.first;
        if Slot::new(hash, record) != slot || line != a && line != b {
            return Look::Wrong(
                "slot-misplaced",
                format!("the record at {record} belongs elsewhere by its hash {hash:#x}"),
            );
        }
        if self.leaf_of(root, tree, hash).ok().flatten() != Some(leaf) {
            return Look::Wrong("slot-unreachable", format!("the directory leads elsewhere for the hash {hash:#x}"));
        }
        Look::Item((key, head.hash), Seat { tree, leaf, slot_offset, slot, hash })
    }
}
