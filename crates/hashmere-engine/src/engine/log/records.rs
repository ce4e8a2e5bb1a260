//! The records of a segment, one behind the other, and the bounds that keep a reader of them inside.
//!
//! A segment is filled from its start without gaps, so a record's header says where the next one begins. Two checks
//! make that safe on damaged bytes, and all code that reads records goes through them: [`Engine::header`] takes nothing
//! for a record whose lengths lead out of its segment (or of the store, for a large one), and [`Records`] ends at a
//! record without a version (it was not committed) or beyond what is in use.

use crate::engine::Engine;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::record::{Head, RecordHeader};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// A record of a segment: its offset, and the header that it had when the iterator passed it.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Record {
    pub(in crate::engine) offset: u64,
    pub(in crate::engine) header: RecordHeader,
}

impl Record {
    /// Offset of its key.
    #[inline(always)]
    pub(in crate::engine) fn key(&self) -> u64 {
        self.offset + self.header.key_at()
    }

    /// Bytes of the whole record.
    #[inline(always)]
    pub(in crate::engine) fn bytes(&self) -> u64 {
        self.header.bytes()
    }
}

/// Iterates over the records of a segment. Each header is read once, before its record is handed out.
pub(in crate::engine) struct Records<'a, M: Mem, H: Host> {
    engine: &'a Engine<M, H>,
    start: u64,
    next: u64,
    end: u64,
    /// Whether the first one may go on behind the segment.
    with_large: bool,
}

impl<M: Mem, H: Host> Records<'_, M, H> {
    /// Offset behind the last record that was handed out.
    #[inline(always)]
    pub(in crate::engine) fn offset(&self) -> u64 {
        self.next
    }
}

impl<M: Mem, H: Host> Iterator for Records<'_, M, H> {
    type Item = Record;

    #[inline(always)]
    fn next(&mut self) -> Option<Record> {
        if self.next >= self.end {
            return None;
        }
        let record = Record { offset: self.next, header: self.engine.header(self.next)? };
        let bytes = record.bytes();
        let fits = bytes <= self.end - self.next;
        let is_large = || self.with_large && self.next == self.start && self.engine.is_large(bytes);
        if record.header.version() == 0 || !(fits || is_large()) {
            return None;
        }
        self.next += bytes;
        Some(record)
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// The records in the first `used` bytes of a segment.
    #[inline(always)]
    pub(in crate::engine) fn records(&self, segment: u64, used: u64) -> Records<'_, M, H> {
        let start = self.segment_offset(segment);
        let end = start + used.min(self.segment_bytes());
        Records { engine: self, start, next: start, end, with_large: false }
    }

    /// The same, or the large record that begins there.
    pub(in crate::engine) fn records_with_large(&self, segment: u64, used: u64) -> Records<'_, M, H> {
        Records { with_large: true, ..self.records(segment, used) }
    }

    /// The header of a record; `None` if it cannot be one: its lengths do not fit its place.
    #[inline(always)]
    pub(in crate::engine) fn header(&self, record: u64) -> Option<RecordHeader> {
        if !self.is_inside_if_aligned(record) {
            return None;
        }
        let word = self.mem.load(record, Ordering::Relaxed);
        if let Some(small) = RecordHeader::small(self.layout.lengths, word) {
            let first = record - at::DATA;
            // Its first and its last byte are of one segment. Where lengths are fixed they may be those of a large
            // record.
            if (first ^ (first + small.lead + small.key_len + small.value_len - 1)) < self.segment_bytes() {
                return Some(small);
            }
        }
        let room = self.segment_bytes() - ((record - at::DATA) & (self.segment_bytes() - 1));
        // Two words come back in registers; a header would pass through memory, and the small ones with it.
        let (lead, lens) = self.long_header(record, word, room);
        (lead != 0).then_some(RecordHeader::new(word, lead, lens & u64::from(u32::MAX), lens >> 32))
    }

    /// Bytes before the key of a record with further words, and both lengths (the value's above); zero if it cannot be
    /// one.
    #[inline(never)]
    fn long_header(&self, record: u64, word: u64, room: u64) -> (u64, u64) {
        let header = RecordHeader::read(self.layout.lengths, word, |index| {
            // Only the last words of a segment can be reached here, and only by a damaged or torn record.
            if 8 * index + 8 <= room {
                self.mem.load(record + 8 * index, Ordering::Relaxed)
            } else {
                u64::MAX
            }
        });
        let bytes = header.bytes();
        let large = room == self.segment_bytes() && self.is_inside(record, bytes);
        if bytes <= room || large {
            (header.lead, header.key_len | header.value_len << 32)
        } else {
            (0, 0)
        }
    }

    /// Reads a record's whole head, and where its key is; `None` if it cannot be a record.
    pub(in crate::engine) fn parse(&self, record: u64) -> Option<(Head, u64)> {
        let header = self.header(record)?;
        Some((self.head_at(record, header), record + header.key_at()))
    }

    /// Whether a record has not been replaced in place since its header was loaded. An acquire fence lies between what
    /// was copied and this.
    #[inline(always)]
    pub(in crate::engine) fn validate_header(&self, record: u64, header: RecordHeader) -> bool {
        // SYNC(in place): if a word that was copied came with a replacement, the load sees that one's header or a
        // later one. The mark of a record that was superseded says nothing of its value, and sends few on another way.
        !header.is_value_first()
            || self.mem.load(record, Ordering::Relaxed) == header.word
            || fault::is(Fault::HeaderBelieved)
    }

    /// Where the value of a record is, given its head and where its key is.
    pub(in crate::engine) fn value_of_key(&self, head: &Head, key: u64) -> u64 {
        let header = head.header(self.layout.lengths);
        key - header.key_at() + header.value_at()
    }

    pub(in crate::engine) fn head_at(&self, record: u64, header: RecordHeader) -> Head {
        header.head(|index| self.mem.load(record + 8 * index, Ordering::Relaxed))
    }
}
