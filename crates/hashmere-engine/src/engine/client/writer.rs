//! The writer contexts of this process.
//!
//! A *writer* is a client slot with its liveness lock, its row, and the segment that it appends to. Each thread has
//! one of its own, which costs it no atomic operation to take; threads beyond the first few dozen, and writes that a
//! thread makes while it holds a reservation, take one from a shared pool. When a thread ends its writer goes back
//! (`thread.rs`).

use crate::engine::client::thread::{self, known_number, thread_number, Lender, OWN, SHARES};
use crate::engine::{Engine, KeyHash, Writer};
use crate::error::WriteError;
use hashmere_format::header::limit;
use hashmere_format::row::{self, Stat, Trigger};
use hashmere_mem::{Host, Mem};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Shared writers; those before belong to the thread of the same number.
const POOL: usize = 32;

/// What is known of this process alone.
const OWN_STATS: [Stat; 4] = [Stat::Hits, Stat::Misses, Stat::Sets, Stat::Deletes];

/// The writers of this process.
pub(super) struct Writers {
    cells: Box<[WriterCell; OWN + POOL]>,
    /// Identifies this process for as long as it has the store open, whichever of its threads end.
    identity: WriterCell,
    /// A number that no other writers of this process have.
    id: u64,
    /// Is called when a thread ends.
    lender: OnceLock<Weak<dyn Lender>>,
    /// A thread ended whose writer could not be given back yet.
    any_left: AtomicBool,
    /// What was done in writers that were given back.
    gone: [AtomicU64; OWN_STATS.len()],
    /// One thread of the process claims at a time: liveness locks do not keep threads of one handle apart.
    claims: Mutex<()>,
    /// The last attempt to get a client slot failed; reads, which can do without, do not try again.
    refused: AtomicBool,
    /// In a forked child: all of this is the parent's.
    disowned: AtomicBool,
}

struct WriterCell {
    /// Offset of the writer's row; 0 while it has none. Readable by any thread.
    row: AtomicU64,
    /// The figures of the row in [`OWN_STATS`] when it was claimed: former clients of the slot counted them.
    before: [AtomicU64; OWN_STATS.len()],
    /// Whether a thread has it. For an own writer only its thread looks here.
    taken: AtomicBool,
    /// Its thread has ended while something of it was still in use.
    left: AtomicBool,
    /// How its operations are sampled, by trigger.
    paces: [Pace; Trigger::ALL.len()],
    writer: UnsafeCell<Writer>,
}

/// How often operations of one kind are sampled.
#[derive(Default)]
pub(super) struct Pace {
    /// One of this number.
    pub(super) period: AtomicU64,
    /// When the last was, by the monotonic clock in nanoseconds; 0: long ago.
    pub(super) last: AtomicU64,
    /// The session that this is of, plus one; 0: none.
    pub(super) session: AtomicU64,
}

impl WriterCell {
    fn new() -> WriterCell {
        WriterCell {
            row: AtomicU64::new(0),
            before: Default::default(),
            taken: AtomicBool::new(false),
            left: AtomicBool::new(false),
            paces: Default::default(),
            writer: UnsafeCell::default(),
        }
    }

    /// Takes it unless it is taken.
    fn take(&self) -> Option<WriterGuard<'_>> {
        let taken = self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Made only then: one that is dropped gives the writer free.
        taken.is_ok().then(|| WriterGuard { cell: self, _stay: PhantomData })
    }
}

// SAFETY: the writer in the cell is reached only through a `WriterGuard`, which exists once at a time: an own writer's
// is made only by the one living thread with its number, while `taken` is false; a pool writer's only after setting
// `taken` atomically.
unsafe impl Sync for WriterCell {}

/// A writer in use by this thread.
pub struct WriterGuard<'a> {
    cell: &'a WriterCell,
    /// Own writers belong to a thread: the guard must stay there.
    _stay: PhantomData<*const ()>,
}

impl Deref for WriterGuard<'_> {
    type Target = Writer;
    #[inline(always)]
    fn deref(&self) -> &Writer {
        // SAFETY: this is the only guard of the cell.
        unsafe { &*self.cell.writer.get() }
    }
}

impl DerefMut for WriterGuard<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Writer {
        // SAFETY: this is the only guard of the cell.
        unsafe { &mut *self.cell.writer.get() }
    }
}

