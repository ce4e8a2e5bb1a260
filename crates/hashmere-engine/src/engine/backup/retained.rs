//! Marks of what a backup wants: finding them, and taking them off.
//!
//! A record is marked as kept under its key's lock, before it is superseded. Once no writer marks any more, a backup
//! walks all segments, has each kept record copied, and takes the mark off.

use crate::engine::client::stalled::LOOK;
use crate::engine::log::pin::Pin;
use crate::engine::log::records::Record;
use crate::engine::{Engine, Writer};
use crate::error::{BackupError, WriteError};
use hashmere_format::record::{field, Head};
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// What is done with a kept record that cannot change: its offset, its head, the offset of its key.
pub(super) type Take<'a> = dyn FnMut(u64, &Head, u64) -> Result<(), BackupError> + 'a;

/// A segment that cannot be reused while it is looked at.
struct Pinned {
    pin: Pin,
    /// Bytes of whole records in it.
    used: u64,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Takes every mark off, after `take` has seen its record. The caller has a snapshot and has waited until no writer
    /// marks any more.
    pub(super) fn take_marks(&self, writer: &mut Writer, take: &mut Take<'_>) -> Result<(), BackupError> {
        self.in_reach(|| self.take_all_marks(writer, take))?
    }

    fn take_all_marks(&self, writer: &mut Writer, take: &mut Take<'_>) -> Result<(), BackupError> {
        let mut segment = 0;
        while segment < self.segments() {
            if let Some(pinned) = self.pin_records(writer, segment)? {
                let taken = self.take_marks_in(writer, segment, pinned.used, take);
                self.unpin(pinned.pin);
                taken?;
            }
            segment += 1;
        }
        Ok(())
    }

    fn take_marks_in(
        &self,
        writer: &mut Writer,
        segment: u64,
        used: u64,
        take: &mut Take<'_>,
    ) -> Result<(), BackupError> {
        for Record { offset, header } in self.records_with_large(segment, used) {
            if self.is_retained(offset) {
                let (head, key) = (self.head_at(offset, header), offset + header.key_at());
                take(offset, &head, key)?;
                self.unmark(writer, offset, &head, key)?;
            }
        }
        Ok(())
    }

    /// Pins a segment of records, or takes it, as its state allows. `None`: no kept record is in it.
    fn pin_records(&self, writer: &Writer, segment: u64) -> Result<Option<Pinned>, BackupError> {
        let start = self.host.monotonic();
        for looks in 0u64.. {
            let Some(pin) = self.raise_pin(writer.row, segment) else {
                return Err(WriteError::InvalidState("this thread holds too many views to make a backup").into());
            };
            // SYNC(pin): as a view does. Taking a segment to free it comes before looking at its pins.
            self.mem.fence(Ordering::SeqCst);
            let word = self.state(segment);
            let used = match word.state {
                State::Sealed | State::Partial | State::PendingFree | State::Large => {
                    Some(self.field(segment, segment::at::USED))
                }
                State::Open => self.used_of_open(segment, word),
                State::Cleaning => None,
                // Claimed or filled again: its former content was not to be kept. (Regions hold no records.)
                State::Free
                | State::Hole
                | State::Claimed
                | State::LargeNew
                | State::Index
                | State::Tail
                | State::Table
                | State::Region
                | State::Offline => {
                    self.unpin(pin);
                    return Ok(None);
                }
            };
            if let Some(used) = used {
                return Ok(Some(Pinned { pin, used }));
            }
            self.unpin(pin);
            self.await_owner(segment, word, start, looks)?;
        }
        Ok(None)
    }

    /// How far an open segment is filled; `None`: it is not open any more.
    fn used_of_open(&self, segment: u64, word: Word) -> Option<u64> {
        let owner = word.owner.checked_sub(1).filter(|owner| *owner < hashmere_format::header::limit::CLIENTS)?;
        let row = row::offset(owner);
        // SYNC(head): the records before it are whole.
        let head = self.mem.load(row + row::at::HEAD, Ordering::Acquire);
        let still = self.mem.load(row + row::at::OPEN, Ordering::Acquire) == segment + 1 && self.state(segment) == word;
        let start = self.segment_offset(segment);
        (still && (start..=start + self.segment_bytes()).contains(&head)).then(|| head - start)
    }

    /// Another client owns the segment for a moment.
    fn await_owner(&self, segment: u64, word: Word, start: std::time::Duration, looks: u64) -> Result<(), WriteError> {
        if looks < u64::from(M::SPINS) {
            self.mem.relax();
            return Ok(());
        }
        let Some(owner) = word.owner.checked_sub(1).filter(|o| *o < hashmere_format::header::limit::CLIENTS) else {
            return Err(WriteError::Corrupt {
                what: "a segment in state cleaning has no owner",
                offset: self.entry_of(segment),
            });
        };
        if self.recover_if_dead(owner)? {
            return Ok(());
        }
        let waited = self.host.monotonic().saturating_sub(start);
        if waited >= self.access.busy_timeout {
            return Err(self.busy(owner, waited));
        }
        self.mem.wait(self.entry_of(segment) + segment::at::STATE, word.pack() as u32, LOOK);
        Ok(())
    }

    /// Takes the mark off. No writer writes the head of a dead record; that of a live one belongs to the holder of its
    /// key's lock.
    fn unmark(&self, writer: &mut Writer, record: u64, head: &Head, key: u64) -> Result<(), WriteError> {
        if head.dead != 0 {
            self.unmark_word(record);
            return Ok(());
        }
        let mut name = std::mem::take(&mut writer.key);
        name.clear();
        self.mem.append_to(key, head.key_len as usize, &mut name);
        let kh = self.hash_of(head, &name);
        writer.key = name;
        let locked = loop {
            let root = self.enter(writer);
            match self.lock_key(writer, root, kh.hash) {
                Ok(Some(locked)) => break Ok(locked),
                Ok(None) => {}
                Err(error) => break Err(error),
            }
        };
        if let Ok((place, word)) = locked {
            self.unmark_word(record);
            self.unlock_bucket(writer, place, word);
        }
        self.mem.store(writer.row + row::at::ACTIVE, 0, Ordering::Release);
        locked.map(|_| ())
    }

    fn unmark_word(&self, record: u64) {
        let mut word = self.mem.load(record, Ordering::Relaxed);
        while let Err(now) = self.mem.compare_exchange(record, word, word & !field::RETAINED) {
            word = now;
        }
    }
}
