//! Clients: rows of the client table, and this process's lanes.
//!
//! A *lane* is one writer context: a client slot with its liveness lock, its row, and the segment that it
//! appends to. A process has one for every thread that writes at the same time.

use super::Engine;
use crate::error::WriteError;
use hashmere_format::header::{at, limit, PAGE};
use hashmere_format::row::{self, Stat};
use hashmere_mem::{BackError, Host, Mem};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Most lanes of a process.
const LANES: usize = 64;

/// The lanes of this process.
pub(super) struct Lanes {
    cells: Box<[Cell_]>,
    /// One thread of the process claims at a time: liveness locks do not keep threads of one handle apart.
    claims: Mutex<()>,
}

struct Cell_ {
    /// Offset of the lane's row for statistics, readable without the lock; 0 while the lane has none.
    row: AtomicU64,
    lane: Mutex<Lane>,
}

/// One writer context. Whoever has it locked is the only thread to write its row.
#[derive(Default)]
pub(crate) struct Lane {
    /// Client slot, once claimed.
    pub(super) slot: u32,
    /// Offset of the row; 0 while the lane has no client slot.
    pub(super) row: u64,
    /// The segment that it appends to.
    pub(super) open: Option<super::append::OpenSegment>,
    /// Bytes that this lane made garbage since it last looked for something to clean.
    pub(super) made_dead: u64,
    /// Whether it is cleaning: what it appends then must not start cleaning again.
    pub(super) cleaning: super::clean::Cleaning,
    /// A large record that this lane's last write superseded: its segments can go as soon as the lock is released.
    pub(super) dead_large: Option<u64>,
    /// Room for a key.
    pub(super) key: Vec<u8>,
}

static THREADS: AtomicUsize = AtomicUsize::new(0);
static FREE_NUMBERS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Gives the number back when its thread ends, so that thread pools that come and go reuse lanes.
struct Number(usize);

impl Drop for Number {
    fn drop(&mut self) {
        lock(&FREE_NUMBERS).push(self.0);
    }
}

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    static KEEP: Cell<Option<Number>> = const { Cell::new(None) };
}

/// A small number that no other living thread of this process has.
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
    let number = lock(&FREE_NUMBERS).pop().unwrap_or_else(|| THREADS.fetch_add(1, Ordering::Relaxed));
    NUMBER.set(number);
    // A thread that is already being torn down keeps its number to the end of the process.
    let _ = KEEP.try_with(|keep| keep.set(Some(Number(number))));
    number
}

