//! What is known of a store at a moment.

use crate::process::Process;
use crate::segments::{SegmentUse, Segments};
use hashmere::{FeedInfo, Mode};
use hashmere_engine::{Activity, Figures};
use hashmere_log::LogStats;
use hashmere_queue::PoolStats;
use hashmere_replica::ReplicaStatus;
use std::path::PathBuf;
use std::time::Duration;

/// What the memory of a store is used for, in bytes. The parts from `live` to `other` make up `total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Records that live, headers and padding included.
    pub live: u64,
    /// Records that were superseded or deleted and still take room.
    pub dead: u64,
    /// Index and segment table.
    pub index: u64,
    /// Regions: queues, logs, a feed.
    pub regions: u64,
    /// Free segments, and the ends of partly filled ones.
    pub free: u64,
    /// What is left: ends of segments that are being filled or are full, and empty ones that wait for views or a sync.
    pub other: u64,
    /// All segments of the file, whether there is memory behind them or not.
    pub total: u64,
    /// Size of the file as `ls` shows it.
    pub file: u64,
    /// Memory or disk that the file really takes.
    pub allocated: u64,
    /// The maximum; 0: there is none.
    pub max: u64,
}

impl Memory {
    pub(crate) fn of(activity: &Activity, segments: &Segments) -> Memory {
        let bytes = |use_| segments.count(use_) * segments.bytes;
        let total = (segments.map.len() as u64 - segments.count(SegmentUse::Offline)) * segments.bytes;
        let mut memory = Memory {
            live: activity.bytes_live.min(total),
            dead: activity.bytes_dead,
            index: bytes(SegmentUse::Index),
            regions: bytes(SegmentUse::Region),
            free: activity.bytes_free,
            other: 0,
            total,
            file: activity.bytes_file,
            allocated: activity.bytes_allocated,
            max: activity.bytes_max,
        };
        // Figures of a busy store are of slightly different moments: no part goes beyond what the others leave.
        let mut left = total;
        for part in [&mut memory.index, &mut memory.regions, &mut memory.live, &mut memory.free, &mut memory.dead] {
            *part = (*part).min(left);
            left -= *part;
        }
        memory.other = left;
        memory
    }
}

/// A pool of queues.
#[derive(Clone, Debug)]
pub struct PoolSnapshot {
    /// Its name.
    pub name: String,
    /// Its figures, and its queues.
    pub stats: PoolStats,
}

/// A log.
#[derive(Clone, Debug)]
pub struct LogSnapshot {
    /// Its name.
    pub name: String,
    /// Its figures.
    pub stats: LogStats,
}

/// A store at a moment. No process is stopped for it, so figures of a busy store are of slightly different moments.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The file.
    pub path: PathBuf,
    /// When it was taken: wall clock, in milliseconds since 1970.
    pub taken_ms: u64,
    /// The same by the monotonic clock: rates are made with it.
    pub taken: Duration,
    /// Strict or cache.
    pub mode: Mode,
    /// Whether the store is durable.
    pub durable: bool,
    /// Durable stores: a flush has failed, and nothing can be written any more.
    pub poisoned: bool,
    /// Keys, expired ones included until they are cleaned away.
    pub items: u64,
    /// What the memory is used for.
    pub memory: Memory,
    /// Since when the file system has refused memory, in milliseconds since 1970; 0: it does not.
    pub no_space_since_ms: u64,
    /// Durable stores: syncs completed.
    pub syncs: u64,
    /// What each segment is used for.
    pub segments: Segments,
    /// All that was ever done, by processes that are gone too.
    pub totals: Figures,
    /// The processes that have the store open for writing.
    pub processes: Vec<Process>,
    /// Pools of queues.
    pub pools: Vec<PoolSnapshot>,
    /// Logs.
    pub logs: Vec<LogSnapshot>,
    /// The change feed, if there is one.
    pub feed: Option<FeedInfo>,
    /// How far it is behind the store that it follows, if it follows one.
    pub replica: Option<ReplicaStatus>,
    /// The process that is making a backup, in its own PID namespace.
    pub backup_pid: Option<u32>,
    /// Times the store was cleared, plus one.
    pub generation: u64,
    /// Figures of each client slot.
    pub(crate) by_slot: Vec<Figures>,
}

impl Snapshot {
    /// The name of the store: that of the file without its ending.
    pub fn name(&self) -> String {
        self.path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Processes that are stopped or have crashed while they held something.
    pub fn stuck_holders(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|process| process.is_stuck_holder())
    }

    /// Hits of all reads that were ever counted, from 0 to 1; `None`: there were none.
    pub fn hit_ratio(&self) -> Option<f64> {
        let reads = self.totals.hits.saturating_add(self.totals.misses);
        (reads != 0).then(|| self.totals.hits as f64 / reads as f64)
    }
}
