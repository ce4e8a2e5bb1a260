//! After a power cut, first half: what the log of a durable store still says, believing nothing but checksums.
//!
//! Of the file only the immutable header words, the sync points and the records are used. Segments are looked at by
//! content: from their start for as long as one whole record follows another. Everything behind is erased, so that no
//! later life of the segment can run into it.

use crate::engine::Engine;
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::checksum::{ALIVE, NEVER, STAMP_MAX};
use hashmere_format::header::{at, PAGE};
use hashmere_format::member::Member;
use hashmere_format::record::Head;
use hashmere_format::sync::SyncPoint;
use hashmere_mem::{Host, Mem};
use std::collections::{HashMap, HashSet};

/// The content of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing that is needed.
    Nothing,
    /// Whole records up to here, some of which may live.
    Log { used: u32 },
    /// A large record that may be live, and its number of segments.
    Large { length: u32 },
    /// A later segment of one.
    Tail,
    /// A chunk of the segment table.
    Table { length: u32 },
}

/// What the first pass found.
pub(super) struct Survey {
    pub(super) content: Vec<Content>,
    /// The last completed sync.
    pub(super) point: SyncPoint,
    /// Records that may live.
    pub(super) candidates: u64,
    /// The highest version and the highest stamp of any record.
    pub(super) version: u64,
    pub(super) stamp: u64,
    /// The highest number of a transaction.
    pub(super) number: u64,
    /// Transactions of which the last sync may not have had all members on the medium.
    transactions: HashMap<u64, Transaction>,
}

/// What was found of a transaction.
#[derive(Default)]
struct Transaction {
    /// The key, by its hash, and the version of each member that is whole.
    members: HashSet<(u64, u64)>,
    /// One of them says that it was committed.
    committed: bool,
}

