//! Growth: more segments at the end of the file.
//!
//! What takes long, asking the kernel for addresses and for memory, comes before the space lock. The lock is then held
//! for a few stores, and a client is rarely stopped there. The others do not wait for it for long: a claim that finds
//! the space lock stalled fails like one that the file system refuses, and its caller makes do with the file as it is,
//! by cleaning or evicting. Only where that gives nothing does the call wait for as long as a writer waits for any lock
//! ([`Engine::patiently`]).

use crate::engine::back_error;
use crate::engine::client::stalled::LOCK_WAIT;
use crate::engine::log::segments::{Need, RESERVE};
use crate::engine::Engine;
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::{at, PAGE};
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word, CHUNK_BYTES, CHUNK_ENTRIES};
use hashmere_mem::{Host, Mem, BLOCK};
use std::sync::atomic::Ordering;

/// From this size on the file grows by whole blocks: large pages halve the time of a look-up in a large table, and a
/// small store stays small.
const BLOCKS_FROM: u64 = 16 << 20;
/// When the file has this segment, the rows of `ROWS_READY` clients get their memory.
const ROWS_FROM: u64 = 8;
const ROWS_READY: u64 = 64;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Appends `n` segments to the file and claims them, each on its own, with no memory behind them. `None`: the
    /// maximum does not allow it, or the reason is in `refused`.
    pub(in crate::engine) fn grow(
        &self,
        slot: u32,
        n: u64,
        need: Need,
        refused: &mut Option<WriteError>,
    ) -> Option<u64> {
        self.try_grow(slot, n, need).unwrap_or_else(|error| {
            *refused = Some(error);
            None
        })
    }

    fn try_grow(&self, slot: u32, n: u64, need: Need) -> Result<Option<u64>, WriteError> {
        // A process that cannot reach what others grew has nothing to count from.
        self.reach_file()?;
        // One number of segments for what is allowed and for what is asked for: others may grow the file in between.
        let ready = self.segments();
        let Some(max) = self.room_to_grow(ready, n, need) else { return Ok(None) };
        if self.missing_chunk(ready, n).is_none() {
            self.back_growth(ready, n, max)?;
        }
        self.lock_space(slot)?;
        let grown = self.grow_locked(slot, n, need, ready);
        self.release_global(at::SPACE_LOCK);
        if grown.as_ref().is_ok_and(|first| first.is_some_and(|first| (first..first + n).contains(&ROWS_FROM))) {
            // For clients that come when the file system is full. Without memory now, they are refused as they come.
            let _ = self.mem.back(at::CLIENTS, row::BYTES * ROWS_READY);
        }
        grown
    }

    /// Takes the space lock, unless it is stalled.
    fn lock_space(&self, slot: u32) -> Result<(), WriteError> {
        // A repair acts under the slot of the crashed owner, which may have died with this very lock.
        if self.holds(slot, at::SPACE_LOCK) {
            return Ok(());
        }
        let taken = self.acquire_soon(slot, at::SPACE_LOCK, LOCK_WAIT)?;
        taken.map_err(|blocked| self.busy(blocked.owner, blocked.waited))?;
        self.forget_stalled(at::SPACE_LOCK);
        Ok(())
    }

    /// The most segments that there may be, if `n` more than `total` are within it.
    fn room_to_grow(&self, total: u64, n: u64, need: Need) -> Option<u64> {
        let max = self.segments_max();
        // The reserve may be free segments, holes, or growth that is still possible.
        let reserved = need == Need::Normal && !fault::is(Fault::ReserveSpent);
        let floor = if !reserved || max.saturating_sub(total) > n + RESERVE {
            0
        } else {
            RESERVE.saturating_sub(self.vacant())
        };
        Some(max).filter(|max| total + n + floor <= *max)
    }

    /// With the space lock. All that `n` segments after the first `ready` need has been asked for, unless their chunk
    /// of the table is missing.
    fn grow_locked(&self, slot: u32, n: u64, need: Need, ready: u64) -> Result<Option<u64>, WriteError> {
        self.reach_file()?;
        let total = self.segments();
        let Some(max) = self.room_to_grow(total, n, need) else { return Ok(None) };
        if total != ready || self.missing_chunk(total, n).is_some() {
            self.extend_table(n, max)?;
            if self.segments() + n > max {
                return Ok(None);
            }
            self.back_growth(self.segments(), n, max)?;
        }
        let total = self.segments();
        (total..total + n).for_each(|segment| self.init_entry(segment, Word::owned(State::Claimed, slot)));
        self.mem.store(at::SEGMENTS, total + n, Ordering::Release);
        Ok(Some(total))
    }

    /// Asks for what the `n` segments after the first `total` need to be counted: entries with memory, addresses, and a
    /// file that reaches to their end, for a reader of a torn length stays within it.
    fn back_growth(&self, total: u64, n: u64, max: u64) -> Result<(), WriteError> {
        (total..total + n)
            .filter(|s| *s == total || s % (PAGE / segment::BYTES) == 0)
            .try_for_each(|s| self.back_entry(s))?;
        let needed = self.segment_offset(total + n);
        if !self.mem.extend(needed) {
            return Err(WriteError::AddressSpace { needed, limit: self.mem.address_limit(needed) });
        }
        self.back_blocks(total, n, max);
        self.back(needed - PAGE, PAGE)
    }

    /// In a larger store, memory comes in blocks: each that begins in these `n` new segments is asked for whole.
    fn back_blocks(&self, total: u64, n: u64, max: u64) {
        let start = self.segment_offset(total).max(BLOCKS_FROM);
        let (end, limit) = (self.segment_offset(total + n), self.segment_offset(max));
        let blocks = (start.next_multiple_of(BLOCK)..end).step_by(BLOCK as usize);
        blocks.filter(|block| block + BLOCK <= limit).for_each(|block| self.mem.back_block(block));
    }

    /// Writes the entry of a segment that does not exist yet.
    fn init_entry(&self, segment: u64, word: Word) {
        let entry = self.new_entry(segment);
        self.mem.store(entry + segment::at::EXPIRE_MIN, u64::MAX, Ordering::Relaxed);
        self.mem.store(entry + segment::at::STATE, word.pack(), Ordering::Release);
    }

    /// The pointer of a chunk of the table that the `n` segments after the first `total` need, and that is not there.
    fn missing_chunk(&self, total: u64, n: u64) -> Option<u64> {
        let chunks = total / CHUNK_ENTRIES..=(total + n - 1) / CHUNK_ENTRIES;
        chunks.map(|chunk| at::CHUNKS + 8 * chunk).find(|pointer| !self.is_chunk(*pointer, total))
    }

    /// Makes sure that the next `n` segments have entries. A chunk of the table beyond the first takes segments of its
    /// own, just before the segments that need it; its own entries may be in itself.
    fn extend_table(&self, n: u64, max: u64) -> Result<(), WriteError> {
        loop {
            let total = self.segments();
            let Some(pointer) = self.missing_chunk(total, n) else { return Ok(()) };
            let start = self.segment_offset(total);
            // One with entries that count already cannot be missing; a new one each time would take the whole disk.
            if total % CHUNK_ENTRIES != 0 && pointer == at::CHUNKS + 8 * (total / CHUNK_ENTRIES) {
                return Err(lost_chunk(pointer));
            }
            let own = CHUNK_BYTES.div_ceil(self.segment_bytes());
            if total + own + n > max {
                return Err(WriteError::Full { max_bytes: self.mem.load(at::MAX_BYTES, Ordering::Relaxed) });
            }
            if let Err(error) = self.back(start, own * self.segment_bytes()) {
                self.mem.unback(start, own * self.segment_bytes());
                return Err(error);
            }
            // A process that died here may have left anything, the pointer included: it counts only once its segment
            // does.
            self.mem.zero(start, CHUNK_BYTES);
            self.mem.store(pointer, start, Ordering::Release);
            for i in 0..own {
                let word = if i == 0 { Word::new(State::Table).long(own as u32) } else { Word::new(State::Tail) };
                self.back_entry(total + i)?;
                self.init_entry(total + i, word);
            }
            self.mem.store(at::SEGMENTS, total + own, Ordering::Release);
            if !self.is_chunk(pointer, total + own) {
                return Err(lost_chunk(pointer));
            }
        }
    }

    /// Whether a pointer of the table leads to a chunk: to a segment that counts as one.
    fn is_chunk(&self, pointer: u64, total: u64) -> bool {
        let chunk = self.mem.load(pointer, Ordering::Acquire);
        let start = self.segment_offset(total);
        chunk == at::CHUNK_0
            || chunk >= at::DATA
                && chunk % PAGE == 0
                && chunk.checked_add(CHUNK_BYTES).is_some_and(|end| end <= start)
                && self.state(self.segment_of(chunk)).state == State::Table
    }

    fn back_entry(&self, segment: u64) -> Result<(), WriteError> {
        self.mem.back(self.new_entry(segment) & !(PAGE - 1), PAGE).map_err(back_error)
    }

    /// The offset of the entry of a segment that does not count yet; its chunk need not either. What a damaged pointer
    /// leads to is not touched.
    fn new_entry(&self, segment: u64) -> u64 {
        let chunk = self.mem.load(at::CHUNKS + 8 * (segment / CHUNK_ENTRIES), Ordering::Acquire) & !7;
        let entry = chunk.saturating_add(segment % CHUNK_ENTRIES * segment::BYTES);
        let fits = entry.checked_add(segment::BYTES).is_some_and(|end| end <= self.mem.size().min(self.mem.capacity()));
        if fits {
            entry
        } else {
            at::CHUNK_0
        }
    }
}

fn lost_chunk(offset: u64) -> WriteError {
    WriteError::Corrupt { what: "the segment table has lost a chunk", offset }
}
