//! The commit: one store of one slot, and what is written down before and after it, so that a repair can complete it.
//!
//! [`key_lock`] locks the key, and [`locate`] finds its slot or a free one.

pub(super) mod held;
pub(super) mod key_lock;
pub(super) mod locate;

use crate::engine::commit::held::HeldKey;
use crate::engine::commit::locate::Site;
use crate::engine::feed::report::Happened;
use crate::engine::{Draft, Engine, Found, Writer};
use crate::fault::{self, Fault};
use crate::types::{Uid, Version};
use hashmere_format::feed::{FeedIntent, Operation};
use hashmere_format::header::RootWord;
use hashmere_format::leaf::{LockWord, Slot};
use hashmere_format::record::{field, VERSION_MASK, VERSION_MAX, VERSION_SHIFT};
use hashmere_format::row;
use hashmere_format::segment::{self, State};
use hashmere_format::snapshot::Snapshot;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Gives a draft its version, makes it the key's record, and notes in the writer what was stored, and in `word`
    /// what the lock word will hold. `false`: the free slots were taken by other keys.
    #[inline(always)]
    pub(in crate::engine) fn commit_draft(
        &self,
        writer: &mut Writer,
        root: u64,
        draft: &Draft,
        site: &Site,
        keep_version: Option<u64>,
        word: &mut LockWord,
    ) -> bool {
        // SYNC(snapshot): loaded after `enter`, so a snapshot that waits for us to leave knows that we saw it or are
        // before it; and so a feed that is switched on.
        let snapshot = self.snapshot();
        if snapshot.concerns_writers() {
            // Copies: what passes by reference to another function lives in memory, also where that is not called.
            let (draft, site) = (Draft { ..*draft }, Site { ..*site });
            let (done, now) = self.commit_draft_watched(writer, root, &draft, &site, keep_version, *word, snapshot);
            *word = now;
            return done;
        }
        self.commit_draft_under(writer, root, draft, site, keep_version, word, Snapshot(0))
    }

    /// The same beside a backup, or with a feed.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn commit_draft_watched(
        &self,
        writer: &mut Writer,
        root: u64,
        draft: &Draft,
        site: &Site,
        keep_version: Option<u64>,
        mut word: LockWord,
        snapshot: Snapshot,
    ) -> (bool, LockWord) {
        (self.commit_draft_under(writer, root, draft, site, keep_version, &mut word, snapshot), word)
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn commit_draft_under(
        &self,
        writer: &mut Writer,
        root: u64,
        draft: &Draft,
        site: &Site,
        keep_version: Option<u64>,
        word: &mut LockWord,
        snapshot: Snapshot,
    ) -> bool {
        let mut version = keep_version.unwrap_or_else(|| ((word.version() + 1) & VERSION_MAX).max(1).max(draft.least));
        if snapshot.concerns_backup() {
            let old = site.found.as_ref().map_or(Slot::EMPTY, |old| old.slot);
            version = self.apply_snapshot(old, version, keep_version.is_some());
        }
        if snapshot.has_feed() {
            let operation = if keep_version.is_some() { Operation::Touch } else { Operation::Set };
            self.note_feed(writer.row, FeedIntent::commit(operation));
        }
        self.mem.store(draft.offset, draft.word | version << VERSION_SHIFT, Ordering::Relaxed);
        if self.layout.is_durable() {
            self.finish_checksum(draft.offset);
        }
        if !fault::is(Fault::HeadLate) {
            self.advance(writer, draft);
        }
        let reported = snapshot.has_feed().then_some(keep_version.is_some());
        let Some(slot_offset) = self.commit_record(writer, root, draft, site, reported) else {
            if reported.is_some() {
                self.note_feed(writer.row, FeedIntent::NONE);
            }
            self.roll_back(writer, draft);
            return false;
        };
        if fault::is(Fault::HeadLate) {
            self.advance(writer, draft);
        }
        if draft.is_large() {
            self.finish_large(draft, root);
        }
        if keep_version.is_none() {
            *word = LockWord(word.0 & !VERSION_MASK | version << VERSION_SHIFT);
        }
        writer.stored.uid = Uid(self.uid(site.tree, site.leaf, slot_offset, site.hash));
        writer.stored.version = Version(version);
        true
    }

    /// Makes a draft the key's record, which is reported in the feed as a set, or with `Some(true)` as a touch. `None`:
    /// the free slots were taken by other keys.
    #[inline(always)]
    pub(in crate::engine) fn commit_record(
        &self,
        writer: &mut Writer,
        root: u64,
        draft: &Draft,
        site: &Site,
        reported: Option<bool>,
    ) -> Option<u64> {
        let new = Slot::new(site.hash, draft.offset);
        if let Some(old) = &site.found {
            if self.layout.is_durable() && fault::is(Fault::StampEarly) {
                self.stamp(old.record);
            }
            self.announce(writer, root, old.slot_offset, old.slot, new, 0, self.grown(draft, Some(old)));
            // SYNC(commit): the record's words are seen by every reader that sees the slot.
            self.mem.store(old.slot_offset, new.0, Ordering::Release);
            if self.layout.is_durable() {
                self.mark_live(draft.offset);
            }
            self.report_draft(writer, root, draft, reported);
            self.mark_dead(writer, old);
            self.counted(writer);
            return Some(old.slot_offset);
        }
        let mut free = site.free;
        while let Some(slot_offset) = free {
            self.announce(writer, root, slot_offset, Slot::EMPTY, new, 1, self.grown(draft, None));
            if self.mem.compare_exchange(slot_offset, 0, new.0).is_ok() || fault::is(Fault::SlotBelieved) {
                if self.layout.is_durable() {
                    self.mark_live(draft.offset);
                }
                self.report_draft(writer, root, draft, reported);
                self.counted(writer);
                return Some(slot_offset);
            }
            self.mem.store(writer.row + row::at::INTENT, 0, Ordering::Release);
            free = self.free_slot(self.place(site.leaf, site.hash));
        }
        None
    }

    #[inline(always)]
    fn report_draft(&self, writer: &mut Writer, root: u64, draft: &Draft, reported: Option<bool>) {
        if let Some(touched) = reported {
            let operation = if touched { Operation::Touch } else { Operation::Set };
            self.report(writer, root, Happened { operation, record: draft.offset, version: None });
        }
    }

    /// Empties the slot of a key. The key's next record gets a version above that of the removal.
    #[inline(always)]
    pub(in crate::engine) fn commit_removal(
        &self,
        writer: &mut Writer,
        root: u64,
        old: &Found,
        held: &mut HeldKey,
        operation: Operation,
    ) {
        held.word = LockWord(held.word.0.wrapping_add(LockWord::STEP));
        if self.snapshot().concerns_writers() {
            return self.commit_removal_watched(writer, root, &Found { ..*old }, held.word.version(), operation);
        }
        self.commit_unlinked(writer, root, old, |_, _| ());
    }

    /// The same beside a backup, or with a feed.
    #[inline(never)]
    fn commit_removal_watched(&self, writer: &mut Writer, root: u64, old: &Found, version: u64, operation: Operation) {
        let snapshot = self.snapshot();
        if snapshot.concerns_backup() {
            self.retain_for_snapshot(old.slot);
        }
        if snapshot.has_feed() {
            self.note_feed(writer.row, FeedIntent::commit(operation));
        }
        self.commit_unlinked(writer, root, old, |engine, writer| {
            if snapshot.has_feed() {
                let happened = Happened { operation, record: old.record, version: Some(version) };
                engine.report(writer, root, happened);
            }
        });
    }

    /// The same for a rebuild, which nothing sees.
    pub(in crate::engine) fn commit_unlinked(
        &self,
        writer: &mut Writer,
        root: u64,
        old: &Found,
        report: impl FnOnce(&Self, &mut Writer),
    ) {
        let gone = old.bytes() as i64;
        self.announce(writer, root, old.slot_offset, old.slot, Slot::EMPTY, -1, -gone);
        self.mem.store(old.slot_offset, 0, fault::relaxes(Fault::CommitRelaxed));
        report(self, writer);
        self.mark_dead(writer, old);
        self.counted(writer);
    }

    #[inline(always)]
    fn grown(&self, draft: &Draft, old: Option<&Found>) -> i64 {
        draft.bytes as i64 - old.map_or(0, |o| o.bytes() as i64)
    }

    /// Writes down what the commit is about to do, so that a repair can complete the counts.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(in crate::engine) fn announce(
        &self,
        writer: &Writer,
        root: u64,
        slot_offset: u64,
        old: Slot,
        new: Slot,
        items: i64,
        bytes: i64,
    ) {
        use row::at;
        let row = writer.row;
        self.note_counts(row, root, items, bytes);
        // SYNC(intent): the words of an intent change only while it is not in force: INTENT is zero here.
        self.mem.store(row + at::INTENT_OLD, old.0, Ordering::Relaxed);
        self.mem.store(row + at::INTENT_NEW, new.0, Ordering::Relaxed);
        if !fault::is(Fault::IntentUnsaid) {
            self.mem.store(row + at::INTENT, slot_offset, Ordering::Release);
        }
    }

    /// Writes down the counts after a commit under this root.
    #[inline(always)]
    pub(in crate::engine) fn note_counts(&self, row: u64, root: u64, items: i64, bytes: i64) {
        use row::at;
        let generation = RootWord::unpack(root).generation;
        if self.mem.load(row + at::COUNTED, Ordering::Relaxed) != generation {
            // The store was cleared since: start from nothing. Zeros first: counts of another generation are ignored.
            self.mem.store(row + at::ITEMS, 0, Ordering::Relaxed);
            self.mem.store(row + at::LIVE, 0, Ordering::Relaxed);
            self.mem.store(row + at::COUNTED, generation, Ordering::Release);
        }
        let items = self.mem.load(row + at::ITEMS, Ordering::Relaxed).wrapping_add(items as u64);
        let live = self.mem.load(row + at::LIVE, Ordering::Relaxed).wrapping_add(bytes as u64);
        self.mem.store(row + at::INTENT_ITEMS, items, Ordering::Relaxed);
        self.mem.store(row + at::INTENT_LIVE, live, Ordering::Relaxed);
    }

    /// After the commit: the counts become what the intent said.
    #[inline(always)]
    pub(in crate::engine) fn counted(&self, writer: &Writer) {
        self.complete_counts(writer.row);
    }

    #[inline(always)]
    pub(in crate::engine) fn complete_counts(&self, row: u64) {
        use row::at;
        let items = self.mem.load(row + at::INTENT_ITEMS, Ordering::Relaxed);
        let live = self.mem.load(row + at::INTENT_LIVE, Ordering::Relaxed);
        // Release: not before the commit that they count, whatever the compiler would like.
        self.mem.store(row + at::ITEMS, items, Ordering::Release);
        self.mem.store(row + at::LIVE, live, Ordering::Release);
        self.mem.store(row + at::INTENT, 0, Ordering::Release);
    }

    /// Marks a superseded record and counts its bytes. A cleaner that meets the mark needs no lock of ours, so until
    /// ours is released our row holds its segment back: it names it in the intent.
    #[inline(always)]
    pub(in crate::engine) fn mark_dead(&self, writer: &mut Writer, old: &Found) {
        let bytes = old.bytes();
        if self.layout.is_durable() {
            self.stamp(old.record);
        }
        let word = self.mem.load(old.record, Ordering::Relaxed);
        let late = fault::is(Fault::KeptLate) && self.snapshot().is_marking();
        let word = if late { word | field::RETAINED } else { word };
        self.mem.store(old.record, word | field::DEAD, Ordering::Release);
        // SYNC(dead): a segment whose dead bytes equal its used bytes is freed without a walk, so the mark comes first.
        let number = self.segment_of(old.record);
        let entry = self.entry_of(number);
        self.mem.fetch_add(entry + segment::at::DEAD, bytes, Ordering::Release);
        writer.made_dead += bytes;
        if self.mem.load(entry + segment::at::STATE, Ordering::Relaxed) as u8 == State::Large as u8 {
            writer.dead_large = Some(number);
        }
    }

    /// Marks a record as dead that no slot leads to, and counts its bytes. Not for one that was just superseded.
    pub(in crate::engine) fn count_dead(&self, record: u64, bytes: u64) {
        let word = self.mem.load(record, Ordering::Relaxed);
        self.mem.store(record, word | field::DEAD, Ordering::Relaxed);
        let entry = self.entry_of(self.segment_of(record));
        self.mem.fetch_add(entry + segment::at::DEAD, bytes, Ordering::Relaxed);
    }

    /// The superseded record may not have been counted as dead; for a large one nothing else would tell.
    pub(in crate::engine) fn mark_large_dead(&self, old: u64) {
        let record = hashmere_format::leaf::Slot(old).offset();
        if old != 0 && self.is_inside(record, 8) {
            let segment = self.segment_of(record);
            if self.state(segment).state == State::Large && self.field(segment, segment::at::DEAD) == 0 {
                self.set_field(segment, segment::at::DEAD, 1);
            }
        }
    }

    /// What a dead owner's lock becomes. The version moves on, also above the floor of a backup and above all that
    /// writes asked for: the next one may have been given out.
    pub(in crate::engine) fn moved_on(&self, word: LockWord) -> LockWord {
        self.moved_on_by(word, 1)
    }

    /// The same when this number of versions may have been given out.
    pub(in crate::engine) fn moved_on_by(&self, word: LockWord, steps: u64) -> LockWord {
        if fault::is(Fault::VersionRepeated) {
            return word;
        }
        let version = (word.version().max(self.snapshot().floor()).max(self.raised()) + steps) & VERSION_MAX;
        LockWord(word.0 & !VERSION_MASK | version << VERSION_SHIFT)
    }

    /// Takes an advanced draft back that was not committed.
    fn roll_back(&self, writer: &mut Writer, draft: &Draft) {
        if let Some(open) = writer.open.as_mut().filter(|_| !draft.is_large()) {
            open.head = draft.offset;
            self.mem.store(writer.row + row::at::HEAD, draft.offset, Ordering::Release);
        }
        // Not before: whatever the head has passed is a whole record.
        self.seal(draft);
    }
}
