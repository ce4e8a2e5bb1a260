//! Lanes: the writer contexts of this process.
//!
//! A *lane* is a client slot with its liveness lock, its row, and the segment that it appends to. Each thread has
//! one of its own, which costs it no atomic operation to take; threads beyond the first few dozen, and writes that a thread
//! makes while it holds a reservation, take one from a shared pool.

use super::append::OpenSegment;
use super::clean::Cleaning;
use super::stats::OperationCounts;
use super::Engine;
use crate::error::WriteError;
use crate::types::Stored;
use hashmere_format::header::limit;
use hashmere_format::row::{self, Stat};
use hashmere_mem::{Host, Mem};
use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lanes that belong to the thread of the same number.
const OWN: usize = 64;
/// Lanes for everybody.
const POOL: usize = 32;
/// The number of a thread that has no lane of its own: that of no lane at all.
const NONE: usize = OWN + POOL;

/// What is known of this process alone.
const OWN_STATS: [Stat; 4] = [Stat::Hits, Stat::Misses, Stat::Sets, Stat::Deletes];

/// The lanes of this process.
pub(super) struct Lanes {
    cells: Box<[LaneCell]>,
    /// One thread of the process claims at a time: liveness locks do not keep threads of one handle apart.
    claims: Mutex<()>,
    /// The last attempt to get a client slot failed; reads, which can do without, do not try again.
    refused: AtomicBool,
    /// In a forked child: all of this is the parent's.
    disowned: AtomicBool,
}

struct LaneCell {
    /// Offset of the lane's row; 0 while it has none. Readable by anyone.
    row: AtomicU64,
    /// What stood in the row's figures of [`OWN_STATS`] when it was claimed: former clients of the slot did that.
    before: [AtomicU64; OWN_STATS.len()],
    /// Whether somebody has it. For an own lane only its thread looks here.
    taken: AtomicBool,
    lane: UnsafeCell<Lane>,
}

// SAFETY: the lane in the cell is reached only through a `LaneGuard`, which exists once at a time: an own lane's is made only by
// the one living thread with its number, while `taken` is false; a pool lane's only after setting `taken` atomically.
unsafe impl Sync for LaneCell {}

/// One writer context. Whoever has it is the only thread to write its row.
#[derive(Default)]
pub(crate) struct Lane {
    /// Client slot.
    pub(super) slot: u32,
    /// Offset of the row; 0 while the lane has no client slot.
    pub(super) row: u64,
    /// The segment that it appends to.
    pub(super) open: Option<OpenSegment>,
    /// Bytes that this lane made garbage since it last looked for something to clean.
    pub(super) made_dead: u64,
    /// Whether it is cleaning: what it appends then must not start cleaning again.
    pub(super) cleaning: Cleaning,
    /// A large record that this lane's last write superseded: its segments can go as soon as the lock is released.
    pub(super) dead_large: Option<u64>,
    /// The last write was refused because the index had to grow and found no room: cleaning or evicting may help, but only
    /// between writes, because what is moved goes where a draft stands.
    pub(super) index_full: bool,
    /// Room for a key.
    pub(super) key: Vec<u8>,
    /// The root that its last operation used.
    pub(super) root: u64,
    /// What the last write stored.
    pub(crate) stored: Stored,
}

impl Lane {
    /// Its client slot.
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    /// Whether what it does now can be left for later, record by record.
    pub(super) fn is_cleaning(&self) -> bool {
        self.cleaning != Cleaning::No
    }
}

/// A lane in use by this thread.
pub(crate) struct LaneGuard<'a> {
    cell: &'a LaneCell,
    /// Own lanes belong to a thread: the guard must stay there.
    _stay: PhantomData<*const ()>,
}

impl Deref for LaneGuard<'_> {
    type Target = Lane;
    #[inline(always)]
    fn deref(&self) -> &Lane {
        // SAFETY: this is the only guard of the cell.
        unsafe { &*self.cell.lane.get() }
    }
}

impl DerefMut for LaneGuard<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Lane {
        // SAFETY: this is the only guard of the cell.
        unsafe { &mut *self.cell.lane.get() }
    }
}

impl Drop for LaneGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.cell.taken.store(false, Ordering::Release);
    }
}

/// The numbers that living threads of this process have, a bit each. No lock: a child may be forked while another thread would hold
/// it.
static NUMBERS: AtomicU64 = AtomicU64::new(0);
const _: () = assert!(OWN == u64::BITS as usize);