/// Locks a mutex whose data stay consistent through a panic (they are private caches of what stands in the file).
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lanes {
    pub(super) fn new() -> Lanes {
        let cell = |_| Cell_ { row: AtomicU64::new(0), lane: Mutex::default() };
        Lanes { cells: (0..LANES).map(cell).collect(), claims: Mutex::new(()) }
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// A lane for this thread, claimed.
    #[inline(always)]
    pub(crate) fn lane(&self) -> Result<MutexGuard<'_, Lane>, WriteError> {
        if self.read_only {
            return Err(WriteError::ReadOnly);
        }
        let cell = &self.lanes.cells[thread_number() % LANES];
        if let Ok(lane) = cell.lane.try_lock() {
            if lane.row != 0 {
                return Ok(lane);
            }
        }
        self.find_lane(cell)
    }

    /// The thread's own lane is taken (by a reservation of its own, or by another thread of the same number), or is new.
    #[cold]
    fn find_lane<'a>(&'a self, own: &'a Cell_) -> Result<MutexGuard<'a, Lane>, WriteError> {
        let mut refused = None;
        for cell in std::iter::once(own).chain(self.lanes.cells.iter()) {
            let mut lane = match cell.lane.try_lock() {
                Ok(lane) => lane,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            if lane.row == 0 {
                if refused.is_some() {
                    continue;
                }
                match self.claim_slot() {
                    Ok(slot) => {
                        lane.slot = slot;
                        lane.row = row::offset(slot);
                        cell.row.store(lane.row, Ordering::Relaxed);
                    }
                    Err(error) => {
                        refused = Some(error);
                        continue;
                    }
                }
            }
            return Ok(lane);
        }
        match refused {
            // Some other lane of this process exists but is taken just now.
            Some(error) if self.lanes.cells.iter().all(|c| c.row.load(Ordering::Relaxed) == 0) => Err(error),
            _ => self.wait_for_lane(),
        }
    }

    fn wait_for_lane(&self) -> Result<MutexGuard<'_, Lane>, WriteError> {
        let claimed = self.lanes.cells.iter().filter(|c| c.row.load(Ordering::Relaxed) != 0);
        let mut cells: Vec<_> = claimed.collect();
        let turn = thread_number() % cells.len().max(1);
        cells.rotate_left(turn);
        let Some(cell) = cells.first() else {
            return Err(WriteError::TooManyClients { limit: limit::CLIENTS });
        };
        Ok(lock(&cell.lane))
    }

    /// Takes a free client slot, or one whose owner is dead, after repairing what it left.
    fn claim_slot(&self) -> Result<u32, WriteError> {
        let _one_at_a_time = lock(&self.lanes.claims);
        for slot in 0..limit::CLIENTS {
            let offset = row::offset(slot);
            let high = self.mem.load(at::CLIENTS_HIGH, Ordering::Acquire);
            if u64::from(slot) >= high {
                self.mem.back(offset & !(PAGE - 1), PAGE).map_err(back_error)?;
            }
            let claimed =
                self.host.try_claim(slot).map_err(|source| WriteError::Io { action: "claim a client slot", source })?;
            if !claimed {
                continue;
            }
            if let Err(error) = self.recover(slot) {
                self.host.release(slot);
                return Err(error);
            }
            self.write_identity(offset);
            self.raise(at::CLIENTS_HIGH, u64::from(slot) + 1);
            return Ok(slot);
        }
        Err(WriteError::TooManyClients { limit: limit::CLIENTS })
    }

    fn write_identity(&self, row: u64) {
        let pid = self.host.pid();
        let name = self.host.describe(pid).name.unwrap_or_default();
        let mut bytes = [0u8; 16];
        let n = name.len().min(16);
        bytes[..n].copy_from_slice(&name.as_bytes()[..n]);
        self.mem.store(row + row::at::PID, u64::from(pid), Ordering::Relaxed);
        self.mem.store(row + row::at::SINCE, self.host.now_ms(), Ordering::Relaxed);
        self.mem.write(row + row::at::NAME, &bytes);
        let times = self.mem.load(row + row::at::STATE, Ordering::Relaxed) >> 8;
        self.mem.store(row + row::at::STATE, (times + 1) << 8 | 1, Ordering::Release);
    }

    pub(super) fn row_name(&self, slot: u32) -> String {
        let mut bytes = [0u8; 16];
        self.mem.read(row::offset(slot) + row::at::NAME, &mut bytes);
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(16);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// Rows that were ever used.
    pub(super) fn rows(&self) -> impl Iterator<Item = u32> {
        0..(self.mem.load(at::CLIENTS_HIGH, Ordering::Acquire) as u32).min(limit::CLIENTS)
    }

    pub(super) fn is_active(&self, slot: u32) -> bool {
        self.mem.load(row::offset(slot) + row::at::STATE, Ordering::Acquire) & 1 == 1
    }

    /// Repairs what dead clients left. Called when a store is opened, and wherever a dead client holds something back.
    pub(crate) fn sweep(&self) -> Result<(), WriteError> {
        for slot in self.rows() {
            if self.is_active(slot) {
                let _one_at_a_time = lock(&self.lanes.claims);
                if self.host.try_claim(slot).map_err(|source| WriteError::Io { action: "probe a client", source })? {
                    let done = self.recover(slot);
                    self.host.release(slot);
                    done?;
                }
            }
        }
        Ok(())
    }

    /// Gives every lane back. Only for the process that claimed them.
    pub(crate) fn retire(&self) {
        for cell in self.lanes.cells.iter() {
            let mut lane = lock(&cell.lane);
            if lane.row == 0 {
                continue;
            }
            self.retire_segment(&mut lane);
            for pin in 0..row::PINS {
                self.mem.store(lane.row + row::at::PINS + 8 * pin, 0, Ordering::Release);
            }
            let state = self.mem.load(lane.row + row::at::STATE, Ordering::Relaxed);
            self.mem.store(lane.row + row::at::STATE, state & !1, Ordering::Release);
            self.host.release(lane.slot);
            cell.row.store(0, Ordering::Relaxed);
            *lane = Lane::default();
        }
    }

    /// The row of this thread's lane, for statistics and pins; 0 if it has none (then one is claimed, if that is possible).
    #[inline(always)]
    pub(super) fn own_row(&self) -> u64 {
        let row = self.lanes.cells[thread_number() % LANES].row.load(Ordering::Relaxed);
        if row != 0 {
            return row;
        }
        self.claim_row()
    }

    #[cold]
    fn claim_row(&self) -> u64 {
        if self.read_only {
            return 0;
        }
        // A lane of another thread serves as well: statistics are hints, and pins are taken with compare-exchange.
        self.lane().map_or(0, |lane| lane.row)
    }

    /// Counts something for this thread.
    #[inline(always)]
    pub(crate) fn count(&self, stat: Stat, n: u64) {
        let row = self.own_row();
        if row != 0 {
            self.count_at(row, stat, n);
        }
    }

    /// Counts in a row. Two threads that share a row may lose a count: statistics decide nothing.
    #[inline(always)]
    pub(super) fn count_at(&self, row: u64, stat: Stat, n: u64) {
        let offset = row + row::at::STATS + 8 * stat as u64;
        let now = self.mem.load(offset, Ordering::Relaxed);
        self.mem.store(offset, now.wrapping_add(n), Ordering::Relaxed);
    }

    /// Raises a word to at least `value`.
    pub(super) fn raise(&self, offset: u64, value: u64) {
        let mut now = self.mem.load(offset, Ordering::Acquire);
        while now < value {
            match self.mem.compare_exchange(offset, now, value) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }

    /// Lowers a word to at most `value`.
    pub(super) fn lower(&self, offset: u64, value: u64) {
        let mut now = self.mem.load(offset, Ordering::Relaxed);
        while now > value {
            match self.mem.compare_exchange(offset, now, value) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }
}

/// What a failure to back memory means to a writer.
pub(super) fn back_error(error: BackError) -> WriteError {
    match error {
        BackError::NoSpace(source) => WriteError::NoSpace(source),
        BackError::BeyondReserve { capacity, .. } => WriteError::Full { max_bytes: capacity },
        BackError::Io(source) => WriteError::Io { action: "extend the file", source },
        _ => WriteError::Io { action: "extend the file", source: std::io::Error::other("unknown cause") },
    }
}
