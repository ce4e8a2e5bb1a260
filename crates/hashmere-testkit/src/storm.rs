//! A storm: processes work on shared keys while random ones of them are killed and replaced, or stopped for a while;
//! afterwards every key's history must have a valid order, and no operation may have waited long for a killed process.

use crate::history::{assert_linearizable, Call, Operation, Reply};
use crate::journal::{self, Journal};
use crate::limits::now_ns;
use crate::procs::{Worker, LIMIT};
use crate::rng::Rng;
use crate::scratch::Scratch;
use hashmere::{Options, Store, WriteError};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Processes at a time.
const WORKERS: u32 = 4;
/// Keys that are worked on at the same time, and for how long.
const KEYS: u64 = 6;
const ROUND_MS: u64 = 15;
/// Operations that are not written down for each that is: most kills are to hit the store, not the bookkeeping.
const CHURN: u64 = 6;
/// How long a process is stopped at most. Far below the busy timeout, so that nothing is refused.
const STOP_US: u64 = 30_000;
/// In this many of a hundred cases one is stopped; half of those are killed where they are.
const STOPS: u64 = 30;
/// No operation may take longer than this, deaths or not.
const HANG_NS: u64 = 20_000_000_000;
/// Nor may more than a few take longer than this. Who needs what a dead process held meets it many times in a storm; a
/// machine that does not run its processes for so long does that to each of them once.
const SLOW_NS: u64 = 3_000_000_000;
const SLOW_MAX: usize = 2 * WORKERS as usize;

/// What a storm was like.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Processes killed.
    pub kills: u32,
    /// Processes stopped for a while, some of which were killed then.
    pub stops: usize,
    /// Dead clients that were repaired.
    pub takeovers: u64,
    /// Operations that were written down, and how many of them were cut off.
    pub operations: (usize, usize),
    /// The longest operation, stops included.
    pub longest: Duration,
    /// Operations of more than three seconds.
    pub slow: usize,
    /// The longest that an operation of a survivor took from a death on.
    pub after_death: Duration,
}

struct Storm<'a> {
    program: &'a str,
    store: &'a Store,
    scratch: &'a Scratch,
    start: u64,
    rng: Rng,
    next: u32,
    alive: Vec<Worker>,
    /// When processes were killed, and when they were stopped.
    deaths: Vec<u64>,
    stops: Vec<u64>,
}

/// Lets one rage for so long on a new store with these options. `program` is the worker program.
///
/// # Panics
/// If any promise is broken.
pub fn storm(program: &str, scratch: &Scratch, options: &Options, rng: Rng, time: Duration) -> Report {
    let store = &options.open(scratch.store("storm")).expect("create the store");
    let (deaths, stops) = (Vec::new(), Vec::new());
    let mut storm = Storm { program, store, scratch, start: now_ns(), rng, next: 0, alive: Vec::new(), deaths, stops };
    (0..WORKERS).for_each(|_| storm.add_worker());
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::thread::sleep(Duration::from_micros(2000 + storm.rng.below(15_000)));
        storm.strike();
    }
    let alive = std::mem::take(&mut storm.alive);
    alive.into_iter().for_each(|worker| drop(worker.finish(LIMIT).ok("mix")));
    let operations = storm.operations();
    let report = storm.report(&operations);
    println!("{report:?}");
    assert!(report.longest.as_nanos() < HANG_NS.into(), "an operation took {:?}", report.longest);
    assert!(report.slow <= SLOW_MAX, "{} operations took more than 3 s", report.slow);
    assert!(
        operations.iter().all(|operation| operation.reply != Some(Reply::Refused)),
        "no process was stopped for long"
    );
    assert_linearizable(operations);
    storm.check_store();
    report
}

