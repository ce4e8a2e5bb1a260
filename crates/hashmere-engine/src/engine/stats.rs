//! Statistics: sums over rows and segments, made on request. No client is stopped, so figures of a busy store are
//! taken at slightly different moments.

use crate::engine::client::writer::OperationCounts;
use crate::engine::feed::FeedInfo;
use crate::engine::index::Tree;
use crate::engine::Engine;
use crate::options::Mode;
use hashmere_format::header::{at, flag, RootWord};
use hashmere_format::leaf::SLOTS;
use hashmere_format::row::{self, Stat};
use hashmere_format::segment::{self, State};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// What `Store::stats` returns. Bytes unless said otherwise.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Strict or cache.
    pub mode: Mode,
    /// Keys, expired ones included until they are cleaned away.
    pub items: u64,
    /// Records that live, headers and padding included.
    pub bytes_live: u64,
    /// Records that were superseded or deleted and still take room.
    pub bytes_dead: u64,
    /// Room in segments that nothing was written to yet: free ones, and the ends of open ones.
    pub bytes_free: u64,
    /// Size of the file as `ls` shows it.
    pub bytes_file: u64,
    /// Memory or disk that the file really takes.
    pub bytes_allocated: u64,
    /// The maximum size; 0 is none.
    pub bytes_max: u64,
    /// Since when the file system has refused memory to the store, in milliseconds since 1970; 0: it does not, as far
    /// as any client has asked. Until then a cache lives within what it has.
    pub no_space_since_ms: u64,
    /// Segments of the file.
    pub segments_total: u64,
    /// Segments of records.
    pub segments_log: u64,
    /// Segments of the index.
    pub segments_index: u64,
    /// Segments of large records.
    pub segments_large: u64,
    /// Free segments, with memory behind them or without.
    pub segments_free: u64,
    /// Regions: pools of queues, logs.
    pub regions: u64,
    /// Segments of regions.
    pub segments_region: u64,
    /// The change feed, if there is one.
    pub feed: Option<FeedInfo>,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Slots of the index.
    pub index_slots: u64,
    /// Slots in use.
    pub index_used: u64,
    /// Depth of the directory.
    pub index_depth: u64,
    /// Keys in the overflow tree.
    pub index_overflow: u64,
    /// Leaves split.
    pub splits: u64,
    /// Segments cleaned.
    pub segments_cleaned: u64,
    /// Records moved by cleaning.
    pub records_moved: u64,
    /// Records dropped to make room.
    pub evictions: u64,
    /// Records dropped because they had expired.
    pub expiries: u64,
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Values stored.
    pub sets: u64,
    /// Keys deleted.
    pub deletes: u64,
    /// What of these four this handle and its clones did.
    pub own: OperationCounts,
    /// Locks that were not free at once.
    pub lock_waits: u64,
    /// Dead clients repaired.
    pub takeovers: u64,
    /// Reads repeated because a segment was recycled during them.
    pub read_retries: u64,
    /// Times the store was cleared.
    pub clears: u64,
    /// Segments recycled.
    pub recycle_epoch: u64,
    /// Whether the store is durable.
    pub durable: bool,
    /// Durable stores: syncs completed, the creation included.
    pub syncs: u64,
    /// Durable stores: when the last one was completed, in milliseconds since 1970.
    pub last_sync_ms: u64,
    /// Durable stores: segments that are free after the next sync.
    pub segments_waiting: u64,
    /// Segments without memory that a lower maximum took out of use.
    pub segments_offline: u64,
    /// Durable stores: a flush has failed, and nothing can be written any more.
    pub poisoned: bool,
    /// The process that is making a backup at this moment, in its own PID namespace.
    pub backup_pid: Option<u32>,
    /// The clients of this moment.
    pub clients: Vec<ClientStats>,
}

