//! Writing: lock the key, look, decide, commit with one store of one slot.
//!
//! Nothing is called back into the user while a lock is held, and the critical section makes no system call: the record
//! was written before, in memory that is already there.

pub(super) mod commit;
pub(super) mod conditional;
pub(super) mod counter;
pub(super) mod draft;
pub(super) mod fairness;
pub(super) mod held;
pub(super) mod marks;
pub(super) mod reservation;
pub(super) mod set;
pub(super) mod shown;
pub(super) mod touch;
pub(super) mod version_floor;

use crate::engine::index::split::Growth;
use crate::engine::index::{Path, Place, Tree};
use crate::engine::write::held::Held;
use crate::engine::{Draft, Engine, Found, KeyHash, Writer};
use crate::error::{ReadError, WriteError};
use crate::fault::{self, Fault};
use hashmere_format::header;
use hashmere_format::leaf::{LockWord, Slot, LOCK_WORD};
use hashmere_format::row::{self, Stat};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// The record of a key now.
pub(crate) type Current = Found;

/// What is to become of it.
pub(crate) enum Decision {
    /// Nothing.
    Keep,
    /// This record takes its place, with a new version.
    Put(Draft),
    /// This record takes its place, with the version that it has.
    Refresh(Draft),
    /// It goes.
    Remove,
    /// What has expired goes; what has not stays.
    Expire,
}

/// What came of it. The particulars of what was stored are left in the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Kept,
    Stored,
    Removed,
}

pub(super) enum Attempt {
    Done(Outcome),
    /// The leaf was split or the store was cleared before the lock was taken.
    Moved,
    /// Neither bucket has a free slot.
    NoSlot,
    /// Neither bucket of the overflow tree (under this hash) has one.
    NoOverflowSlot(u64),
}

/// Where an attempt may put a new key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reach {
    /// Into its leaf of the first tree.
    #[default]
    First,
    /// Into the overflow tree, if there is no slot for it.
    Overflow,
    /// There under its second hash.
    Second,
}

/// Where the key is, or could be.
pub(super) struct Site {
    pub(super) found: Option<Found>,
    /// A free slot in the emptier of the buckets.
    pub(super) free: Option<u64>,
    pub(super) tree: Tree,
    pub(super) leaf: u64,
    pub(super) hash: u64,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Changes one key atomically. `decide` sees what is there (nothing, if it has expired) and may be asked again.
    pub(crate) fn mutate(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        mut decide: impl FnMut(Option<&Current>) -> Result<Decision, WriteError>,
    ) -> Result<Outcome, WriteError> {
        // By reference: one copy of the machine code serves them all. The plain set has its own, see `put_draft`.
        let outcome = self.mutate_while_active(writer, key, kh, &mut decide);
        if !matches!(outcome, Ok(Outcome::Kept)) {
            self.changed(kh.hash);
        }
        self.leave(writer);
        outcome
    }

    /// The operation is over: nothing is held back for it any more, and what it left is tidied.
    #[inline(always)]
    pub(super) fn leave(&self, writer: &mut Writer) {
        self.mem.store(writer.row + row::at::ACTIVE, 0, Ordering::Release);
        if writer.dead_large.is_some() || writer.made_dead >= self.segment_bytes() {
            self.tidy(writer);
        }
        self.sync_if_due(writer);
    }

