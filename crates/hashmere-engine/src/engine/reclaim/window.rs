//! Several segments side by side, made by emptying segments that are neighbours.
//!
//! A *window* is an extent of segments that could be emptied. All of them are taken before the first is emptied, so
//! that no writer appends to one of them, and what moves out of one does not move into the next. At a death they are
//! claimed (and freed by the repair) or in state cleaning (and go back to what they were).

use crate::engine::client::stalled::LOOK;
use crate::engine::log::extent::Extent;
use crate::engine::log::segments::{Memory, Need, RESERVE};
use crate::engine::reclaim::clean::Policy;
use crate::engine::reclaim::large::Lot;
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use hashmere_format::header::{at, limit};
use hashmere_format::row::Stat;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Claims `n` adjacent segments by making them free. `None`: there are none that can be. A cache in which others
    /// are writing waits until what they hold can go as well.
    #[cold]
    pub(in crate::engine) fn make_extent(
        &self,
        writer: &mut Writer,
        n: u64,
        refused: &mut Option<WriteError>,
    ) -> Result<Option<u64>, WriteError> {
        let start = self.host.monotonic();
        loop {
            let made = self.make_extent_now(writer, n, refused)?;
            let may_come = made.is_none() && self.layout.is_cache();
            let Some(holder) = may_come.then(|| self.in_the_way(writer.slot, n)).flatten() else { return Ok(made) };
            let waited = self.host.monotonic().saturating_sub(start);
            if waited >= self.access.busy_timeout {
                return Err(self.busy(holder, waited));
            }
            self.mem.wait(at::EPOCH, self.mem.load(at::EPOCH, Ordering::Relaxed) as u32, LOOK);
        }
    }

    /// Another client that is filling or emptying segments, in a file in which `n` adjacent ones could be had but for
    /// those. (A segment that a client appends to may stay its own for any time.)
    fn in_the_way(&self, own: u32, n: u64) -> Option<u32> {
        let (mut free, mut longest, mut holder) = (0, 0, None);
        for segment in 0..self.segments() {
            let word = self.state(segment);
            let stays = matches!(word.state, State::Open | State::Index | State::Table | State::Region)
                || word.state == State::Tail && free == 0;
            free = if stays { 0 } else { free + 1 };
            longest = longest.max(free);
            // A damaged word names an owner that cannot exist.
            let owner = word.owner.checked_sub(1).filter(|owner| *owner != own && *owner < limit::CLIENTS);
            if !stays && owner.is_some() {
                holder = owner;
            }
        }
        holder.filter(|_| longest >= n)
    }

    fn make_extent_now(
        &self,
        writer: &mut Writer,
        n: u64,
        refused: &mut Option<WriteError>,
    ) -> Result<Option<u64>, WriteError> {
        self.in_emergency(writer, |writer| {
            let mut made = self.make_extent_once(writer, n, Lot::Unvisited, refused);
            let in_vain = |error: &WriteError| error.is_no_room() || matches!(error, WriteError::Busy { .. });
            if made.as_ref().map_or_else(in_vain, Option::is_none) {
                // Our own segment may be in the way, or what dead clients hold; or all that was left is beside a
                // stalled lock.
                self.retire_segment(writer);
                made = self.sweep().and_then(|()| self.make_extent_once(writer, n, Lot::Any, refused));
            }
            match made {
                Err(error) if error.is_no_room() => {
                    *refused = Some(error);
                    Ok(None)
                }
                made => made,
            }
        })
    }

    fn make_extent_once(
        &self,
        writer: &mut Writer,
        n: u64,
        whose: Lot,
        refused: &mut Option<WriteError>,
    ) -> Result<Option<u64>, WriteError> {
        if n > 1 && self.complete_file(writer.slot, n, refused) {
            if let Some(first) = self.find_extent(writer.slot, n, refused)? {
                return Ok(Some(first));
            }
        }
        if n == 1 || !self.layout.is_cache() {
            return self.clean_for_extent(writer, n, refused);
        }
        self.evict_for_extent(writer, n, whose, refused)
    }

    /// Frees segment after segment until `n` of them are neighbours.
    fn clean_for_extent(
        &self,
        writer: &mut Writer,
        n: u64,
        refused: &mut Option<WriteError>,
    ) -> Result<Option<u64>, WriteError> {
        if !self.could_hold_extent(n) {
            return Ok(None);
        }
        // Durable: what a window would be emptied of may still be needed on the medium, so it cannot be kept.
        let by_window = !self.layout.is_cache() && !self.layout.is_durable();
        let mut left = Vec::new();
        for _ in 0..=self.segments() {
            if let Some(first) = if by_window { self.roomiest_window(n, &left) } else { None } {
                match self.empty_window(writer, first, n, Policy::Move, &mut left) {
                    Ok(Some(extent)) => {
                        if let Some(first) = self.back_extent(extent, writer.slot, refused) {
                            return Ok(Some(first));
                        }
                    }
                    // The lock of a record there does not come: a window without that segment is next.
                    Err(WriteError::Busy { .. }) => continue,
                    // There was less room elsewhere than it seemed: segment after segment, then.
                    Ok(None) => {}
                    Err(error) if error.is_no_room() => {}
                    Err(error) => return Err(error),
                }
            }
            if !self.free_one_more(writer)? {
                break;
            }
            self.sync_for_room(writer)?;
            if let Some(first) = self.find_extent(writer.slot, n, refused)? {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    /// Whether all that is dead or free would come to `n` segments: if not, there is no use in moving anything.
    fn could_hold_extent(&self, n: u64) -> bool {
        let room = (0..self.segments()).map(|segment| {
            let word = self.state(segment);
            let all = u64::from(word.length) * self.segment_bytes();
            let dead = self.field(segment, segment::at::DEAD);
            let used = self.field(segment, segment::at::USED).min(all);
            match word.state {
                State::Free | State::Hole | State::PendingFree | State::Open => all,
                State::Sealed | State::Partial if !self.is_stale(segment) => all - used + dead.min(used),
                State::Large if dead == 0 && !self.is_stale(segment) => 0,
                State::Index if !self.is_stale(segment) => 0,
                State::Sealed | State::Partial | State::Large | State::Index => all,
                _ => 0,
            }
        });
        let growth = self.segments_max().saturating_sub(self.segments()) * self.segment_bytes();
        let expires = self.mem.load(at::NEXT_EXPIRY, Ordering::Relaxed) <= self.host.now_ms();
        expires || room.fold(growth, u64::saturating_add) >= n * self.segment_bytes()
    }

    /// The window with least to move out of it, if there is room for that elsewhere, and without segments that were
    /// `left`.
    fn roomiest_window(&self, n: u64, left: &[u64]) -> Option<u64> {
        let total = self.segments() as usize;
        let is_refused = self.foreseen(Need::Normal, n * self.segment_bytes()).is_some();
        let n = n as usize;
        // Sums up to each segment: bytes that live, free segments, segments that cannot be emptied.
        let mut sums = vec![(0, 0, 0); total + 1];
        for (segment, i) in (0..).zip(0..total) {
            let (live, free, fixed) = sums[i];
            let used = self.field(segment, segment::at::USED).min(self.segment_bytes());
            let dead = self.field(segment, segment::at::DEAD);
            sums[i + 1] = match self.state(segment).state {
                State::Free => (live, free + 1, fixed),
                State::Hole if !is_refused => (live, free, fixed),
                State::Sealed | State::Partial if !left.contains(&segment) => {
                    (live + used.saturating_sub(dead), free, fixed)
                }
                _ => (live, free, fixed + 1),
            };
        }
        let outside = |i: usize| sums[total].1 - (sums[i + n].1 - sums[i].1);
        let live = |i: usize| sums[i + n].0 - sums[i].0;
        // An estimate: mostly less than a quarter of a segment is lost at its end. If more is, emptying the window
        // fails.
        let fits = |i: &usize| outside(*i) >= RESERVE + (live(*i) * 4 / 3).div_ceil(self.segment_bytes());
        let windows = (0..(total + 1).saturating_sub(n)).filter(|i| sums[i + n].2 == sums[*i].2);
        windows.filter(fits).min_by_key(|i| live(*i)).map(|i| i as u64)
    }

    /// A file that may still grow, but by less than `n` segments, grows to its end: the rest of the extent is found
    /// before it. `false`: it did not.
    fn complete_file(&self, slot: u32, n: u64, refused: &mut Option<WriteError>) -> bool {
        let rest = self.segments_max().saturating_sub(self.segments());
        // Where the file system is what refused, more of the file is of no use.
        if rest == 0 || rest >= n + RESERVE || refused.is_some() {
            return false;
        }
        let first = self.grow(slot, rest, Need::Reserve, refused);
        let added = first.into_iter().flat_map(|first| (first..first + rest).rev());
        added.for_each(|segment| self.leave_hole(segment));
        first.is_some()
    }

    /// Evicts neighbours, in the order of the hand.
    fn evict_for_extent(
        &self,
        writer: &mut Writer,
        n: u64,
        whose: Lot,
        refused: &mut Option<WriteError>,
    ) -> Result<Option<u64>, WriteError> {
        let total = self.segments();
        let hand = self.mem.load(at::EVICT_HAND, Ordering::Relaxed) % total.max(1);
        // What was visited may take half a segment of room with it.
        let policy = Policy::Evict { budget: self.segment_bytes() / 2 / n };
        let mut busy = None;
        let mut next = hand;
        while next < hand + total {
            let first = next % total;
            next += 1;
            if first + n > total {
                continue;
            }
            if let Some(obstacle) = self.obstacle(writer, first, n, whose)? {
                next += obstacle - first;
                continue;
            }
            self.mem.store(at::EVICT_HAND, (first + n) % total, Ordering::Relaxed);
            match self.empty_window(writer, first, n, policy, &mut Vec::new()) {
                Ok(Some(extent)) => {
                    if let Some(first) = self.back_extent(extent, writer.slot, refused) {
                        self.restore_reserve(writer);
                        return Ok(Some(first));
                    }
                }
                Err(error @ WriteError::Busy { .. }) => busy = Some(error),
                Err(error) => return Err(error),
                Ok(None) => {}
            }
        }
        busy.map_or(Ok(None), Err)
    }

    /// The last segment found in a window that cannot be emptied. Large records go already if that is their lot.
    fn obstacle(&self, writer: &mut Writer, first: u64, n: u64, whose: Lot) -> Result<Option<u64>, WriteError> {
        let mut large = Vec::new();
        let mut at = first;
        while at < first + n {
            self.free_if_dead(writer, at)?;
            let word = self.state(at);
            let may_go = match word.state {
                State::Free => true,
                State::Hole => self.foreseen(Need::Normal, self.segment_bytes()).is_none(),
                State::Sealed | State::Partial | State::Large => !self.is_held_back(at)?,
                _ => false,
            };
            if !may_go {
                return Ok(Some(at));
            }
            if word.state == State::Large {
                large.push(at);
            }
            at += u64::from(word.length);
        }
        for segment in large {
            let goes = whose != Lot::Unvisited
                || match self.evict_large(writer, segment) {
                    Err(WriteError::Busy { .. }) => false,
                    gone => gone?,
                };
            if !goes {
                return Ok(Some(segment));
            }
        }
        Ok(None)
    }

    /// What was taken of the reserve to make an extent is made good. Where that fails now, the next one to need it does
    /// it.
    fn restore_reserve(&self, writer: &mut Writer) {
        for _ in 0..2 * RESERVE {
            if self.free_segments() >= RESERVE || !matches!(self.evict(writer), Ok(true)) {
                return;
            }
        }
    }

    /// Takes `n` adjacent segments, empties them, and keeps them, each claimed. `None`: they were not to be had. One
    /// that cannot be emptied, because the lock of a record in it does not come, is noted in `left`.
    fn empty_window(
        &self,
        writer: &mut Writer,
        first: u64,
        n: u64,
        policy: Policy,
        left: &mut Vec<u64>,
    ) -> Result<Option<Extent>, WriteError> {
        let mut taken = Vec::new();
        let mut next = first;
        while next < first + n {
            let word = self.state(next);
            if !self.take_for_extent(next, word, writer.slot) {
                break;
            }
            taken.push((next, word));
            next += u64::from(word.length);
        }
        let mut done = Ok(next >= first + n);
        for (segment, word) in &taken {
            if matches!(done, Ok(true)) {
                done = self.empty_taken(writer, *segment, *word, policy);
                if matches!(done, Err(WriteError::Busy { .. })) {
                    left.push(*segment);
                }
            }
        }
        if matches!(done, Ok(true)) {
            // The last one may have been larger than what was left.
            (first + n..next).for_each(|segment| self.free(segment, 1, writer.slot, Memory::All));
            let holes = taken.iter().filter(|(_, word)| word.state == State::Hole).map(|(segment, _)| *segment);
            return Ok(Some(Extent { first, n, holes: holes.collect() }));
        }
        taken.into_iter().for_each(|(segment, word)| self.put_back(segment, word, writer.slot));
        done.map(|_| None)
    }

    fn take_for_extent(&self, segment: u64, word: Word, slot: u32) -> bool {
        match word.state {
            State::Free | State::Hole => self.take_vacant(segment, word.state, slot),
            State::Sealed | State::Partial | State::Large => {
                self.change_state(segment, word, Word { state: State::Cleaning, owner: slot + 1, ..word })
            }
            _ => false,
        }
    }

    /// Empties a segment that was taken, if it has to be, and claims it.
    fn empty_taken(&self, writer: &mut Writer, segment: u64, word: Word, policy: Policy) -> Result<bool, WriteError> {
        match word.state {
            State::Free | State::Hole => return Ok(true),
            State::Large => self.drop_large(writer, segment, Lot::Any)?,
            _ => match self.empty_segment(writer, segment, policy) {
                // No room for those that would move: a cache lets go of them as well.
                Err(error) if error.is_no_room() && self.layout.is_cache() => {
                    self.empty_segment(writer, segment, Policy::Evict { budget: 0 })?;
                }
                done => done?,
            },
        }
        self.count_at(writer.row, Stat::Cleaned, 1);
        self.keep_unless_held(segment, writer.slot)
    }

    /// A segment that was taken for an extent which did not come about.
    fn put_back(&self, segment: u64, word: Word, slot: u32) {
        for part in segment..segment + u64::from(word.length) {
            let now = self.state(part);
            match now.state {
                State::Claimed if now.owner == slot + 1 && word.state == State::Hole => self.leave_hole(part),
                State::Claimed if now.owner == slot + 1 => self.free(part, 1, slot, Memory::Most),
                State::Cleaning if now.owner == slot + 1 => self.set_state(part, word),
                _ => {}
            }
        }
    }
}