/// One client: a writing thread of a process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientStats {
    /// Client slot.
    pub slot: u32,
    /// Process id in its own PID namespace.
    pub pid: u32,
    /// Whether it is a thread of this process. (Another PID namespace may have a process of the same id.)
    pub own: bool,
    /// Its name when it opened the store.
    pub name: String,
    /// When it did, in milliseconds since 1970.
    pub since_ms: u64,
    /// Reads that found their key. This and the next three go on counting where the former client of the slot stopped.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Values stored.
    pub sets: u64,
    /// Keys deleted.
    pub deletes: u64,
    /// Views that it holds.
    pub pins: u64,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Everything, except what only the file system knows.
    pub(crate) fn stats(&self, bytes_file: u64, bytes_allocated: u64) -> Stats {
        let root = self.root();
        let total = |stat| self.total(stat);
        let mut stats = Stats {
            mode: if self.layout.is_cache() { Mode::Cache } else { Mode::Strict },
            items: self.items(),
            bytes_live: self.sum_of(row::at::LIVE),
            bytes_dead: 0,
            bytes_free: 0,
            bytes_file,
            bytes_allocated,
            bytes_max: self.mem.load(at::MAX_BYTES, Ordering::Relaxed),
            no_space_since_ms: self.mem.load(at::NO_SPACE, Ordering::Relaxed),
            segments_total: self.segments(),
            segments_log: 0,
            segments_index: 0,
            segments_large: 0,
            segments_free: 0,
            regions: 0,
            segments_region: 0,
            feed: self.feed_info(),
            segment_bytes: self.segment_bytes(),
            index_slots: 0,
            index_used: 0,
            index_depth: u64::from(self.depth(self.block_within(root), Tree::First).unwrap_or(0)),
            index_overflow: 0,
            splits: total(Stat::Splits),
            segments_cleaned: total(Stat::Cleaned),
            records_moved: total(Stat::Moved),
            evictions: total(Stat::Evicted),
            expiries: total(Stat::Expired),
            hits: total(Stat::Hits),
            misses: total(Stat::Misses),
            sets: total(Stat::Sets),
            deletes: total(Stat::Deletes),
            own: self.own_figures(),
            lock_waits: total(Stat::LockWaits),
            takeovers: total(Stat::Takeovers),
            read_retries: total(Stat::Retries),
            clears: RootWord::unpack(root).generation.saturating_sub(1),
            recycle_epoch: self.mem.load(at::EPOCH, Ordering::Relaxed),
            durable: self.layout.is_durable(),
            syncs: self.mem.load(at::SYNC_DONE, Ordering::Acquire),
            last_sync_ms: if self.layout.is_durable() { self.last_point().0.time } else { 0 },
            segments_waiting: 0,
            segments_offline: 0,
            poisoned: self.status() & flag::POISONED != 0,
            backup_pid: self.backup_pid(),
            clients: self.rows().filter(|s| self.is_active(*s)).map(|s| self.client_stats(s)).collect(),
        };
        self.count_segments(&mut stats);
        self.count_slots(root, &mut stats);
        stats
    }

    fn count_segments(&self, stats: &mut Stats) {
        for segment in 0..self.segments() {
            let word = self.state(segment);
            let dead = self.field(segment, segment::at::DEAD);
            let used = self.field(segment, segment::at::USED);
            match word.state {
                State::Free | State::Hole => {
                    stats.segments_free += 1;
                    stats.bytes_free += self.segment_bytes();
                }
                State::PendingFree if self.layout.is_durable() => stats.segments_waiting += u64::from(word.length),
                State::Open | State::Partial | State::Sealed | State::Cleaning | State::PendingFree => {
                    stats.segments_log += 1;
                    stats.bytes_dead = stats.bytes_dead.saturating_add(dead);
                    if word.state == State::Partial {
                        stats.bytes_free += self.segment_bytes().saturating_sub(used);
                    }
                }
                State::Large | State::LargeNew => {
                    stats.segments_large += u64::from(word.length);
                    stats.bytes_dead = stats.bytes_dead.saturating_add(dead);
                }
                State::Region => {
                    stats.regions += 1;
                    stats.segments_region += u64::from(word.length);
                }
                State::Index | State::Table => stats.segments_index += u64::from(word.length),
                State::Offline => stats.segments_offline += 1,
                State::Tail | State::Claimed => {}
            }
        }
    }

    fn count_slots(&self, root: u64, stats: &mut Stats) {
        for tree in [Tree::First, Tree::Overflow] {
            for leaf in self.leaves(root, tree) {
                stats.index_slots += self.layout.buckets * SLOTS;
                let used = self.leaf_slots(leaf).filter(|s| !self.slot(*s).is_empty()).count() as u64;
                stats.index_used += used;
                if tree == Tree::Overflow {
                    stats.index_overflow += used;
                }
            }
        }
    }

    fn client_stats(&self, slot: u32) -> ClientStats {
        let row = row::offset(slot);
        let get = |stat: Stat| self.figure(row, stat);
        let pins = (0..row::PINS).map(|i| self.mem.load(row + row::at::PINS + 8 * i, Ordering::Relaxed) >> 32).sum();
        ClientStats {
            slot,
            pid: self.mem.load(row + row::at::PID, Ordering::Relaxed) as u32,
            own: self.has_row(row),
            name: self.row_name(slot),
            since_ms: self.mem.load(row + row::at::SINCE, Ordering::Relaxed),
            hits: get(Stat::Hits),
            misses: get(Stat::Misses),
            sets: get(Stat::Sets),
            deletes: get(Stat::Deletes),
            pins,
        }
    }
}
