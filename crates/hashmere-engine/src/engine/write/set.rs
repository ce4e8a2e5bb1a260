//! The plain set, straight through: the hottest write there is.
//!
//! It does what [`mutate`](Engine::mutate) does, by the same steps, but has no closure to ask and no way to turn:
//! whatever is out of the ordinary (a split, a clear, a key in the overflow tree, no free slot) is left to `mutate`,
//! which begins again. What passes by reference to such a cold call would have to live in memory all the way, so only
//! words do.

use crate::engine::commit::locate::Site;
use crate::engine::index::{Path, Place, Tree};
use crate::engine::write::draft::When;
use crate::engine::{Decision, Draft, Engine, Found, KeyHash, Outcome, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Where a key was found, or found absent.
pub(super) struct Lookup {
    pub(super) epoch: u64,
    root: u64,
    path: Path,
    place: Place,
    pub(super) found: Option<Found>,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Makes a sealed draft the key's record, if `when` allows it.
    #[inline(always)]
    pub(super) fn put_draft(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        draft: Draft,
        when: When,
    ) -> Result<Outcome, WriteError> {
        self.refuse_if_poisoned()?;
        let lookup = self.look_up(key, kh);
        match self.put_looked_up(writer, lookup, kh, &draft, when)? {
            Some(outcome) => Ok(outcome),
            None => self.put_slowly(writer, key, kh, Draft { ..draft }, when),
        }
    }

    /// The same for a key that was looked up. `None`: nothing has changed, and `mutate` is to do it.
    #[inline(always)]
    pub(super) fn put_looked_up(
        &self,
        writer: &mut Writer,
        lookup: Option<Lookup>,
        kh: KeyHash,
        draft: &Draft,
        when: When,
    ) -> Result<Option<Outcome>, WriteError> {
        let root = self.enter(writer);
        let done = match lookup {
            Some(lookup) if lookup.root == root => self.put_after_lookup(writer, lookup, kh, draft, when),
            _ => Ok(None),
        };
        match done {
            Ok(Some(outcome)) => {
                self.changed(kh.hash);
                self.leave(writer);
                Ok(Some(outcome))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.leave(writer);
                Err(error)
            }
        }
    }

    /// Finds the key before its lock is taken. The exchanges of `enter` and of the lock keep the processor from doing
    /// this ahead of them, so the look goes first, beside the writing of the record, and under the lock one word is
    /// compared.
    #[inline(always)]
    pub(super) fn look_up(&self, key: &[u8], kh: KeyHash) -> Option<Lookup> {
        let epoch = self.mem.load(at::EPOCH, Ordering::Acquire);
        let root = self.root();
        let Ok(Some(path)) = self.path_of(root, Tree::First, kh.hash) else { return None };
        let place = self.place(path.leaf, kh.hash);
        let mut mask = self.matching(place, kh.hash);
        if mask == 0 {
            return Some(Lookup { epoch, root, path, place, found: None });
        }
        // Should another key have the same tag, `mutate` looks on.
        let found = self.found_at(key, kh, Tree::First, place, place.take_slot(&mut mask), Fault::KeyUncompared)?;
        Some(Lookup { epoch, root, path, place, found: Some(found) })
    }

    /// `None`: nothing has changed, and something is out of the ordinary.
    #[inline(always)]
    fn put_after_lookup(
        &self,
        writer: &mut Writer,
        lookup: Lookup,
        kh: KeyHash,
        draft: &Draft,
        when: When,
    ) -> Result<Option<Outcome>, WriteError> {
        let Lookup { epoch, root, path, place, found } = lookup;
        let Some(mut word) = self.lock_place(writer, root, path, place)? else { return Ok(None) };
        let (free, ordinary) = match &found {
            // The slot leads to the same record, and as in `look` nothing at all was recycled since it was read.
            Some(found) => {
                let same = self.slot(found.slot_offset) == found.slot && self.validate_epoch(epoch);
                (None, same || fault::is(Fault::LookupBelieved))
            }
            None if word.has_overflow() || self.matching(place, kh.hash) != 0 => (None, false),
            None => {
                let free = self.free_slot(place);
                (free, free.is_some())
            }
        };
        let created = found.as_ref().is_none_or(|found| self.has_expired(found));
        let mut done = None;
        if ordinary && !when.allows(!created) {
            done = Some(Outcome::Kept);
        } else if ordinary {
            let site = Site { found, free, tree: Tree::First, leaf: place.leaf, hash: kh.hash };
            if self.commit_draft(writer, root, draft, &site, None, &mut word) {
                writer.stored.created = created;
                done = Some(Outcome::Stored);
            }
        }
        self.unlock_bucket(writer, place, word);
        Ok(done)
    }

    #[cold]
    #[inline(never)]
    fn put_slowly(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        draft: Draft,
        when: When,
    ) -> Result<Outcome, WriteError> {
        self.mutate(writer, key, kh, |current| {
            Ok(if when.allows(current.is_some()) { Decision::Put(draft) } else { Decision::Keep })
        })
    }
}
