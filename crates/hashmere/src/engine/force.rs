//! Making room when there is none: by cleaning or evicting, if need be into the reserve, one lane at a time.

use super::clean::{Cleaning, Policy};
use super::index::Tree;
use super::segments::{Need, RESERVE};
use super::{Engine, Lane};
use crate::error::WriteError;
use hashmere_format::header::at;
use hashmere_format::segment::{self, State};
use hashmere_mem::{Host, Mem};

impl<M: Mem, H: Host> Engine<M, H> {
    /// Makes room for one record when no segment is to be had: cleans or evicts, if need be into the reserve.
    #[cold]
    pub(super) fn make_room_by_force(
        &self,
        lane: &mut Lane,
        bytes: u64,
        refused: Option<WriteError>,
    ) -> Result<(), WriteError> {
        self.by_force(lane, |lane| {
            let partial = (0..self.segments()).any(|segment| {
                self.state(segment).state == State::Partial
                    && self.adopt_one(lane, segment, bytes)
                    && (refused.is_none() || self.has_memory(lane, bytes))
            });
            let made = if partial { Ok(()) } else { self.force(lane, bytes, refused) };
            if matches!(made, Err(WriteError::Full { .. } | WriteError::NoSpace(_))) {
                // Dead clients may hold segments that nobody has needed so far.
                return self.sweep().and_then(|()| self.force(lane, bytes, None)).or(made);
            }
            made
        })
    }

    /// Lets a lane clean by force: it alone may use the reserve meanwhile.
    pub(super) fn by_force<R>(
        &self,
        lane: &mut Lane,
        act: impl FnOnce(&mut Lane) -> Result<R, WriteError>,
    ) -> Result<R, WriteError> {
        self.acquire_global(lane.slot, at::RESERVE_LOCK)?;
        lane.cleaning = Cleaning::Forced;
        let done = act(lane);
        lane.cleaning = Cleaning::No;
        self.release_global(at::RESERVE_LOCK);
        done
    }

    /// Whether memory can be put behind the next record of the open segment.
    fn has_memory(&self, lane: &Lane, bytes: u64) -> bool {
        lane.open.as_ref().is_some_and(|open| self.mem.back(open.head, bytes).is_ok())
    }

    fn force(&self, lane: &mut Lane, bytes: u64, mut refused: Option<WriteError>) -> Result<(), WriteError> {
        // Where the file cannot grow, the reserve is made good. Where it may, but the file system has no room, what is left of
        // it is kept: cleaning needs one segment to move to.
        let may_grow = self.segments() + RESERVE <= self.segments_max();
        let reserve = if may_grow { self.free_segments().min(RESERVE) } else { RESERVE };
        for _ in 0..self.segments() + 2 {
            if lane.open.as_ref().is_some_and(|open| open.has_room(bytes)) && self.free_segments() >= reserve {
                return Ok(());
            }
            if self.free_segments() > RESERVE {
                self.retire_segment(lane);
                if let Some((segment, ready)) = self.claim_backed(lane.slot, Need::Normal, &mut refused)? {
                    self.open_segment(lane, segment, 0, ready);
                    return Ok(());
                }
            }
            if !self.free_one_more(lane)? {
                break;
            }
        }
        if lane.open.as_ref().is_some_and(|open| open.has_room(bytes)) {
            return Ok(());
        }
        Err(self.full(refused))
    }

    /// Cleans the segment with most to gain. `false`: nothing is to be gained.
    pub(super) fn clean_best(&self, lane: &mut Lane) -> Result<bool, WriteError> {
        let free = self.free_segments();
        let mut best = (0, None);
        for segment in 0..self.segments() {
            if let Some(dead) = self.glance(lane, segment)? {
                if dead > best.0 && self.field(segment, segment::at::DEAD) > 0 {
                    best = (dead, Some(segment));
                }
            }
        }
        match best.1 {
            Some(segment) => self.clean_segment(lane, segment, Policy::Move),
            None => Ok(self.free_segments() > free),
        }
    }

    /// Frees a segment more if that is possible.
    pub(super) fn free_one_more(&self, lane: &mut Lane) -> Result<bool, WriteError> {
        if self.shape.cache {
            return self.evict(lane);
        }
        Ok(self.drop_expired(lane, 1)? || self.clean_best(lane)?)
    }

    /// Makes room for the index, which found none to grow. `false`: there is none to be had.
    #[cold]
    pub(super) fn free_for_index(&self, lane: &mut Lane) -> Result<bool, WriteError> {
        let freed = match self.next_chunk() {
            1 => self.by_force(lane, |lane| self.free_one_more(lane)),
            // What others take of it before the index does is made again.
            n => self.make_run(lane, n, &mut None).map(|run| {
                run.iter().for_each(|first| self.free(*first, n, lane.slot));
                run.is_some()
            }),
        };
        match freed {
            Err(WriteError::Full { .. } | WriteError::NoSpace(_)) => Ok(false),
            other => other,
        }
    }

    /// Segments in a row that the index needs at most for its next step: a chunk of a directory is one piece.
    fn next_chunk(&self) -> u64 {
        let block = self.root_block(self.root());
        let depth = [Tree::First, Tree::Overflow].map(|tree| self.depth(block, tree).unwrap_or(0));
        (8u64 << depth[0].max(depth[1])).div_ceil(self.segment_bytes())
    }
}
