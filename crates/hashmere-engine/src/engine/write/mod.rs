//! Writing: lock the key, look, decide, commit with one store of one slot.
//!
//! Nothing is called back into the user while a lock is held, and the critical section makes no system call: the record
//! was written before, in memory that is already there.

pub(super) mod conditional;
pub(super) mod counter;
pub(super) mod counter_kind;
mod decimal;
pub(super) mod draft;
pub(super) mod fairness;
pub(super) mod fraction;
mod in_place;
pub(super) mod lookup;
pub(super) mod marks;
pub(super) mod reservation;
pub(super) mod set;
pub(super) mod touch;

use crate::engine::commit::held::HeldKey;
use crate::engine::commit::locate::Reach;
use crate::engine::index::split::Growth;
use crate::engine::index::Tree;
use crate::engine::{Draft, Engine, Found, KeyHash, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::feed::Operation;
use hashmere_format::row::Stat;
use hashmere_mem::{Host, Mem};

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
    /// It stays, with this expiry in the word that its record has for one.
    Touch(Option<u64>),
}

/// The result of a change. The particulars of what was stored are left in the writer.
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
        let mut held = HeldKey::key(locked);
        let attempt = self.change(writer, root, key, kh, reach, &mut held, decide);
        self.unlock_key(writer, &held);
        attempt
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
        held: &mut HeldKey,
        decide: &mut dyn FnMut(Option<&Current>) -> Result<Decision, WriteError>,
    ) -> Result<Attempt, WriteError> {
        let mut site = self.locate(writer, root, key, kh, held)?;
        let live = site.found.as_ref().filter(|f| !self.has_expired(f));
        let created = live.is_none();
        let (draft, keep_version) = match decide(live)? {
            Decision::Keep => return Ok(Attempt::Done(Outcome::Kept)),
            Decision::Remove => {
                if let Some(found) = site.found {
                    let operation = if created { Operation::Expire } else { Operation::Delete };
                    self.commit_removal(writer, root, &found, held, operation);
                }
                if created {
                    return Ok(Attempt::Done(Outcome::Kept));
                }
                self.count_delete(writer.row, key, kh);
                return Ok(Attempt::Done(Outcome::Removed));
            }
            Decision::Expire => {
                let has_expired = created || fault::is(Fault::PastBelieved);
                let Some(found) = site.found.filter(|_| has_expired) else { return Ok(Attempt::Done(Outcome::Kept)) };
                self.commit_removal(writer, root, &found, held, Operation::Expire);
                self.count_at(writer.row, Stat::Expired, 1);
                return Ok(Attempt::Done(Outcome::Removed));
            }
            Decision::Touch(deadline) => {
                let Some(found) = live else { return Ok(Attempt::Done(Outcome::Kept)) };
                self.set_expiry(writer, root, found, deadline);
                return Ok(Attempt::Done(Outcome::Stored));
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
}