impl Drop for WriterGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.cell.taken.store(false, Ordering::Release);
    }
}

/// Locks a mutex whose data stay consistent through a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writers {
    /// How the operations that are counted in a row of this process are sampled.
    pub(super) fn paces_of(&self, row: u64) -> Option<&[Pace; Trigger::ALL.len()]> {
        let has_row = |cell: &&WriterCell| cell.row.load(Ordering::Relaxed) == row;
        let own = self.cells.get(known_number()).filter(has_row);
        own.or_else(|| self.all().find(has_row)).map(|cell| &cell.paces)
    }

    pub(super) fn new() -> Writers {
        static IDS: AtomicU64 = AtomicU64::new(0);
        Writers {
            cells: Box::new(std::array::from_fn(|_| WriterCell::new())),
            identity: WriterCell::new(),
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
    fn all(&self) -> impl Iterator<Item = &WriterCell> {
        self.cells.iter().chain([&self.identity])
    }

    /// This thread uses writers of these, and gives them back when it ends.
    #[inline(always)]
    fn borrow(&self) {
        thread::borrow_from(self.id, || self.lender.get().cloned());
    }

    /// Held while slots are claimed or the rows of dead clients repaired.
    pub(super) fn claims(&self) -> MutexGuard<'_, ()> {
        lock(&self.claims)
    }

    /// This thread's own writer, if it has one and does not hold it already.
    #[inline(always)]
    fn take_own(&self) -> Option<WriterGuard<'_>> {
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
        Some(WriterGuard { cell, _stay: PhantomData })
    }

    /// A writer of the pool that is free.
    fn take_pooled(&self) -> Option<WriterGuard<'_>> {
        self.cells.get(OWN..)?.iter().find_map(WriterCell::take)
    }
}

