//! Time, time limits, and what the machine has.

use nix::time::{clock_gettime, ClockId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Nanoseconds of the monotonic clock that all processes of the machine share.
pub fn now_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC).as_nanos() as u64
}

/// Processor time that this thread has used.
pub fn thread_cpu() -> Duration {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).expect("read a clock").into()
}

/// Wall-clock milliseconds since 1970.
pub fn wall_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a clock after 1970").as_millis() as u64
}

/// Nanoseconds that this thread has waited for a processor, if the kernel says so: on a busy machine, time that
/// only the scheduler is to blame for.
pub fn queued_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|queued| queued.parse().ok()).unwrap_or(0)
}

/// Whether tests that could go on forever are to be shorter still than a sample.
pub fn quick() -> bool {
    std::env::var_os("HASHMERE_QUICK").is_some()
}

/// Whether enumerations try every case: `HASHMERE_WHOLE=1`, or a seeded fault is on.
pub fn whole() -> bool {
    ["HASHMERE_WHOLE", "HASHMERE_FAULT"].iter().any(|name| std::env::var_os(name).is_some())
}

/// How often a test that could go on forever does what it does: `all` times with [`whole`], otherwise a third of it,
/// with [`quick`] a fifth.
pub fn times(all: u64) -> u64 {
    all.div_ceil(u64::from(divisor()))
}

/// How long such a test goes on: for `all` of the time with [`whole`], otherwise for a third of it,
/// with [`quick`] for a fifth.
pub fn lasting(all: Duration) -> Duration {
    all / divisor()
}

fn divisor() -> u32 {
    match (quick(), whole()) {
        (true, _) => 5,
        (_, true) => 1,
        _ => 3,
    }
}

/// Of the cases of an enumeration those that are tried: all with [`whole`], otherwise every `of`th, from one that the
/// seed chooses.
pub fn sampled(of: usize) -> impl FnMut() -> bool {
    let of = if whole() { 1 } else { of };
    let mut next = crate::rng::run_seed() as usize % of;
    move || {
        next += 1;
        next % of == 0
    }
}

/// Sets a flag when it is dropped, also by a panic: for threads of a scope that go on until the flag is set. The scope
/// waits for them, so without this a test that fails would hang, and not say why.
#[derive(Debug)]
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Bytes of memory that can be had without swapping.
pub fn memory_available() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).and_then(|n| n.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// How long a test may take, whatever it waits for: far longer than any does on a machine that is busy with other
/// things. What must not only end, but end soon, is held against a limit of its own, without the time for which it was
/// kept from running.
const HANG: Duration = Duration::from_secs(600);

/// Ends the process with a message unless it is dropped in time: a hang is a failure, not a wait forever.
#[derive(Debug)]
pub struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    /// Starts it.
    pub fn start(test: &'static str) -> Watchdog {
        let (alive, dropped) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if dropped.recv_timeout(HANG) == Err(RecvTimeoutError::Timeout) {
                let seed = crate::rng::run_seed();
                // Not eprintln: the harness would capture it, and then this process ends.
                let text = format!("\n{test}: HUNG, not done in {HANG:?}; HASHMERE_SEED={seed:#x}\n");
                crate::files::write_stderr(&text);
                crate::scratch::remove_all();
                std::process::exit(101);
            }
        });
        Watchdog { _alive: alive }
    }
}

/// Waits until it is so.
///
/// # Panics
/// If it is not so in time.
pub fn wait_until(what: &str, limit: Duration, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < limit, "waited {limit:?} in vain until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
