//! Threads that start at the same moment.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

/// A barrier that spins: all leave it within nanoseconds, where a sleeping one spreads them over microseconds.
#[derive(Debug, Default)]
pub struct Gate {
    arrived: AtomicUsize,
    /// The round in which there was no time left, + 1; 0 before.
    late: AtomicUsize,
}

impl Gate {
    /// A new gate.
    pub fn new() -> Gate {
        Gate::default()
    }

    /// The same, until one of them comes too late: then it is `false` for all of them, in the same round. On a busy
    /// machine a round takes as long as it takes the scheduler to run every party.
    pub fn pass_before(&self, end: Instant, parties: usize, round: usize) -> bool {
        if Instant::now() > end {
            let _ = self.late.compare_exchange(0, round + 1, Ordering::AcqRel, Ordering::Relaxed);
        }
        self.pass(parties, round);
        let late = self.late.load(Ordering::Acquire);
        late == 0 || round + 1 < late
    }

    /// Waits until `parties` threads have come for the `round`th time (counted from zero).
    pub fn pass(&self, parties: usize, round: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0u32;
        while self.arrived.load(Ordering::Acquire) < parties * (round + 1) {
            spins += 1;
            // With fewer cores than parties, spinning alone would wait for the scheduler.
            if spins % 256 == 0 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// A thread that repeats something, once at least, until it is asked to stop; joined (and its panic passed on) by
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct Background {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Background {
    /// Starts it; `each` gets the number of the repetition.
    pub fn repeat(mut each: impl FnMut(u64) + Send + 'static) -> Background {
        let stop = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new(AtomicU64::new(0));
        let (asked, done) = (Arc::clone(&stop), Arc::clone(&rounds));
        let thread = std::thread::spawn(move || {
            let mut round = 0;
            loop {
                each(round);
                round += 1;
                done.store(round, Ordering::Relaxed);
                if asked.load(Ordering::Relaxed) {
                    return round;
                }
            }
        });
        Background { stop, rounds, thread: Some(thread) }
    }

    /// How many repetitions there were up to now.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Stops it and says how many repetitions there were.
    ///
    /// # Panics
    /// If it panicked.
    pub fn finish(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().expect("not finished before").join() {
            Ok(rounds) => rounds,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
