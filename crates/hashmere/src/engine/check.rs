//! `check`: reads everything and names what contradicts itself.
//!
//! Meant for a store at rest. On a busy one, what is moving is looked at twice and only what stays wrong is reported.

use super::index::Tree;
use super::Engine;
use hashmere_format::hash::buckets;
use hashmere_format::header::{at, limit};
use hashmere_format::leaf::{Identity, Slot, LINE};
use hashmere_format::segment::{self, State};
use hashmere_format::sum::ALIVE;
use hashmere_mem::{Host, Mem};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

/// One contradiction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// A stable word for the kind.
    pub code: &'static str,
    /// Where, in bytes from the start of the file.
    pub offset: u64,
    /// What, in words.
    pub text: String,
}

/// What [`Store::check`](crate::Store::check) found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Everything that is wrong, up to a thousand of them.
    pub problems: Vec<Problem>,
    /// Index entries that lead to a good record.
    pub items: u64,
    /// Segments looked at.
    pub segments: u64,
    /// Leaves looked at.
    pub leaves: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn add(&mut self, code: &'static str, offset: u64, text: String) {
        if self.problems.len() < 1000 {
            self.problems.push(Problem { code, offset, text });
        }
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Checks the whole store.
    pub(crate) fn check(&self) -> CheckReport {
        let mut report = CheckReport::default();
        self.check_segments(&mut report);
        self.check_regions(&mut report);
        let root = self.root();
        let mut live = HashMap::new();
        for tree in [Tree::First, Tree::Overflow] {
            self.check_directory(root, tree, &mut report);
            let mut keys = HashSet::new();
            for leaf in self.leaves(root, tree) {
                report.leaves += 1;
                self.check_leaf(root, tree, leaf, &mut live, &mut keys, &mut report);
            }
        }
        self.check_totals(root, &live, &mut report);
        for (bucket, owner) in self.held_locks(root) {
            if !self.host.is_claimed(owner).unwrap_or(true) {
                let text = format!("client {owner}, which is dead, holds this lock; the next to need it repairs that");
                report.add("dead-lock", bucket, text);
            }
        }
        report
    }

    fn check_segments(&self, report: &mut CheckReport) {
        let total = self.segments();
        let mut covered = 0;
        for segment in 0..total {
            report.segments += 1;
            let word = self.stated(segment);
            let at = self.entry_of(segment);
            let tail = word.state == State::Tail;
            if tail && segment >= covered {
                report.add("tail-without-head", at, format!("segment {segment} continues something that is not there"));
            }
            if !tail {
                covered = segment + u64::from(word.length);
            }
            if covered > total {
                report.add(
                    "segment-too-long",
                    at,
                    format!("segment {segment} claims {} segments of {total}", word.length),
                );
            }
            let used = self.field(segment, segment::at::USED);
            if used > self.segment_bytes() * u64::from(word.length) {
                report.add("used-too-large", at, format!("segment {segment} claims {used} bytes in use"));
            }
            if matches!(word.state, State::Sealed | State::Partial) {
                self.check_log(segment, used, report);
            }
            if u64::from(word.owner) > u64::from(limit::CLIENTS) {
                report.add("bad-owner", at, format!("segment {segment} is owned by a client that cannot exist"));
            }
        }
    }

    /// The records of a segment must fill what is in use without a gap.
    fn check_log(&self, segment: u64, used: u64, report: &mut CheckReport) {
        let mut end = 0;
        let mut dead = 0;
        self.walk(segment, used, |offset, head| {
            let bytes = head.record_bytes(self.lengths);
            end = offset + bytes - self.segment_offset(segment);
            dead += if head.dead != 0 { bytes } else { 0 };
        });
        // Freed or refilled meanwhile: not ours to judge.
        if end != used
            && self.field(segment, segment::at::USED) == used
            && matches!(self.state(segment).state, State::Sealed)
        {
            let text = format!("the records of segment {segment} end at {end}, but {used} bytes are in use");
            report.add("log-broken", self.segment_offset(segment) + end, text);
        }
    }

    fn check_directory(&self, root: u64, tree: Tree, report: &mut CheckReport) {
        let Some(depth) = self.depth(self.block_within(root), tree) else { return };
        if depth > tree.depth_max() {
            report.add("directory-too-deep", self.block_within(root), format!("the directory claims depth {depth}"));
            return;
        }
        for index in 0..1u64 << depth {
            let leaf = match self.leaf_of(root, tree, index) {
                Ok(Some(leaf)) => leaf,
                _ => {
                    report.add(
                        "bad-directory-entry",
                        self.entry(self.block_within(root), tree, index),
                        format!("directory entry {index} leads nowhere"),
                    );
                    continue;
                }
            };
            let id = Identity::unpack(self.mem.load(leaf, Ordering::Acquire));
            let fits = id.is_some_and(|id| {
                id.tree == tree.number() && id.depth <= depth && u64::from(id.prefix) == index & ((1 << id.depth) - 1)
            });
            if !fits && self.leaf_of(root, tree, index).ok().flatten() == Some(leaf) {
                report.add("bad-leaf", leaf, format!("directory entry {index} leads to a leaf that says it is {id:?}"));
            }
        }
    }

    fn check_leaf(
        &self,
        root: u64,
        tree: Tree,
        leaf: u64,
        live: &mut HashMap<u64, u64>,
        keys: &mut HashSet<(Vec<u8>, Option<u64>)>,
        report: &mut CheckReport,
    ) {
        for slot_offset in self.leaf_slots(leaf) {
            let slot = self.slot(slot_offset);
            if slot.is_empty() {
                continue;
            }
            let mut problem = None;
            // A second look at what is wrong: it may have been moving.
            for _ in 0..2 {
                problem = self.check_slot(root, tree, leaf, slot_offset, self.slot(slot_offset), keys);
                if problem.is_none() {
                    break;
                }
            }
            match problem {
                Some((code, text)) => report.add(code, slot_offset, text),
                None => {
                    report.items += 1;
                    let bytes = self.parse(slot.offset()).map_or(0, |(head, _)| head.record_bytes(self.lengths));
                    if live.insert(slot.offset(), bytes).is_some() {
                        report.add(
                            "two-slots-one-record",
                            slot_offset,
                            format!("another slot leads to the record at {} too", slot.offset()),
                        );
                    }
                }
            }
        }
    }

    /// What is wrong with a slot, if anything.
    fn check_slot(
        &self,
        root: u64,
        tree: Tree,
        leaf: u64,
        slot_offset: u64,
        slot: Slot,
        keys: &mut HashSet<(Vec<u8>, Option<u64>)>,
    ) -> Option<(&'static str, String)> {
        if slot.is_empty() {
            return None;
        }
        let record = slot.offset();
        let Some((head, key_offset)) = self.parse(record) else {
            return Some(("slot-astray", format!("the slot leads to {record}, where no record is")));
        };
        let number = self.segment_of(record);
        let word = self.state(number);
        let holds = matches!(
            word.state,
            State::Open | State::Partial | State::Sealed | State::Cleaning | State::Large | State::LargeNew
        );
        if !holds {
            return Some((
                "slot-into-free",
                format!("the slot leads to {record}, in a segment that is {:?}", word.state),
            ));
        }
        if head.version == 0 || head.dead != 0 {
            return Some(("slot-to-dead", format!("the slot leads to {record}, a record that was superseded")));
        }
        if self.is_durable() && !(self.is_whole(record, &head) && self.sum(record).stamp() == ALIVE) {
            return Some(("sum-wrong", format!("a power cut would lose the record at {record}: its sum is wrong")));
        }
        let mut key = Vec::new();
        self.mem.append_to(key_offset, head.key_len as usize, &mut key);
        let hash = match tree {
            Tree::First => self.hash_of(&head, &key).hash,
            Tree::Overflow => self.hasher.overflow(&key),
        };
        let (a, b) = buckets(hash, self.buckets);
        let line = (slot_offset - leaf) / LINE - self.first;
        if Slot::new(hash, record) != slot || line != a && line != b {
            return Some(("slot-misplaced", format!("the record at {record} belongs elsewhere by its hash {hash:#x}")));
        }
        if self.leaf_of(root, tree, hash).ok().flatten() != Some(leaf) {
            return Some(("slot-unreachable", format!("the directory leads elsewhere for the hash {hash:#x}")));
        }
        if !keys.insert((key, head.hash)) && self.slot(slot_offset) == slot {
            return Some(("duplicate-key", format!("the key of the record at {record} is in the index twice")));
        }
        None
    }

    /// At rest, the tallies equal what was found.
    fn check_totals(&self, root: u64, live: &HashMap<u64, u64>, report: &mut CheckReport) {
        let idle = self.rows().all(|s| {
            self.mem.load(hashmere_format::row::offset(s) + hashmere_format::row::at::ACTIVE, Ordering::Acquire) == 0
        });
        let items = self.items();
        if idle && self.root() == root && items != live.len() as u64 && items == self.items() {
            report.add(
                "wrong-count",
                at::CLIENTS,
                format!("the clients' tallies say {items} items, the index has {}", live.len()),
            );
        }
    }
}
