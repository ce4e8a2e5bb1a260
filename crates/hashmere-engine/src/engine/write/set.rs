//! The plain set, straight through: the hottest write there is.
//!
//! It does what [`mutate`](Engine::mutate) does, by the same steps, but has no closure to ask and no way to turn:
//! whatever is out of the ordinary (a split, a clear, a key in the overflow tree, no free slot) is left to `mutate`,
//! which begins again. What passes by reference to such a cold call would have to live in memory all the way, so only
//! words do.

use crate::engine::commit::locate::Site;
use crate::engine::index::Tree;
use crate::engine::write::draft::When;
use crate::engine::write::lookup::Lookup;
use crate::engine::{Decision, Draft, Engine, KeyHash, Outcome, Writer};
use crate::error::WriteError;
use hashmere_mem::{Host, Mem};

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
        self.put_with_lookup(writer, key, kh, draft, when, lookup)
    }

    /// The same, when the key was looked up already.
    #[inline(always)]
    pub(super) fn put_with_lookup(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        draft: Draft,
        when: When,
        lookup: Option<Lookup>,
    ) -> Result<Outcome, WriteError> {
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
            Some(found) => (None, self.is_still_found(found, epoch) && self.is_not_replaced(found)),
            None if word.has_overflow() || self.matching(place, kh.hash) != 0 => (None, false),
            None => {
                let free = self.free_slot(place);
                (free, free.is_some())
            }
        };
        let mut done = None;
        if ordinary {
            // Not before: of a record that was recycled since there may be no memory any more.
            let created = found.as_ref().is_none_or(|found| self.has_expired(found));
            let site = Site { found, free, tree: Tree::First, leaf: place.leaf, hash: kh.hash };
            if !when.allows(!created) {
                done = Some(Outcome::Kept);
            } else if self.commit_draft(writer, root, draft, &site, None, &mut word) {
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
