//! The records of a transaction before it takes place: behind the heads of segments that are open in the writer's name.
//!
//! The head of a segment says up to where it holds records. It passes the drafts of a transaction all at once, when
//! their versions are known and nothing can fail any more. Until then nothing else may be appended behind the same
//! head: so a segment whose rest is too small for the next draft, and one that cleaning would append to, is *put
//! aside*, with its head in its entry, where a repair finds it.

use crate::engine::client::writer_state::OpenSegment;
use crate::engine::transact::{Becomes, Change, Part};
use crate::engine::{Draft, Engine, KeyHash, Writer};
use crate::error::WriteError;
use hashmere_format::record::{Head, RecordHeader};
use hashmere_format::row;
use hashmere_format::segment;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// What a writer has drafted for a transaction.
#[derive(Default)]
pub(super) struct Drafts {
    /// Where the drafts begin in the segment that is open, if any are there; its head in the file.
    start: Option<u64>,
    /// Segments that were put aside, and where the drafts begin in each.
    aside: Vec<(OpenSegment, u64)>,
    /// Large records that the transaction superseded: their segments can go when its locks are released.
    pub(super) dead_large: Vec<u64>,
    /// One of them is in segments of its own.
    pub(super) are_large: bool,
    /// One of them expires.
    expire: bool,
    /// The heads have passed them: they are records now.
    pub(super) is_passed: bool,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Writes the whole draft of a short record without attributes behind the head of the open segment, where there is
    /// no checksum and no fixed length. `false`: it is another one, or does not fit there.
    #[inline(always)]
    pub(super) fn draft_plain(&self, writer: &mut Writer, drafts: &mut Drafts, bytes: &[u8], part: &mut Part) -> bool {
        let Change::Put(value) = &part.change else { return false };
        let (key, contents) = (part.key.of(bytes), value.bytes.of(bytes));
        let lengths = self.layout.lengths;
        let has_more = value.expires.is_some() || part.kh.is_supplied || value.flags | value.least != 0;
        if has_more || self.layout.has_fixed || lengths.have_sums() {
            return false;
        }
        let (key_len, value_len) = (key.len() as u64, contents.len() as u64);
        // Of one whose lengths do not fit the header the general way says whether it can be stored.
        let Some(header) = RecordHeader::plain(lengths, key_len, value_len) else { return false };
        let bytes = header.bytes();
        let Some(open) = writer.open.as_mut() else { return false };
        if open.head + bytes > open.ready || self.is_large(bytes) {
            return false;
        }
        let offset = open.head;
        // The padding of the last word is zero: equal records are equal bytes.
        self.mem.store(offset + bytes - 8, 0, Ordering::Relaxed);
        self.mem.store(offset, header.word, Ordering::Relaxed);
        self.mem.write(offset + header.key_at(), key);
        self.mem.write(offset + header.value_at(), contents);
        open.head += bytes;
        if drafts.start.is_none() {
            drafts.start = Some(offset);
        }
        let keeps_version = value.keeps_version;
        let value = offset + header.value_at();
        let draft = Draft { offset, word: header.word, bytes, value, expires: u64::MAX, least: 0, large: 0 };
        part.becomes = if keeps_version { Becomes::Refresh(draft) } else { Becomes::Put(draft) };
        true
    }

    /// Writes head and key of one more draft; the value is the caller's to write, and [`seal`](Self::seal) follows.
    pub(super) fn draft_for_transaction(
        &self,
        writer: &mut Writer,
        drafts: &mut Drafts,
        (key, kh): (&[u8], KeyHash),
        head: Head,
    ) -> Result<Draft, WriteError> {
        let (head, least) = self.admit_head(writer, head)?;
        let bytes = head.record_bytes(self.layout.lengths);
        let value_len = head.value_len;
        drafts.expire |= head.expires.is_some();
        if self.is_large(bytes) {
            // Claiming segments may clean.
            self.put_aside(writer, drafts);
        } else {
            self.room_behind(writer, drafts, bytes)?;
        }
        let draft = self.draft(writer, key, kh, head, value_len)?;
        drafts.are_large |= draft.is_large();
        if let Some(open) = writer.open.as_mut().filter(|_| !draft.is_large()) {
            drafts.start.get_or_insert(open.head);
            open.head = draft.offset + draft.bytes;
        }
        Ok(Draft { least, ..draft })
    }

