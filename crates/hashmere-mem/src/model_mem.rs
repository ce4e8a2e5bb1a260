//! The scheduler's memory, in which no thread wakes without a wake-up.

use crate::scenarios::wrong;
use crate::{BackError, HeapMem, Mem, ShuttleMem};
use shuttle::thread;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// [`ShuttleMem`] whose waits end when the word has changed, and never by time: a scenario in which all who are left
/// sleep has gone wrong.
#[derive(Debug)]
pub struct ModelMem {
    mem: ShuttleMem,
    /// Those who are not asleep and not done.
    awake: AtomicU64,
    /// What the others sleep on, and what they saw there.
    asleep: Mutex<Vec<(u64, u32)>>,
}

impl ModelMem {
    /// On what `heap` holds, with no thread awake.
    pub fn new(heap: HeapMem) -> Arc<ModelMem> {
        Arc::new(ModelMem { mem: ShuttleMem::from_heap(heap), awake: AtomicU64::new(0), asleep: Mutex::default() })
    }

    /// The bytes themselves, whose use is no scheduling point.
    pub fn heap(&self) -> &HeapMem {
        self.mem.heap()
    }

    fn asleep(&self) -> MutexGuard<'_, Vec<(u64, u32)>> {
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all threads are asleep, and no word that one waits for has changed.
    fn is_dead_calm(&self) -> bool {
        let is_asleep = |(off, seen): &(u64, u32)| self.heap().load(*off, Ordering::Acquire) as u32 == *seen;
        self.awake.load(Ordering::Relaxed) == 0 && self.asleep().iter().all(is_asleep)
    }

    /// Starts a thread, which counts as awake until it ends or sleeps.
    pub fn spawn(self: &Arc<Self>, act: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
        let mem = self.clone();
        mem.awake.fetch_add(1, Ordering::Relaxed);
        thread::spawn(move || {
            act();
            mem.awake.fetch_sub(1, Ordering::Relaxed);
        })
    }
}

/// Each of these is a step.
macro_rules! steps {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        fn $name(&self, $($arg: $type),*) $(-> $result)? {
            self.mem.$name($($arg),*)
        }
    )*};
}

impl Mem for ModelMem {
    const STEPPED: bool = true;

    steps! {
        fn capacity() -> u64;
        fn load(off: u64, order: Ordering) -> u64;
        fn store(off: u64, value: u64, order: Ordering);
        fn compare_exchange(off: u64, current: u64, new: u64) -> Result<u64, u64>;
        fn has_pairs() -> bool;
        fn compare_exchange_pair(off: u64, current: [u64; 2], new: [u64; 2]) -> bool;
        fn swap(off: u64, value: u64, order: Ordering) -> u64;
        fn fetch_add(off: u64, value: u64, order: Ordering) -> u64;
        fn fetch_or(off: u64, value: u64, order: Ordering) -> u64;
        fn fence(order: Ordering);
        fn prefetch(off: u64);
        fn read(off: u64, dst: &mut [u8]);
        fn append_to(off: u64, len: usize, dst: &mut Vec<u8>);
        fn write(off: u64, src: &[u8]);
        fn matches(off: u64, bytes: &[u8]) -> bool;
        fn copy(from: u64, to: u64, len: u64);
        fn zero(off: u64, len: u64);
        fn back(off: u64, len: u64) -> Result<(), BackError>;
        fn unback(off: u64, len: u64) -> bool;
        fn wake(off: u64);
        fn relax();
    }

    unsafe fn slice(&self, off: u64, len: usize) -> &[u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { self.mem.slice(off, len) }
    }

    unsafe fn slice_mut(&self, off: u64, len: usize) -> &mut [u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { self.mem.slice_mut(off, len) }
    }

    fn wait(&self, off: u64, expected: u32, _timeout: Duration) {
        self.asleep().push((off, expected));
        self.awake.fetch_sub(1, Ordering::Relaxed);
        while self.mem.load(off, Ordering::Acquire) as u32 == expected {
            if self.is_dead_calm() {
                wrong("no thread is left to wake the sleeper");
            }
            thread::yield_now();
        }
        self.awake.fetch_add(1, Ordering::Relaxed);
        let mut asleep = self.asleep();
        let mine = asleep.iter().position(|bed| *bed == (off, expected));
        mine.map(|index| asleep.swap_remove(index));
    }
}
