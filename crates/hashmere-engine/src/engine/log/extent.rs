//! Extents: adjacent segments, for records and directory chunks that need several side by side: found free, or
//! added to the file.

use crate::engine::client::writer_state::Cleaning;
use crate::engine::log::segments::{Memory, Need, RESERVE};
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::PAGE;
use hashmere_format::segment::{State, Word};
use hashmere_mem::{Host, Mem};

/// Adjacent segments, claimed.
pub(in crate::engine) struct Extent {
    pub(in crate::engine) first: u64,
    pub(in crate::engine) n: u64,
    /// Those of them that were holes, in order: nothing is known of the memory behind them.
    pub(in crate::engine) holes: Vec<u64>,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Claims `n` adjacent segments with memory behind them, the first in state "large, new".
    pub(super) fn claim_extent(&self, writer: &mut Writer, n: u64) -> Result<u64, WriteError> {
        // One is the index's. What the store can never hold is refused before anything is cleaned, evicted or added for
        // it.
        if n >= self.segments_max() {
            return Err(self.full(None));
        }
        let first = self.patiently(writer.cleaning, || self.claim_extent_now(writer, n))?;
        // Only now: a repair after our death reads what a new large record has.
        self.join(first, n, Word::owned(State::LargeNew, writer.slot));
        self.keep_spare(writer.slot);
        Ok(first)
    }

    /// Makes one extent of `n` segments that its owner has claimed, each on its own.
    ///
    /// The first comes first: at a death in between it says how many are freed with it, and a segment that is claimed
    /// yet is freed by name, before or after it.
    pub(in crate::engine) fn join(&self, first: u64, n: u64, word: Word) {
        self.set_state(first, word.long(n as u32));
        if !fault::is(Fault::TailUnjoined) {
            (1..n).for_each(|tail| self.set_state(first + tail, Word::new(State::Tail)));
        }
    }

    fn claim_extent_now(&self, writer: &mut Writer, n: u64) -> Result<u64, WriteError> {
        let mut refused = None;
        let mut extent = self.find_extent(writer.slot, n, &mut refused)?;
        if extent.is_none() && writer.cleaning == Cleaning::No {
            extent = self.make_extent(writer, n, &mut refused)?;
        }
        if extent.is_none() && self.forget_refusal() {
            extent = self.find_extent(writer.slot, n, &mut refused)?;
        }
        extent.ok_or_else(|| self.full(refused))
    }

    /// Claims `n` adjacent segments, and puts memory behind them: free ones, then holes among them, then new ones.
    pub(in crate::engine) fn find_extent(
        &self,
        slot: u32,
        n: u64,
        refused: &mut Option<WriteError>,
    ) -> Result<Option<u64>, WriteError> {
        if let Some(extent) = self.vacant_extent(slot, n, refused) {
            return Ok(self.back_extent(extent, slot, refused));
        }
        if let Some(error) = self.foreseen(Need::Normal, n * self.segment_bytes()) {
            *refused = Some(error);
            return Ok(None);
        }
        let Some(first) = self.grow(slot, n, Need::Normal, refused) else { return Ok(None) };
        Ok(self.back_extent(Extent { first, n, holes: (first..first + n).collect() }, slot, refused))
    }

    /// Puts memory behind segments that are claimed, each on its own. Without it they are what they were.
    pub(in crate::engine) fn back_extent(
        &self,
        extent: Extent,
        slot: u32,
        refused: &mut Option<WriteError>,
    ) -> Option<u64> {
        let bytes = (extent.n * self.segment_bytes()).next_multiple_of(PAGE);
        let Err(error) = self.back(self.segment_offset(extent.first), bytes) else {
            if !extent.holes.is_empty() {
                self.note_given();
            }
            return Some(extent.first);
        };
        self.undo_extent(&extent, slot);
        *refused = Some(error);
        None
    }

    pub(in crate::engine) fn undo_extent(&self, extent: &Extent, slot: u32) {
        for segment in extent.first..extent.first + extent.n {
            if extent.holes.binary_search(&segment).is_ok() {
                self.undo_claim(segment);
            } else {
                self.free(segment, 1, slot, Memory::Most);
            }
        }
    }

    /// Claims `n` adjacent segments that hold nothing: all free if there are such besides the reserve, else with holes
    /// among them. Then the file system must have memory for these, and for what it takes of the reserve.
    fn vacant_extent(&self, slot: u32, n: u64, refused: &mut Option<WriteError>) -> Option<Extent> {
        let free = self.free_segments();
        if free >= n + RESERVE {
            let first = self.adjacent(n, |state| state == State::Free);
            let extent = first.and_then(|first| self.take_adjacent(first, n, slot));
            if extent.is_some() {
                return extent;
            }
        }
        let growth = self.segments_max().saturating_sub(self.segments());
        if self.first_hole(n) >= self.segments() || self.vacant() + growth < n + RESERVE {
            return None;
        }
        let first = self.adjacent(n, |state| matches!(state, State::Free | State::Hole))?;
        let holes = (first..first + n).filter(|segment| self.state(*segment).state == State::Hole).count() as u64;
        let spent = RESERVE.saturating_sub((free + holes).saturating_sub(n));
        if let Some(error) = self.foreseen(Need::Normal, (holes + spent) * self.segment_bytes()) {
            *refused = Some(error);
            return None;
        }
        self.take_adjacent(first, n, slot)
    }

    /// The first of `n` adjacent segments whose states are all of this kind.
    pub(in crate::engine) fn adjacent(&self, n: u64, is_one: impl Fn(State) -> bool) -> Option<u64> {
        let mut first = 0;
        while first + n <= self.segments() {
            let fits = (first..first + n).take_while(|segment| is_one(self.state(*segment).state)).count() as u64;
            if fits == n {
                return Some(first);
            }
            first += fits + 1;
        }
        None
    }

    /// Takes free segments and holes.
    pub(in crate::engine) fn take_adjacent(&self, first: u64, n: u64, slot: u32) -> Option<Extent> {
        let mut extent = Extent { first, n: 0, holes: Vec::new() };
        for segment in first..first + n {
            if self.take_vacant(segment, State::Hole, slot) {
                extent.holes.push(segment);
            } else if !self.take_vacant(segment, State::Free, slot) {
                self.undo_extent(&extent, slot);
                return None;
            }
            extent.n += 1;
        }
        Some(extent)
    }
}
