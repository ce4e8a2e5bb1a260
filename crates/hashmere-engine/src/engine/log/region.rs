//! Regions: rows of segments that a named object has for itself. The state word of the first segment is all the
//! catalogue there is.
//!
//! Making one: the row is *claimed* under the maker's name while it is filled, so a death frees it. Under the region
//! lock one store turns it into a region. Dropping one: under the same lock a word of its own says so, after which it
//! is not found; then it is *pending free*, from which it is freed when the last process that has it open has let it go
//! or is dead: opening a region pins its first segment, as a view does.

use crate::engine::log::segments::Memory;
use crate::engine::{Engine, Pin, Writer};
use crate::error::{ReadError, WriteError};
use hashmere_format::header::{at, limit, RootWord};
use hashmere_format::leaf::LockWord;
use hashmere_format::region::{self, NAME_MAX};
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// What is wrong with a region whose dropper died in between.
pub(in crate::engine) const HALF_DROPPED: &str = "was dropped and is not free";

/// The refusal of a thread that holds 24 views and regions.
const NO_PIN: WriteError =
    WriteError::InvalidState("this thread holds too many views and regions at a time; drop some");

/// A region, as [`SharedEngine::regions`](crate::SharedEngine::regions) lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegionInfo {
    /// Its name.
    pub name: Vec<u8>,
    /// What it is: a number of [`hashmere_format::region::kind`].
    pub kind: u64,
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Bytes that it takes in the file.
    pub bytes_taken: u64,
    /// Wall clock at its creation, in milliseconds since 1970.
    pub created_ms: u64,
}

/// Where a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Its first segment.
    pub(crate) segment: u64,
    /// Where the bytes of its owner begin.
    pub(crate) data: u64,
    /// How many there are.
    pub(crate) bytes: u64,
}