    fn mutate_while_active(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        decide: &mut dyn FnMut(Option<&Current>) -> Result<Decision, WriteError>,
    ) -> Result<Outcome, WriteError> {
        self.refuse_if_poisoned()?;
        let mut reach = Reach::First;
        let mut since = None;
        loop {
            let root = self.enter(writer);
            let further = match self.attempt(writer, root, key, kh, reach, decide)? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Moved => continue,
                Attempt::NoSlot => self.reach_for_slot(writer, root, kh.hash),
                Attempt::NoOverflowSlot(hash) => self.reach_further(writer, root, hash, reach),
            };
            match further {
                Ok(further) => reach = further,
                Err(error) => self.wait_and_retry(&mut since, error)?,
            }
        }
    }

    /// Makes a slot for a hash whose buckets in the first tree are full, and says where it is to be looked for.
    pub(super) fn reach_for_slot(&self, writer: &mut Writer, root: u64, hash: u64) -> Result<Reach, WriteError> {
        Ok(match self.make_slot(writer, root, hash, Tree::First)? {
            Growth::Grown => Reach::First,
            Growth::Useless | Growth::Stalled(_) => Reach::Overflow,
        })
    }

    /// The same in the overflow tree, where a key has two leaves.
    pub(super) fn reach_further(
        &self,
        writer: &mut Writer,
        root: u64,
        hash: u64,
        reach: Reach,
    ) -> Result<Reach, WriteError> {
        match self.make_slot(writer, root, hash, Tree::Overflow)? {
            Growth::Grown => Ok(reach),
            _ if reach != Reach::Second => Ok(Reach::Second),
            Growth::Useless => Err(WriteError::TooManyCollisions),
            Growth::Stalled(blocked) => Err(self.busy(blocked.owner, blocked.waited)),
        }
    }

    /// Says which root this writer works under, so that neither its index nor a segment in which it may mark a
    /// record dead is reused before it leaves.
    #[inline(always)]
    pub(super) fn enter(&self, writer: &mut Writer) -> u64 {
        loop {
            let root = self.root();
            // SYNC(active): pairs with the fence in `free_unless_held`. The exchange orders our word before our second look at the
            // root: either we see that the store was cleared, or the client that frees sees us.
            self.mem.swap(writer.row + row::at::ACTIVE, root, Ordering::SeqCst);
            if self.mem.load(header::at::ROOT, Ordering::SeqCst) == root {
                writer.root = root;
                return root;
            }
        }
    }

    fn attempt(
        &self,
        writer: &mut Writer,
        root: u64,
        key: &[u8],
        kh: KeyHash,
        reach: Reach,
        decide: &mut dyn FnMut(Option<&Current>) -> Result<Decision, WriteError>,
    ) -> Result<Attempt, WriteError> {
        let Some(locked) = self.lock_key(writer, root, kh.hash)? else { return Ok(Attempt::Moved) };
        let mut held = Held::key(locked);
        let attempt = self.change(writer, root, key, kh, reach, &mut held, decide);
        self.unlock_key(writer, &held);
        attempt
    }

    /// Locks the first bucket of a hash; `None` if its leaf changed before the lock was ours.
    pub(super) fn lock_key(
        &self,
        writer: &Writer,
        root: u64,
        hash: u64,
    ) -> Result<Option<(Place, LockWord)>, WriteError> {
        let path = self.home(root, hash)?;
        let place = self.place(path.leaf, hash);
        Ok(self.lock_place(writer, root, path, place)?.map(|word| (place, word)))
    }

    /// The same, when it is known already where this is.
    #[inline(always)]
    pub(super) fn lock_place(
        &self,
        writer: &Writer,
        root: u64,
        path: Path,
        place: Place,
    ) -> Result<Option<LockWord>, WriteError> {
        self.mem.store(writer.row + row::at::LOCK, place.first, Ordering::Relaxed);
        let word = match self.try_acquire(writer.slot, place.first + LOCK_WORD) {
            Some(word) => word,
            None => self.acquire_key_slowly(writer, place.first + LOCK_WORD).inspect_err(|_| {
                self.mem.store(writer.row + row::at::LOCK, 0, Ordering::Relaxed);
            })?,
        };
        if self.is_still(root, Tree::First, path) || fault::is(Fault::LeafBelieved) {
            return Ok(Some(word));
        }
        self.unlock_bucket(writer, place, word);
        Ok(None)
    }

    fn home(&self, root: u64, hash: u64) -> Result<Path, WriteError> {
        match self.path_of(root, Tree::First, hash)? {
            Some(path) => Ok(path),
            None => Err(WriteError::Corrupt { what: "the index has no directory", offset: root }),
        }
    }

    pub(super) fn unlock_key(&self, writer: &Writer, held: &Held) {
        if let Some((bucket, word)) = held.second {
            self.release(bucket + LOCK_WORD, word);
            self.mem.store(writer.row + row::at::LOCK_2, 0, Ordering::Release);
        }
        self.unlock_bucket(writer, held.place, held.word);
    }

    /// Gives a key's lock back, if that is the only one held.
    #[inline(always)]
    pub(super) fn unlock_bucket(&self, writer: &Writer, place: Place, word: LockWord) {
        self.release(place.first + LOCK_WORD, word);
        // SYNC(dead): while this is set, the segment of the superseded record is held back (`is_held_back`).
        self.mem.store(writer.row + row::at::LOCK, 0, Ordering::Release);
    }

    /// With the key locked: look, decide, commit.
    #[allow(clippy::too_many_arguments)]
    fn change(
        &self,
        writer: &mut Writer,
        root: u64,
        key: &[u8],
        kh: KeyHash,
        reach: Reach,
        held: &mut Held,
        decide: &mut dyn FnMut(Option<&Current>) -> Result<Decision, WriteError>,
    ) -> Result<Attempt, WriteError> {
        let mut site = self.locate(writer, root, key, kh, held)?;
        let live = site.found.as_ref().filter(|f| !self.is_past(f));
        let created = live.is_none();
        let (draft, keep_version) = match decide(live)? {
            Decision::Keep => return Ok(Attempt::Done(Outcome::Kept)),
            Decision::Remove => {
                if let Some(found) = site.found {
                    self.commit_removal(writer, root, &found);
                    held.word = LockWord(held.word.0.wrapping_add(LockWord::STEP));
                }
                if created {
                    return Ok(Attempt::Done(Outcome::Kept));
                }
                self.count_at(writer.row, Stat::Deletes, 1);
                return Ok(Attempt::Done(Outcome::Removed));
            }
            Decision::Expire => {
                let is_past = created || fault::is(Fault::PastBelieved);
                let Some(found) = site.found.filter(|_| is_past) else { return Ok(Attempt::Done(Outcome::Kept)) };
                self.commit_removal(writer, root, &found);
                held.word = LockWord(held.word.0.wrapping_add(LockWord::STEP));
                self.count_at(writer.row, Stat::Expired, 1);
                return Ok(Attempt::Done(Outcome::Removed));
            }
            Decision::Put(draft) => (draft, None),
            Decision::Refresh(draft) => (draft, live.map(Found::version)),
        };
        if site.found.is_none() && site.free.is_none() {
            if reach == Reach::First {
                return Ok(Attempt::NoSlot);
            }
            match self.overflow_site(writer, root, key, held, reach)? {
                Ok(overflow) => site = overflow,
                Err(full) => return Ok(Attempt::NoOverflowSlot(full)),
            }
        }
        if !self.commit_draft(writer, root, &draft, &site, keep_version, &mut held.word) {
            return Ok(if site.tree == Tree::First { Attempt::NoSlot } else { Attempt::NoOverflowSlot(site.hash) });
        }
        writer.stored.created = created;
        Ok(Attempt::Done(Outcome::Stored))
    }

    /// Finds the key among its candidates, and a free slot, in both trees.
    pub(super) fn locate(
        &self,
        writer: &Writer,
        root: u64,
        key: &[u8],
        kh: KeyHash,
        held: &mut Held,
    ) -> Result<Site, WriteError> {
        let place = held.place;
        let found = self.look(key, kh, kh.hash, place, Tree::First)?;
        if found.is_none() && held.word.has_overflow() {
            for hash in self.layout.hasher.overflow(key) {
                let place = self.lock_overflow(writer, root, hash, held)?;
                let found = self.look(key, kh, hash, place, Tree::Overflow)?;
                if found.is_some() {
                    return Ok(Site { found, free: None, tree: Tree::Overflow, leaf: place.leaf, hash });
                }
                if !held.goes_on() {
                    break;
                }
            }
        }
        let free = if found.is_none() { self.free_slot(place) } else { None };
        Ok(Site { found, free, tree: Tree::First, leaf: place.leaf, hash: kh.hash })
    }

    /// Looks at both buckets of one tree, holding the key's lock.
    fn look(&self, key: &[u8], kh: KeyHash, hash: u64, place: Place, tree: Tree) -> Result<Option<Found>, ReadError> {
        let refusals = self.refusals();
        loop {
            // Under the key's lock its own record does not change; another key's may be recycled while we look, and become a
            // draft of ours. So a match counts only if nothing at all was recycled in between.
            let epoch = self.mem.load(header::at::EPOCH, Ordering::Acquire);
            let mut mask = self.matching(place, hash);
            let mut found = None;
            while mask != 0 && found.is_none() {
                found = self.found_at(key, kh, tree, place, place.take_slot(&mut mask), Fault::KeyUncompared);
            }
            // SYNC(recycle): as in `validate_epoch`.
            self.mem.fence(Ordering::Acquire);
            if found.is_none() && self.refusals() != refusals {
                // A slot with this tag leads to where we have no addresses: it may be this key's.
                return Err(self.unreachable());
            }
            if found.is_none() || self.mem.load(header::at::EPOCH, Ordering::Relaxed) == epoch {
                return Ok(found);
            }
        }
    }

    /// A free slot in the emptier of the two buckets.
    pub(super) fn free_slot(&self, place: Place) -> Option<u64> {
        let [a, b] = place.buckets().map(|bucket| {
            let free = Self::slots(bucket).filter(|s| self.slot(*s).is_empty());
            free.fold((0, None), |(n, first), s| (n + 1, first.or(Some(s))))
        });
        if a.0 >= b.0 {
            a.1
        } else {
            b.1
        }
    }

    /// The slot that leads to exactly this record, with its key locked.
    pub(super) fn find_record(
        &self,
        writer: &Writer,
        root: u64,
        record: u64,
        (key, kh): (&[u8], KeyHash),
        held: &mut Held,
    ) -> Result<Option<Found>, WriteError> {
        let first = self.slot_of_record(held.place, Slot::new(kh.hash, record), Tree::First);
        if first.is_some() || !held.word.has_overflow() {
            return Ok(first);
        }
        for hash in self.layout.hasher.overflow(key) {
            let place = self.lock_overflow(writer, root, hash, held)?;
            let found = self.slot_of_record(place, Slot::new(hash, record), Tree::Overflow);
            if found.is_some() || !held.goes_on() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn slot_of_record(&self, place: Place, slot: Slot, tree: Tree) -> Option<Found> {
        let slot_offset = place.buckets().into_iter().flat_map(Self::slots).find(|s| self.slot(*s) == slot)?;
        let header = self.header(slot.offset())?;
        Some(Found { header, record: slot.offset(), slot_offset, slot, leaf: place.leaf, tree })
    }

    /// Whether the index leads to the record at `offset`. For repairs: no other client may be changing its key.
    pub(super) fn is_referred(&self, offset: u64) -> bool {
        let Some((head, key_offset)) = self.parse(offset) else { return false };
        if head.version == 0 {
            return false;
        }
        let mut key = Vec::new();
        self.mem.append_to(key_offset, head.key_len as usize, &mut key);
        let kh = self.hash_of(&head, &key);
        let root = self.root();
        self.candidates(&key, kh).into_iter().any(|(tree, hash)| {
            let leaf = self.leaf_of(root, tree, hash).ok().flatten();
            leaf.is_some_and(|leaf| {
                self.slot_of_record(self.place(leaf, hash), Slot::new(hash, offset), tree).is_some()
            })
        })
    }

    /// Locks the bucket of a hash in the overflow tree, and gives the one back that was locked there before.
    #[cold]
    fn lock_overflow(&self, writer: &Writer, root: u64, hash: u64, held: &mut Held) -> Result<Place, WriteError> {
        loop {
            let Some(leaf) = self.leaf_of(root, Tree::Overflow, hash)? else {
                return Err(WriteError::Corrupt {
                    what: "a bucket overflows into a tree that is not there",
                    offset: held.place.first,
                });
            };
            let place = self.place(leaf, hash);
            match held.second.take() {
                Some((bucket, word)) if bucket == place.first => {
                    held.second = Some((bucket, word));
                    return Ok(place);
                }
                Some((bucket, word)) => self.release(bucket + LOCK_WORD, word),
                None => {}
            }
            self.mem.store(writer.row + row::at::LOCK_2, place.first, Ordering::Release);
            let word = match self.try_acquire(writer.slot, place.first + LOCK_WORD) {
                Some(word) => word,
                None => self.acquire_key_slowly(writer, place.first + LOCK_WORD)?,
            };
            if self.leaf_of(root, Tree::Overflow, hash)? == Some(leaf) {
                held.second = Some((place.first, word));
                return Ok(place);
            }
            self.release(place.first + LOCK_WORD, word);
        }
    }

    /// A free slot in the overflow tree, whose existence the bucket notes first; with `Reach::Second` among those of the key's
    /// second hash, which the bucket of the first one notes as well. `Err` within: the hash for which there is none.
    #[cold]
    pub(super) fn overflow_site(
        &self,
        writer: &Writer,
        root: u64,
        key: &[u8],
        held: &mut Held,
        reach: Reach,
    ) -> Result<Result<Site, u64>, WriteError> {
        let [mut hash, second] = self.layout.hasher.overflow(key);
        if self.leaf_of(root, Tree::Overflow, hash)?.is_none() {
            return Ok(Err(hash));
        }
        let mut place = self.lock_overflow(writer, root, hash, held)?;
        if reach == Reach::Second {
            if !fault::is(Fault::SecondUnsaid) {
                self.note_overflow(place.first, held.second.as_mut().map(|(_, word)| word));
            }
            hash = second;
            place = self.lock_overflow(writer, root, hash, held)?;
        }
        let Some(free) = self.free_slot(place) else { return Ok(Err(hash)) };
        // The note comes before the entry: a reader that misses in the buckets must know to look on.
        if !fault::is(Fault::OverflowUnsaid) {
            self.note_overflow(held.place.first, Some(&mut held.word));
        }
        Ok(Ok(Site { found: None, free: Some(free), tree: Tree::Overflow, leaf: place.leaf, hash }))
    }

    /// Says of a bucket that is locked, and in the word that it gets when it is released, that a key of it is found under its
    /// next hash.
    fn note_overflow(&self, bucket: u64, word: Option<&mut LockWord>) {
        if let Some(word) = word {
            *word = LockWord(word.0 | LockWord::OVERFLOW);
        }
        self.mem.fetch_or(bucket + LOCK_WORD, LockWord::OVERFLOW, Ordering::Release);
    }
}
