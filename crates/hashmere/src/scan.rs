//! All keys.

use crate::{Cursor, Filter, Key, Pair, ReadError, Store};
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
    failed: bool,
}

impl Store {
    /// Every pair that passes the filter, from a cursor on.
    ///
    /// A key that exists during the whole scan is returned exactly once, however the store grows, is written to and
    /// cleaned; one that comes or goes during the scan is returned or not. Writers never wait for a scan. The order is
    /// that of the hashes.
    pub fn scan(&self, from: Cursor, filter: Filter) -> Scan<'_> {
        let at = Position::unpack(from.0).filter(|at| at.tree == 2 || at.reached >> depth_max(at.tree) == 0);
        Scan { store: self, filter, failed: at.is_none(), at }
    }

    /// Where a scan begins with this key: it is the first that [`scan`](Self::scan) returns from there on, if it passes
    /// the filter; those that a whole scan returns before it are left out. `None`: the key is absent. Valid afterwards
    /// like any cursor, also when the key is gone.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn cursor_of<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Cursor>, ReadError> {
        let Some(metadata) = self.metadata(key)? else { return Ok(None) };
        let engine = self.engine();
        loop {
            let root = engine.root_word();
            match engine.position_of(root, metadata.uid.0) {
                Ok(at) => return Ok(Some(Cursor(at.pack()))),
                // Cleared during the look-up.
                Err(_) if engine.root_word() != root => {}
                Err(error) => return Err(error),
            }
        }
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
        let threads = threads.clamp(1, 1024) as u64;
        let failure = Mutex::new(None);
        std::thread::scope(|scope| {
            let mut crew = Vec::with_capacity(threads as usize);
            for part in 0..threads {
                let (each, failure) = (&each, &failure);
                crew.push(scope.spawn(move || {
                    for pair in self.scan(Cursor::START, filter.subdivided(part, threads)) {
                        match pair {
                            Ok(pair) => each(pair),
                            Err(error) => {
                                let mut failure = failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                                failure.get_or_insert(error);
                                return;
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
        let later = self.scan(Cursor(start.pack()), Filter::default()).next();
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
                if !filter.passes(&key) {
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

    /// The first position from `at` on that has to do with the part of this scan; `None`: there is none.
    fn within_part(&self, mut at: Position) -> Option<Position> {
        while at.tree < 2 {
            let bits = depth_max(at.tree);
            let range = self.filter.range(bits);
            // The interval under way may reach beyond the part on both sides; a new one is entered anywhere in it.
            let rest = if at.line == 0 { 0 } else { (1 << (bits - at.depth)) - 1 };
            let (first, last) = (at.reached & !rest, at.reached | rest);
            if first < range.end && last >= range.start {
                return Some(at);
            }
            at = match first < range.start {
                true => Position { tree: at.tree, reached: range.start, ..Position::START },
                false => Position { tree: at.tree + 1, ..Position::START },
            };
        }
        None
    }

    /// Whether an entry lies in the part of this scan.
    fn is_in_part(&self, tree: u32, slot: Slot) -> bool {
        let bits = depth_max(tree);
        self.filter.range(bits).contains(&reverse(slot.tag() as u32 & ((1 << bits) - 1), bits))
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
            self.at = self.at.and_then(|at| self.within_part(at));
            let Some(at) = self.at else { break };
            let root = engine.root_word();
            let step = engine.scan_step(root, at, places)?;
            self.at = Some(step.next);
            if let Some((uid, slot_offset, slot)) = step.entry.filter(|entry| self.is_in_part(at.tree, entry.2)) {
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
