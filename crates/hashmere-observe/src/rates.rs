//! What was done a second, from two snapshots.

use crate::snapshot::Snapshot;
use hashmere_engine::Figures;
use std::collections::BTreeMap;

/// The figures of [`Figures`], each a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OperationRates {
    /// Reads that found their key.
    pub hits: f64,
    /// Reads that did not.
    pub misses: f64,
    /// Values stored.
    pub sets: f64,
    /// Keys deleted.
    pub deletes: f64,
    /// Times a lock was not free at once.
    pub lock_waits: f64,
    /// Crashed clients repaired.
    pub takeovers: f64,
    /// Leaves split.
    pub splits: f64,
    /// Segments cleaned.
    pub cleaned: f64,
    /// Records moved by cleaning.
    pub moved: f64,
    /// Records dropped to make room.
    pub evicted: f64,
    /// Records dropped because they had expired.
    pub expired: f64,
    /// Reads repeated because a segment was recycled during them.
    pub retries: f64,
}

impl OperationRates {
    /// All reads.
    pub fn reads(&self) -> f64 {
        self.hits + self.misses
    }

    /// All reads, sets and deletes.
    pub fn operations(&self) -> f64 {
        self.reads() + self.sets + self.deletes
    }

    /// Hits of all reads, from 0 to 1; `None`: there were no reads.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.reads() > 0.0).then(|| self.hits / self.reads())
    }

    fn of(done: Figures, seconds: f64) -> OperationRates {
        let rate = |n: u64| n as f64 / seconds;
        OperationRates {
            hits: rate(done.hits),
            misses: rate(done.misses),
            sets: rate(done.sets),
            deletes: rate(done.deletes),
            lock_waits: rate(done.lock_waits),
            takeovers: rate(done.takeovers),
            splits: rate(done.splits),
            cleaned: rate(done.cleaned),
            moved: rate(done.moved),
            evicted: rate(done.evicted),
            expired: rate(done.expired),
            retries: rate(done.retries),
        }
    }
}

/// What was done a second between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Rates {
    /// Seconds between the two.
    pub seconds: f64,
    /// By all processes.
    pub total: OperationRates,
    /// By each, in the order of the later snapshot's [`processes`](Snapshot::processes). A process that came in between
    /// is given all that its client slots counted since the earlier one, which may be what their former clients did.
    pub processes: Vec<OperationRates>,
    /// Keys gained; negative: lost.
    pub items: f64,
    /// Bytes by which the memory that the file takes grew; negative: shrank.
    pub allocated: f64,
    /// Changes in the feed.
    pub feed: f64,
    /// Elements pushed, by pool and queue.
    pub pushed: BTreeMap<(String, String), f64>,
    /// Lines drained, by log.
    pub lines: BTreeMap<String, f64>,
    /// Lines lost, by log.
    pub lost: BTreeMap<String, f64>,
    /// Changes applied by the replicator that writes to this store.
    pub replicated: f64,
}

/// Bits of a position in a queue.
const PUSHED_BITS: u32 = 48;

impl Snapshot {
    /// What was done a second since another snapshot of the same store, which was taken earlier.
    pub fn since(&self, previous: &Snapshot) -> Rates {
        Rates::between(previous, self)
    }
}

impl Rates {
    fn between(before: &Snapshot, now: &Snapshot) -> Rates {
        let seconds = now.taken.saturating_sub(before.taken).as_secs_f64();
        // Two of the same moment: nothing was done.
        if seconds == 0.0 {
            return Rates { processes: vec![OperationRates::default(); now.processes.len()], ..Rates::default() };
        }
        let rate = |n: u64| n as f64 / seconds;
        let slot = |slot: u32| {
            let old = before.by_slot.get(slot as usize).copied().unwrap_or_default();
            now.by_slot.get(slot as usize).copied().unwrap_or_default().with(old, u64::wrapping_sub)
        };
        let all = (0..now.by_slot.len() as u32).map(slot).fold(Figures::default(), sum);
        let of_slots = |slots: &[u32]| slots.iter().copied().map(slot).fold(Figures::default(), sum);
        let mut rates = Rates {
            seconds,
            total: OperationRates::of(all, seconds),
            processes: now.processes.iter().map(|p| OperationRates::of(of_slots(&p.slots), seconds)).collect(),
            items: (now.items as f64 - before.items as f64) / seconds,
            allocated: (now.memory.allocated as f64 - before.memory.allocated as f64) / seconds,
            ..Rates::default()
        };
        if let (Some(feed), Some(old)) =
            (now.feed, before.feed.filter(|old| Some(old.number) == now.feed.map(|f| f.number)))
        {
            rates.feed = rate(feed.position.saturating_sub(old.position));
        }
        for pool in &now.pools {
            let Some(old) = before.pools.iter().find(|old| old.name == pool.name) else { continue };
            for queue in &pool.stats.queues {
                let Some(old) = old.stats.queues.iter().find(|old| old.name == queue.name) else { continue };
                let pushed = queue.pushed.wrapping_sub(old.pushed) & ((1 << PUSHED_BITS) - 1);
                rates.pushed.insert((pool.name.clone(), queue.name.clone()), rate(pushed));
            }
        }
        for log in &now.logs {
            let Some(old) = before.logs.iter().find(|old| old.name == log.name) else { continue };
            rates.lines.insert(log.name.clone(), rate(log.stats.lines.saturating_sub(old.stats.lines)));
            rates.lost.insert(log.name.clone(), rate(log.stats.lost.saturating_sub(old.stats.lost)));
        }
        if let (Some(now), Some(old)) = (&now.replica, &before.replica) {
            rates.replicated = rate(now.changes.saturating_sub(old.changes));
        }
        rates
    }
}

fn sum(a: Figures, b: Figures) -> Figures {
    a.with(b, u64::wrapping_add)
}