impl Survey {
    /// Whether a transaction was committed and all of its members are whole.
    fn is_whole(&self, member: Member) -> bool {
        let found = self.transactions.get(&member.transaction());
        found.is_some_and(|found| found.committed && found.members.len() as u64 == member.members)
            || fault::is(Fault::MemberBelieved)
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Looks through the first `total` segments.
    pub(super) fn survey(&self, total: u64, progress: &mut dyn FnMut(u64)) -> Result<Survey, WriteError> {
        let (point, slot) = self.last_point();
        if slot.is_none() {
            return Err(WriteError::Corrupt { what: "neither sync point is whole", offset: at::SYNC_POINTS[0] });
        }
        let mut survey = Survey {
            content: Vec::new(),
            point,
            candidates: 0,
            version: point.floor,
            stamp: 0,
            number: 0,
            transactions: HashMap::new(),
        };
        while (survey.content.len() as u64) < total {
            let segment = survey.content.len() as u64;
            match self.whole_large(segment) {
                Some((head, length)) => {
                    let lives = self.note(&mut survey, self.segment_offset(segment), &head);
                    let first = if lives { Content::Large { length: length as u32 } } else { Content::Nothing };
                    // Its bytes fill what follows, so no records begin there, be it alive or dead.
                    let rest = if lives { Content::Tail } else { Content::Nothing };
                    survey.content.push(first);
                    survey.content.extend((1..length).map(|_| rest));
                }
                None => {
                    let content = self.survey_log(segment, &mut survey);
                    survey.content.push(content);
                }
            }
            progress(survey.content.len() as u64);
        }
        Ok(survey)
    }

    /// A whole large record at the start of a segment, with the number of its segments.
    fn whole_large(&self, segment: u64) -> Option<(Head, u64)> {
        let record = self.segment_offset(segment);
        let (head, _) = self.parse(record)?;
        let bytes = head.record_bytes(self.layout.lengths);
        let is_one = head.version != 0 && self.is_large(bytes) && self.is_whole(record, &head);
        is_one.then(|| (head, bytes.div_ceil(self.segment_bytes())))
    }

    fn survey_log(&self, segment: u64, survey: &mut Survey) -> Content {
        let (mut used, before) = (0, survey.candidates);
        for record in self.records(segment, self.segment_bytes()) {
            let head = self.head_at(record.offset, record.header);
            let is_whole = self.is_whole(record.offset, &head) || fault::is(Fault::SumsBelieved);
            if self.is_large(record.bytes()) || !is_whole {
                break;
            }
            self.note(survey, record.offset, &head);
            used += record.bytes();
        }
        if survey.candidates == before {
            return Content::Nothing;
        }
        Content::Log { used: used as u32 }
    }

    /// Counts a whole record; `true` if it may live.
    fn note(&self, survey: &mut Survey, record: u64, head: &Head) -> bool {
        // Of a member it is not known yet: then its segment stays.
        let lives = self.note_member(survey, record, head) || self.may_live(&survey.point, record, head);
        survey.candidates += u64::from(lives);
        survey.version = survey.version.max(head.version);
        survey.stamp = survey.stamp.max(self.checksum_word(record).stamp());
        lives
    }

    /// Notes a whole member of a transaction that the last sync may not cover; whether it is one.
    fn note_member(&self, survey: &mut Survey, record: u64, head: &Head) -> bool {
        let Some((period, word)) = head.member else { return false };
        let member = Member::unpack(word);
        survey.number = survey.number.max(member.number);
        // So that the next sync is behind it.
        survey.stamp = survey.stamp.max(if period > STAMP_MAX { 0 } else { period });
        // That of the last sync counts as well: a rebuild that is cut short gives it to some members.
        if period < survey.point.number {
            return false;
        }
        let mut key = Vec::new();
        let header = head.header(self.layout.lengths);
        self.mem.append_to(record + header.key_at(), head.key_len as usize, &mut key);
        let found = survey.transactions.entry(member.transaction()).or_default();
        found.members.insert((self.hash_of(head, &key).hash, head.version));
        found.committed |= self.checksum_word(record).stamp() != NEVER;
        true
    }

    /// Whether a whole record is to be its key's, if none is newer, when all of them were surveyed.
    pub(super) fn lives(&self, survey: &Survey, record: u64, head: &Head) -> bool {
        let Some((period, word)) = head.member else { return self.may_live(&survey.point, record, head) };
        let (member, stamp) = (Member::unpack(word), self.checksum_word(record).stamp());
        if period <= survey.point.number {
            // All of it was on the medium: each record says for itself whether it lives, and what a tombstone said is
            // said by the stamps of what it superseded.
            return !member.is_tombstone && self.may_live(&survey.point, record, head);
        }
        let cleared = head.version <= survey.point.floor && !fault::is(Fault::FloorIgnored);
        let dead = stamp != ALIVE && stamp != NEVER && stamp <= survey.point.number;
        !cleared && !dead && survey.is_whole(member)
    }

    /// Whether a whole record was not known to be dead at the last sync.
    pub(super) fn may_live(&self, point: &SyncPoint, record: u64, head: &Head) -> bool {
        let stamp = self.checksum_word(record).stamp();
        let cleared = head.version <= point.floor && !fault::is(Fault::FloorIgnored);
        !cleared && (stamp == ALIVE || stamp > point.number)
    }

    /// Erases whatever is not a whole record in a segment that holds one that may live.
    pub(super) fn erase_rest(&self, survey: &Survey, file_len: u64) -> Result<(), WriteError> {
        if fault::is(Fault::GhostsLeft) {
            return Ok(());
        }
        let mut segment = 0;
        let total = survey.content.len() as u64;
        while segment < total {
            let start = self.segment_offset(segment);
            match survey.content[segment as usize] {
                Content::Nothing => {
                    // One call for all in a row.
                    let rest = survey.content[segment as usize..].iter();
                    let n = rest.take_while(|content| **content == Content::Nothing).count() as u64;
                    self.erase(start, start + n * self.segment_bytes())?;
                    segment += n;
                }
                Content::Log { used } => {
                    self.erase(start + u64::from(used), start + self.segment_bytes())?;
                    segment += 1;
                }
                Content::Large { length } => {
                    let bytes = self.parse(start).map_or(0, |(head, _)| head.record_bytes(self.layout.lengths));
                    self.erase(start + bytes, start + u64::from(length) * self.segment_bytes())?;
                    segment += u64::from(length);
                }
                Content::Tail | Content::Table { .. } => segment += 1,
            }
        }
        self.erase(self.segment_offset(total), file_len & !7)
    }

    /// Makes a range read as zero, without memory behind its whole pages if the file system can do that.
    pub(super) fn erase(&self, from: u64, to: u64) -> Result<(), WriteError> {
        let page = from.next_multiple_of(PAGE).min(to);
        if from < page {
            self.mem.zero(from, page - from);
        }
        if page < to && !self.mem.unback(page, to - page) {
            self.mem.back(page, to - page).map_err(crate::engine::back_error)?;
            self.mem.zero(page, to - page);
        }
        Ok(())
    }
}