/// Gives the number back when its thread ends, so that thread pools that come and go reuse lanes.
struct Number(usize);

impl Drop for Number {
    fn drop(&mut self) {
        // Whatever this thread still does on its way out is done under another number.
        NUMBER.set(usize::MAX);
        // SYNC(number): whoever gets it next sees what this thread did with its lanes.
        NUMBERS.fetch_and(!(1 << self.0), Ordering::Release);
    }
}

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    static KEEP: Cell<Option<Number>> = const { Cell::new(None) };
}

/// A number below [`OWN`] that no other living thread of this process has, or [`NONE`].
#[inline(always)]
fn thread_number() -> usize {
    let number = NUMBER.get();
    if number != usize::MAX {
        return number;
    }
    new_thread_number()
}

#[cold]
fn new_thread_number() -> usize {
    let number = free_number();
    NUMBER.set(number);
    if number < OWN {
        // A thread that is already being torn down keeps its number to the end of the process.
        let _ = KEEP.try_with(|keep| keep.set(Some(Number(number))));
    }
    number
}

/// Takes the lowest free number; [`NONE`] if there is none.
fn free_number() -> usize {
    loop {
        let number = NUMBERS.load(Ordering::Relaxed).trailing_ones() as usize;
        if number == OWN {
            return NONE;
        }
        // SYNC(number): pairs with the release of the thread that gave it back.
        if NUMBERS.fetch_or(1 << number, Ordering::Acquire) >> number & 1 == 0 {
            return number;
        }
    }
}

