//! After a power cut, second half: a new index from what the survey found.
//!
//! Nothing here overwrites a record that may live, so whatever becomes of a rebuild - killed, cut off, a second power
//! cut - the next one begins with the same records and ends with the same store. The caller is alone with the file.

use crate::engine::commit::held::HeldKey;
use crate::engine::commit::locate::Reach;
use crate::engine::durable::log_scan::{Content, Survey};
use crate::engine::index::Tree;
use crate::engine::log::segments::Need;
use crate::engine::{Engine, KeyHash, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::feed::FeedWord;
use hashmere_format::header::{at, flag, limit, RootWord, PAGE};
use hashmere_format::member::{Member, NO_PERIOD};
use hashmere_format::record::{field, Head, VERSION_MAX};
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word, CHUNK_BYTES, CHUNK_ENTRIES};
use hashmere_format::snapshot::Snapshot;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Added to the highest version found, so that none that was given out and lost comes again.
const MARGIN: u64 = 1 << 20;
/// Every how many segments progress is reported.
const REPORT: u64 = 256;

/// A member of a transaction that was taken over, and the key of one that says that it was deleted.
type Adoptee = (u64, Option<Vec<u8>>);

/// What was done with a record.
enum Adopted {
    /// It is the key's record, or an older one is and it lost.
    Done(bool),
    /// There was no slot for this hash.
    NoSlot(Tree, u64),
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Rebuilds a durable store of `file_len` bytes from its log. `progress` is called with the bytes done and the
    /// total.
    pub(crate) fn rebuild(&self, file_len: u64, progress: &mut dyn FnMut(u64, u64)) -> Result<u64, WriteError> {
        self.log.lift_maximum(true);
        let rebuilt = self.rebuild_all(file_len, progress);
        self.log.lift_maximum(false);
        rebuilt
    }

    fn rebuild_all(&self, file_len: u64, progress: &mut dyn FnMut(u64, u64)) -> Result<u64, WriteError> {
        let total = self.layout.segments_in(file_len.saturating_sub(at::DATA)).min(limit::SEGMENTS);
        let generation = RootWord::unpack(self.root()).generation.max(1);
        self.mem.store(at::SEGMENTS, total, Ordering::Release);
        let mut report = |done: u64, pass: u64| {
            if done % REPORT == 0 || done == total {
                progress(pass * total + done, 2 * total);
            }
        };
        let mut survey = self.survey(total, &mut |done| report(done, 0))?;
        self.erase_rest(&survey, file_len)?;
        self.reset_header(&survey)?;
        self.lay_table(&mut survey.content)?;
        for (segment, content) in survey.content.iter().enumerate() {
            self.write_entry(segment as u64, *content, generation);
        }
        let mut writer = self.writer()?;
        self.plant_again(&writer, generation, &survey)?;
        if self.max_bytes() == 0 {
            self.presize(&mut writer, survey.candidates)?;
        }
        let mut members = Vec::new();
        for (segment, content) in survey.content.iter().enumerate() {
            let segment = segment as u64;
            match content {
                Content::Log { used } => {
                    self.adopt_log(&mut writer, &survey, segment, u64::from(*used), &mut members)?;
                }
                Content::Large { .. } => self.adopt_large(&mut writer, &survey, segment, &mut members)?,
                _ => {}
            }
            report(segment + 1, 1);
        }
        for (record, key) in members.iter().filter_map(|(record, tombstone)| Some((*record, tombstone.as_ref()?))) {
            self.remove_tombstone(&mut writer, record, key)?;
        }
        drop(writer);
        let number = self.sync_alone()?;
        // Not before: until the sync they are taken together, or not at all.
        if !members.is_empty() {
            members.iter().for_each(|(record, _)| self.set_period(*record, number));
            self.sync_alone()?;
        }
        Ok(self.items())
    }

