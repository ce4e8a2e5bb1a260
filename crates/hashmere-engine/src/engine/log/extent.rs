//! Rows of segments, for records and directory chunks that need several side by side: found free, or
//! added to the file.

use crate::engine::client::writer_state::Cleaning;
use crate::engine::log::segments::{Memory, Need, RESERVE};
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::PAGE;
use hashmere_format::segment::{State, Word};
use hashmere_mem::{Host, Mem};

/// Segments in a row, claimed.
pub(in crate::engine) struct Run {
    pub(in crate::engine) first: u64,
    pub(in crate::engine) n: u64,
    /// Those of them that were holes, in order: nothing is known of the memory behind them.
    pub(in crate::engine) holes: Vec<u64>,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Claims `n` segments in a row with memory behind them, the first in state "large, new".
    pub(super) fn claim_run(&self, writer: &mut Writer, n: u64) -> Result<u64, WriteError> {
        // One is the index's. What the store can never hold is refused before anything is cleaned, evicted or added for it.
        if n >= self.segments_max() {
            return Err(self.full(None));
        }
        let first = self.patiently(writer.cleaning, || self.claim_run_now(writer, n))?;
        // Only now: a repair after our death reads what a new large record has.
        self.join(first, n, Word::owned(State::LargeNew, writer.slot));
        self.keep_spare(writer.slot);
        Ok(first)
    }

    /// Makes one extent of `n` segments that its owner has claimed, each on its own.
    ///
    /// The first comes first: at a death in between it says how many are freed with it, and a segment that is claimed yet is
    /// freed by name, before or after it.
    pub(in crate::engine) fn join(&self, first: u64, n: u64, word: Word) {
        self.set_state(first, word.long(n as u32));
        if !fault::is(Fault::TailUnjoined) {
            (1..n).for_each(|tail| self.set_state(first + tail, Word::new(State::Tail)));
        }
    }

    fn claim_run_now(&self, writer: &mut Writer, n: u64) -> Result<u64, WriteError> {
        let mut refused = None;
        let mut run = self.find_run(writer.slot, n, &mut refused)?;
        if run.is_none() && writer.cleaning == Cleaning::No {
            run = self.make_run(writer, n, &mut refused)?;
        }
        if run.is_none() && self.forget_refusal() {
            run = self.find_run(writer.slot, n, &mut refused)?;
        }
        run.ok_or_else(|| self.full(refused))
    }

    /// Claims `n` segments in a row, and puts memory behind them: free ones, then holes among them, then new ones.
    pub(in crate::engine) fn find_run(
        &self,
        slot: u32,
        n: u64,
        refused: &mut Option<WriteError>,
    ) -> Result<Option<u64>, WriteError> {
        if let Some(run) = self.vacant_run(slot, n, refused) {
            return Ok(self.back_run(run, slot, refused));
        }
        if let Some(error) = self.foreseen(Need::Normal, n * self.segment_bytes()) {
            *refused = Some(error);
            return Ok(None);
        }
        let Some(first) = self.grow(slot, n, Need::Normal, refused) else { return Ok(None) };
        Ok(self.back_run(Run { first, n, holes: (first..first + n).collect() }, slot, refused))
    }

    /// Puts memory behind segments that are claimed, each on its own. Without it they are what they were.
    pub(in crate::engine) fn back_run(&self, run: Run, slot: u32, refused: &mut Option<WriteError>) -> Option<u64> {
        let bytes = (run.n * self.segment_bytes()).next_multiple_of(PAGE);
        let Err(error) = self.back(self.segment_offset(run.first), bytes) else {
            if !run.holes.is_empty() {
                self.note_given();
            }
            return Some(run.first);
        };
        self.undo_run(&run, slot);
        *refused = Some(error);
        None
    }

    pub(in crate::engine) fn undo_run(&self, run: &Run, slot: u32) {
        for segment in run.first..run.first + run.n {
            if run.holes.binary_search(&segment).is_ok() {
                self.undo_claim(segment);
            } else {
                self.free(segment, 1, slot, Memory::Most);
            }
        }
    }

    /// Claims a row of segments that hold nothing: all free if there is such a row besides the reserve, else with holes among them. Then
    /// the file system must have memory for these, and for what it takes of the reserve.
    fn vacant_run(&self, slot: u32, n: u64, refused: &mut Option<WriteError>) -> Option<Run> {
        let free = self.free_segments();
        if free >= n + RESERVE {
            let row = self.row_of(n, |state| state == State::Free);
            let run = row.and_then(|first| self.take_row(first, n, slot));
            if run.is_some() {
                return run;
            }
        }
        let growth = self.segments_max().saturating_sub(self.segments());
        if self.first_hole(n) >= self.segments() || self.vacant() + growth < n + RESERVE {
            return None;
        }
        let first = self.row_of(n, |state| matches!(state, State::Free | State::Hole))?;
        let holes = (first..first + n).filter(|segment| self.state(*segment).state == State::Hole).count() as u64;
        let spent = RESERVE.saturating_sub((free + holes).saturating_sub(n));
        if let Some(error) = self.foreseen(Need::Normal, (holes + spent) * self.segment_bytes()) {
            *refused = Some(error);
            return None;
        }
        self.take_row(first, n, slot)
    }

    /// The first of `n` segments in a row whose states are all of this kind.
    pub(in crate::engine) fn row_of(&self, n: u64, is_one: impl Fn(State) -> bool) -> Option<u64> {
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
    pub(in crate::engine) fn take_row(&self, first: u64, n: u64, slot: u32) -> Option<Run> {
        let mut run = Run { first, n: 0, holes: Vec::new() };
        for segment in first..first + n {
            if self.take_vacant(segment, State::Hole, slot) {
                run.holes.push(segment);
            } else if !self.take_vacant(segment, State::Free, slot) {
                self.undo_run(&run, slot);
                return None;
            }
            run.n += 1;
        }
        Some(run)
    }
}
