//! Where scenarios take place: a store that was prepared beforehand, and clients whose every access is a step.

use super::explore::wrong;
use crate::engine::tests::audit::audit;
use crate::engine::tests::crash::{dump, is_sound, State};
use crate::engine::tests::fixture::{Fixture, Geometry};
use crate::engine::tests::probe::{die, until_death};
use crate::engine::{Access, Engine};
use hashmere_mem::shuttle::sync::{Condvar, Mutex};
use hashmere_mem::{BackError, HeapMem, LocalHost, LocalPeers, Mem, ShuttleMem};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A store as it is when a scenario begins.
pub(super) struct Stage {
    image: HeapMem,
}

impl Stage {
    /// Prepares a store. Every client of `setup` must be retired.
    pub(super) fn new(geometry: Geometry, setup: impl FnOnce(&Fixture)) -> Stage {
        let fixture = Fixture::new(geometry);
        setup(&fixture);
        Stage { image: fixture.heap.image() }
    }

    /// A scenario on a copy of it. No client waits longer than `timeout` for a living client; time passes by a
    /// millisecond with every look at the clock.
    pub(super) fn play(&self, timeout: Duration) -> Play {
        Play {
            mem: Arc::new(ShuttleMem::from_heap(self.image.image())),
            peers: LocalPeers::new(),
            scheduled: Arc::new(AtomicBool::new(false)),
            timeout,
        }
    }
}

/// Longer than any scenario: no client gives up.
pub(super) const FOREVER: Duration = Duration::from_secs(1 << 20);

/// What the keys begin with that only fill segments.
pub(super) const FILL: &str = "fill";

/// One scenario.
pub(super) struct Play {
    mem: Arc<ShuttleMem>,
    peers: Arc<LocalPeers>,
    scheduled: Arc<AtomicBool>,
    timeout: Duration,
}

impl Play {
    /// One more process.
    pub(super) fn client(&self) -> Player {
        let fate = Arc::new(Fate::default());
        let mem = StageMem { mem: self.mem.clone(), scheduled: self.scheduled.clone(), fate: fate.clone() };
        let access = Access { read_only: false, busy_timeout: self.timeout, sync_every: None, origin: 0 };
        let engine = Engine::attach(mem, LocalHost::new(&self.peers), Mem::capacity, access).unwrap();
        Player { engine, fate }
    }

    /// From here on every access is a step, before which the scheduler chooses who goes on.
    pub(super) fn begin(&self) {
        self.scheduled.store(true, Ordering::Relaxed);
    }

    /// The scenario is over, and the store must be sound and hold one of these, fillings aside. The players live on to
    /// this point, except those who died.
    pub(super) fn end(self, outcomes: &[State]) {
        self.scheduled.store(false, Ordering::Relaxed);
        let fixture = Fixture::of(self.mem.heap().image(), self.peers);
        let survivor = fixture.client();
        survivor.sweep().unwrap();
        let everything = outcomes.iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        let mut now = dump(&survivor, &everything).unwrap_or_else(|text| wrong(text));
        is_sound(&survivor, now.len() as u64).unwrap_or_else(|text| wrong(text));
        now.retain(|key, _| !key.starts_with(FILL.as_bytes()));
        if !outcomes.contains(&now) {
            let text = now.iter().map(|(k, v)| format!("{}={} ", k.escape_ascii(), v.escape_ascii()));
            wrong(format!("the store holds {}", text.collect::<String>()));
        }
        audit(&survivor).unwrap_or_else(|text| wrong(text));
    }
}

/// A process in a scenario.
pub(super) struct Player {
    engine: Engine<StageMem, LocalHost>,
    fate: Arc<Fate>,
}

/// What happens to a client at some of its accesses.
#[derive(Default)]
struct Fate {
    accesses: AtomicU64,
    /// The number of the access at which something happens next, plus one.
    at: AtomicU64,
    /// It stops there until the first of these opens, and so on; without, it dies.
    gates: OnceLock<Vec<(u64, Arc<Gate>)>>,
}

impl Fate {
    fn access(&self) {
        let n = self.accesses.fetch_add(1, Ordering::Relaxed);
        if n + 1 != self.at.load(Ordering::Relaxed) {
            return;
        }
        let Some(gates) = self.gates.get() else { die() };
        let next = gates.iter().find(|(at, _)| *at > n + 1);
        self.at.store(next.map_or(0, |(at, _)| *at), Ordering::Relaxed);
        gates.iter().filter(|(at, _)| *at == n + 1).for_each(|(_, gate)| gate.pass());
    }

    fn arm(&self, at: u64) {
        self.at.store(self.accesses.load(Ordering::Relaxed) + at + 1, Ordering::Relaxed);
    }
}

