//! Another maximum size for a store that exists: what a lower one has no room for is moved, or in a cache dropped.

use crate::engine::log::maximum::KEPT_FREE;
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use hashmere_format::segment::State;
use hashmere_mem::{Host, Mem};

/// What [`Engine::set_maximum`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resized {
    /// The store has the new maximum.
    Done,
    /// It has the one that it had: what must stay takes this many bytes.
    Needs(u64),
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Gives the store another maximum. Less than it has in use: a cache evicts, a strict store compacts; what cannot
    /// go at once, because it is pinned or open, goes when it is given back.
    pub(crate) fn set_maximum(&self, writer: &mut Writer, bytes: u64) -> Result<Resized, WriteError> {
        self.reach_file()?;
        let target = self.segments_within(bytes);
        if self.segments_in_use() > target {
            let needed = if self.layout.is_cache() { self.least_of_cache() } else { self.compact_to(writer, target)? };
            if needed > target {
                return Ok(Resized::Needs(self.segment_offset(needed)));
            }
            // Leaves never go one by one: an index for many more keys would leave no room for any.
            if self.layout.is_cache() && 2 * self.immovable() > target {
                self.clear(writer)?;
            }
        }
        let before = self.max_bytes();
        self.store_maximum(writer.slot, bytes)?;
        self.shrink(writer)?;
        if !self.layout.is_cache() && self.is_above_maximum() {
            // Other clients wrote during the shrinking, and what they wrote stays.
            self.store_maximum(writer.slot, before)?;
            return Ok(Resized::Needs(self.segment_offset(self.segments_in_use())));
        }
        Ok(Resized::Done)
    }

    /// Empties segments until no more are in use than the maximum allows, from the end of the file: rows of free
    /// segments stay possible before it.
    pub(crate) fn shrink(&self, writer: &mut Writer) -> Result<(), WriteError> {
        if !self.is_above_maximum() {
            return Ok(());
        }
        self.trim(writer.slot, None);
        self.retire_segment(writer);
        for segment in (self.segments_max()..self.segments()).rev() {
            if !self.is_above_maximum() {
                return Ok(());
            }
            match self.in_emergency(writer, |writer| self.empty_one(writer, segment)) {
                Err(WriteError::Busy { .. }) => break,
                emptied => went(emptied)?,
            };
        }
        for _ in 0..=2 * self.segments() {
            if !self.is_above_maximum() || !went(self.in_emergency(writer, |writer| self.free_one_more(writer)))? {
                break;
            }
        }
        self.retire_segment(writer);
        Ok(())
    }

    /// What is left to do of a shrinking is done by writers that need room, each of which frees a segment more than it
    /// needs.
    #[cold]
    pub(in crate::engine) fn shrink_incrementally(&self, writer: &mut Writer) -> Result<(), WriteError> {
        let before = self.offline();
        // Of a segment that is evicted half may stay.
        for _ in 0..2 * KEPT_FREE {
            if !self.is_above_maximum() || self.offline() > before || !went(self.free_one_more(writer))? {
                break;
            }
        }
        Ok(())
    }

    /// Segments of what a cache cannot do without, even if nothing is in it.
    fn least_of_cache(&self) -> u64 {
        self.count_of(&[State::Region, State::Table]) + 1 + KEPT_FREE + 1
    }

    /// Segments of what stays where it is.
    fn immovable(&self) -> u64 {
        self.count_of(&[State::Region, State::Table, State::Index])
    }

    fn count_of(&self, states: &[State]) -> u64 {
        let words = (0..self.segments()).map(|segment| self.state(segment));
        words.filter(|word| states.contains(&word.state)).map(|word| u64::from(word.length)).sum()
    }

    /// Cleans a strict store until it could do with `target` segments, or nothing more is to be gained. Returns how
    /// many it needs.
    fn compact_to(&self, writer: &mut Writer, target: u64) -> Result<u64, WriteError> {
        let needed = |engine: &Self| {
            engine.segments_in_use().saturating_sub(engine.count_of(&[State::Free, State::Hole])) + KEPT_FREE
        };
        self.retire_segment(writer);
        for _ in 0..=2 * self.segments() {
            if needed(self) <= target || !went(self.in_emergency(writer, |writer| self.free_one_more(writer)))? {
                break;
            }
        }
        self.retire_segment(writer);
        Ok(needed(self))
    }
}

/// What cannot be emptied now does not fail the call that makes a store smaller.
fn went(emptied: Result<bool, WriteError>) -> Result<bool, WriteError> {
    match emptied {
        Err(WriteError::Busy { .. }) => Ok(false),
        Err(error) if error.is_no_room() => Ok(false),
        other => other,
    }
}