    /// Room behind the drafts, in the same segment or in another one.
    pub(super) fn room_behind(&self, writer: &mut Writer, drafts: &mut Drafts, bytes: u64) -> Result<u64, WriteError> {
        let is_there = writer.open.as_ref().is_some_and(|open| open.head + bytes <= open.ready);
        if !is_there {
            self.put_aside(writer, drafts);
        }
        self.room(writer, bytes)
    }

    /// Puts the open segment aside if drafts are in it.
    pub(super) fn put_aside(&self, writer: &mut Writer, drafts: &mut Drafts) {
        let Some(start) = drafts.start.take() else { return };
        let Some(open) = writer.open.take() else { return };
        // First what a repair reads when the row does not name the segment.
        self.set_field(open.number, segment::at::USED, start - self.segment_offset(open.number));
        self.mem.store(writer.row + row::at::OPEN, 0, Ordering::Release);
        drafts.aside.push((open, start));
    }

    /// The heads pass the drafts: from here on they count as records.
    #[inline(always)]
    pub(super) fn pass_drafts(&self, writer: &mut Writer, drafts: &mut Drafts, parts: &[Part]) {
        if drafts.aside.is_empty() {
            drafts.is_passed = true;
            self.pass_open(writer, drafts, parts);
        } else {
            self.pass_all(writer, drafts, parts);
        }
    }

    /// Those in the segment that is open.
    #[inline(always)]
    fn pass_open(&self, writer: &mut Writer, drafts: &mut Drafts, parts: &[Part]) {
        let (Some(start), Some(open)) = (drafts.start.take(), writer.open.as_mut()) else { return };
        if drafts.expire {
            self.note_drafts(open, start, parts, writer.root);
        } else {
            // Of those that do not expire each means the same for its segment.
            self.note_living(open, writer.root);
        }
        // SYNC(head): the records are complete before the head passes them.
        self.mem.store(writer.row + row::at::HEAD, open.head, Ordering::Release);
    }

    #[cold]
    #[inline(never)]
    fn note_drafts(&self, open: &mut OpenSegment, start: u64, parts: &[Part], root: u64) {
        let within = start..open.head;
        let placed = parts.iter().filter_map(|part| part.becomes.written()).filter(|draft| !draft.is_large());
        placed.filter(|draft| within.contains(&draft.offset)).for_each(|draft| self.note_draft(open, draft, root));
    }

    #[cold]
    #[inline(never)]
    fn pass_all(&self, writer: &mut Writer, drafts: &mut Drafts, parts: &[Part]) {
        drafts.is_passed = true;
        for (open, start) in &mut drafts.aside {
            self.note_drafts(open, *start, parts, writer.root);
            *start = open.head;
            let used = open.head - self.segment_offset(open.number);
            // SYNC(head): the records are complete before the head passes them.
            self.mem.store(self.entry_of(open.number) + segment::at::USED, used, Ordering::Release);
        }
        self.pass_open(writer, drafts, parts);
    }

    /// After the commit: segments that were put aside are given up for others.
    #[inline(always)]
    pub(super) fn end_drafts(&self, drafts: Drafts) {
        if !drafts.aside.is_empty() {
            self.close_aside(drafts);
        }
    }

    #[cold]
    #[inline(never)]
    fn close_aside(&self, drafts: Drafts) {
        drafts.aside.into_iter().for_each(|(open, _)| self.close_segment(&open));
    }

    /// Nothing of the drafts is left: the heads are where they were.
    pub(super) fn give_up_drafts(&self, writer: &mut Writer, drafts: Drafts, parts: &[Part]) {
        for (open, start) in drafts.aside {
            self.close_segment(&OpenSegment { head: start, ..open });
        }
        if let (Some(start), Some(open)) = (drafts.start, writer.open.as_mut()) {
            open.head = start;
        }
        parts.iter().filter_map(|part| part.becomes.written()).for_each(|draft| self.abandon(writer, draft));
    }
}
