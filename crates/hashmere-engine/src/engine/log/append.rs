//! Appending: where a writer writes its records before it commits them.

use crate::engine::client::writer_state::{Cleaning, OpenSegment};
use crate::engine::log::backing::{STEP, WHOLE_FROM};
use crate::engine::log::segments::Need;
use crate::engine::{Engine, KeyHash, Writer};
use crate::error::WriteError;
use hashmere_format::header::{at, RootWord, PAGE};
use hashmere_format::record::{Head, RecordHeader};
use hashmere_format::row;
use hashmere_format::segment::{self, Born, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Attempts to find room before a write is refused.
const ROUNDS: u32 = 64;

/// A record that is complete except for its version, and that only its writer knows yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    pub(in crate::engine) offset: u64,
    /// Its header word, with no version.
    pub(in crate::engine) word: u64,
    pub(in crate::engine) bytes: u64,
    /// Offset of the value.
    pub(crate) value: u64,
    /// Wall clock of its expiry; `u64::MAX` never.
    pub(in crate::engine) expires: u64,
    /// The least version that it is to get.
    pub(in crate::engine) least: u64,
    /// 1 if it is in segments of its own, else 0. (A word like the others: a draft is copied often, and a copy of mixed
    /// sizes waits for the stores before it.)
    pub(in crate::engine) large: u64,
}