impl Storm<'_> {
    fn journal(&self, number: u32) -> PathBuf {
        self.scratch.path().join(format!("journal-{number}"))
    }

    fn add_worker(&mut self) {
        let (number, seed, journal) = (self.next, self.rng.word(), self.journal(self.next));
        self.next += 1;
        let (path, journal) = (self.store.path().display(), journal.display());
        let arguments: [&dyn ToString; 9] =
            [&path, &journal, &number, &seed, &u64::MAX, &KEYS, &ROUND_MS, &self.start, &CHURN];
        self.alive.push(Worker::start(self.program, "mix", &arguments));
    }

    /// Kills one, or stops one for a while.
    fn strike(&mut self) {
        let victim = self.rng.index(self.alive.len());
        if self.rng.chance(STOPS) {
            self.stops.push(now_ns());
            self.alive[victim].signal(Signal::SIGSTOP);
            std::thread::sleep(Duration::from_micros(self.rng.below(STOP_US)));
            if self.rng.chance(50) {
                self.alive[victim].go_on();
                return;
            }
        }
        self.deaths.push(now_ns());
        let ended = self.alive.swap_remove(victim).kill();
        assert!(ended.killed_by(Signal::SIGKILL), "a worker had failed by itself: {ended:?}");
        self.add_worker();
    }

    /// What all workers had written down, dead or not, and what is there now of every key they touched.
    fn operations(&self) -> Vec<Operation> {
        let mut all: Vec<Operation> =
            (0..self.next).flat_map(|number| journal::read(&self.journal(number), number)).collect();
        let keys: BTreeSet<u32> = all.iter().map(|operation| operation.key).collect();
        let last = self.journal(self.next);
        let mut journal = Journal::create(&last, keys.len());
        keys.iter().for_each(|&key| {
            journal.perform(self.store, key, Call::Get, 0);
        });
        all.extend(journal::read(&last, self.next));
        all
    }

    fn report(&self, operations: &[Operation]) -> Report {
        let replied = operations.iter().filter(|operation| operation.reply.is_some());
        let times = replied.clone().map(|operation| operation.returned - operation.called);
        let longest = times.clone().max().unwrap_or(0);
        Report {
            kills: self.next - WORKERS,
            stops: self.stops.len(),
            takeovers: self.store.stats().takeovers,
            operations: (operations.len(), operations.len() - replied.count()),
            longest: Duration::from_nanos(longest),
            slow: times.filter(|time| *time > SLOW_NS).count(),
            after_death: Duration::from_nanos(self.after_death(operations)),
        }
    }

    /// The longest time from a death to the end of an operation that was under way then, of those in which no process
    /// was stopped.
    fn after_death(&self, operations: &[Operation]) -> u64 {
        let next = |times: &[u64], from: u64| times.get(times.partition_point(|time| *time < from)).copied();
        let waits = operations.iter().filter(|operation| operation.reply.is_some()).filter_map(|operation| {
            let death = next(&self.deaths, operation.called).filter(|death| *death <= operation.returned)?;
            let stopped = next(&self.stops, death).is_some_and(|stop| stop <= operation.returned);
            (!stopped).then_some(operation.returned - death)
        });
        waits.max().unwrap_or(0)
    }

    fn check_store(&self) {
        let report = self.store.check();
        assert!(report.is_clean(), "{:#?}", report.problems);
        assert_eq!(self.store.len(), self.store.iter().count() as u64, "count(), and the keys that a scan returns");
        // What waits for a sync is not leaked either. (A volatile store refuses: nothing waits there.)
        let synced = self.store.sync();
        assert!(matches!(synced, Ok(_) | Err(WriteError::InvalidState(_))), "{synced:?}");
        let stats = self.store.stats();
        // Each death may leak an open segment until it is found; what was found is not leaked.
        let bound = 4 * stats.bytes_live + 64 * stats.segment_bytes;
        let (allocated, live) = (stats.bytes_allocated, stats.bytes_live);
        assert!(allocated < bound, "{allocated} bytes allocated for {live} live");
    }
}
