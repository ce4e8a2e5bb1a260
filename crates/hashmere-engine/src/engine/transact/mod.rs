//! Transactions: several keys change at one store of one word, or none does.
//!
//! [`Part`] is one key of it: what it must be, and what it is to become ([`part`]). [`drafts`] writes the new records
//! before anything is locked, [`locks`] takes the locks of all keys, [`apply`] commits and finishes, and [`repair`]
//! does so for a crashed process. `docs/internals/transactions.md` has the protocol and its argument.

mod apply;
mod drafts;
mod list;
mod locks;
mod members;
mod part;
mod reads;
pub(super) mod repair;
mod step;

use crate::engine::commit::locate::Reach;
use crate::engine::index::{Path, Tree};
use crate::engine::transact::drafts::Drafts;
use crate::engine::transact::locks::{Held, Taken};

use crate::engine::{Engine, Found, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use crate::types::{Stored, Uid, Version};
use hashmere_format::cell;
use hashmere_format::member::{Member, NO_PERIOD};
use hashmere_format::record::Head;
use hashmere_format::row;
use hashmere_mem::{Host, Mem};
pub(crate) use locks::Room;
use part::{Becomes, Way};
pub(crate) use part::{Change, Guard, Part, Span, Value};
use std::borrow::Cow;
use std::sync::atomic::Ordering;

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It took place.
    Committed,
    /// This part's key is not as its guard says; nothing has changed.
    Conflict(usize),
}

enum Attempt {
    Done(Outcome),
    /// A lock did not come at once, the leaf was split or the store was cleared before all locks were taken, or a free
    /// slot was taken by another key: again.
    Again,
    /// The list has no room for the locks in the overflow tree.
    MoreLocks,
    /// This part's key has no slot in the first tree.
    NoSlot(usize),
    /// Nor in the overflow tree, under this hash.
    NoOverflowSlot(usize, u64),
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// The most keys of a transaction: their list must find room in a segment.
    pub(crate) fn keys_of_transaction_max(&self) -> u64 {
        cell::KEYS_MAX.min(self.segment_bytes() / 2 / (8 * (cell::CELL_WORDS + 3)))
    }

    /// Does all that the parts say, at one moment, if all of them are as they must be. Their keys and values are among
    /// `bytes`; no key may be in two of them.
    pub(crate) fn transact(
        &self,
        writer: &mut Writer,
        bytes: &[u8],
        parts: &mut [Part],
        room: &mut Room,
    ) -> Result<Outcome, WriteError> {
        let mut drafts = Drafts::default();
        // So that the cache misses of all keys overlap, and none of them comes while locks are held.
        let root = self.root();
        let (mut are_known, mut cells) = (true, 0);
        for part in parts.iter_mut() {
            // What an attempt that failed left of it.
            (part.reach, part.becomes) = (Reach::First, Becomes::Same);
            cells += u64::from(part.change != Change::Same);
            if part.looked_up.is_none() {
                are_known = false;
                part.site.found = None;
                let path = self.path_of(root, Tree::First, part.kh.hash).ok().flatten();
                part.way = path.map(|path| self.way_by(root, path, part.kh.hash));
            }
        }
        let drafted = self.draft_parts(writer, bytes, parts, &mut drafts);
        if drafted.is_ok() && !are_known {
            self.look_up_parts(bytes, parts);
        }
        let done = drafted.and_then(|()| self.transact_while_active(writer, (bytes, parts), cells, &mut drafts, room));
        // Not before: what is cleaned goes where the drafts were.
        if drafts.is_passed {
            self.end_drafts(drafts);
        } else {
            self.give_up_drafts(writer, drafts, parts);
        }
        if matches!(done, Ok(Outcome::Committed)) && self.is_waited() {
            let changed = parts.iter().filter(|part| part.step.is_some());
            changed.for_each(|part| self.changed(part.kh.hash));
        }
        self.leave(writer);
        done
    }