impl Draft {
    /// Whether it is in segments of its own.
    #[inline(always)]
    pub(in crate::engine) fn is_large(&self) -> bool {
        self.large != 0
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Records above this get segments of their own, and fill at least half of them. What a shorter one leaves unused
    /// at the end of a segment is for others that fit there, if it is more than a quarter.
    pub(in crate::engine) fn is_large(&self, bytes: u64) -> bool {
        bytes > self.segment_bytes() / 2
    }

    /// The offset of this writer's next record of up to `bytes` bytes. Makes room if need be.
    #[inline(always)]
    pub(in crate::engine) fn room(&self, writer: &mut Writer, bytes: u64) -> Result<u64, WriteError> {
        if let Some(open) = &writer.open {
            if open.head + bytes <= open.ready {
                return Ok(open.head);
            }
        }
        self.make_room(writer, bytes)
    }

    /// Brings the place of this writer's next record of up to `bytes` bytes to a multiple of 16, by a *filler*: a dead
    /// record of eight bytes, without key and value. Where lengths are fixed for all records there is none so short.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn align(&self, writer: &mut Writer, bytes: u64) -> Result<(), WriteError> {
        let filler = Head { version: 1, dead: 1, ..Head::default() }.header(self.layout.lengths);
        if filler.bytes() != 8 {
            return Ok(());
        }
        let at = self.room(writer, bytes + 8)?;
        let Some(open) = writer.open.as_mut().filter(|_| at % 16 != 0) else { return Ok(()) };
        self.mem.store(at, filler.word, Ordering::Relaxed);
        open.head = at + 8;
        // SYNC(head): as in `advance`. It counts as dead only once it is passed: never more than there is.
        self.mem.store(writer.row + row::at::HEAD, open.head, Ordering::Release);
        self.mem.fetch_add(self.entry_of(open.number) + segment::at::DEAD, 8, Ordering::Release);
        writer.made_dead += 8;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn make_room(&self, writer: &mut Writer, bytes: u64) -> Result<u64, WriteError> {
        self.refuse_if_poisoned()?;
        let mut refused = None;
        let mut since = None;
        let mut rounds = 0;
        // A round either returns, or gives a segment up for one in which there is room or for which there is memory.
        while rounds < ROUNDS {
            if let Some(open) = &mut writer.open {
                if open.head + bytes <= open.ready {
                    return Ok(open.head);
                }
                if open.has_room(bytes) {
                    let whole = self.segments() >= WHOLE_FROM || open.end - open.ready <= STEP;
                    let to = if whole { open.end } else { open.end.min((open.head + bytes).next_multiple_of(STEP)) };
                    // Where there is no memory for the whole step there may be for this record.
                    for to in [to, (open.head + bytes).next_multiple_of(PAGE)] {
                        match self.back(open.ready, to - open.ready) {
                            Ok(()) => {
                                open.ready = to;
                                return Ok(open.head);
                            }
                            // No memory for this one; perhaps there is for one that was never given back.
                            Err(error @ WriteError::NoSpace(_)) => refused = Some(error),
                            Err(error) => return Err(error),
                        }
                    }
                }
                self.retire_segment(writer);
            }
            match self.find_room(writer, bytes, refused.take()) {
                Ok(()) => rounds += 1,
                Err(error) if writer.cleaning != Cleaning::No => return Err(error),
                Err(error) => self.wait_and_retry(&mut since, error)?,
            }
        }
        // Segment after segment had no memory to be put behind it.
        Err(WriteError::NoSpace(std::io::ErrorKind::StorageFull.into()))
    }

    /// Opens a claimed segment, or one that is partly filled, for this writer. Its first `ready` bytes have memory
    /// behind them.
    pub(in crate::engine) fn open_segment(&self, writer: &mut Writer, number: u64, used: u64, ready: u64) {
        let start = self.segment_offset(number);
        let head = start + used;
        let born = match used {
            0 => Born { first: self.generation_of(writer), last: 0 },
            _ => Born::unpack(self.field(number, segment::at::BORN)),
        };
        let open = OpenSegment {
            number,
            head,
            ready: start + ready,
            end: start + self.segment_bytes(),
            expire_min: self.field(number, segment::at::EXPIRE_MIN),
            expire_max: self.field(number, segment::at::EXPIRE_MAX),
            expiring: self.field(number, segment::at::EXPIRING),
            protected: writer.protects,
            first: born.first,
            born: born.last,
        };
        // Head first: a repair after us believes the head once the row names the segment.
        self.mem.store(writer.row + row::at::HEAD, head, Ordering::Relaxed);
        self.mem.store(writer.row + row::at::OPEN, number + 1, Ordering::Release);
        self.set_state(number, Word::owned(State::Open, writer.slot).protected(writer.protects));
        writer.open = Some(open);
    }

    /// The root generation under which a writer works, or will at least.
    fn generation_of(&self, writer: &Writer) -> u64 {
        let active = self.mem.load(writer.row + row::at::ACTIVE, Ordering::Relaxed);
        RootWord::unpack(if active == 0 { self.root() } else { active }).generation
    }

    /// Gives the open segment up: sealed if there is little room left, else for the next who needs room.
    pub(in crate::engine) fn retire_segment(&self, writer: &mut Writer) {
        let Some(open) = writer.open.take() else { return };
        // Its entry first: a repair believes the row as long as that names the segment.
        self.close_segment(&open);
        self.mem.store(writer.row + row::at::OPEN, 0, Ordering::Release);
    }

    /// The same for one that the row does not name.
    pub(in crate::engine) fn close_segment(&self, open: &OpenSegment) {
        self.set_field(open.number, segment::at::USED, open.head - self.segment_offset(open.number));
        // A client that touched a record in it may have been here before.
        let entry = self.entry_of(open.number);
        self.lower(entry + segment::at::EXPIRE_MIN, open.expire_min);
        self.raise(entry + segment::at::EXPIRE_MAX, open.expire_max);
        self.set_field(open.number, segment::at::EXPIRING, open.expiring);
        let born = Born { first: open.first, last: open.born };
        self.set_field(open.number, segment::at::BORN, born.pack());
        // What survives comes in small pieces: such a segment is given up as full only when it is.
        let least = self.segment_bytes() / if open.protected { 32 } else { 4 };
        let partial = open.end - open.head > least;
        let state = if partial { State::Partial } else { State::Sealed };
        self.set_state(open.number, Word::new(state).protected(open.protected));
        match (partial, open.protected) {
            (true, true) => self.mem.store(at::PROTECTED_PARTIAL, open.number + 1, Ordering::Relaxed),
            (true, false) => self.offer(open.number),
            (false, _) => {}
        }
    }

    /// Takes over a partly filled segment with room for `bytes`.
    pub(super) fn adopt(&self, writer: &mut Writer, bytes: u64) -> bool {
        if writer.protects {
            let hint = self.mem.load(at::PROTECTED_PARTIAL, Ordering::Relaxed).checked_sub(1);
            return hint.is_some_and(|number| number < self.segments() && self.adopt_one(writer, number, bytes));
        }
        for i in 0..at::FREE_RING_LEN {
            let word = at::FREE_RING + 8 * i;
            let Some(number) = self.mem.load(word, Ordering::Relaxed).checked_sub(1) else { continue };
            if number >= self.segments() || self.state(number) != Word::new(State::Partial) {
                continue;
            }
            if self.adopt_one(writer, number, bytes) {
                let _ = self.mem.compare_exchange(word, number + 1, 0);
                return true;
            }
        }
        false
    }

    /// Takes over this partly filled segment if it has room.
    pub(in crate::engine) fn adopt_one(&self, writer: &mut Writer, number: u64, bytes: u64) -> bool {
        let used = self.field(number, segment::at::USED);
        if used.saturating_add(bytes) > self.segment_bytes() || used & 7 != 0 {
            return false;
        }
        self.retire_segment(writer);
        let partial = Word::new(State::Partial).protected(writer.protects);
        let open = Word::owned(State::Open, writer.slot).protected(writer.protects);
        if !self.change_state(number, partial, open) {
            return false;
        }
        // Only now is what the entry says about it for us alone. A death here leaves a segment in our name that the row
        // does not name: then the entry counts.
        let used = self.field(number, segment::at::USED);
        if used.saturating_add(bytes) > self.segment_bytes() || used & 7 != 0 {
            self.set_state(number, partial);
            return false;
        }
        // What is backed beyond is not known: asking again costs little.
        self.open_segment(writer, number, used, used);
        true
    }

    /// Writes head and key of a record into this writer's room and returns it as a draft; the value is the
    /// caller's to write. `capacity` is how long the value may become before the commit.
    #[inline(always)]
    pub(in crate::engine) fn draft(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        head: Head,
        capacity: u64,
    ) -> Result<Draft, WriteError> {
        let header = head.header(self.layout.lengths);
        let bytes = if capacity == head.value_len {
            header.bytes()
        } else {
            Head { value_len: capacity, ..head }.record_bytes(self.layout.lengths)
        };
        if self.is_large(bytes) {
            let large = self.draft_large(writer, key, kh, Head { ..head }, bytes)?;
            return Ok(Draft { ..large });
        }
        let offset = self.room(writer, bytes)?;
        Ok(self.write_with_header(offset, key, head, header, false))
    }

    /// Writes head and key at `offset`.
    #[inline(always)]
    pub(in crate::engine) fn write_head(&self, offset: u64, key: &[u8], kh: KeyHash, head: Head, large: bool) -> Draft {
        debug_assert!(head.hash == kh.word() && head.version == 0 && head.dead == 0);
        self.write_with_header(offset, key, head, head.header(self.layout.lengths), large)
    }

    #[inline(always)]
    fn write_with_header(&self, offset: u64, key: &[u8], head: Head, header: RecordHeader, large: bool) -> Draft {
        let bytes = header.bytes();
        // The padding of the last word is zero: equal records are equal bytes.
        self.mem.store(offset + bytes - 8, 0, Ordering::Relaxed);
        let store = |word, value| self.mem.store(offset + 8 * word, value, Ordering::Relaxed);
        head.write(self.layout.lengths, header, store);
        self.mem.write(offset + header.key_at(), key);
        let value = offset + header.value_at();
        let expires = head.expires.unwrap_or(u64::MAX);
        Draft { offset, word: header.word, bytes, value, expires, least: 0, large: u64::from(large) }
    }

    /// A draft that is a copy of a whole record.
    pub(in crate::engine) fn copied(&self, offset: u64, head: &Head, bytes: u64) -> Draft {
        let expires = head.expires.unwrap_or(u64::MAX);
        Draft { offset, word: head.pack(self.layout.lengths), bytes, value: offset, expires, least: 0, large: 0 }
    }

    /// Advances the writer over a draft that is about to be committed. From here on the bytes count as a record, live
    /// or not.
    #[inline(always)]
    pub(in crate::engine) fn advance(&self, writer: &mut Writer, draft: &Draft) {
        if draft.is_large() {
            return;
        }
        let Some(open) = &mut writer.open else { return };
        open.head = draft.offset + draft.bytes;
        self.note_draft(open, draft, writer.root);
        // SYNC(head): the record is complete before the head passes it.
        self.mem.store(writer.row + row::at::HEAD, open.head, Ordering::Release);
    }

    /// Notes what a draft that does not expire, and is about to be committed, means for its segment.
    #[inline(always)]
    pub(in crate::engine) fn note_living(&self, open: &mut OpenSegment, root: u64) {
        open.born = RootWord::unpack(root).generation;
    }

    /// The same of any draft.
    #[inline(always)]
    pub(in crate::engine) fn note_draft(&self, open: &mut OpenSegment, draft: &Draft, root: u64) {
        self.note_living(open, root);
        let expires = draft.expires;
        if expires != u64::MAX {
            open.expire_min = open.expire_min.min(expires);
            open.expire_max = open.expire_max.max(expires);
            open.expiring = open.expiring.wrapping_add(draft.bytes);
            if expires < self.mem.load(at::NEXT_EXPIRY, Ordering::Relaxed) {
                self.lower(at::NEXT_EXPIRY, expires);
            }
        }
    }

    /// Finds this writer an open segment with room for `bytes`: one partly filled, one that cleaning or eviction frees,
    /// a new one. `refused` is what the file system said last, if it said no.
    fn find_room(&self, writer: &mut Writer, bytes: u64, mut refused: Option<WriteError>) -> Result<(), WriteError> {
        if refused.is_none() && self.adopt(writer, bytes) {
            return Ok(());
        }
        if writer.cleaning == Cleaning::No {
            self.clean_what_pays(writer)?;
            if writer.open.as_ref().is_some_and(|open| open.has_room(bytes)) {
                return Ok(());
            }
        }
        // What cleaning opened has no room for this: give it up by name, or it would be ours and forgotten.
        self.retire_segment(writer);
        let need = if writer.cleaning == Cleaning::Emergency { Need::Reserve } else { Need::Normal };
        if self.is_much_waiting() && writer.cleaning == Cleaning::No {
            self.sync_for_room(writer)?;
        }
        if let Some((segment, ready)) = self.claim_log(writer.slot, need, &mut refused)? {
            self.open_segment(writer, segment, 0, ready);
            return Ok(());
        }
        if writer.cleaning != Cleaning::No {
            return Err(self.full(refused));
        }
        self.make_room_in_emergency(writer, bytes, refused)
    }

    /// Claims a segment for records. Returns how much memory it has.
    pub(in crate::engine) fn claim_log(
        &self,
        slot: u32,
        need: Need,
        refused: &mut Option<WriteError>,
    ) -> Result<Option<(u64, u64)>, WriteError> {
        let bytes = self.first_step(need);
        let claimed = self.claim(slot, need, bytes, refused)?;
        if claimed.is_some() && need == Need::Normal {
            self.keep_spare(slot);
        }
        Ok(claimed.map(|segment| (segment, bytes)))
    }

    /// The error for "no room", with the cause.
    pub(in crate::engine) fn full(&self, refused: Option<WriteError>) -> WriteError {
        let max_bytes = self.segment_offset(self.segments_max());
        refused.unwrap_or(WriteError::Full { max_bytes })
    }
}
