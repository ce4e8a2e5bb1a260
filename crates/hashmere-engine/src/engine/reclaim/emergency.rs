//! Making room when there is none: by cleaning or evicting, if need be into the reserve, one writer at a time. And what
//! is kept in reserve for that.

use crate::engine::client::writer_state::Cleaning;
use crate::engine::index::Tree;
use crate::engine::log::segments::{Memory, Need, RESERVE};
use crate::engine::reclaim::clean::Policy;
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::segment::{self, State};
use hashmere_mem::{Host, Mem};

impl<M: Mem, H: Host> Engine<M, H> {
    /// Makes room for one record when no segment is to be had: cleans or evicts, if need be into the reserve.
    #[cold]
    pub(in crate::engine) fn make_room_in_emergency(
        &self,
        writer: &mut Writer,
        bytes: u64,
        refused: Option<WriteError>,
    ) -> Result<(), WriteError> {
        self.in_emergency(writer, |writer| {
            let partial = (0..self.segments()).any(|segment| {
                self.state(segment).state == State::Partial
                    && self.adopt_one(writer, segment, bytes)
                    && (refused.is_none() || self.has_memory(writer, bytes))
            });
            let made = if partial { Ok(()) } else { self.force(writer, bytes, refused) };
            if made.as_ref().is_err_and(|error| error.is_no_room() || matches!(error, WriteError::Busy { .. })) {
                // Crashed clients may hold segments that were not needed so far.
                return self.sweep().and_then(|()| self.force(writer, bytes, None)).or(made);
            }
            made
        })
    }

    /// Lets a writer clean in an emergency: until then it alone may use the reserve.
    pub(in crate::engine) fn in_emergency<R>(
        &self,
        writer: &mut Writer,
        act: impl FnOnce(&mut Writer) -> Result<R, WriteError>,
    ) -> Result<R, WriteError> {
        self.reach_file()?;
        self.acquire_global(writer.slot, at::RESERVE_LOCK)?;
        self.give_up_snapshot();
        writer.cleaning = Cleaning::Emergency;
        let done = act(writer);
        writer.cleaning = Cleaning::No;
        self.release_global(at::RESERVE_LOCK);
        done
    }

    /// Whether memory can be put behind the next record of the open segment.
    fn has_memory(&self, writer: &Writer, bytes: u64) -> bool {
        writer.open.as_ref().is_some_and(|open| self.back(open.head, bytes).is_ok())
    }

    fn force(&self, writer: &mut Writer, bytes: u64, mut refused: Option<WriteError>) -> Result<(), WriteError> {
        // Where the file cannot grow, the reserve is made good. Where it may, but the file system has no room, what is
        // left of it is kept: cleaning needs one segment to move to.
        if self.is_above_maximum() {
            self.shrink_incrementally(writer)?;
        }
        let holes = self.vacant().saturating_sub(self.free_segments());
        let may_grow = self.segments() + RESERVE <= self.segments_max() + holes;
        let reserve = if may_grow { self.free_segments().min(RESERVE) } else { RESERVE };
        for _ in 0..self.segments() + 2 {
            if writer.open.as_ref().is_some_and(|open| open.has_room(bytes)) && self.free_segments() >= reserve {
                return Ok(());
            }
            // Durable: what cleaning empties is free only after a sync, and cleaning needs the reserve itself.
            if self.free_segments() < RESERVE {
                self.sync_for_room(writer)?;
            }
            if self.free_segments() > RESERVE {
                self.retire_segment(writer);
                if let Some((segment, ready)) = self.claim_log(writer.slot, Need::Normal, &mut refused)? {
                    self.open_segment(writer, segment, 0, ready);
                    return Ok(());
                }
            }
            if !self.free_one_more(writer)? {
                break;
            }
        }
        if writer.open.as_ref().is_some_and(|open| open.has_room(bytes)) {
            return Ok(());
        }
        // Nothing can go: then the file system is asked, whatever it said a moment ago.
        if self.forget_refusal() {
            self.retire_segment(writer);
            if let Some((segment, ready)) = self.claim_log(writer.slot, Need::Normal, &mut refused)? {
                self.open_segment(writer, segment, 0, ready);
                return Ok(());
            }
        }
        Err(self.full(refused))
    }

