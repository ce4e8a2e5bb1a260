//! Memory that counts what one client does to it, lets the client die at any store, and lets others run in between.

use super::disk::{Disk, Event};
use hashmere_format::header::at;
use hashmere_mem::words::{self, Words};
use hashmere_mem::{BackError, HeapMem, Mem, Scribbler};
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Accesses of one client after which it is taken to hang.
const TOO_MANY: u64 = 200_000_000;

/// The payload of the panic that is a client's death.
struct Killed;

type Hook = Box<dyn FnOnce() + Send>;

/// How far a store may come later than the source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Relaxed: past others of its kind, up to the next that is not.
    Relaxed,
    /// Release: not before what precedes it; relaxed stores that follow may come earlier.
    Release,
    /// A read-modify-write, a sequentially consistent store, a system call: nothing passes it.
    Full,
}

/// A store of the client under watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    /// Of the word; `u64::MAX` for a system call.
    pub(super) off: u64,
    /// What the word held.
    pub(super) before: u64,
    pub(super) kind: Kind,
    /// Number of the access, from zero.
    pub(super) access: u64,
    /// Fences before it that keep stores in order.
    pub(super) fences: u64,
}

/// What a test sees and does of one client's accesses.
pub(super) struct Probe {
    stores: AtomicU64,
    fuse: AtomicU64,
    accesses: AtomicU64,
    limit: AtomicU64,
    hook_at: AtomicU64,
    hook: Mutex<Option<Hook>>,
    /// The stores, where they are wanted.
    trace: Mutex<Option<Vec<Stored>>>,
    fences: AtomicU64,
    /// Requests for memory so far, and those that are refused.
    requests: AtomicU64,
    refuse: Mutex<Range<u64>>,
    /// Of what is refused the first half is taken, and kept, as ext4 does.
    halves: AtomicBool,
    /// Loads where no memory is do no harm: they are those of a reader, which then notices.
    lenient: AtomicBool,
    /// Bytes of the file that the client has addresses for.
    window: AtomicU64,
    /// How many it can have.
    window_max: AtomicU64,
    /// Whether what it loads is changed first.
    changing: AtomicBool,
    scribbler: Mutex<Option<Scribbler>>,
}

impl Probe {
    fn new() -> Arc<Probe> {
        Arc::new(Probe {
            stores: AtomicU64::new(0),
            fuse: AtomicU64::new(u64::MAX),
            accesses: AtomicU64::new(0),
            limit: AtomicU64::new(TOO_MANY),
            hook_at: AtomicU64::new(u64::MAX),
            hook: Mutex::new(None),
            trace: Mutex::new(None),
            fences: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            refuse: Mutex::new(0..0),
            halves: AtomicBool::new(false),
            lenient: AtomicBool::new(false),
            window: AtomicU64::new(u64::MAX),
            window_max: AtomicU64::new(u64::MAX),
            changing: AtomicBool::new(false),
            scribbler: Mutex::new(None),
        })
    }

    /// Stores made since the last [`Probe::rewind`].
    pub(super) fn stores(&self) -> u64 {
        self.stores.load(Ordering::Relaxed)
    }

    /// Loads and stores made since then.
    pub(super) fn accesses(&self) -> u64 {
        self.accesses.load(Ordering::Relaxed)
    }

    /// Counts from zero again, without fuse or hook.
    pub(super) fn rewind(&self) {
        self.stores.store(0, Ordering::Relaxed);
        self.accesses.store(0, Ordering::Relaxed);
        self.fuse.store(u64::MAX, Ordering::Relaxed);
        self.hook_at.store(u64::MAX, Ordering::Relaxed);
    }

    /// Counts from zero, and notes every store.
    pub(super) fn record(&self) {
        self.rewind();
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
    }

