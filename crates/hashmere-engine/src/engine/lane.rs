//! Lanes: the writer contexts of this process.
//!
//! A *lane* is a client slot with its liveness lock, its row, and the segment that it appends to. Each thread has
//! one of its own, which costs it no atomic operation to take; threads beyond the first few dozen, and writes that a thread
//! makes while it holds a reservation, take one from a shared pool. When a thread ends its lane goes back (`thread.rs`).

use super::stats::OperationCounts;
use super::thread::{self, thread_number, Lender, OWN, SHARES};
use super::{Engine, KeyHash, Lane};
use crate::error::WriteError;
use hashmere_format::header::limit;
use hashmere_format::row::{self, Stat};
use hashmere_mem::{Host, Mem};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Shared lanes; those before belong to the thread of the same number.
const POOL: usize = 32;

/// What is known of this process alone.
const OWN_STATS: [Stat; 4] = [Stat::Hits, Stat::Misses, Stat::Sets, Stat::Deletes];

/// The lanes of this process.
pub(super) struct Lanes {
    cells: Box<[LaneCell]>,
    /// Stands for this process for as long as it has the store open, whichever of its threads end meanwhile.
    identity: LaneCell,
    /// A number that no other lanes of this process have.
    id: u64,
    /// Is called when a thread ends.
    lender: OnceLock<Weak<dyn Lender>>,
    /// A thread ended whose lane could not be given back yet.
    any_left: AtomicBool,
    /// What was done in lanes that were given back.
    gone: [AtomicU64; OWN_STATS.len()],
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
    /// Its thread has ended while something of it was still in use.
    left: AtomicBool,
    lane: UnsafeCell<Lane>,
}

impl LaneCell {
    fn new() -> LaneCell {
        LaneCell {
            row: AtomicU64::new(0),
            before: Default::default(),
            taken: AtomicBool::new(false),
            left: AtomicBool::new(false),
            lane: UnsafeCell::default(),
        }
    }

    /// Takes it unless it is taken.
    fn take(&self) -> Option<LaneGuard<'_>> {
        let taken = self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Made only then: one that is dropped gives the lane free.
        taken.is_ok().then(|| LaneGuard { cell: self, _stay: PhantomData })
    }
}

// SAFETY: the lane in the cell is reached only through a `LaneGuard`, which exists once at a time: an own lane's is made only by
// the one living thread with its number, while `taken` is false; a pool lane's only after setting `taken` atomically.
unsafe impl Sync for LaneCell {}

/// A lane in use by this thread.
pub struct LaneGuard<'a> {
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