    /// Everything that processes of before the power cut left in the header, and the client table.
    fn reset_header(&self, survey: &Survey) -> Result<(), WriteError> {
        let words = [
            at::SPACE_LOCK,
            at::INDEX_LOCK,
            at::RESERVE_LOCK,
            at::SYNC_LOCK,
            at::REGION_LOCK,
            at::WAITED,
            at::CLEAN_HAND,
            at::FREE_HAND,
            at::FREE_COUNT,
            at::HOLE_HAND,
            at::NO_SPACE,
            at::EVICT_HAND,
            at::PROTECTED_HAND,
            at::PROTECTED_PARTIAL,
            at::PROBATION,
            at::CLIENTS_HIGH,
            at::SWEEPS,
            at::NEXT_EXPIRY,
            at::OFFLINE,
            at::WAITING,
        ];
        // There are no regions any more. The number of the feed stays, so that the next one has another.
        let feed = FeedWord(self.mem.load(at::FEED, Ordering::Relaxed));
        self.mem.store(at::FEED, feed.off().0, Ordering::Relaxed);
        let ring = (0..at::FREE_RING_LEN).map(|i| at::FREE_RING + 8 * i);
        words.into_iter().chain(ring).for_each(|word| self.mem.store(word, 0, Ordering::Relaxed));
        self.change_status(0, flag::POISONED);
        self.mem.store(at::TRANSACTIONS, survey.number, Ordering::Relaxed);
        self.mem.store(at::SYNC_NEXT, survey.point.number.max(survey.stamp) + 1, Ordering::Relaxed);
        self.mem.store(at::SYNC_DONE, survey.point.number, Ordering::Relaxed);
        self.erase(at::CLIENTS, at::CLIENTS + u64::from(limit::CLIENTS) * row::BYTES)
    }

    /// Makes a segment table for the segments found. A chunk stays where its pointer says if nothing else is there;
    /// else it goes behind the end of the file.
    fn lay_table(&self, content: &mut Vec<Content>) -> Result<(), WriteError> {
        let back = |offset, bytes| self.mem.back(offset, bytes).map_err(crate::engine::back_error);
        let own = CHUNK_BYTES.div_ceil(self.segment_bytes());
        let pointers = limit::SEGMENTS / CHUNK_ENTRIES;
        back(at::CHUNKS, 8 * pointers)?;
        self.erase(at::CHUNK_0, at::CHUNK_0 + CHUNK_BYTES)?;
        self.mem.store(at::CHUNKS, at::CHUNK_0, Ordering::Release);
        for chunk in 1..pointers {
            let pointer = at::CHUNKS + 8 * chunk;
            if chunk * CHUNK_ENTRIES >= content.len() as u64 {
                self.mem.store(pointer, 0, Ordering::Relaxed);
                continue;
            }
            let there = self.mem.load(pointer, Ordering::Relaxed);
            let first = self.table_place(there, own, content).unwrap_or(content.len() as u64);
            content.resize(content.len().max((first + own) as usize), Content::Nothing);
            back(self.segment_offset(first), own * self.segment_bytes())?;
            self.mem.zero(self.segment_offset(first), CHUNK_BYTES);
            content[first as usize] = Content::Table { length: own as u32 };
            content[first as usize + 1..(first + own) as usize].fill(Content::Tail);
            self.mem.store(pointer, self.segment_offset(first), Ordering::Release);
        }
        let total = content.len() as u64;
        back(at::CHUNK_0, (total.min(CHUNK_ENTRIES) * segment::BYTES).next_multiple_of(PAGE))?;
        back(self.segment_offset(total) - PAGE, PAGE)?;
        self.mem.store(at::SEGMENTS, total, Ordering::Release);
        Ok(())
    }

    /// The segment that a chunk pointer leads to, if a chunk can be there.
    fn table_place(&self, pointer: u64, own: u64, content: &[Content]) -> Option<u64> {
        if pointer < at::DATA || (pointer - at::DATA) & (self.segment_bytes() - 1) != 0 {
            return None;
        }
        let first = self.segment_of(pointer);
        let there = content.get(first as usize..first.checked_add(own)? as usize)?;
        there.iter().all(|content| *content == Content::Nothing).then_some(first)
    }