/// What was done with a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationCounts {
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Values stored.
    pub sets: u64,
    /// Keys deleted.
    pub deletes: u64,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// A writer for this thread, claimed, for anything but a write of keys.
    #[inline(always)]
    pub fn writer(&self) -> Result<WriterGuard<'_>, WriteError> {
        self.writer_unless(|| Ok(()))
    }

    /// A writer for this thread, to write a key with; refused if the key is being shown by this thread.
    #[inline(always)]
    pub fn writer_for(&self, key: &[u8], kh: KeyHash) -> Result<WriterGuard<'_>, WriteError> {
        self.writer_unless(|| self.refuse_shown([(key, kh)].into_iter()))
    }

    /// The same for several keys.
    #[inline(always)]
    pub(crate) fn writer_for_many<'k>(
        &self,
        keys: impl Iterator<Item = (&'k [u8], KeyHash)>,
    ) -> Result<WriterGuard<'_>, WriteError> {
        self.writer_unless(|| self.refuse_shown(keys))
    }

    /// The same for every key.
    pub fn writer_for_all(&self) -> Result<WriterGuard<'_>, WriteError> {
        self.writer_unless(|| self.refuse_if_showing())
    }

    /// A writer for this thread, after a look at what it must not be used for if there may be such a thing: then its
    /// own writer is taken, or it has none.
    #[inline(always)]
    fn writer_unless(&self, look: impl FnOnce() -> Result<(), WriteError>) -> Result<WriterGuard<'_>, WriteError> {
        if let Some(writer) = self.clients.writers.take_own() {
            if writer.row != 0 {
                return Ok(writer);
            }
            return self.claim_writer(writer);
        }
        look()?;
        self.find_writer()
    }

    /// This thread's own writer, if it has one and does not hold it already.
    pub(in crate::engine) fn take_own_writer(&self) -> Option<WriterGuard<'_>> {
        self.clients.writers.take_own()
    }

    #[cold]
    fn find_writer(&self) -> Result<WriterGuard<'_>, WriteError> {
        if self.clients.writers.disowned.load(Ordering::Acquire) {
            return Err(Self::disowned());
        }
        self.clients.writers.borrow();
        let start = self.host.monotonic();
        loop {
            if let Some(writer) = self.clients.writers.take_pooled() {
                return if writer.row != 0 { Ok(writer) } else { self.claim_writer(writer) };
            }
            if self.host.monotonic().saturating_sub(start) > self.access.busy_timeout {
                return Err(WriteError::InvalidState(
                    "too many reservations and writing threads at a time in this process",
                ));
            }
            std::thread::yield_now();
        }
    }

    /// In a forked child that could not open the store again: nothing may be written in the parent's name.
    pub(crate) fn disown(&self) {
        self.clients.writers.disowned.store(true, Ordering::Release);
        for cell in self.clients.writers.all() {
            cell.taken.store(true, Ordering::Release);
            cell.row.store(0, Ordering::Release);
        }
    }

    /// Gives a new writer its client slot.
    #[cold]
    fn claim_writer<'a>(&self, mut writer: WriterGuard<'a>) -> Result<WriterGuard<'a>, WriteError> {
        if self.access.read_only {
            return Err(WriteError::ReadOnly);
        }
        self.clients.writers.borrow();
        let claimed = self.claim_slot();
        self.clients.writers.refused.store(claimed.is_err(), Ordering::Relaxed);
        writer.slot = claimed?;
        writer.row = row::offset(writer.slot);
        for (before, stat) in writer.cell.before.iter().zip(OWN_STATS) {
            before.store(self.figure(writer.row, stat), Ordering::Relaxed);
        }
        // Release: a thread that sees the row sees what is in it.
        writer.cell.row.store(writer.row, Ordering::Release);
        Ok(writer)
    }

    /// Gives every writer back. Only for the process that claimed them, when no thread uses the engine any more.
    pub(crate) fn retire(&mut self) {
        for cell in self.clients.writers.cells.iter_mut().chain([&mut self.clients.writers.identity]) {
            cell.taken.store(false, Ordering::Relaxed);
        }
        self.clients.writers.all().filter_map(WriterCell::take).for_each(|writer| self.give_back(writer));
    }

    /// What is called when a thread ends that uses this store. The one that opened it is noted.
    pub(crate) fn set_lender(&self, lender: Weak<dyn Lender>) {
        let _ = self.clients.writers.lender.set(lender);
        self.clients.writers.borrow();
    }

    /// Gives back the writer of a thread that ends, and with `all` those that threads share: see
    /// [`Lender::thread_ended`].
    pub(crate) fn thread_ended(&self, number: usize, all: bool) {
        let own = self.clients.writers.cells.get(number).filter(|_| number < OWN);
        let shared = self.clients.writers.cells.iter().skip(OWN).filter(|_| all);
        own.into_iter().chain(shared).for_each(|cell| self.return_writer(cell));
        self.return_left(|_| true, all);
    }

    /// Gives a writer back that no thread can begin to use, if it is not in use: a view holds a pin of its row, or a
    /// reservation the writer itself.
    fn return_writer(&self, cell: &WriterCell) {
        let row = cell.row.load(Ordering::Relaxed);
        if row == 0 {
            return;
        }
        // Before the pins are checked: the thread that lets the last one go checks this afterwards.
        cell.left.swap(true, Ordering::SeqCst);
        match cell.take() {
            Some(writer) if !self.has_pins(row) => {
                cell.left.store(false, Ordering::Relaxed);
                self.give_back(writer);
            }
            _ => self.clients.writers.any_left.store(true, Ordering::SeqCst),
        }
    }

    /// Gives back those writers that ended threads have left, if they are not in use any more.
    fn return_left(&self, which: impl Fn(&WriterCell) -> bool, all: bool) {
        if !self.clients.writers.any_left.swap(false, Ordering::SeqCst) {
            return;
        }
        for (number, cell) in self.clients.writers.cells.iter().enumerate() {
            if !cell.left.load(Ordering::Relaxed) {
                continue;
            }
            self.clients.writers.any_left.store(true, Ordering::Relaxed);
            if !which(cell) {
                continue;
            }
            match number {
                0..OWN => thread::with_number_of_none(number, || self.return_writer(cell)),
                _ if all => self.return_writer(cell),
                _ => thread::while_none_shares(|| self.return_writer(cell)),
            }
        }
    }

    /// After the last of its pins is gone: gives a row back whose thread has ended.
    #[inline(always)]
    pub(in crate::engine) fn return_if_left(&self, row: u64) {
        if self.clients.writers.any_left.load(Ordering::Relaxed) {
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

    fn give_back(&self, mut writer: WriterGuard<'_>) {
        if writer.row == 0 {
            return;
        }
        for (gone, since) in self.clients.writers.gone.iter().zip(self.since(writer.cell, writer.row)) {
            gone.fetch_add(since, Ordering::Relaxed);
        }
        writer.cell.row.store(0, Ordering::Release);
        let given = std::mem::take(&mut *writer);
        self.retire_writer(given);
    }

    /// This process's identity for others: the slot of a writer that no thread has, and how often that was claimed.
    pub(crate) fn identity(&self) -> Result<(u32, u64), WriteError> {
        loop {
            if self.clients.writers.disowned.load(Ordering::Acquire) {
                return Err(Self::disowned());
            }
            let cell = &self.clients.writers.identity;
            let row = cell.row.load(Ordering::Acquire);
            if row != 0 {
                let slot = (row - row::offset(0)) / row::BYTES;
                return Ok((slot as u32, self.mem.load(row + row::at::STATE, Ordering::Acquire) >> 8));
            }
            match cell.take() {
                Some(writer) if writer.row == 0 => drop(self.claim_writer(writer)?),
                _ => std::thread::yield_now(),
            }
        }
    }

    fn disowned() -> WriteError {
        let source = std::io::Error::other("the store could not be opened again in this process");
        WriteError::Io { action: "write after a fork", source }
    }

    /// The row of this thread's writer, for statistics and pins; 0 if it has none (then one is claimed, if that is
    /// possible).
    #[inline(always)]
    pub(in crate::engine) fn own_row(&self) -> u64 {
        match self.row_of_thread() {
            0 => self.claim_row(),
            row => row,
        }
    }

    /// The row of this thread's own writer, which no other thread counts in; 0 if it has none (yet).
    #[inline(always)]
    pub(super) fn row_of_thread(&self) -> u64 {
        self.clients.writers.cells.get(known_number()).map_or(0, |cell| cell.row.load(Ordering::Relaxed))
    }

    /// What the threads of this process did since they claimed their writers.
    pub(in crate::engine) fn own_figures(&self) -> OperationCounts {
        let mut sums = [0u64; OWN_STATS.len()];
        let mut add = |figures: [u64; OWN_STATS.len()]| {
            sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum = sum.wrapping_add(figure));
        };
        for cell in self.clients.writers.all() {
            let row = cell.row.load(Ordering::Acquire);
            if row != 0 {
                add(self.since(cell, row));
            }
        }
        add(self.clients.writers.gone.each_ref().map(|figure| figure.load(Ordering::Relaxed)));
        let [hits, misses, sets, deletes] = sums;
        OperationCounts { hits, misses, sets, deletes }
    }

    /// What was done in a writer since it was claimed.
    fn since(&self, cell: &WriterCell, row: u64) -> [u64; OWN_STATS.len()] {
        let mut figures = OWN_STATS.map(|stat| self.figure(row, stat));
        for (figure, before) in figures.iter_mut().zip(&cell.before) {
            *figure = figure.wrapping_sub(before.load(Ordering::Relaxed));
        }
        figures
    }

    /// Whether a row belongs to a writer of this process.
    pub(in crate::engine) fn has_row(&self, row: u64) -> bool {
        self.clients.writers.all().any(|cell| cell.row.load(Ordering::Relaxed) == row)
    }

    /// Claims this thread's writer for its row, or finds one that it shares with others; 0 if there is none.
    #[cold]
    pub(super) fn claim_row(&self) -> u64 {
        if self.access.read_only
            || self.clients.writers.refused.load(Ordering::Relaxed)
            || self.clients.writers.disowned.load(Ordering::Relaxed)
        {
            return 0;
        }
        // A row of the pool serves as well, which others use at the same time: pins are taken with compare-exchange,
        // and counted is there by addition.
        let pooled = self
            .clients
            .writers
            .cells
            .iter()
            .skip(OWN)
            .map(|cell| cell.row.load(Ordering::Relaxed))
            .find(|row| *row != 0);
        match thread_number() {
            number if number < OWN => self.writer().map_or(0, |writer| writer.row),
            SHARES => pooled.unwrap_or_else(|| self.writer().map_or(0, |writer| writer.row)),
            // Nothing keeps a shared writer from being given back while such a thread, which is being torn down, uses
            // its row.
            _ => 0,
        }
    }

    /// The error when every slot is taken.
    pub(super) fn too_many_clients() -> WriteError {
        WriteError::TooManyClients { limit: limit::CLIENTS }
    }
}