    /// The stores since [`Probe::record`].
    pub(super) fn recorded(&self) -> Vec<Stored> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    /// The client's requests for memory with these numbers, counted from now, are refused as by a full disk.
    pub(super) fn refuse(&self, requests: Range<u64>) {
        self.requests.store(0, Ordering::Relaxed);
        *self.refuse.lock().unwrap_or_else(PoisonError::into_inner) = requests;
    }

    /// Whether of what is refused the first half is taken nevertheless.
    pub(super) fn take_halves(&self, halves: bool) {
        self.halves.store(halves, Ordering::Relaxed);
    }

    /// Requests for memory since then.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn is_refused(&self) -> bool {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        self.refuse.lock().unwrap_or_else(PoisonError::into_inner).contains(&number)
    }

    /// The client dies after `stores` more stores, before the next one.
    pub(super) fn die_after(&self, stores: u64) {
        self.rewind();
        self.fuse.store(stores, Ordering::Relaxed);
    }

    /// Before the client's access number `at` (from zero), `hook` runs.
    pub(super) fn interrupt(&self, at: u64, hook: impl FnOnce() + Send + 'static) {
        self.rewind();
        self.hook_at.store(at, Ordering::Relaxed);
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hook));
    }

    /// From now on the client may load where no memory is: it was recycled under it, which it will notice.
    pub(super) fn be_lenient(&self) {
        self.lenient.store(true, Ordering::Relaxed);
    }

    /// From now on the client has addresses for the first `bytes` of the file, and can have them for `most`.
    pub(super) fn confine(&self, bytes: u64, most: u64) {
        self.window_max.store(most, Ordering::Relaxed);
        self.window.store(bytes, Ordering::Relaxed);
    }

    /// Panics when the client makes more than this many accesses.
    pub(super) fn limit(&self, accesses: u64) {
        self.limit.store(accesses, Ordering::Relaxed);
    }

    /// From now on, until `None`, the scribbler decides what the client finds in a word. Where it loads and stores is
    /// not looked at.
    pub(super) fn scribble(&self, scribbler: Option<Scribbler>) {
        self.changing.store(scribbler.is_some(), Ordering::Relaxed);
        *self.scribbler.lock().unwrap_or_else(PoisonError::into_inner) = scribbler;
    }

    #[inline]
    fn is_changing(&self) -> bool {
        self.changing.load(Ordering::Relaxed)
    }

    /// What the client finds where `value` is.
    #[inline]
    fn found(&self, value: u64) -> u64 {
        if !self.is_changing() {
            return value;
        }
        let mut scribbler = self.scribbler.lock().unwrap_or_else(PoisonError::into_inner);
        scribbler.as_mut().map_or(value, |scribbler| scribbler.found(value))
    }

    fn access(&self) {
        let n = self.accesses.fetch_add(1, Ordering::Relaxed);
        assert!(n < self.limit.load(Ordering::Relaxed), "the operation does not end");
        if n == self.hook_at.load(Ordering::Relaxed) {
            let hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(hook) = hook {
                hook();
            }
        }
    }

    fn store(&self, heap: &HeapMem, off: u64, kind: Kind) {
        if self.stores.load(Ordering::Relaxed) >= self.fuse.load(Ordering::Relaxed) {
            die();
        }
        self.stores.fetch_add(1, Ordering::Relaxed);
        if let Some(trace) = self.trace.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            let before = if off == u64::MAX { 0 } else { heap.load(off, Ordering::Relaxed) };
            let (access, fences) = (self.accesses() - 1, self.fences.load(Ordering::Relaxed));
            trace.push(Stored { off, before, kind, access, fences });
        }
    }
}

/// The death of the client that calls this.
pub(super) fn die() -> ! {
    panic::resume_unwind(Box::new(Killed))
}

/// Runs what a client does up to its end or its death: `None`.
pub(super) fn until_death<R>(act: impl FnOnce() -> R) -> Option<R> {
    match panic::catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => Some(result),
        Err(payload) if payload.is::<Killed>() => None,
        Err(payload) => panic::resume_unwind(payload),
    }
}

