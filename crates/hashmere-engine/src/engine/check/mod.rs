//! `check`: reads everything and names what contradicts itself.
//!
//! It stops no other client. In a store in use a thing can look wrong because it changed between two loads: so whatever
//! looks wrong is looked at again, and reported only if it did not change in between. What is half done is not wrong
//! while it is under way.

pub(super) mod index;
mod regions;

use crate::engine::check::index::Seats;
use crate::engine::index::Tree;
use crate::engine::Engine;
use hashmere_format::header::{at, limit};
use hashmere_format::leaf::{Identity, LockWord};
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// How often a check begins again because the store was cleared during it.
const ROUNDS: u32 = 8;
/// Longer rows of segments than this are not looked for behind a tail that seems to have no head.
const LOOK_BACK: u64 = 1 << 16;

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

/// What `Store::check` found.
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
    /// Locks of clients that died with them. Nothing is wrong with those: the next to need one repairs what it covers.
    pub dead_locks: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// The first thing that is wrong; a lock that a dead client left is one here: after its repair there is none.
    #[cfg(test)]
    pub(super) fn sound(&self) -> Result<(), String> {
        match self.problems.first() {
            Some(problem) => Err(format!("check: {} {}", problem.code, problem.text)),
            None if self.dead_locks != 0 => Err(format!("check: {} dead locks", self.dead_locks)),
            None => Ok(()),
        }
    }

    pub(super) fn add(&mut self, code: &'static str, offset: u64, text: String) {
        if self.problems.len() < 1000 {
            self.problems.push(Problem { code, offset, text });
        }
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Checks the whole store.
    pub fn check(&self) -> CheckReport {
        // What was found in an index of the past means nothing: others may have its place by now.
        let checked = self.in_reach(|| (0..ROUNDS).find_map(|_| self.check_once()).unwrap_or_default());
        checked.unwrap_or_else(|error| {
            // Nothing of what was found counts: what cannot be reached looks like damage.
            let mut report = CheckReport::default();
            report.add("not-reachable", 0, format!("the store was not checked: {error}"));
            report
        })
    }

    /// `None`: the store was cleared during it.
    fn check_once(&self) -> Option<CheckReport> {
        let mut report = CheckReport::default();
        let (root, counts) = (self.root(), self.counts());
        self.check_segments(&mut report);
        self.check_offline(&mut report);
        self.check_regions(&mut report);
        let mut seats = Seats::new();
        for tree in [Tree::First, Tree::Overflow] {
            self.check_directory(root, tree, &mut report);
            for leaf in self.leaves(root, tree) {
                report.leaves += 1;
                self.check_leaf(root, tree, leaf, &mut seats, &mut report);
            }
        }
        self.check_totals(&counts, &mut report);
        let is_dead = |owner: &u32| !self.host.is_claimed(*owner).unwrap_or(true);
        report.dead_locks = self.held_locks(root).iter().filter(|owner| is_dead(owner)).count() as u64;
        (self.root() == root).then_some(report)
    }

    fn check_segments(&self, report: &mut CheckReport) {
        let mut covered = 0;
        for segment in 0..self.segments() {
            report.segments += 1;
            let (generation, word) = (self.generation(segment), self.stated(segment));
            let at = self.entry_of(segment);
            let used = self.field(segment, segment::at::USED);
            // Freed or taken since the first look: not ours to judge. (One that comes back to a state in the same
            // generation holds what it held.)
            let stays = || self.stated(segment) == word && self.generation(segment) == generation;
            let tail = word.state == State::Tail;
            if tail && segment >= covered && !self.has_head(segment) {
                report.add("tail-without-head", at, format!("segment {segment} continues something that is not there"));
            }
            if !tail {
                covered = segment + u64::from(word.length);
                self.check_rest(segment, word, stays, report);
            }
            // The file may have grown since its segments were counted.
            let total = self.segments();
            if !tail && covered > total && stays() {
                report.add(
                    "segment-too-long",
                    at,
                    format!("segment {segment} claims {} segments of {total}", word.length),
                );
            }
            if used > self.segment_bytes() * u64::from(word.length) && stays() {
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

    /// What continues a segment that has no owner is nothing of its own: taken for itself, it would be freed and filled
    /// again.
    fn check_rest(&self, segment: u64, word: Word, stays: impl Fn() -> bool, report: &mut CheckReport) {
        if word.owner != 0 || word.length == 1 {
            return;
        }
        for rest in (segment + 1..segment + u64::from(word.length)).take_while(|rest| *rest < self.segments()) {
            let found = self.stated(rest).state;
            if found != State::Tail && stays() {
                let text = format!("segment {rest} is the rest of segment {segment}, and {found:?} at the same time");
                report.add("rest-taken", self.entry_of(rest), text);
            }
        }
    }

    /// States and count change under the space lock. A process that died with it may have left them apart: its repair
    /// counts them again.
    fn check_offline(&self, report: &mut CheckReport) {
        let at_rest = || {
            let lock = LockWord(self.mem.load(at::SPACE_LOCK, Ordering::Acquire));
            lock.is_free().then(|| self.mem.load(at::OFFLINE, Ordering::Acquire))
        };
        let mut wrong = (0, 0);
        for _ in 0..ROUNDS {
            let Some(said) = at_rest() else { return };
            let found = (0..self.segments()).filter(|s| self.stated(*s).state == State::Offline).count() as u64;
            if said == found {
                return;
            }
            wrong = (said, found);
        }
        // Each time: one that changed between looks would have been right once.
        let (said, found) = wrong;
        if at_rest() == Some(said) {
            let text = format!("the header says that {said} segments are offline, {found} are");
            report.add("wrong-offline", at::OFFLINE, text);
        }
    }

    /// Whether there is one now: rows come and go while they are counted.
    fn has_head(&self, tail: u64) -> bool {
        let head = (tail.saturating_sub(LOOK_BACK)..tail).rev().find(|s| self.stated(*s).state != State::Tail);
        self.stated(tail).state != State::Tail || head.is_some_and(|s| s + u64::from(self.stated(s).length) > tail)
    }

    /// The records of a segment must fill what is in use without a gap.
    fn check_log(&self, segment: u64, used: u64, report: &mut CheckReport) {
        let generation = self.generation(segment);
        let mut records = self.records(segment, used);
        records.by_ref().for_each(drop);
        let end = records.offset() - self.segment_offset(segment);
        // Freed or refilled since the first look: not ours to judge.
        if end != used
            && self.field(segment, segment::at::USED) == used
            && self.generation(segment) == generation
            && matches!(self.state(segment).state, State::Sealed)
        {
            let text = format!("the records of segment {segment} end at {end}, but {used} bytes are in use");
            report.add("log-broken", self.segment_offset(segment) + end, text);
        }
    }

    fn check_directory(&self, root: u64, tree: Tree, report: &mut CheckReport) {
        let Some(depth) = self.depth(self.block_within(root), tree) else { return };
        if depth > tree.depth_max() || 1 << depth > self.entries_max() {
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
            let still = || {
                let found = self.leaf_of(root, tree, index).ok().flatten();
                // A leaf that is being split is neither the old one nor the new one for a while.
                found == Some(leaf)
                    && self.depth(self.block_within(root), tree) == Some(depth)
                    && !self.is_splitting(leaf)
            };
            if !fits && still() {
                report.add("bad-leaf", leaf, format!("directory entry {index} leads to a leaf that says it is {id:?}"));
            }
        }
    }

    /// If no client wrote while the index was read, the counts equal what was found there.
    fn check_totals(&self, before: &[[u64; 4]], report: &mut CheckReport) {
        let idle = self.rows().all(|slot| self.mem.load(row::offset(slot) + row::at::ACTIVE, Ordering::Acquire) == 0);
        let items = self.items();
        if idle && items != report.items && self.counts() == before {
            let text = format!("the clients' counts say {items} items, the index has {}", report.items);
            report.add("wrong-count", at::CLIENTS, text);
        }
    }

    /// What every client has counted, and up to where it has written: a write changes one or the other.
    fn counts(&self) -> Vec<[u64; 4]> {
        use row::at::{HEAD, ITEMS, LIVE, OPEN};
        let words = |slot| [ITEMS, LIVE, HEAD, OPEN].map(|at| self.mem.load(row::offset(slot) + at, Ordering::Acquire));
        self.rows().map(words).collect()
    }
}
