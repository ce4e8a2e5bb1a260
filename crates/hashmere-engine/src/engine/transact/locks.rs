//! The locks of all keys of a transaction: named in its list before they are taken, taken in ascending order, those of
//! the first tree before those of the overflow tree.

use crate::engine::client::stalled::BRIEF;
use crate::engine::commit::locate::{Reach, Site};
use crate::engine::index::{Place, Tree};
use crate::engine::transact::Part;
use crate::engine::{Engine, Found, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::cell::List;
use hashmere_format::header::at;
use hashmere_format::leaf::{LockWord, LINE, LOCK_WORD};
use hashmere_format::row;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// A lock that is held.
#[derive(Clone, Copy)]
pub(super) struct Lock {
    /// The bucket.
    pub(super) bucket: u64,
    /// What it held when it was taken.
    pub(super) before: LockWord,
    /// What its word is to hold when it is released.
    pub(super) word: LockWord,
}

/// Keys up to which they are sorted while they are gathered.
const FEW: usize = 16;
const _: () = assert!(FEW as u64 <= LINE);

impl Lock {
    #[inline(always)]
    fn of(bucket: u64) -> Lock {
        Lock { bucket, before: LockWord(0), word: LockWord(0) }
    }
}

/// What a transaction allocates for its locks, to be used again by the next.
#[derive(Default)]
pub(crate) struct Room {
    locks: Vec<Lock>,
}

/// The locks that an attempt holds, and those that it wants.
pub(super) struct Held<'r> {
    pub(super) list: List,
    /// In ascending order those of the first tree, then those of the overflow tree.
    pub(super) locks: &'r mut Vec<Lock>,
    /// How many of them are of the first tree.
    firsts: usize,
    /// How many are held.
    taken: usize,
}

/// Whether all locks were taken.
pub(super) enum Taken {
    All,
    /// None is held any more.
    Again,
    /// The list has no room to name them; none is held any more.
    NoRoom,
}