/// Heap memory as one client reaches it.
pub(super) struct ProbeMem {
    heap: Arc<HeapMem>,
    probe: Arc<Probe>,
    /// What a disk would make of the stores, in tests of power cuts.
    disk: Option<Arc<Disk>>,
    /// The probe is left alone.
    plain: bool,
}

impl ProbeMem {
    pub(super) fn new(heap: &Arc<HeapMem>, disk: Option<Arc<Disk>>, plain: bool) -> ProbeMem {
        ProbeMem { heap: heap.clone(), probe: Probe::new(), disk, plain }
    }

    /// Whether there is memory behind an offset.
    pub(super) fn has_memory(&self, off: u64) -> bool {
        self.heap.has_memory(off)
    }

    /// A word was stored.
    #[inline]
    fn stored(&self, off: u64) {
        if let Some(disk) = &self.disk {
            disk.note(Event::Store(off, self.heap.load(off, Ordering::Relaxed)));
        }
    }

    /// The same memory as another client reaches it.
    pub(super) fn beside(&self) -> ProbeMem {
        ProbeMem::new(&self.heap, self.disk.clone(), self.plain)
    }

    pub(super) fn probe(&self) -> Arc<Probe> {
        self.probe.clone()
    }

    #[inline]
    fn reading(&self, off: u64) -> &HeapMem {
        if self.plain {
            return &self.heap;
        }
        self.probe.access();
        assert!(off < self.probe.window.load(Ordering::Relaxed), "a load at {off:#x}, where no addresses are");
        let fine = self.heap.has_memory(off) || self.probe.lenient.load(Ordering::Relaxed) || self.probe.is_changing();
        assert!(fine, "a load where no memory is, in segment {}", off.saturating_sub(at::DATA) >> 12);
        &self.heap
    }

    #[inline]
    fn writing(&self, off: u64, kind: Kind) -> &HeapMem {
        if self.plain {
            return &self.heap;
        }
        self.probe.access();
        self.probe.store(&self.heap, off, kind);
        assert!(off < self.probe.window.load(Ordering::Relaxed), "a store at {off:#x}, where no addresses are");
        assert!(
            self.heap.has_memory(off) || self.probe.is_changing(),
            "a store where no memory is, in segment {}",
            off.saturating_sub(at::DATA) >> 12
        );
        &self.heap
    }
}

impl ProbeMem {
    /// One can die just before it.
    fn system_call(&self) -> &HeapMem {
        self.probe.access();
        self.probe.store(&self.heap, u64::MAX, Kind::Full);
        &self.heap
    }
}

impl Words for ProbeMem {
    fn load_word(&self, off: u64) -> u64 {
        self.probe.found(self.reading(off).load(off, Ordering::Relaxed))
    }

    fn store_word(&self, off: u64, value: u64) {
        self.writing(off, Kind::Relaxed).store(off, value, Ordering::Relaxed);
        self.stored(off);
    }
}

impl Mem for ProbeMem {
    fn capacity(&self) -> u64 {
        self.heap.capacity().min(self.probe.window.load(Ordering::Relaxed))
    }

    fn capacity_limit(&self) -> u64 {
        self.heap.capacity()
    }

    fn extend(&self, end: u64) -> bool {
        if end > self.capacity() && end <= self.probe.window_max.load(Ordering::Relaxed).min(self.heap.capacity()) {
            self.probe.window.store(end, Ordering::Relaxed);
        }
        end <= self.capacity()
    }

    fn size(&self) -> u64 {
        self.heap.capacity()
    }

    fn load(&self, off: u64, order: Ordering) -> u64 {
        self.probe.found(self.reading(off).load(off, order))
    }

