//! Statistics: sums over rows and segments, made on request. No client is stopped, so figures of a busy store are
//! taken at slightly different moments.

use crate::engine::client::writer::OperationCounts;
use crate::engine::feed::FeedInfo;
use crate::engine::index::Tree;
use crate::engine::observe::{Activity, ClientActivity, Figures};
use crate::engine::Engine;
use crate::options::Mode;
use hashmere_format::header::at;
use hashmere_format::leaf::SLOTS;
use hashmere_format::row;
use hashmere_format::segment::State;
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
    /// Slots in use: one for each key.
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
    /// Everything, except what only the file system knows: what an observer sees, and what the index has grown to.
    /// Takes time in proportion to segments, clients and leaves, not to keys.
    pub(crate) fn stats(&self, bytes_file: u64, bytes_allocated: u64) -> Stats {
        let root = self.root();
        let seen = self.activity(bytes_file, bytes_allocated);
        let segments = Counted::of(&seen);
        let (index_slots, index_overflow) = self.count_slots(root);
        let total = seen.totals;
        Stats {
            mode: seen.mode,
            items: seen.items,
            bytes_live: seen.bytes_live,
            bytes_dead: seen.bytes_dead,
            bytes_free: seen.bytes_free,
            bytes_file,
            bytes_allocated,
            bytes_max: seen.bytes_max,
            no_space_since_ms: seen.no_space_since_ms,
            segments_total: seen.segments.len() as u64,
            segments_log: segments.log,
            segments_index: segments.index,
            segments_large: segments.large,
            segments_free: segments.free,
            regions: segments.regions,
            segments_region: segments.region,
            feed: seen.feed,
            segment_bytes: seen.segment_bytes,
            index_slots,
            index_used: seen.items.min(index_slots),
            index_depth: u64::from(self.depth(self.block_within(root), Tree::First).unwrap_or(0)),
            index_overflow,
            splits: total.splits,
            segments_cleaned: total.cleaned,
            records_moved: total.moved,
            evictions: total.evicted,
            expiries: total.expired,
            hits: total.hits,
            misses: total.misses,
            sets: total.sets,
            deletes: total.deletes,
            own: self.own_figures(),
            lock_waits: total.lock_waits,
            takeovers: total.takeovers,
            read_retries: total.retries,
            clears: seen.generation.saturating_sub(1),
            recycle_epoch: self.mem.load(at::EPOCH, Ordering::Relaxed),
            durable: seen.durable,
            syncs: seen.syncs,
            last_sync_ms: if seen.durable { self.last_point().0.time } else { 0 },
            segments_waiting: segments.waiting,
            segments_offline: segments.offline,
            poisoned: seen.poisoned,
            backup_pid: seen.backup_pid,
            clients: seen.clients.iter().map(|client| self.client_stats(client)).collect(),
        }
    }

    /// Slots of both trees, and keys in the overflow tree: of the first tree no slot is looked at.
    fn count_slots(&self, root: u64) -> (u64, u64) {
        let (mut slots, mut overflow) = (0, 0);
        for tree in [Tree::First, Tree::Overflow] {
            for leaf in self.leaves(root, tree) {
                slots += self.layout.buckets * SLOTS;
                if tree == Tree::Overflow {
                    overflow += self.leaf_slots(leaf).filter(|slot| !self.slot(*slot).is_empty()).count() as u64;
                }
            }
        }
        (slots, overflow)
    }

    fn client_stats(&self, client: &ClientActivity) -> ClientStats {
        let Figures { hits, misses, sets, deletes, .. } = client.figures;
        ClientStats {
            slot: client.slot,
            pid: client.pid,
            own: self.has_row(row::offset(client.slot)),
            name: client.name.clone(),
            since_ms: client.since_ms,
            hits,
            misses,
            sets,
            deletes,
            pins: client.pins.iter().map(|pin| pin.views).sum(),
        }
    }
}

/// How many segments are used for what.
#[derive(Default)]
struct Counted {
    log: u64,
    index: u64,
    large: u64,
    free: u64,
    regions: u64,
    region: u64,
    waiting: u64,
    offline: u64,
}

impl Counted {
    fn of(seen: &Activity) -> Counted {
        let mut counted = Counted::default();
        let mut head = State::Claimed;
        for state in &seen.segments {
            counted.regions += u64::from(*state == State::Region);
            if *state != State::Tail {
                head = *state;
            }
            let count = match head {
                State::Free | State::Hole => &mut counted.free,
                State::PendingFree if seen.durable => &mut counted.waiting,
                State::Open | State::Partial | State::Sealed | State::Cleaning | State::PendingFree => &mut counted.log,
                State::Large | State::LargeNew => &mut counted.large,
                State::Region => &mut counted.region,
                State::Index | State::Table => &mut counted.index,
                State::Offline => &mut counted.offline,
                State::Tail | State::Claimed => continue,
            };
            *count += 1;
        }
        counted
    }
}