    fn write_entry(&self, segment: u64, content: Content, generation: u64) {
        let (word, used) = match content {
            // Whatever memory it has left is asked for again before anything is written there.
            Content::Nothing => (Word::new(State::Hole), 0),
            Content::Log { used } => (Word::new(State::Sealed), u64::from(used)),
            Content::Large { length } => (Word::new(State::Large).long(length), 0),
            Content::Tail => (Word::new(State::Tail), 0),
            Content::Table { length } => (Word::new(State::Table).long(length), 0),
        };
        self.set_field(segment, segment::at::USED, used);
        self.set_field(segment, segment::at::BORN, generation);
        self.set_field(segment, segment::at::EXPIRE_MIN, u64::MAX);
        self.set_state(segment, word);
    }

    /// An empty index, in place of whatever there was.
    fn plant_again(&self, writer: &Writer, generation: u64, survey: &Survey) -> Result<(), WriteError> {
        let segment = self.claim_patiently(writer.slot, Need::Reserve, self.plant_bytes())?;
        let word = RootWord { generation, segment };
        // What a backup left in the header, and what writes asked for, is of some moment since the last sync, or
        // before: a lower bound.
        let seen = survey.version.max(self.snapshot().floor()).max(self.raised());
        let version = self.host.now_ms().max(seen.saturating_add(MARGIN)) & VERSION_MAX;
        self.mem.store(at::SNAPSHOT, Snapshot::idle(version, true).0, Ordering::Relaxed);
        self.plant(word, version, survey.point.floor)?;
        self.set_field(segment, segment::at::BORN, generation);
        self.mem.store(at::ROOT, word.pack(), Ordering::SeqCst);
        self.set_state(segment, Word::new(State::Index));
        Ok(())
    }

    fn adopt_log(
        &self,
        writer: &mut Writer,
        survey: &Survey,
        segment: u64,
        used: u64,
        members: &mut Vec<Adoptee>,
    ) -> Result<(), WriteError> {
        for record in self.records(segment, used) {
            let head = self.head_at(record.offset, record.header);
            if self.lives(survey, record.offset, &head) {
                self.adopt_record(writer, record.offset, &head, record.key(), members)?;
                self.count_expiry(segment, &head);
            } else {
                self.pass_over(survey, record.offset, &head);
            }
        }
        Ok(())
    }

    fn adopt_large(
        &self,
        writer: &mut Writer,
        survey: &Survey,
        segment: u64,
        members: &mut Vec<Adoptee>,
    ) -> Result<(), WriteError> {
        let record = self.segment_offset(segment);
        let Some((head, key)) = self.parse(record) else { return Ok(()) };
        self.set_field(segment, segment::at::USED, head.record_bytes(self.layout.lengths));
        if !self.lives(survey, record, &head) {
            self.pass_over(survey, record, &head);
            return Ok(());
        }
        self.count_expiry(segment, &head);
        self.adopt_record(writer, record, &head, key, members)
    }

    /// A record that does not live. A member of a transaction that did not arrive whole was never committed: whatever
    /// is found of it later, this one is not.
    fn pass_over(&self, survey: &Survey, record: u64, head: &Head) {
        if head.member.is_some_and(|(period, _)| period > survey.point.number) {
            self.mark_never(record);
        }
        self.count_dead(record, head.record_bytes(self.layout.lengths));
    }

    /// Takes a tombstone out of the index, where it took the place of what it superseded.
    fn remove_tombstone(&self, writer: &mut Writer, record: u64, key: &[u8]) -> Result<(), WriteError> {
        let Some((head, _)) = self.parse(record) else { return Ok(()) };
        let kh = self.hash_of(&head, key);
        self.mutate_record(writer, (key, kh), record, |engine, writer, root, found, _| {
            engine.commit_unlinked(writer, root, found, |_, _| ());
        })?;
        (writer.dead_large, writer.made_dead) = (None, 0);
        Ok(())
    }