    fn store(&self, off: u64, value: u64, order: Ordering) {
        let kind = match order {
            Ordering::Relaxed => Kind::Relaxed,
            Ordering::Release => Kind::Release,
            _ => Kind::Full,
        };
        self.writing(off, kind).store(off, value, order);
        self.stored(off);
    }

    fn compare_exchange(&self, off: u64, current: u64, new: u64) -> Result<u64, u64> {
        // One that fails stores nothing, so no death can be placed just before it.
        self.probe.access();
        if self.heap.load(off, Ordering::Relaxed) == current {
            self.probe.store(&self.heap, off, Kind::Full);
        }
        let done = self.heap.compare_exchange(off, current, new);
        if done.is_ok() {
            self.stored(off);
        }
        done.map_err(|now| self.probe.found(now))
    }

    fn has_pairs(&self) -> bool {
        self.heap.has_pairs()
    }

    fn compare_exchange_pair(&self, off: u64, current: [u64; 2], new: [u64; 2]) -> bool {
        self.probe.access();
        if [off, off + 8].map(|off| self.heap.load(off, Ordering::Relaxed)) == current {
            self.probe.store(&self.heap, off, Kind::Full);
        }
        let done = self.heap.compare_exchange_pair(off, current, new);
        if done {
            self.stored(off);
            self.stored(off + 8);
        }
        done
    }

    fn swap(&self, off: u64, value: u64, order: Ordering) -> u64 {
        let before = self.writing(off, Kind::Full).swap(off, value, order);
        self.stored(off);
        self.probe.found(before)
    }

    fn fetch_add(&self, off: u64, value: u64, order: Ordering) -> u64 {
        let before = self.writing(off, Kind::Full).fetch_add(off, value, order);
        self.stored(off);
        self.probe.found(before)
    }

    fn fetch_or(&self, off: u64, value: u64, order: Ordering) -> u64 {
        let before = self.writing(off, Kind::Full).fetch_or(off, value, order);
        self.stored(off);
        self.probe.found(before)
    }

    fn fence(&self, order: Ordering) {
        if order != Ordering::Acquire {
            self.probe.fences.fetch_add(1, Ordering::Relaxed);
        }
        self.heap.fence(order);
    }

    hashmere_mem::bytes_by_words!();

    fn zero(&self, off: u64, len: u64) {
        words::zero(self, off, len);
    }

    unsafe fn slice(&self, off: u64, len: usize) -> &[u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { self.reading(off).slice(off, len) }
    }

    unsafe fn slice_mut(&self, off: u64, len: usize) -> &mut [u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { self.writing(off, Kind::Relaxed).slice_mut(off, len) }
    }

    fn back(&self, off: u64, len: u64) -> Result<(), BackError> {
        let heap = self.system_call();
        if self.probe.is_refused() {
            if self.probe.halves.load(Ordering::Relaxed) {
                let _ = heap.back(off, (len / 2) & !4095);
            }
            return Err(BackError::NoSpace(std::io::ErrorKind::StorageFull.into()));
        }
        let done = heap.back(off, len);
        if let (Ok(()), Some(disk)) = (&done, &self.disk) {
            disk.note(Event::Size(off + len));
        }
        done
    }

    fn unback(&self, off: u64, len: u64) -> bool {
        let done = self.system_call().unback(off, len);
        if let (true, Some(disk)) = (done, &self.disk) {
            disk.note(Event::Zero(off, len));
        }
        done
    }

    fn sync(&self) -> std::io::Result<()> {
        self.system_call();
        match &self.disk {
            Some(disk) => disk.flush(),
            None => Ok(()),
        }
    }

    /// Returns at once: the clock of these tests moves on when it is read. Others run only where there are threads: to
    /// yield a hundred thousand times where there are none takes a busy machine twenty minutes.
    fn wait(&self, _off: u64, _expected: u32, _timeout: Duration) {
        if self.plain {
            std::thread::yield_now();
        }
    }

    fn wake(&self, _off: u64) {}

    fn relax(&self) {}
}