    #[inline(always)]
    fn way_by(&self, root: u64, path: Path, hash: u64) -> Way {
        Way { root, path, place: self.place(path.leaf, hash) }
    }

    /// After the commit: what was stored of a part that has a value now.
    pub(crate) fn stored_of(&self, part: &Part) -> Stored {
        let step = part.step.filter(|step| part.becomes.draft().is_some() && step.slot != 0);
        let Some(step) = step else { return Stored::default() };
        let site = &part.site;
        Stored {
            uid: Uid(self.uid(site.tree, site.leaf, step.slot, site.hash)),
            version: Version(step.version),
            created: !part.was_there,
        }
    }

    /// Writes the records of all parts.
    #[inline(always)]
    fn draft_parts(
        &self,
        writer: &mut Writer,
        bytes: &[u8],
        parts: &mut [Part],
        drafts: &mut Drafts,
    ) -> Result<(), WriteError> {
        self.refuse_if_poisoned()?;
        if self.layout.is_durable() {
            return self.draft_members(writer, bytes, parts, drafts);
        }
        for part in parts {
            match &part.change {
                Change::Same => {}
                Change::Remove => part.becomes = Becomes::Gone(None),
                Change::Put(_) => {
                    if !self.draft_plain(writer, drafts, bytes, part) {
                        self.draft_part(writer, drafts, bytes, part, None)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The same in a durable store.
    #[cold]
    #[inline(never)]
    fn draft_members(
        &self,
        writer: &mut Writer,
        bytes: &[u8],
        parts: &mut [Part],
        drafts: &mut Drafts,
    ) -> Result<(), WriteError> {
        let members = parts.iter().filter(|part| part.change != Change::Same).count() as u64;
        // Of one member nothing can be missing.
        let member = (members > 1).then(|| self.member_of_next(writer, members));
        for part in parts {
            self.draft_part(writer, drafts, bytes, part, member)?;
        }
        Ok(())
    }

    /// Writes the record of any part.
    #[inline(never)]
    fn draft_part(
        &self,
        writer: &mut Writer,
        drafts: &mut Drafts,
        bytes: &[u8],
        part: &mut Part,
        member: Option<Member>,
    ) -> Result<(), WriteError> {
        let key = part.key.of(bytes);
        match part.change {
            Change::Same => {}
            Change::Remove => {
                let tombstone = member.map(|member| self.draft_tombstone(writer, drafts, (key, part.kh), member));
                part.becomes = Becomes::Gone(tombstone.transpose()?);
            }
            Change::Put(value) => {
                let head = Head {
                    expires: value.expires,
                    flags: value.flags,
                    version: value.least,
                    member: member.map(|member| (NO_PERIOD, member.pack())),
                    ..Self::plain_head(key, part.kh, value.bytes.len() as u64)
                };
                let draft = self.draft_for_transaction(writer, drafts, (key, part.kh), head)?;
                // Before the value is written: from here on it is given up with the rest.
                part.becomes = if value.keeps_version { Becomes::Refresh(draft) } else { Becomes::Put(draft) };
                self.mem.write(draft.value, value.bytes.of(bytes));
                self.seal(&draft);
            }
        }
        Ok(())
    }

    fn transact_while_active(
        &self,
        writer: &mut Writer,
        (bytes, parts): (&[u8], &mut [Part]),
        cells: u64,
        drafts: &mut Drafts,
        room: &mut Room,
    ) -> Result<Outcome, WriteError> {
        let mut locks = parts.len() as u64;
        let mut list = self.place_list(writer, drafts, cells, locks)?;
        let mut since = None;
        loop {
            let root = self.enter(writer);
            let further = match self.attempt_transaction(writer, root, (bytes, parts), drafts, Held::new(list, room))? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Again => continue,
                Attempt::MoreLocks => {
                    locks = 3 * parts.len() as u64;
                    list = self.place_list(writer, drafts, cells, locks)?;
                    continue;
                }
                Attempt::NoSlot(part) => {
                    let reach = self.make_slot_beside(writer, drafts, |engine, writer| {
                        engine.reach_for_slot(writer, root, parts[part].kh.hash)
                    });
                    reach.map(|reach| parts[part].reach = reach)
                }
                Attempt::NoOverflowSlot(part, hash) => {
                    let from = parts[part].reach;
                    let reach = self.make_slot_beside(writer, drafts, |engine, writer| {
                        engine.reach_further(writer, root, hash, from)
                    });
                    reach.map(|reach| parts[part].reach = reach)
                }
            };
            if let Err(error) = further {
                self.wait_and_retry(&mut since, error)?;
            }
        }
    }

    /// Makes room in the index, which may clean or evict: the drafts are put aside for that.
    fn make_slot_beside(
        &self,
        writer: &mut Writer,
        drafts: &mut Drafts,
        make: impl Fn(&Self, &mut Writer) -> Result<Reach, WriteError>,
    ) -> Result<Reach, WriteError> {
        loop {
            match make(self, writer) {
                Err(error) if std::mem::take(&mut writer.index_full) => {
                    self.put_aside(writer, drafts);
                    if !self.free_for_index(writer)? {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    fn attempt_transaction(
        &self,
        writer: &mut Writer,
        root: u64,
        (bytes, parts): (&[u8], &mut [Part]),
        drafts: &mut Drafts,
        mut held: Held<'_>,
    ) -> Result<Attempt, WriteError> {
        let attempt = self.attempt_with(writer, root, (bytes, parts), drafts, &mut held);
        self.release_all(writer, &held);
        // Only now: what the row names until then is held back for the marks (`is_marking_dead`).
        while let Some(segment) = drafts.dead_large.pop() {
            // What fails here is found again by the next look at this segment; the transaction is done.
            let _ = self.reclaim_large(segment, writer.slot);
        }
        attempt
    }

    #[inline(always)]
    fn attempt_with(
        &self,
        writer: &mut Writer,
        root: u64,
        (bytes, parts): (&[u8], &mut [Part]),
        drafts: &mut Drafts,
        held: &mut Held<'_>,
    ) -> Result<Attempt, WriteError> {
        match self.lock_all(writer, root, (bytes, parts), held)? {
            Taken::All => {}
            Taken::Again => return Ok(Attempt::Again),
            Taken::NoRoom => return Ok(Attempt::MoreLocks),
        }
        let (mut changes, mut creates) = (false, false);
        for (index, part) in parts.iter_mut().enumerate() {
            if !part.is_located {
                self.locate_part(root, bytes, part, held)?;
            } else if self.is_as_read(part) {
                part.was_there = true;
                changes |= !matches!(part.becomes, Becomes::Same);
                continue;
            }
            part.was_there = part.site.found.as_ref().is_some_and(|found| !self.has_expired(found));
            if !self.is_as_guarded(part) {
                return Ok(Attempt::Done(Outcome::Conflict(index)));
            }
            changes |= part.changes();
            creates |= part.becomes.draft().is_some() && part.site.found.is_none();
        }
        if creates {
            if let Some(missing) = self.place_new(root, bytes, parts, held)? {
                return Ok(missing);
            }
        }
        if !changes {
            return Ok(Attempt::Done(Outcome::Committed));
        }
        Ok(match self.change_all(writer, root, (bytes, parts), drafts, held) {
            None => Attempt::Done(Outcome::Committed),
            Some(part) => {
                let site = &parts[part].site;
                match site.tree {
                    Tree::First => Attempt::NoSlot(part),
                    Tree::Overflow => Attempt::NoOverflowSlot(part, site.hash),
                }
            }
        })
    }

    /// With all guards met, and a place for each key: the change. The part whose key finds no slot any more; nothing
    /// has changed then.
    #[inline(always)]
    fn change_all(
        &self,
        writer: &mut Writer,
        root: u64,
        (bytes, parts): (&[u8], &mut [Part]),
        drafts: &mut Drafts,
        held: &mut Held<'_>,
    ) -> Option<usize> {
        let totals = self.write_cells(writer, root, parts, held);
        let pending = match self.name_cells(writer, parts, held) {
            Ok(pending) => pending,
            Err(part) => {
                self.undo_cells(writer.row, writer.slot, held.list);
                return Some(part);
            }
        };
        self.commit_cells(writer, root, parts, drafts, held, pending);
        let is_put = |part: &&Part| matches!(part.becomes, Becomes::Put(_));
        let is_gone = |part: &&Part| matches!(part.becomes, Becomes::Gone(_)) && part.was_there;
        let named = |part: &Part| (Cow::Borrowed(part.key.of(bytes)), part.kh.hash);
        self.count_sets(writer.row, totals.sets, |nth| parts.iter().filter(is_put).nth(nth as usize).map(named));
        self.count_deletes(writer.row, totals.deletes, |nth| parts.iter().filter(is_gone).nth(nth as usize).map(named));
        None
    }

    /// With all guards met: a place for each key that is not there. What is missing, if one has none.
    #[inline(never)]
    fn place_new(
        &self,
        root: u64,
        bytes: &[u8],
        parts: &mut [Part],
        held: &mut Held<'_>,
    ) -> Result<Option<Attempt>, WriteError> {
        for (index, part) in parts.iter_mut().enumerate() {
            if part.becomes.draft().is_none() || part.site.found.is_some() {
                continue;
            }
            // Once it was to go to the overflow tree it goes there: of several new keys of a bucket some find no slot.
            match (part.reach, part.site.free) {
                (Reach::First, Some(_)) => continue,
                (Reach::First, None) => return Ok(Some(Attempt::NoSlot(index))),
                _ => {}
            }
            match self.place_in_overflow(root, bytes, part, held)? {
                Ok(site) => part.site = site,
                Err(full) => return Ok(Some(Attempt::NoOverflowSlot(index, full))),
            }
        }
        Ok(None)
    }

    /// With the key found where it was read: whether that says that it is what it must be. (It has no expiry then.)
    #[inline(always)]
    fn is_as_read(&self, part: &Part) -> bool {
        match (&part.guard, &part.site.found) {
            (Guard::Version(version), Some(found)) => !Self::has_more(found) && found.version() == *version,
            _ => false,
        }
    }

    /// With the key locked: whether it is what it must be.
    #[inline(always)]
    fn is_as_guarded(&self, part: &Part) -> bool {
        if fault::is(Fault::GuardIgnored) {
            return true;
        }
        let found = part.site.found.as_ref().filter(|_| part.was_there);
        match (&part.guard, found) {
            (Guard::Any, _) => !matches!(part.becomes, Becomes::Refresh(_)) || found.is_some(),
            (Guard::Absent(_), found) => found.is_none(),
            (_, None) => false,
            // Of a record without these fields the version says all.
            (Guard::Version(version), Some(found)) if !Self::has_more(found) => found.version() == *version,
            (guard, Some(found)) => self.is_as_seen_locked(guard, found),
        }
    }

    #[cold]
    #[inline(never)]
    fn is_as_seen_locked(&self, guard: &Guard, found: &Found) -> bool {
        let now = self.meta_of_found(found);
        guard.seen().is_some_and(|seen| now.is_same_but_expiry(&seen) && now.expires_at_ms == seen.expires_at_ms)
    }

    #[inline(always)]
    fn set_transaction_status(&self, row: u64, status: cell::Status) {
        self.mem.store(row + row::at::STATUS, status.0, Ordering::Release);
    }

    #[inline(always)]
    fn transaction_status(&self, row: u64) -> cell::Status {
        cell::Status(self.mem.load(row + row::at::STATUS, Ordering::Acquire))
    }
}
