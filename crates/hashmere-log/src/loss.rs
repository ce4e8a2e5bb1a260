//! Whose lines were lost: a ring has one owner after another, and each loss is reported under the name of its owner at
//! that time.

use crate::fault::{self, Fault};
use crate::layout::{past, row, LogCore, BUSY};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// Lines that were lost one behind the other, all of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) who: u64,
    /// The number behind the last of them.
    pub(crate) until: u32,
}

/// Whether one number is behind another; both go round.
fn is_behind(number: u32, other: u32) -> bool {
    (1..1 << 31).contains(&number.wrapping_sub(other))
}

impl<M: Mem> LogCore<'_, M> {
    fn past(&self, ring: u64) -> impl Iterator<Item = u64> {
        let first = self.row(ring) + row::PAST;
        (0..past::ENTRIES).map(move |index| first + index * past::SIZE)
    }

    fn until(&self, entry: u64) -> Option<u32> {
        let word = self.mem.load(entry + past::UNTIL, Ordering::Acquire);
        (word & past::KNOWN != 0).then_some(word as u32)
    }

    /// A thread that has just claimed a ring says so, and that the lines before `number` are those of others. A death
    /// in here leaves the ring with its last owner, or one that has logged nothing.
    pub(crate) fn succeed(&self, ring: u64, number: u32, who: u64) {
        let row = self.row(ring);
        let last = self.mem.load(row + row::LAST, Ordering::Acquire) as u32;
        let before = self.mem.load(row + row::WHO, Ordering::Acquire);
        // If all of them were reported it does not matter any more whose they were; if one had none its own number is
        // there already.
        let is_known = self.past(ring).any(|entry| self.until(entry) == Some(number));
        if number != last && !is_known && !fault::is(Fault::SuccessorOmitted) {
            let entry = self.free_entry(ring, last);
            let put = |at: u64, value: u64| self.mem.store(entry + at, value, Ordering::Release);
            // SYNC(past): for a moment it has no thread; the thread is stored before the number that makes it valid.
            put(past::UNTIL, 0);
            put(past::WHO, before);
            put(past::UNTIL, past::KNOWN | u64::from(number));
        }
        // SYNC(past): a thread that sees the new owner sees the entry of the old one.
        self.mem.store(row + row::WHO, who, Ordering::Release);
    }

    /// An entry that is not needed, with `last` lines reported. If all are needed, the two oldest become one, of no
    /// owner in particular.
    fn free_entry(&self, ring: u64, last: u32) -> u64 {
        let mut needed = Vec::new();
        for entry in self.past(ring) {
            match self.until(entry).filter(|until| is_behind(*until, last)) {
                Some(until) => needed.push((until.wrapping_sub(last), entry)),
                None => return entry,
            }
        }
        needed.sort_unstable();
        self.mem.store(needed[1].1 + past::WHO, 0, Ordering::Release);
        needed[0].1
    }

    /// Of the lost lines from `number` up to `end`: those that come first, if they are of an earlier owner of the ring.
    pub(crate) fn loss_of_past(&self, ring: u64, number: u32, end: u32) -> Option<Loss> {
        let lost = end.wrapping_sub(number);
        if lost == 0 || lost >= 1 << 31 {
            return None;
        }
        let mut first = None;
        for entry in self.past(ring) {
            let Some(until) = self.until(entry) else { continue };
            let count = until.wrapping_sub(number);
            // SYNC(past): who it was, unless the entry was given to another owner since.
            let who = self.mem.load(entry + past::WHO, Ordering::Acquire);
            let is_still = self.until(entry) == Some(until);
            if is_still && (1..=lost).contains(&count) && first.is_none_or(|(least, _)| count < least) {
                first = Some((count, who));
            }
        }
        first.map(|(count, who)| Loss { who, until: number.wrapping_add(count) })
    }

    /// Lines that were dropped last, by owners that have left an empty ring: no next line will report them. `head` and
    /// `last` are what the drainer is about to note.
    pub(crate) fn loss_of_left(&self, ring: u64, head: u64, last: u32) -> Option<Loss> {
        let row = self.row(ring);
        let load = |at: u64| self.mem.load(row + at, Ordering::Acquire);
        if !is_behind(load(row::TRIED) as u32, last) || load(row::OWNER) != 0 {
            return None;
        }
        // SYNC(tried): the number is looked at before the tail: if another thread has the ring by now, and has dropped
        // lines, then the line before those is there to be seen.
        let tried = load(row::TRIED) as u32;
        let tail = load(row::TAIL);
        if tail & BUSY != 0 || tail > head.max(load(row::LOW)) {
            return None;
        }
        // SYNC(past): the owner is looked at before the entries, which are older.
        let who = load(row::WHO);
        self.loss_of_past(ring, last, tried).or(Some(Loss { who, until: tried }))
    }
}
