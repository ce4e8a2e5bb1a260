//! Which segments of a cache are evicted first: new records are on probation, those that survive an eviction are
//! protected, each in segments of their own. What is asked for once leaves soon and takes nothing else with it.
//!
//! The two queues are those of segmented LRU (Karedla, Love and Wherry, 1994) and of S3-FIFO (Yang et al., SOSP 2023),
//! with segments in the place of records. Both papers fix the share of the first queue, or remember what was evicted,
//! to notice that it is too small. Here the share follows what is found in protected segments.

use crate::engine::{Engine, Writer};
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::row::Stat;
use hashmere_format::segment::State;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// With fewer segments there is no room to keep two kinds apart.
const PROTECTED_FROM: u64 = 32;
/// The whole.
const ALL: u64 = 1024;
/// Least and largest share of segments on probation.
const LEAST: u64 = ALL / 10;
const MOST: u64 = ALL * 9 / 10;
/// Segments that are looked at to tell the share.
const LOOK: u64 = 64;
/// One eviction in `PROBE` takes a protected segment, whatever the share: otherwise it would not be noticed that what
/// is in there is not wanted any more.
const PROBE: u64 = 16;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Whether it is a protected segment that goes next.
    pub(super) fn evicts_protected(&self, writer: &Writer) -> bool {
        let total = self.segments();
        let hand = self.mem.load(at::EVICT_HAND, Ordering::Relaxed) % total.max(1);
        let (mut probation, mut protected) = (0, 0);
        for i in 0..LOOK.min(total) {
            let word = self.state((hand + i) % total);
            if matches!(word.state, State::Sealed | State::Partial) {
                *(if word.protected { &mut protected } else { &mut probation }) += 1;
            }
        }
        let is_probe = self.figure(writer.row, Stat::Cleaned) % PROBE == 0;
        protected != 0 && (is_probe || probation * ALL <= self.probation() * (probation + protected))
    }

    /// The share on probation that is aimed at.
    fn probation(&self) -> u64 {
        self.mem.load(at::PROBATION, Ordering::Relaxed).clamp(LEAST, MOST)
    }

    /// Lets `act` move what survives to protected segments, and learns from what did.
    pub(super) fn protecting<R>(
        &self,
        writer: &mut Writer,
        was_protected: bool,
        act: impl FnOnce(&mut Writer) -> R,
    ) -> R {
        if !self.layout.is_cache() || self.segments() < PROTECTED_FROM || fault::is(Fault::SurvivorUnprotected) {
            return act(writer);
        }
        self.retire_segment(writer);
        writer.protects = true;
        let figures = [Stat::Moved, Stat::Evicted];
        let before = figures.map(|stat| self.figure(writer.row, stat));
        let done = act(writer);
        self.retire_segment(writer);
        writer.protects = false;
        if was_protected {
            let [survived, gone] = [0, 1].map(|n| self.figure(writer.row, figures[n]).wrapping_sub(before[n]));
            self.learn_from(survived, gone);
        }
        done
    }

    /// Hardly anything of a protected segment was read again: then what is new gets more room, else by and by less.
    fn learn_from(&self, survived: u64, gone: u64) {
        let now = self.probation();
        let is_stale = survived * 10 < (survived + gone) * 3 && !fault::is(Fault::ShareUnlearned);
        let next = if is_stale { now * 2 } else { now - now / 5 };
        self.mem.store(at::PROBATION, next.clamp(LEAST, MOST), Ordering::Relaxed);
    }
}