    fn count_expiry(&self, segment: u64, head: &Head) {
        if let Some(expires) = head.expires {
            let entry = self.entry_of(segment);
            self.lower(entry + segment::at::EXPIRE_MIN, expires);
            self.raise(entry + segment::at::EXPIRE_MAX, expires);
            let bytes = head.record_bytes(self.layout.lengths);
            self.mem.fetch_add(entry + segment::at::EXPIRING, bytes, Ordering::Relaxed);
        }
    }

    /// Makes a record its key's, if it is newer than what the index has so far.
    fn adopt_record(
        &self,
        writer: &mut Writer,
        record: u64,
        head: &Head,
        key: u64,
        members: &mut Vec<Adoptee>,
    ) -> Result<(), WriteError> {
        let mut name = std::mem::take(&mut writer.key);
        name.clear();
        self.mem.append_to(key, head.key_len as usize, &mut name);
        let word = self.mem.load(record, Ordering::Relaxed);
        self.mem.store(record, word & !(field::DEAD | field::RETAINED), Ordering::Relaxed);
        let won = self.adopt_by_name(writer, record, head, &name);
        self.mem.store(writer.row + row::at::ACTIVE, 0, Ordering::Release);
        if let Some((period, word)) = head.member {
            let is_tombstone = Member::unpack(word).is_tombstone;
            if period == NO_PERIOD || is_tombstone {
                members.push((record, is_tombstone.then(|| name.clone())));
            }
        }
        writer.key = name;
        if !won? {
            self.stamp(record);
            self.count_dead(record, head.record_bytes(self.layout.lengths));
        }
        // Those that lost are found by their marks.
        (writer.dead_large, writer.made_dead) = (None, 0);
        Ok(())
    }

    pub(in crate::engine) fn adopt_by_name(
        &self,
        writer: &mut Writer,
        record: u64,
        head: &Head,
        name: &[u8],
    ) -> Result<bool, WriteError> {
        let kh = self.hash_of(head, name);
        let mut reach = Reach::First;
        loop {
            let root = self.enter(writer);
            let Some(locked) = self.lock_key(writer, root, kh.hash)? else { continue };
            let mut held = HeldKey::key(locked);
            let adopted = self.adopt_locked(writer, root, (record, head), (name, kh), reach, &mut held);
            self.unlock_key(writer, &held);
            match adopted? {
                Adopted::Done(won) => return Ok(won),
                Adopted::NoSlot(Tree::First, hash) => reach = self.reach_for_slot(writer, root, hash)?,
                Adopted::NoSlot(Tree::Overflow, hash) => reach = self.reach_further(writer, root, hash, reach)?,
            }
        }
    }

    fn adopt_locked(
        &self,
        writer: &mut Writer,
        root: u64,
        (record, head): (u64, &Head),
        (name, kh): (&[u8], KeyHash),
        reach: Reach,
        held: &mut HeldKey,
    ) -> Result<Adopted, WriteError> {
        let mut site = self.locate(writer, root, name, kh, held)?;
        if site.found.is_some_and(|found| !is_newer(head, &self.head_of(&found))) {
            return Ok(Adopted::Done(false));
        }
        if site.found.is_none() && site.free.is_none() {
            if reach == Reach::First {
                return Ok(Adopted::NoSlot(Tree::First, kh.hash));
            }
            match self.overflow_site(writer, root, name, held, reach)? {
                Ok(overflow) => site = overflow,
                Err(full) => return Ok(Adopted::NoSlot(Tree::Overflow, full)),
            }
        }
        let draft = self.copied(record, head, head.record_bytes(self.layout.lengths));
        Ok(match self.commit_record(writer, root, &draft, &site, None) {
            Some(_) => Adopted::Done(true),
            None => Adopted::NoSlot(site.tree, site.hash),
        })
    }
}

/// Which of two records of a key is the later. One that only got an expiry kept its version.
fn is_newer(record: &Head, than: &Head) -> bool {
    let age = |head: &Head| (head.version, head.expires.is_some());
    age(record) > age(than) && !fault::is(Fault::FirstWins)
}
