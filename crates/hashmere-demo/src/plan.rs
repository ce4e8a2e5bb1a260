//! What the parent is to do, and what it notes of what it did.

use fastrand::Rng;
use std::path::PathBuf;
use std::time::Duration;

/// What is to be done.
pub struct Plan {
    /// Worker processes at a time.
    pub slots: usize,
    /// Kills.
    pub kills: u32,
    /// Of the random moments.
    pub seed: u64,
    /// Whether a reader shows the progress.
    pub watch: bool,
    /// The store.
    pub store: PathBuf,
    /// Bytes of the input.
    pub bytes: u64,
    /// Chunks of the input.
    pub chunks: u64,
}

/// A kill that took place.
pub struct Killed {
    /// Which worker.
    pub slot: usize,
    /// Its process.
    pub pid: u32,
    /// When, after the start.
    pub after: Duration,
    /// The chunk in its hands, if it had one.
    pub chunk: Option<Left>,
}

/// A chunk that a killed process left behind.
pub struct Left {
    /// Its id.
    pub id: u64,
    /// The distinct words in it.
    pub words: u64,
    /// How many of them the process had applied.
    pub applied: u64,
}

/// What was done.
pub struct Ran {
    /// The kills.
    pub kills: Vec<Killed>,
    /// From the start of the first worker to the end of the last.
    pub time: Duration,
    /// Processes that were started as workers.
    pub started: u32,
}

/// When to kill whom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Once this number of bytes is done,
    pub bytes: u64,
    /// after this time, so that the kill falls anywhere within the handling of a chunk,
    pub delay: Duration,
    /// the worker that this number chooses.
    pub choice: u64,
}

/// The random moments of a plan; the first to come is the last of them.
pub fn moments(plan: &Plan) -> Vec<Moment> {
    let mut rng = Rng::with_seed(plan.seed);
    let mut moments: Vec<_> = (0..plan.kills)
        .map(|_| {
            let per_mille = 100 + rng.u64(..600);
            let bytes = (u128::from(plan.bytes) * u128::from(per_mille) / 1000) as u64;
            Moment { bytes, delay: Duration::from_micros(rng.u64(..5000)), choice: rng.u64(..) }
        })
        .collect();
    moments.sort();
    moments.reverse();
    moments
}
