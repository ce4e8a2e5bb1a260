//! Reading the history, beside the drainer that writes it.

use crate::error::LogError;
use crate::fault::{self, Fault};
use crate::layout::{at, line, Head, LogCore, POSITION};
use crate::line::LogLine;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// The entry at a position of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A line; the next one begins here.
    Line(u64),
    /// Nothing yet.
    End,
    /// It was written over: this is the oldest position that is left.
    Gone(u64),
}

impl<M: Mem> LogCore<'_, M> {
    fn len_at(&self, position: u64) -> u64 {
        let span = self.history();
        let head = Head::unpack(self.mem.load(span.at(position), Ordering::Relaxed));
        let rest = span.rest(position);
        let len = line::MERGED_PAYLOAD + head.payload.next_multiple_of(8);
        if head.is_filler() {
            rest
        } else {
            len.min(rest)
        }
    }

    /// The position behind the entry at a position. For the drainer: no other thread changes the history.
    pub(crate) fn after(&self, position: u64) -> u64 {
        position + self.len_at(position)
    }

    /// Reads the first line from `position` on.
    pub(crate) fn read_line(&self, position: u64, record: &mut LogLine) -> Result<Found, LogError> {
        let span = self.history();
        let mut position = position & POSITION;
        loop {
            // In this order: the oldest line goes before there are new ones, so they are never further apart.
            // SYNC(end): pairs with the release store in `apply`.
            let end = self.position(at::END);
            let oldest = self.position(at::OLDEST);
            if end.saturating_sub(oldest) > span.bytes {
                return Err(LogError::damaged("the history of a log contradicts itself", self.base));
            }
            if position < oldest {
                return Ok(Found::Gone(oldest));
            }
            if position >= end {
                return Ok(Found::End);
            }
            let start = span.at(position);
            let head = Head::unpack(self.mem.load(start + line::HEAD, Ordering::Relaxed));
            let fits = line::MERGED_PAYLOAD + head.payload <= span.rest(position);
            if !head.is_filler() && fits {
                self.copy_line(start, head, record);
                record.position = position;
            }
            // SYNC(oldest): unless it has moved past the line, what was read was whole.
            self.mem.fence(Ordering::Acquire);
            if self.position(at::OLDEST) > position && !fault::is(Fault::OldestUnchecked) {
                continue;
            }
            if head.is_filler() {
                position += span.rest(position);
            } else if fits {
                return Ok(Found::Line(position + line::MERGED_PAYLOAD + head.payload.next_multiple_of(8)));
            } else {
                return Err(LogError::damaged("a line of a log ends outside of it", start));
            }
        }
    }

    fn copy_line(&self, start: u64, head: Head, record: &mut LogLine) {
        let word = |at: u64| self.mem.load(start + at, Ordering::Relaxed);
        record.take_head(head);
        record.time_ns = word(line::STAMP);
        record.who = word(line::WHO);
        record.name[..8].copy_from_slice(&word(line::NAME).to_le_bytes());
        record.name[8..].copy_from_slice(&word(line::NAME + 8).to_le_bytes());
        record.lost = word(line::LOST) as u32;
        record.payload.clear();
        self.mem.append_to(start + line::MERGED_PAYLOAD, head.payload as usize, &mut record.payload);
    }
}