impl<'r> Held<'r> {
    pub(super) fn new(list: List, room: &'r mut Room) -> Held<'r> {
        room.locks.clear();
        Held { list, locks: &mut room.locks, firsts: 0, taken: 0 }
    }

    fn index_of(&self, range: std::ops::Range<usize>, bucket: u64) -> Option<usize> {
        let within = self.locks.get(range.clone())?.binary_search_by_key(&bucket, |lock| lock.bucket).ok()?;
        Some(range.start + within)
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Takes the locks of all parts, and finds out which keys are where they were.
    #[inline(always)]
    pub(super) fn lock_all(
        &self,
        writer: &mut Writer,
        root: u64,
        (bytes, parts): (&[u8], &mut [Part]),
        held: &mut Held<'_>,
    ) -> Result<Taken, WriteError> {
        held.locks.reserve(parts.len());
        if parts.len() <= FEW {
            self.want_few(root, parts, held)?;
        } else {
            self.want_many(root, parts, held)?;
        }
        held.firsts = held.locks.len();
        if !self.take_wanted(writer, held)? {
            return Ok(Taken::Again);
        }
        // Once for all of them, for nothing that they say of these keys changes while the locks are held: that a record
        // was not recycled since it was looked up, and that the directory is as deep as it was.
        let epoch = self.mem.load(at::EPOCH, Ordering::Acquire);
        let depth = self.depth_under(root);
        let (mut stays, mut are_located) = (true, true);
        for part in parts.iter_mut() {
            let still = part.way.as_ref().is_some_and(|way| self.is_still_at(depth, way.path));
            if !still && !fault::is(Fault::LeafBelieved) {
                stays = false;
                part.forget_way();
                continue;
            }
            // Where a key was before its lock was taken it mostly is still.
            part.is_located = self.still_holds(part, held, epoch);
            are_located &= part.is_located;
        }
        if !stays {
            return Ok(Taken::Again);
        }
        if are_located {
            return Ok(Taken::All);
        }
        self.lock_overflows(writer, root, (bytes, parts), held)
    }

    /// Notes the locks of a few parts, in ascending order, and of each part which it is.
    #[inline(always)]
    fn want_few(&self, root: u64, parts: &mut [Part], held: &mut Held<'_>) -> Result<(), WriteError> {
        // The bucket of each and, in bits that are zero in an offset of a line, which part it is of.
        let mut order = [0; FEW];
        for (number, part) in parts.iter_mut().enumerate() {
            let entry = self.bucket_of(root, part)? & !(LINE - 1) | number as u64;
            let mut at = number;
            while at > 0 && order[at - 1] > entry {
                order[at] = order[at - 1];
                at -= 1;
            }
            order[at] = entry;
        }
        let mut last = 0;
        for entry in &order[..parts.len()] {
            let (bucket, number) = (entry & !(LINE - 1), entry & (LINE - 1));
            if bucket != last {
                held.locks.push(Lock::of(bucket));
                last = bucket;
            }
            parts[number as usize].lock = held.locks.len() - 1;
        }
        Ok(())
    }

    /// The same of many.
    #[inline(never)]
    fn want_many(&self, root: u64, parts: &mut [Part], held: &mut Held<'_>) -> Result<(), WriteError> {
        for part in parts.iter_mut() {
            held.locks.push(Lock::of(self.bucket_of(root, part)?));
        }
        held.locks.sort_unstable_by_key(|lock| lock.bucket);
        held.locks.dedup_by_key(|lock| lock.bucket);
        for part in parts.iter_mut() {
            let bucket = self.bucket_of(root, part)?;
            part.lock = held.index_of(0..held.locks.len(), bucket).unwrap_or(0);
        }
        Ok(())
    }

    /// The first bucket of a part's hash under this root.
    #[inline(always)]
    fn bucket_of(&self, root: u64, part: &mut Part) -> Result<u64, WriteError> {
        match &part.way {
            Some(way) if way.root == root => Ok(way.place.first),
            _ => self.find_way(root, part),
        }
    }

    /// How a part's hash leads to its bucket under this root; returns the bucket.
    #[cold]
    #[inline(never)]
    fn find_way(&self, root: u64, part: &mut Part) -> Result<u64, WriteError> {
        part.forget_way();
        let way = self.way_by(root, self.home(root, part.kh.hash)?, part.kh.hash);
        part.way = Some(way);
        Ok(way.place.first)
    }

    /// The same in the overflow tree, for the keys that may be there or are to go there.
    #[cold]
    fn lock_overflows(
        &self,
        writer: &mut Writer,
        root: u64,
        (bytes, parts): (&[u8], &[Part]),
        held: &mut Held<'_>,
    ) -> Result<Taken, WriteError> {
        let mut hashes = Vec::new();
        for part in parts.iter().filter(|part| !part.is_located) {
            let has_overflow = held.locks.get(part.lock).is_some_and(|lock| lock.word.has_overflow());
            if part.reach != Reach::First || has_overflow && self.find_first(bytes, part)?.is_none() {
                hashes.extend(self.layout.hasher.overflow(part.key.of(bytes)));
            }
        }
        if hashes.is_empty() {
            return Ok(Taken::All);
        }
        let leaf = |hash: &u64| self.leaf_of(root, Tree::Overflow, *hash);
        let mut leaves = Vec::with_capacity(hashes.len());
        for hash in &hashes {
            match leaf(hash)? {
                Some(leaf) => leaves.push(leaf),
                // It is planted by the one who finds no slot.
                None => return Ok(Taken::All),
            }
        }
        let buckets = leaves.iter().zip(&hashes).map(|(leaf, hash)| self.place(*leaf, *hash).first).collect();
        self.want(held, buckets);
        if held.locks.len() as u64 > held.list.locks {
            return Ok(Taken::NoRoom);
        }
        if !self.take_wanted(writer, held)? {
            return Ok(Taken::Again);
        }
        for (hash, before) in hashes.iter().zip(leaves) {
            if leaf(hash)? != Some(before) {
                return Ok(Taken::Again);
            }
        }
        Ok(Taken::All)
    }

    /// Puts these buckets behind those that are held.
    fn want(&self, held: &mut Held<'_>, mut buckets: Vec<u64>) {
        buckets.sort_unstable();
        buckets.dedup();
        held.locks.extend(buckets.into_iter().map(Lock::of));
    }

    /// Takes the locks that are wanted and not held. `false`: one of them did not come at once, and none is held.
    #[inline(always)]
    fn take_wanted(&self, writer: &mut Writer, held: &mut Held<'_>) -> Result<bool, WriteError> {
        let row = writer.row;
        if !fault::is(Fault::LocksUnnamed) {
            for (index, lock) in held.locks.iter().enumerate().skip(held.taken) {
                self.mem.store(held.list.lock(index as u64), lock.bucket, Ordering::Relaxed);
            }
        }
        if held.taken == 0 {
            // Locks behind those that are wanted now are none: they may be named later.
            (held.locks.len() as u64..held.list.locks)
                .for_each(|index| self.mem.store(held.list.lock(index), 0, Ordering::Relaxed));
            self.mem.store(row + row::at::LIST, held.list.lengths(), Ordering::Relaxed);
            // While this is set, the segments of superseded records are held back (`is_held_back`).
            self.mem.store(row + row::at::LOCK, held.locks[0].bucket, Ordering::Relaxed);
            // SYNC(idle): after the end of the last transaction, for those who read its list.
            self.mem.store(row + row::at::TRANSACTION, held.list.offset, Ordering::Release);
        }
        while held.taken < held.locks.len() {
            let offset = held.locks[held.taken].bucket + LOCK_WORD;
            let word = match self.try_acquire(writer.slot, offset) {
                Some(word) => word,
                None => match self.take_slowly(writer, held, offset)? {
                    Some(word) => word,
                    None => return Ok(false),
                },
            };
            let lock = &mut held.locks[held.taken];
            (lock.before, lock.word) = (word, word);
            held.taken += 1;
        }
        Ok(true)
    }

    /// A lock that is not free. `None`: it did not come at once, and none is held.
    #[cold]
    #[inline(never)]
    fn take_slowly(
        &self,
        writer: &mut Writer,
        held: &mut Held<'_>,
        offset: u64,
    ) -> Result<Option<LockWord>, WriteError> {
        if let Ok(word) = self.acquire_within(writer.slot, offset, BRIEF.min(self.access.busy_timeout))? {
            return Ok(Some(word));
        }
        // Others shall not wait for what has nothing to do with them.
        self.release_taken(held);
        let word = self.acquire_key_slowly(writer, offset)?;
        self.release(offset, word);
        Ok(None)
    }

    fn release_taken(&self, held: &mut Held<'_>) {
        for lock in held.locks.drain(..).take(held.taken) {
            self.release(lock.bucket + LOCK_WORD, lock.word);
        }
        held.taken = 0;
    }

    /// Releases what is held, with the words that it is to hold.
    #[inline(always)]
    pub(super) fn release_all(&self, writer: &Writer, held: &Held<'_>) {
        for lock in held.locks.iter().take(held.taken) {
            self.release(lock.bucket + LOCK_WORD, lock.word);
        }
        // SYNC(dead): as in `unlock_bucket`.
        self.mem.store(writer.row + row::at::LOCK, 0, Ordering::Release);
        self.mem.store(writer.row + row::at::TRANSACTION, 0, Ordering::Release);
    }

    /// With all locks held: where a part's key is, or could be.
    pub(super) fn find_part(&self, root: u64, bytes: &[u8], part: &Part, held: &Held<'_>) -> Result<Site, WriteError> {
        let found = self.find_first(bytes, part)?;
        if found.is_none() && held.locks[part.lock].word.has_overflow() {
            for hash in self.layout.hasher.overflow(part.key.of(bytes)) {
                let Some((place, lock)) = self.overflow_place(root, hash, held)? else { break };
                let found = self.look(part.key.of(bytes), part.kh, hash, place, Tree::Overflow)?;
                if found.is_some() {
                    return Ok(Site { found, free: None, tree: Tree::Overflow, leaf: place.leaf, hash });
                }
                if !held.locks[lock].word.has_overflow() {
                    break;
                }
            }
        }
        let place = part.place()?;
        let free = if found.is_none() { self.free_slot(place) } else { None };
        Ok(Site { found, free, tree: Tree::First, leaf: place.leaf, hash: part.kh.hash })
    }

    /// With its lock held: the key in the first tree.
    fn find_first(&self, bytes: &[u8], part: &Part) -> Result<Option<Found>, WriteError> {
        Ok(self.look(part.key.of(bytes), part.kh, part.kh.hash, part.place()?, Tree::First)?)
    }

    /// The place of a hash in the overflow tree, and which of the locks is its bucket's.
    fn overflow_place(&self, root: u64, hash: u64, held: &Held<'_>) -> Result<Option<(Place, usize)>, WriteError> {
        let Some(leaf) = self.leaf_of(root, Tree::Overflow, hash)? else { return Ok(None) };
        let place = self.place(leaf, hash);
        Ok(held.index_of(held.firsts..held.locks.len(), place.first).map(|lock| (place, lock)))
    }

    /// A free slot in the overflow tree for a key that has none in the first one, whose existence the buckets note
    /// first. `Err` within: the hash for which there is none.
    pub(super) fn place_in_overflow(
        &self,
        root: u64,
        bytes: &[u8],
        part: &Part,
        held: &mut Held<'_>,
    ) -> Result<Result<Site, u64>, WriteError> {
        let [first, second] = self.layout.hasher.overflow(part.key.of(bytes));
        let hash = if part.reach == Reach::Second { second } else { first };
        let Some((place, _)) = self.overflow_place(root, hash, held)? else { return Ok(Err(first)) };
        if part.reach == Reach::Second && !fault::is(Fault::SecondUnsaid) {
            let Some((place, lock)) = self.overflow_place(root, first, held)? else { return Ok(Err(first)) };
            self.note_overflow(place.first, Some(&mut held.locks[lock].word));
        }
        let Some(free) = self.free_slot(place) else { return Ok(Err(hash)) };
        if !fault::is(Fault::OverflowUnsaid) {
            let lock = &mut held.locks[part.lock];
            self.note_overflow(lock.bucket, Some(&mut lock.word));
        }
        Ok(Ok(Site { found: None, free: Some(free), tree: Tree::Overflow, leaf: place.leaf, hash }))
    }
}