impl Player {
    /// How many accesses something takes.
    pub(super) fn accesses(&self, act: impl FnOnce(&Player)) -> u64 {
        let before = self.fate.accesses.load(Ordering::Relaxed);
        act(self);
        self.fate.accesses.load(Ordering::Relaxed) - before
    }

    /// It dies before its access number `at`, counted from now.
    pub(super) fn die_at(&self, at: u64) {
        self.fate.arm(at);
    }

    /// It stops there, until the gate opens.
    pub(super) fn stop_at(&self, at: u64, gate: &Arc<Gate>) {
        self.stop_at_each(&[(at, gate)]);
    }

    /// The same at several accesses, in order.
    pub(super) fn stop_at_each(&self, gates: &[(u64, &Arc<Gate>)]) {
        let now = self.fate.accesses.load(Ordering::Relaxed);
        let gates: Vec<_> = gates.iter().map(|(at, gate)| (now + at + 1, Arc::clone(gate))).collect();
        self.fate.at.store(gates.first().map_or(0, |(at, _)| *at), Ordering::Relaxed);
        assert!(self.fate.gates.set(gates).is_ok());
    }

    /// Lets it act until it is done or dies: `None`. Its process is gone a little later.
    pub(super) fn until_death<R>(&self, act: impl FnOnce(&Player) -> R) -> Option<R> {
        let done = until_death(|| act(self));
        if done.is_none() {
            hashmere_mem::shuttle::thread::yield_now();
            self.engine.host.kill();
        }
        done
    }
}

impl Deref for Player {
    type Target = Engine<StageMem, LocalHost>;
    fn deref(&self) -> &Self::Target {
        &self.engine
    }
}

/// Holds clients up until it is opened.
#[derive(Default)]
pub(super) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    is_reached: Mutex<bool>,
    reached: Condvar,
}

impl Gate {
    fn pass(&self) {
        self.reach();
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
    }

    /// A client is here, or will not come any more.
    pub(super) fn reach(&self) {
        *self.is_reached.lock().unwrap() = true;
        self.reached.notify_all();
    }

    /// Waits until one is.
    pub(super) fn expect(&self) {
        let mut is_reached = self.is_reached.lock().unwrap();
        while !*is_reached {
            is_reached = self.reached.wait(is_reached).unwrap();
        }
    }

    /// Lets all of them pass.
    pub(super) fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// The memory as one client reaches it.
pub(super) struct StageMem {
    mem: Arc<ShuttleMem>,
    scheduled: Arc<AtomicBool>,
    fate: Arc<Fate>,
}

/// Each of these is a step, or before the scenario begins an ordinary access.
macro_rules! accesses {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        fn $name(&self, $($arg: $type),*) $(-> $result)? {
            self.fate.access();
            if self.scheduled.load(Ordering::Relaxed) {
                self.mem.$name($($arg),*)
            } else {
                self.mem.heap().$name($($arg),*)
            }
        }
    )*};
}

impl Mem for StageMem {
    const STEPPED: bool = true;

    accesses! {
        fn load(off: u64, order: Ordering) -> u64;
        fn store(off: u64, value: u64, order: Ordering);
        fn compare_exchange(off: u64, current: u64, new: u64) -> Result<u64, u64>;
        fn compare_exchange_pair(off: u64, current: [u64; 2], new: [u64; 2]) -> bool;
        fn swap(off: u64, value: u64, order: Ordering) -> u64;
        fn fetch_add(off: u64, value: u64, order: Ordering) -> u64;
        fn fetch_or(off: u64, value: u64, order: Ordering) -> u64;
        fn read(off: u64, dst: &mut [u8]);
        fn append_to(off: u64, len: usize, dst: &mut Vec<u8>);
        fn write(off: u64, src: &[u8]);
        fn matches(off: u64, bytes: &[u8]) -> bool;
        fn copy(from: u64, to: u64, len: u64);
        fn zero(off: u64, len: u64);
        fn back(off: u64, len: u64) -> Result<(), BackError>;
        fn unback(off: u64, len: u64) -> bool;
        fn wait(off: u64, expected: u32, timeout: Duration);
    }

    fn capacity(&self) -> u64 {
        self.mem.capacity()
    }

    fn has_pairs(&self) -> bool {
        self.mem.has_pairs()
    }

    fn fence(&self, order: Ordering) {
        self.mem.fence(order);
    }

    fn prefetch(&self, _off: u64) {}

    unsafe fn slice(&self, off: u64, len: usize) -> &[u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { self.mem.slice(off, len) }
    }

    unsafe fn slice_mut(&self, off: u64, len: usize) -> &mut [u8] {
        // SAFETY: the caller's promise is the same.
        unsafe { self.mem.slice_mut(off, len) }
    }

    fn wake(&self, off: u64) {
        self.mem.wake(off);
    }

    fn relax(&self) {
        self.mem.relax();
    }
}