/// A region that was found or made, and the pin that holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinnedRegion {
    pub(crate) spot: Spot,
    pub(crate) pin: Pin,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Makes a region. `fill` writes its content before any other client can see it. `None`: there is one of this kind
    /// and name.
    pub(crate) fn create_region(
        &self,
        writer: &mut Writer,
        (kind, name): (u64, &[u8]),
        bytes: u64,
        fill: impl FnOnce(Spot),
    ) -> Result<Option<PinnedRegion>, WriteError> {
        self.refuse_if_poisoned()?;
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(WriteError::InvalidState("a name has 1 to 128 bytes"));
        }
        let total = region::DATA.checked_add(bytes).filter(|total| *total <= limit::ADDRESS);
        let total = total.ok_or(WriteError::TooLarge { bytes, limit: limit::ADDRESS })?;
        if self.find_region(kind, name)?.is_some() {
            return Ok(None);
        }
        self.refuse_without_pin()?;
        let n = total.div_ceil(self.segment_bytes());
        let segment = self.claim_extent(writer, n)?;
        // Not a record: a repair after us must not look for one there.
        self.set_state(segment, Word::owned(State::Claimed, writer.slot).long(n as u32));
        let spot = self.fill_region(segment, (kind, name), bytes);
        fill(spot);
        let made = self.name_region(writer, (kind, name), spot, n);
        if !matches!(made, Ok(Some(_))) {
            self.free(segment, n, writer.slot, Memory::All);
        }
        made
    }

    fn fill_region(&self, segment: u64, (kind, name): (u64, &[u8]), bytes: u64) -> Spot {
        let start = self.segment_offset(segment);
        let generation = RootWord::unpack(self.root()).generation;
        self.set_field(segment, segment::at::BORN, generation);
        // Nothing in it is a record. After a crash while it is freed, it looks like garbage, and is freed as such.
        self.set_field(segment, segment::at::USED, 0);
        self.set_field(segment, segment::at::DEAD, 1);
        self.set_field(segment, segment::at::AWAITS, 0);
        self.mem.zero(start, region::DATA);
        let put = |at: u64, value: u64| self.mem.store(start + at, value, Ordering::Relaxed);
        put(region::at::MAGIC, region::MAGIC);
        put(region::at::KIND, kind);
        put(region::at::BYTES, bytes);
        put(region::at::NAME_LEN, name.len() as u64);
        put(region::at::CREATED, self.host.now_ms());
        self.mem.write(start + region::at::NAME, name);
        Spot { segment, data: start + region::DATA, bytes }
    }

    fn name_region(
        &self,
        writer: &Writer,
        (kind, name): (u64, &[u8]),
        spot: Spot,
        n: u64,
    ) -> Result<Option<PinnedRegion>, WriteError> {
        let pin = self.pin_region(spot.segment)?;
        self.acquire_global(writer.slot, at::REGION_LOCK)?;
        let found = self.find_region(kind, name);
        let there = !matches!(found, Ok(None));
        if !there {
            // SYNC(region): what was filled in is seen by every client that sees the state. This is the point at which
            // the region exists.
            self.set_state(spot.segment, Word::new(State::Region).long(n as u32));
        }
        self.release_global(at::REGION_LOCK);
        if there {
            self.unpin(pin);
            return found.map(|_| None).map_err(WriteError::from);
        }
        Ok(Some(PinnedRegion { spot, pin }))
    }

    fn pin_region(&self, segment: u64) -> Result<Pin, WriteError> {
        let row = self.own_row();
        let pin = if row == 0 { None } else { self.raise_pin(row, segment) };
        pin.ok_or(NO_PIN)
    }

    /// Before room is made for a region that could not be held.
    fn refuse_without_pin(&self) -> Result<(), WriteError> {
        let row = self.own_row();
        let free = |i| self.mem.load(row + row::at::PINS + 8 * i, Ordering::Relaxed) == 0;
        if row == 0 || !(0..row::PINS).any(free) {
            return Err(NO_PIN);
        }
        Ok(())
    }

    /// Opens a region by name.
    pub(crate) fn open_region(&self, kind: u64, name: &[u8]) -> Result<Option<PinnedRegion>, WriteError> {
        loop {
            let Some(spot) = self.find_region(kind, name)? else { return Ok(None) };
            let pin = self.pin_region(spot.segment)?;
            // SYNC(pin): pairs with the fence in `goes`: either we see that it was dropped, or the client that frees it
            // sees our pin.
            self.mem.fence(Ordering::SeqCst);
            if matches!(self.find_region(kind, name), Ok(Some(now)) if now == spot) {
                return Ok(Some(PinnedRegion { spot, pin }));
            }
            self.unpin(pin);
        }
    }

    /// Lets a region go. The last one to let go of a dropped region frees it.
    pub(crate) fn close_region(&self, place: PinnedRegion) {
        let dropped = self.state(place.spot.segment).state == State::PendingFree;
        self.unpin(place.pin);
        if dropped {
            if let Ok(writer) = self.writer() {
                // What fails here is found again by the next look at this segment.
                let _ = self.free_pending(place.spot.segment, writer.slot);
            }
        }
    }

    /// Takes the name off a region and frees it, as soon as no process has it open. `false`: there is none.
    pub(crate) fn drop_region(&self, writer: &Writer, kind: u64, name: &[u8]) -> Result<bool, WriteError> {
        self.refuse_if_poisoned()?;
        self.acquire_global(writer.slot, at::REGION_LOCK)?;
        let found = self.find_region(kind, name);
        if let Ok(Some(spot)) = found {
            // This is the point at which it is gone: it is not found any more, and the processes that have it open see
            // the word.
            self.mem.store(spot.data - region::DATA + region::at::DROPPED, 1, Ordering::Release);
            self.finish_drop(spot.segment);
        }
        self.release_global(at::REGION_LOCK);
        let found = found?;
        if let Some(spot) = found {
            self.free_pending(spot.segment, writer.slot)?;
        }
        Ok(found.is_some())
    }

    fn finish_drop(&self, segment: u64) {
        let word = self.state(segment);
        self.set_state(segment, Word { state: State::PendingFree, ..word });
    }

    /// Completes what a dead owner of the region lock left half done.
    pub(in crate::engine) fn repair_regions(&self) {
        let half = self.each_region().filter(|(_, info)| *info == Err(HALF_DROPPED));
        half.for_each(|(spot, _)| self.finish_drop(spot.segment));
    }

    /// Whether a client has yet to free a region that was dropped, or has done so since. If it crashed, the next to
    /// need the lock does it.
    pub(in crate::engine) fn is_being_dropped(&self, segment: u64) -> bool {
        !LockWord(self.mem.load(at::REGION_LOCK, Ordering::Acquire)).is_free()
            || self.state(segment).state != State::Region
    }

    /// Whether a region was dropped since it was opened.
    pub(crate) fn is_dropped(&self, spot: Spot) -> bool {
        self.mem.load(spot.data - region::DATA + region::at::DROPPED, Ordering::Acquire) != 0
    }

    /// Does something under the region lock: short, without system calls.
    pub(crate) fn with_region_lock<R>(&self, writer: &Writer, act: impl FnOnce() -> R) -> Result<R, WriteError> {
        self.acquire_global(writer.slot, at::REGION_LOCK)?;
        let done = act();
        self.release_global(at::REGION_LOCK);
        Ok(done)
    }

    /// A region that this process cannot reach is not taken for one that is not there.
    fn find_region(&self, kind: u64, name: &[u8]) -> Result<Option<Spot>, ReadError> {
        self.in_reach(|| {
            self.each_region().find_map(|(spot, info)| {
                let info = info.ok()?;
                (info.kind == kind && info.name == name).then_some(spot)
            })
        })
    }

    /// All regions.
    pub(crate) fn regions(&self) -> Vec<RegionInfo> {
        self.each_region().filter_map(|(_, info)| info.ok()).collect()
    }

    /// Every row of segments that says it is a region, with what is wrong with it if it is none.
    pub(in crate::engine) fn each_region(&self) -> impl Iterator<Item = (Spot, Result<RegionInfo, &'static str>)> + '_ {
        // SYNC(region): pairs with the release store in `name_region`: in this state, the words of a region can be
        // read.
        let heads = (0..self.segments()).filter(|segment| self.state(*segment).state == State::Region);
        heads.map(|segment| {
            let start = self.segment_offset(segment);
            let get = |at: u64| self.mem.load(start + at, Ordering::Acquire);
            let bytes = get(region::at::BYTES);
            let bytes_taken = u64::from(self.state(segment).length) * self.segment_bytes();
            let spot = Spot { segment, data: start + region::DATA, bytes };
            let len = get(region::at::NAME_LEN);
            let info = if get(region::at::MAGIC) != region::MAGIC {
                Err("does not begin as a region does")
            } else if bytes > bytes_taken - region::DATA || !self.is_inside(start, bytes_taken) {
                Err("is longer than its segments")
            } else if len == 0 || len > NAME_MAX as u64 {
                Err("has a name that cannot be")
            } else if get(region::at::DROPPED) != 0 {
                Err(HALF_DROPPED)
            } else {
                let mut name = vec![0; len as usize];
                self.mem.read(start + region::at::NAME, &mut name);
                let (kind, created_ms) = (get(region::at::KIND), get(region::at::CREATED));
                Ok(RegionInfo { name, kind, bytes, bytes_taken, created_ms })
            };
            (spot, info)
        })
    }
}