    /// Cleans the segment with most to gain. `false`: nothing is to be gained.
    pub(super) fn clean_best(&self, writer: &mut Writer) -> Result<bool, WriteError> {
        let vacant = self.vacant();
        self.skip_busy(writer, |writer, left| {
            let mut best = (0, None);
            for segment in 0..self.segments() {
                if let Some(dead) = self.free_if_dead(writer, segment)? {
                    if dead > best.0 && self.field(segment, segment::at::DEAD) > 0 && !left.contains(&segment) {
                        best = (dead, Some(segment));
                    }
                }
            }
            match best.1 {
                Some(segment) => Ok((Some(segment), self.clean_segment(writer, segment, Policy::Move))),
                None => Ok((None, Ok(self.vacant() > vacant))),
            }
        })
    }

    /// Calls `deal` for segments, one at a time, until one was not blocked by a lock of a record in it that does not
    /// come: those that were are passed over from then on. `deal` returns which one it was.
    pub(super) fn skip_busy(
        &self,
        writer: &mut Writer,
        mut deal: impl FnMut(&mut Writer, &[u64]) -> Result<(Option<u64>, Result<bool, WriteError>), WriteError>,
    ) -> Result<bool, WriteError> {
        let mut left = Vec::new();
        let mut busy = None;
        loop {
            match deal(writer, &left)? {
                (Some(segment), Err(error @ WriteError::Busy { .. })) if !fault::is(Fault::RecordAwaited) => {
                    left.push(segment);
                    busy = Some(error);
                }
                (None, Ok(false)) => return busy.map_or(Ok(false), Err),
                (_, done) => return done,
            }
        }
    }

    /// Frees a segment more if that is possible.
    pub(in crate::engine) fn free_one_more(&self, writer: &mut Writer) -> Result<bool, WriteError> {
        if self.layout.is_cache() {
            return self.evict(writer);
        }
        if self.drop_expired(writer, 1)? {
            return Ok(true);
        }
        match self.clean_best(writer) {
            Ok(true) => Ok(true),
            cleaned => Ok(self.sync_for_room(writer)? || cleaned?),
        }
    }

    /// Makes room for the index, which found none to grow. `false`: there is none to be had.
    #[cold]
    pub(in crate::engine) fn free_for_index(&self, writer: &mut Writer) -> Result<bool, WriteError> {
        self.patiently(writer.cleaning, || self.free_for_index_now(writer))
    }

    fn free_for_index_now(&self, writer: &mut Writer) -> Result<bool, WriteError> {
        let freed = match self.next_chunk() {
            1 => self.in_emergency(writer, |writer| {
                let freed = self.free_one_more(writer)?;
                // Durable: whatever was emptied is to be had after a sync.
                Ok(self.sync_for_room(writer)? || freed && !self.layout.is_durable())
            }),
            // What others take of it before the index does is made again.
            n => self.make_extent(writer, n, &mut None).map(|run| {
                run.iter().for_each(|first| self.free(*first, n, writer.slot, Memory::All));
                run.is_some()
            }),
        };
        match freed {
            Ok(true) => Ok(true),
            Ok(false) if self.layout.is_cache() => self.evict_beside(writer),
            Err(error) if error.is_no_room() && self.layout.is_cache() => self.evict_beside(writer),
            Err(error) if error.is_no_room() => Ok(false),
            other => other,
        }
    }

    /// Segments in a row that the index needs at most for its next step: a chunk of a directory is one piece.
    fn next_chunk(&self) -> u64 {
        let block = self.block_within(self.root());
        let depth = [Tree::First, Tree::Overflow].map(|tree| self.depth(block, tree).unwrap_or(0));
        (8u64 << depth[0].max(depth[1])).div_ceil(self.segment_bytes())
    }
}