/// Locks a mutex whose data stay consistent through a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lanes {
    pub(super) fn new() -> Lanes {
        let cell = |_| LaneCell {
            row: AtomicU64::new(0),
            before: Default::default(),
            taken: AtomicBool::new(false),
            lane: UnsafeCell::default(),
        };
        Lanes {
            cells: (0..OWN + POOL).map(cell).collect(),
            claims: Mutex::new(()),
            refused: AtomicBool::new(false),
            disowned: AtomicBool::new(false),
        }
    }

    /// Held while slots are claimed or the rows of dead clients repaired.
    pub(super) fn claims(&self) -> MutexGuard<'_, ()> {
        lock(&self.claims)
    }

    /// This thread's own lane, if it has one and does not hold it already.
    #[inline(always)]
    fn take_own(&self) -> Option<LaneGuard<'_>> {
        let number = thread_number();
        if number >= OWN {
            return None;
        }
        let cell = self.cells.get(number)?;
        // Only this thread writes `taken` of this cell, or the one that had its number before.
        if cell.taken.load(Ordering::Acquire) {
            return None;
        }
        cell.taken.store(true, Ordering::Relaxed);
        Some(LaneGuard { cell, _stay: PhantomData })
    }

    /// A lane of the pool that nobody has.
    fn take_pooled(&self) -> Option<LaneGuard<'_>> {
        let mut pool = self.cells.get(OWN..)?.iter();
        let cell =
            pool.find(|cell| cell.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok())?;
        Some(LaneGuard { cell, _stay: PhantomData })
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// A lane for this thread, claimed.
    #[inline(always)]
    pub(crate) fn lane(&self) -> Result<LaneGuard<'_>, WriteError> {
        if let Some(lane) = self.lanes.take_own() {
            if lane.row != 0 {
                return Ok(lane);
            }
            return self.claim_lane(lane);
        }
        self.find_lane()
    }

    #[cold]
    fn find_lane(&self) -> Result<LaneGuard<'_>, WriteError> {
        if self.lanes.disowned.load(Ordering::Acquire) {
            let source = std::io::Error::other("the store could not be opened again in this process");
            return Err(WriteError::Io { action: "write after a fork", source });
        }
        let start = self.host.monotonic();
        loop {
            if let Some(lane) = self.lanes.take_pooled() {
                return if lane.row != 0 { Ok(lane) } else { self.claim_lane(lane) };
            }
            if self.host.monotonic().saturating_sub(start) > self.busy_timeout {
                return Err(WriteError::Misuse("too many reservations and writing threads at a time in this process"));
            }
            std::thread::yield_now();
        }
    }

    /// In a forked child that could not open the store anew: nothing may be written in the parent's name.
    pub(crate) fn disown(&self) {
        self.lanes.disowned.store(true, Ordering::Release);
        for cell in self.lanes.cells.iter() {
            cell.taken.store(true, Ordering::Release);
            cell.row.store(0, Ordering::Release);
        }
    }

    /// Gives a new lane its client slot.
    #[cold]
    fn claim_lane<'a>(&self, mut lane: LaneGuard<'a>) -> Result<LaneGuard<'a>, WriteError> {
        if self.read_only {
            return Err(WriteError::ReadOnly);
        }
        let claimed = self.claim_slot();
        self.lanes.refused.store(claimed.is_err(), Ordering::Relaxed);
        lane.slot = claimed?;
        lane.row = row::offset(lane.slot);
        for (before, stat) in lane.cell.before.iter().zip(OWN_STATS) {
            before.store(self.figure(lane.row, stat), Ordering::Relaxed);
        }
        // Release: whoever sees the row sees what stood in it.
        lane.cell.row.store(lane.row, Ordering::Release);
        Ok(lane)
    }

    /// Gives every lane back. Only for the process that claimed them, when nobody uses the engine any more.
    pub(crate) fn retire(&mut self) {
        for index in 0..self.lanes.cells.len() {
            let lane = std::mem::take(self.lanes.cells[index].lane.get_mut());
            if lane.row != 0 {
                self.retire_lane(lane);
                self.lanes.cells[index].row.store(0, Ordering::Relaxed);
            }
        }
    }

    fn retire_lane(&self, mut lane: Lane) {
        self.withdraw_snapshot(lane.slot);
        self.retire_segment(&mut lane);
        for pin in 0..row::PINS {
            self.mem.store(lane.row + row::at::PINS + 8 * pin, 0, Ordering::Release);
        }
        let state = self.mem.load(lane.row + row::at::STATE, Ordering::Relaxed);
        self.mem.store(lane.row + row::at::STATE, state & !1, Ordering::Release);
        self.host.release(lane.slot);
    }

    /// The row of this thread's lane, for statistics and pins; 0 if it has none (then one is claimed, if that is possible).
    #[inline(always)]
    pub(super) fn own_row(&self) -> u64 {
        match self.row_of_thread() {
            0 => self.claim_row(),
            row => row,
        }
    }

    /// The row of this thread's own lane, which no other thread counts in; 0 if it has none.
    #[inline(always)]
    pub(super) fn row_of_thread(&self) -> u64 {
        self.lanes.cells.get(thread_number()).map_or(0, |cell| cell.row.load(Ordering::Relaxed))
    }

    /// What the threads of this process did since they claimed their lanes.
    pub(super) fn own_figures(&self) -> OperationCounts {
        let mut sums = [0u64; OWN_STATS.len()];
        for cell in &self.lanes.cells {
            let row = cell.row.load(Ordering::Acquire);
            if row != 0 {
                for ((sum, stat), before) in sums.iter_mut().zip(OWN_STATS).zip(&cell.before) {
                    let since = self.figure(row, stat).wrapping_sub(before.load(Ordering::Relaxed));
                    *sum = sum.wrapping_add(since);
                }
            }
        }
        let [hits, misses, sets, deletes] = sums;
        OperationCounts { hits, misses, sets, deletes }
    }

    /// Whether a row belongs to a lane of this process.
    pub(super) fn has_row(&self, row: u64) -> bool {
        self.lanes.cells.iter().any(|cell| cell.row.load(Ordering::Relaxed) == row)
    }

    /// Claims this thread's lane for its row, or finds one that it shares with others; 0 if there is none.
    #[cold]
    pub(super) fn claim_row(&self) -> u64 {
        if self.read_only || self.lanes.refused.load(Ordering::Relaxed) || self.lanes.disowned.load(Ordering::Relaxed) {
            return 0;
        }
        // A row of the pool serves as well, which others use at the same time: pins are taken with compare-exchange, and counted is there
        // by addition.
        let pooled =
            self.lanes.cells.iter().skip(OWN).map(|cell| cell.row.load(Ordering::Relaxed)).find(|row| *row != 0);
        match pooled {
            Some(row) if thread_number() == NONE => row,
            _ => self.lane().map_or(0, |lane| lane.row),
        }
    }

    /// The error when every slot is taken.
    pub(super) fn too_many_clients() -> WriteError {
        WriteError::TooManyClients { limit: limit::CLIENTS }
    }
}
