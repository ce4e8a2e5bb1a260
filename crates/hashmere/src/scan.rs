//! All keys.

use crate::{glob, Cursor, Filter, Pair, ReadError, Store};
use hashmere_engine::Found;
use hashmere_format::leaf::Slot;
use hashmere_format::uid::{depth_max, reverse, Scan as Position};
use hashmere_os::clock;
use hashmere_os::random::{random_u64, SplitMix64};
use std::sync::Mutex;

/// Looks at random places before a random pair is taken from a scan: a table filled to one in a hundred still answers
/// at once.
const THROWS: u32 = 1000;
/// Looks at random places of a store with few leaves, before all its entries are counted.
const THROWS_FEW: u32 = 16;
/// This many leaves are few: to go through them takes no longer than all those tries.
const FEW_LEAVES: u64 = 8;

/// An iterator over the pairs of a store: see [`Store::scan`].
#[derive(Debug)]
pub struct Scan<'a> {
    store: &'a Store,
    filter: Filter,
    at: Option<Position>,
    /// The part of a parallel scan: a tree and a range of reversed hash bits.
    part: Option<(u32, std::ops::Range<u32>)>,
    failed: bool,
}

impl Store {
    /// Every pair that passes the filter, from a cursor on.
    ///
    /// A key that exists during the whole scan is returned exactly once, however the store grows, is written to and
    /// cleaned; one that comes or goes during the scan is returned or not. Writers never wait for a scan. The order is
    /// that of the hashes.
    pub fn scan(&self, from: Cursor, filter: Filter) -> Scan<'_> {
        let at = Position::unpack(from.0);
        Scan { store: self, filter, failed: at.is_none(), at, part: None }
    }

    /// Every pair.
    pub fn iter(&self) -> Scan<'_> {
        self.scan(Cursor::START, Filter::all())
    }

    /// Every key.
    pub fn keys(&self) -> impl Iterator<Item = Result<Vec<u8>, ReadError>> + '_ {
        self.scan(Cursor::START, Filter::all().keys_only()).map(|pair| pair.map(|p| p.key))
    }

    /// Scans with several threads, each its own part of the hashes. `each` is called from all of them.
    ///
    /// # Errors
    /// The first error of any thread.
    pub fn parallel_scan(&self, threads: usize, filter: &Filter, each: impl Fn(Pair) + Sync) -> Result<(), ReadError> {
        // Parts are ranges of hashes, not of leaves: a leaf may split while two threads are at its edges.
        let threads = threads.clamp(1, 1024) as u64;
        let failure = Mutex::new(None);
        std::thread::scope(|scope| {
            let mut crew = Vec::with_capacity(threads as usize);
            for part in 0..threads {
                let (each, failure) = (&each, &failure);
                crew.push(scope.spawn(move || {
                    for tree in 0..2 {
                        let space = 1u64 << depth_max(tree);
                        let bound = |n: u64| (n * space / threads) as u32;
                        let at = Position { tree, reached: bound(part), ..Position::START };
                        let part = Some((tree, bound(part)..bound(part + 1)));
                        let scan = Scan { store: self, filter: filter.clone(), at: Some(at), part, failed: false };
                        for pair in scan {
                            match pair {
                                Ok(pair) => each(pair),
                                Err(error) => {
                                    failure
                                        .lock()
                                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                                        .get_or_insert(error);
                                    return;
                                }
                            }
                        }
                    }
                }));
            }
            // Joined one by one: the scope would wait for them by a futex, which the thread sanitizer of a program in C
            // does not take for the end of a thread.
            for thread in crew {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
        failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// A pair chosen at random, each with nearly the same chance. `None`: the store is empty.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn random(&self) -> Result<Option<Pair>, ReadError> {
        let engine = self.engine();
        let mut dice = dice();
        let few = engine.leaves_of(engine.root_word()) <= FEW_LEAVES;
        for _ in 0..if few { THROWS_FEW } else { THROWS } {
            let root = engine.root_word();
            if let Some((uid, slot_offset, slot)) = engine.random_place(root, dice.next())? {
                if let Some(pair) = self.pair(root, uid, slot_offset, slot, &Filter::default())? {
                    return Ok(Some(pair));
                }
            }
        }
        if few {
            if let Some(pair) = self.random_of_few(&mut dice)? {
                return Ok(Some(pair));
            }
        }
        // Nearly empty, or what was chosen has expired: from a random point on, else from the start.
        let bits = depth_max(0);
        let start = Position { reached: (dice.next() >> 40) as u32 & ((1 << bits) - 1), ..Position::START };
        let later = Scan { store: self, filter: Filter::default(), at: Some(start), part: None, failed: false }.next();
        later.or_else(|| self.iter().next()).transpose()
    }

    /// One of all entries, each with the same chance; `None`: there are none, or it is gone or has expired.
    fn random_of_few(&self, dice: &mut SplitMix64) -> Result<Option<Pair>, ReadError> {
        let engine = self.engine();
        let root = engine.root_word();
        let (mut at, mut seen, mut chosen) = (Position::START, 0, None);
        while at.tree < 2 && engine.root_word() == root {
            let step = engine.scan_step(root, at, &mut { usize::MAX })?;
            at = step.next;
            if step.entry.is_some() {
                seen += 1;
                // The n-th takes the place of the one before with a chance of 1 in n.
                if dice.next() % seen == 0 {
                    chosen = step.entry;
                }
            }
        }
        let Some((uid, slot_offset, slot)) = chosen else { return Ok(None) };
        self.pair(root, uid, slot_offset, slot, &Filter::default())
    }

    /// Reads a pair from a slot; `None` if it is gone or does not pass.
    fn pair(
        &self,
        root: u64,
        uid: u32,
        slot_offset: u64,
        slot: Slot,
        filter: &Filter,
    ) -> Result<Option<Pair>, ReadError> {
        let engine = self.engine();
        let mut slot = slot;
        loop {
            let read = engine.read_slot(root, uid, slot_offset, slot, |found: &Found| {
                if engine.has_expired(found) {
                    return Ok(None);
                }
                let key = engine.key_of(found);
                let passes =
                    key.starts_with(&filter.prefix) && filter.glob.as_ref().is_none_or(|g| glob::matches(g, &key));
                if !passes {
                    return Ok(None);
                }
                let value = if filter.keys_only { Vec::new() } else { engine.value_of(found)? };
                let supplied_hash = engine.hash_of_caller(found);
                Ok(Some(Pair { key, value, metadata: engine.meta_of_found(found), supplied_hash }))
            })?;
            if let Some(pair) = read {
                return Ok(pair);
            }
            // The record moved or was overwritten: the key may still be there, at the same place or, after a split, in
            // the leaf that the place belongs to now.
            match engine.slot_of_uid(root, uid)? {
                Some((now_at, now)) if engine.root_word() == root => {
                    if now_at != slot_offset {
                        return self.pair(root, uid, now_at, now, filter);
                    }
                    slot = now;
                }
                _ => return Ok(None),
            }
        }
    }
}

impl Scan<'_> {
    /// Where to go on after the pairs returned so far, in any process and at any later time. `None`: the scan is
    /// finished.
    pub fn cursor(&self) -> Option<Cursor> {
        self.at.filter(|at| at.tree < 2).map(|at| Cursor(at.pack()))
    }

    fn is_at_end(&self, at: Position) -> bool {
        let past =
            |(tree, range): &(u32, std::ops::Range<u32>)| at.tree > *tree || at.line == 0 && at.reached >= range.end;
        at.tree >= 2 || self.part.as_ref().is_some_and(past)
    }

    /// Whether an entry lies in this scan's part: an interval may reach beyond it on both sides.
    fn is_in_part(&self, slot: Slot) -> bool {
        self.part.as_ref().is_none_or(|(tree, range)| {
            let bits = depth_max(*tree);
            range.contains(&reverse(slot.tag() as u32 & ((1 << bits) - 1), bits))
        })
    }

    /// The next pair, if it is within the next `places` places of the index, which are taken off `places` as they are
    /// passed: bounds the time of a stretch however empty the store is and however few keys pass the filter. `None`:
    /// nothing there, or the scan is finished, which [`cursor`](Self::cursor) tells apart.
    pub fn next_within(&mut self, places: &mut usize) -> Option<Result<Pair, ReadError>> {
        if self.failed {
            self.at = None;
            self.failed = false;
            return Some(Err(ReadError::BadCursor));
        }
        let next = self.advance(places).transpose();
        if matches!(next, Some(Err(_))) {
            self.at = None;
        }
        next
    }

    fn advance(&mut self, places: &mut usize) -> Result<Option<Pair>, ReadError> {
        let engine = self.store.engine();
        while *places > 0 {
            let Some(at) = self.at.filter(|at| !self.is_at_end(*at)) else { break };
            let root = engine.root_word();
            let step = engine.scan_step(root, at, places)?;
            self.at = Some(step.next);
            if let Some((uid, slot_offset, slot)) = step.entry.filter(|(_, _, slot)| self.is_in_part(*slot)) {
                if let Some(pair) = self.store.pair(root, uid, slot_offset, slot, &self.filter)? {
                    return Ok(Some(pair));
                }
            }
        }
        Ok(None)
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Pair, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_within(&mut { usize::MAX })
    }
}

/// Numbers for choices that need not be good.
fn dice() -> SplitMix64 {
    SplitMix64(random_u64().unwrap_or_else(|_| clock::monotonic().as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reversed_order_makes_the_halves_of_a_split_neighbours() {
        // A leaf of depth 1 with prefix 1 covers the upper half; its halves have prefixes 01 and 11.
        let (low, high) = (reverse(0b01, 20), reverse(0b11, 20));
        assert_eq!((low, high), (1 << 19, 1 << 19 | 1 << 18));
    }
}