/// Locks a mutex whose data stay consistent through a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lanes {
    pub(super) fn new() -> Lanes {
        static IDS: AtomicU64 = AtomicU64::new(0);
        Lanes {
            cells: (0..OWN + POOL).map(|_| LaneCell::new()).collect(),
            identity: LaneCell::new(),
            id: IDS.fetch_add(1, Ordering::Relaxed) + 1,
            lender: OnceLock::new(),
            any_left: AtomicBool::new(false),
            gone: Default::default(),
            claims: Mutex::new(()),
            refused: AtomicBool::new(false),
            disowned: AtomicBool::new(false),
        }
    }

    /// All of them.
    fn all(&self) -> impl Iterator<Item = &LaneCell> {
        self.cells.iter().chain([&self.identity])
    }

    /// This thread uses lanes of these, and gives them back when it ends.
    #[inline(always)]
    fn borrow(&self) {
        thread::borrow_from(self.id, || self.lender.get().cloned());
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
        self.cells.get(OWN..)?.iter().find_map(LaneCell::take)
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// A lane for this thread, claimed, for anything but a write of keys.
    #[inline(always)]
    pub fn lane(&self) -> Result<LaneGuard<'_>, WriteError> {
        self.lane_unless(|| Ok(()))
    }

    /// A lane for this thread, to write a key with; refused if the key is being shown by this thread.
    #[inline(always)]
    pub fn lane_for(&self, key: &[u8], kh: KeyHash) -> Result<LaneGuard<'_>, WriteError> {
        self.lane_unless(|| self.refuse_shown([(key, kh)].into_iter()))
    }

    /// The same for several keys.
    #[inline(always)]
    pub(crate) fn lane_for_many<'k>(
        &self,
        keys: impl Iterator<Item = (&'k [u8], KeyHash)>,
    ) -> Result<LaneGuard<'_>, WriteError> {
        self.lane_unless(|| self.refuse_shown(keys))
    }

    /// The same for every key.
    pub fn lane_for_all(&self) -> Result<LaneGuard<'_>, WriteError> {
        self.lane_unless(|| self.refuse_if_showing())
    }

    /// A lane for this thread, after a look at what it must not be used for if there may be such a thing: then its own lane is
    /// taken, or it has none.
    #[inline(always)]
    fn lane_unless(&self, look: impl FnOnce() -> Result<(), WriteError>) -> Result<LaneGuard<'_>, WriteError> {
        if let Some(lane) = self.lanes.take_own() {
            if lane.row != 0 {
                return Ok(lane);
            }
            return self.claim_lane(lane);
        }
        look()?;
        self.find_lane()
    }

    /// This thread's own lane, if it has one and does not hold it already.
    pub(super) fn take_own_lane(&self) -> Option<LaneGuard<'_>> {
        self.lanes.take_own()
    }

    #[cold]
    fn find_lane(&self) -> Result<LaneGuard<'_>, WriteError> {
        if self.lanes.disowned.load(Ordering::Acquire) {
            return Err(Self::disowned());
        }
        self.lanes.borrow();
        let start = self.host.monotonic();
        loop {
            if let Some(lane) = self.lanes.take_pooled() {
                return if lane.row != 0 { Ok(lane) } else { self.claim_lane(lane) };
            }
            if self.host.monotonic().saturating_sub(start) > self.busy_timeout {
                return Err(WriteError::InvalidState(
                    "too many reservations and writing threads at a time in this process",
                ));
            }
            std::thread::yield_now();
        }
    }

    /// In a forked child that could not open the store again: nothing may be written in the parent's name.
    pub(crate) fn disown(&self) {
        self.lanes.disowned.store(true, Ordering::Release);
        for cell in self.lanes.all() {
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
        self.lanes.borrow();
        let claimed = self.claim_slot();
        self.lanes.refused.store(claimed.is_err(), Ordering::Relaxed);
        lane.slot = claimed?;
        lane.row = row::offset(lane.slot);
        for (before, stat) in lane.cell.before.iter().zip(OWN_STATS) {
            before.store(self.figure(lane.row, stat), Ordering::Relaxed);
        }
        // Release: a thread that sees the row sees what is in it.
        lane.cell.row.store(lane.row, Ordering::Release);
        Ok(lane)
    }

    /// Gives every lane back. Only for the process that claimed them, when nobody uses the engine any more.
    pub(crate) fn retire(&mut self) {
        for cell in self.lanes.cells.iter_mut().chain([&mut self.lanes.identity]) {
            cell.taken.store(false, Ordering::Relaxed);
        }
        self.lanes.all().filter_map(LaneCell::take).for_each(|lane| self.give_back(lane));
    }

    /// What is called when a thread ends that uses this store. The one that opened it is noted.
    pub(crate) fn set_lender(&self, lender: Weak<dyn Lender>) {
        let _ = self.lanes.lender.set(lender);
        self.lanes.borrow();
    }

    /// Gives back the lane of a thread that ends, and with `all` those that threads share: see [`Lender::thread_ended`].
    pub(crate) fn thread_ended(&self, number: usize, all: bool) {
        let own = self.lanes.cells.get(number).filter(|_| number < OWN);
        let shared = self.lanes.cells.iter().skip(OWN).filter(|_| all);
        own.into_iter().chain(shared).for_each(|cell| self.return_lane(cell));
        self.return_left(|_| true, all);
    }

    /// Gives a lane back that no thread can begin to use, if it is not in use: a view holds a pin of its row, or a reservation the
    /// lane itself.
    fn return_lane(&self, cell: &LaneCell) {
        let row = cell.row.load(Ordering::Relaxed);
        if row == 0 {
            return;
        }
        // Before the pins are checked: the thread that lets the last one go checks this afterwards.
        cell.left.swap(true, Ordering::SeqCst);
        match cell.take() {
            Some(lane) if !self.has_pins(row) => {
                cell.left.store(false, Ordering::Relaxed);
                self.give_back(lane);
            }
            _ => self.lanes.any_left.store(true, Ordering::SeqCst),
        }
    }

    /// Gives back those lanes that ended threads have left, if they are not in use any more.
    fn return_left(&self, which: impl Fn(&LaneCell) -> bool, all: bool) {
        if !self.lanes.any_left.swap(false, Ordering::SeqCst) {
            return;
        }
        for (number, cell) in self.lanes.cells.iter().enumerate() {
            if !cell.left.load(Ordering::Relaxed) {
                continue;
            }
            self.lanes.any_left.store(true, Ordering::Relaxed);
            if !which(cell) {
                continue;
            }
            match number {
                0..OWN => thread::with_number_of_none(number, || self.return_lane(cell)),
                _ if all => self.return_lane(cell),
                _ => thread::while_none_shares(|| self.return_lane(cell)),
            }
        }
    }

    /// After the last of its pins is gone: gives a row back whose thread has ended.
    #[inline(always)]
    pub(super) fn return_if_left(&self, row: u64) {
        if self.lanes.any_left.load(Ordering::Relaxed) {
            self.return_row(row);
        }
    }

    #[cold]
    fn return_row(&self, row: u64) {
        self.return_left(|cell| cell.row.load(Ordering::Relaxed) == row, false);
    }

    fn has_pins(&self, row: u64) -> bool {
        (0..row::PINS).any(|pin| self.mem.load(row + row::at::PINS + 8 * pin, Ordering::Acquire) != 0)
    }

    fn give_back(&self, mut lane: LaneGuard<'_>) {
        if lane.row == 0 {
            return;
        }
        for (gone, since) in self.lanes.gone.iter().zip(self.since(lane.cell, lane.row)) {
            gone.fetch_add(since, Ordering::Relaxed);
        }
        lane.cell.row.store(0, Ordering::Release);
        let given = std::mem::take(&mut *lane);
        self.retire_lane(given);
    }

    /// This process's identity for others: the slot of a lane that no thread has, and how often that was claimed.
    pub(crate) fn identity(&self) -> Result<(u32, u64), WriteError> {
        loop {
            if self.lanes.disowned.load(Ordering::Acquire) {
                return Err(Self::disowned());
            }
            let cell = &self.lanes.identity;
            let row = cell.row.load(Ordering::Acquire);
            if row != 0 {
                let slot = (row - row::offset(0)) / row::BYTES;
                return Ok((slot as u32, self.mem.load(row + row::at::STATE, Ordering::Acquire) >> 8));
            }
            match cell.take() {
                Some(lane) if lane.row == 0 => drop(self.claim_lane(lane)?),
                _ => std::thread::yield_now(),
            }
        }
    }

    fn disowned() -> WriteError {
        let source = std::io::Error::other("the store could not be opened again in this process");
        WriteError::Io { action: "write after a fork", source }
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
        let mut add = |figures: [u64; OWN_STATS.len()]| {
            sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum = sum.wrapping_add(figure));
        };
        for cell in self.lanes.all() {
            let row = cell.row.load(Ordering::Acquire);
            if row != 0 {
                add(self.since(cell, row));
            }
        }
        add(self.lanes.gone.each_ref().map(|figure| figure.load(Ordering::Relaxed)));
        let [hits, misses, sets, deletes] = sums;
        OperationCounts { hits, misses, sets, deletes }
    }

    /// What was done in a lane since it was claimed.
    fn since(&self, cell: &LaneCell, row: u64) -> [u64; OWN_STATS.len()] {
        let mut figures = OWN_STATS.map(|stat| self.figure(row, stat));
        for (figure, before) in figures.iter_mut().zip(&cell.before) {
            *figure = figure.wrapping_sub(before.load(Ordering::Relaxed));
        }
        figures
    }

    /// Whether a row belongs to a lane of this process.
    pub(super) fn has_row(&self, row: u64) -> bool {
        self.lanes.all().any(|cell| cell.row.load(Ordering::Relaxed) == row)
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
        match thread_number() {
            number if number < OWN => self.lane().map_or(0, |lane| lane.row),
            SHARES => pooled.unwrap_or_else(|| self.lane().map_or(0, |lane| lane.row)),
            // Nothing keeps a shared lane from being given back while such a thread, which is being torn down, uses its row.
            _ => 0,
        }
    }

    /// The error when every slot is taken.
    pub(super) fn too_many_clients() -> WriteError {
        WriteError::TooManyClients { limit: limit::CLIENTS }
    }
}
