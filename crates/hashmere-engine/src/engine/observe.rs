//! What an observer sees of a store at a moment: nothing is locked, nothing is written, the index is not gone through.
//!
//! The work is proportional to segments and client records, not to keys, so it may be done once a second. What is
//! loaded are words that their owners store anyway; an owner pays for an observer with a cache line that it shares for
//! a moment.

use crate::engine::feed::FeedInfo;
use crate::engine::Engine;
use crate::options::Mode;
use hashmere_format::header::{at, flag, limit};
use hashmere_format::row::{self, Stat};
use hashmere_format::segment::{self, State};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// How often things were done: by a client, a process, or all there ever were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Values stored.
    pub sets: u64,
    /// Keys deleted.
    pub deletes: u64,
    /// Times a lock was not free at once.
    pub lock_waits: u64,
    /// Crashed clients repaired.
    pub takeovers: u64,
    /// Leaves split.
    pub splits: u64,
    /// Segments cleaned.
    pub cleaned: u64,
    /// Records moved by cleaning.
    pub moved: u64,
    /// Records dropped to make room.
    pub evicted: u64,
    /// Records dropped because they had expired.
    pub expired: u64,
    /// Reads repeated because a segment was recycled during them.
    pub retries: u64,
}

impl Figures {
    /// Each figure of both through a function: a sum, a difference.
    pub fn with(self, other: Figures, f: impl Fn(u64, u64) -> u64) -> Figures {
        Figures {
            hits: f(self.hits, other.hits),
            misses: f(self.misses, other.misses),
            sets: f(self.sets, other.sets),
            deletes: f(self.deletes, other.deletes),
            lock_waits: f(self.lock_waits, other.lock_waits),
            takeovers: f(self.takeovers, other.takeovers),
            splits: f(self.splits, other.splits),
            cleaned: f(self.cleaned, other.cleaned),
            moved: f(self.moved, other.moved),
            evicted: f(self.evicted, other.evicted),
            expired: f(self.expired, other.expired),
            retries: f(self.retries, other.retries),
        }
    }
}

/// A segment that a client holds back from being reused, because views or regions of it look into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinActivity {
    /// The segment.
    pub segment: u64,
    /// How many views and regions.
    pub views: u64,
    /// What the segment is used for now. [`State::PendingFree`]: it would be free but for its pins.
    pub state: State,
}

/// A client at a moment: a writing thread of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientActivity {
    /// Client slot.
    pub slot: u32,
    /// Process id in its own PID namespace.
    pub pid: u32,
    /// The process's name when it opened the store, at most 16 bytes.
    pub name: String,
    /// When it did, in milliseconds since 1970.
    pub since_ms: u64,
    /// Whether the owner lives, by its byte lock. `None`: the system does not say. A client that does not and is listed
    /// has crashed, and the next to need what it held repairs it.
    pub is_alive: Option<bool>,
    /// Whether an operation was under way.
    pub is_busy: bool,
    /// Locks of buckets that it held or was about to take (0 to 2; those of a transaction do not count).
    pub locks: u64,
    /// Whether a transaction was under way.
    pub in_transaction: bool,
    /// What it holds back.
    pub pins: Vec<PinActivity>,
    /// What it did. Figures go on counting where the former client of the slot stopped.
    pub figures: Figures,
}

/// A store at a moment. Clients are not stopped, so figures are taken at slightly different times.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Activity {
    /// Strict or cache.
    pub mode: Mode,
    /// Whether the store is durable.
    pub durable: bool,
    /// Durable stores: a flush has failed, and nothing can be written any more.
    pub poisoned: bool,
    /// Keys, expired ones included until they are cleaned away.
    pub items: u64,
    /// Bytes of records that live, headers and padding included.
    pub bytes_live: u64,
    /// Bytes of records that were superseded or deleted and still take room (a lower bound).
    pub bytes_dead: u64,
    /// Bytes of segments that are free, and of the ends of partly filled ones.
    pub bytes_free: u64,
    /// Size of the file as `ls` shows it.
    pub bytes_file: u64,
    /// Memory or disk that the file really takes.
    pub bytes_allocated: u64,
    /// The maximum size; 0 is none.
    pub bytes_max: u64,
    /// Since when the file system has refused memory, in milliseconds since 1970; 0: it does not.
    pub no_space_since_ms: u64,
    /// Durable stores: syncs completed.
    pub syncs: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// What each segment of the file is used for, in order. A [`Tail`](State::Tail) belongs to the one before it.
    pub segments: Vec<State>,
    /// All that was ever done in the store, by clients that are gone too.
    pub totals: Figures,
    /// The same by client slot, those of its former clients included.
    pub by_slot: Vec<Figures>,
    /// The clients of this moment.
    pub clients: Vec<ClientActivity>,
    /// The change feed, if there is one.
    pub feed: Option<FeedInfo>,
    /// The process that is making a backup, in its own PID namespace.
    pub backup_pid: Option<u32>,
    /// Times the store was cleared, plus one.
    pub generation: u64,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Everything, except what only the file system knows.
    pub(crate) fn activity(&self, bytes_file: u64, bytes_allocated: u64) -> Activity {
        let by_slot: Vec<Figures> = self.rows().map(|slot| self.figures(row::offset(slot))).collect();
        let mut activity = Activity {
            mode: if self.layout.is_cache() { Mode::Cache } else { Mode::Strict },
            durable: self.layout.is_durable(),
            poisoned: self.status() & flag::POISONED != 0,
            items: self.items(),
            bytes_live: self.sum_of(row::at::LIVE),
            bytes_dead: 0,
            bytes_free: 0,
            bytes_file,
            bytes_allocated,
            bytes_max: self.mem.load(at::MAX_BYTES, Ordering::Relaxed),
            no_space_since_ms: self.mem.load(at::NO_SPACE, Ordering::Relaxed),
            syncs: self.mem.load(at::SYNC_DONE, Ordering::Acquire),
            segment_bytes: self.segment_bytes(),
            segments: Vec::with_capacity(self.segments() as usize),
            totals: by_slot.iter().fold(Figures::default(), |sum, one| sum.with(*one, u64::wrapping_add)),
            by_slot,
            clients: self.rows().filter(|slot| self.is_active(*slot)).map(|slot| self.client_activity(slot)).collect(),
            feed: self.feed_info(),
            backup_pid: self.backup_pid(),
            generation: self.root_generation(),
        };
        self.look_at_segments(&mut activity);
        activity
    }

    fn look_at_segments(&self, activity: &mut Activity) {
        for segment in 0..self.segments() {
            let state = self.state(segment).state;
            match state {
                State::Free | State::Hole => activity.bytes_free += self.segment_bytes(),
                State::Partial => {
                    let used = self.field(segment, segment::at::USED);
                    activity.bytes_free += self.segment_bytes().saturating_sub(used);
                }
                _ => {}
            }
            if matches!(
                state,
                State::Open | State::Partial | State::Sealed | State::Cleaning | State::Large | State::LargeNew
            ) {
                let dead = self.field(segment, segment::at::DEAD);
                activity.bytes_dead = activity.bytes_dead.saturating_add(dead);
            }
            activity.segments.push(state);
        }
    }

    fn figures(&self, row: u64) -> Figures {
        let get = |stat: Stat| self.figure(row, stat);
        Figures {
            hits: get(Stat::Hits),
            misses: get(Stat::Misses),
            sets: get(Stat::Sets),
            deletes: get(Stat::Deletes),
            lock_waits: get(Stat::LockWaits),
            takeovers: get(Stat::Takeovers),
            splits: get(Stat::Splits),
            cleaned: get(Stat::Cleaned),
            moved: get(Stat::Moved),
            evicted: get(Stat::Evicted),
            expired: get(Stat::Expired),
            retries: get(Stat::Retries),
        }
    }

    fn client_activity(&self, slot: u32) -> ClientActivity {
        let row = row::offset(slot);
        let get = |at: u64| self.mem.load(row + at, Ordering::Relaxed);
        let pin = |i: u64| {
            let word = get(row::at::PINS + 8 * i);
            let segment = (word & u64::from(u32::MAX)).checked_sub(1)? & (limit::SEGMENTS - 1);
            Some(PinActivity { segment, views: word >> 32, state: self.state(segment).state })
        };
        ClientActivity {
            slot,
            pid: get(row::at::PID) as u32,
            name: self.row_name(slot),
            since_ms: get(row::at::SINCE),
            is_alive: self.host.is_claimed(slot).ok(),
            is_busy: get(row::at::ACTIVE) != 0,
            locks: u64::from(get(row::at::LOCK) != 0) + u64::from(get(row::at::LOCK_2) != 0),
            in_transaction: get(row::at::TRANSACTION) != 0,
            pins: (0..row::PINS).filter_map(pin).collect(),
            figures: self.figures(row),
        }
    }

    /// Calls `act` with the place of a region that is not pinned, for loads only, and gives its result if the region
    /// was there before and after. `None`: there is none of this kind and name, or it was dropped during the call.
    pub(crate) fn peek_region<R>(&self, kind: u64, name: &[u8], act: impl FnOnce(u64, u64) -> R) -> Option<R> {
        let find = || {
            self.each_region().find_map(|(spot, info)| {
                let info = info.ok()?;
                (info.kind == kind && info.name == name).then_some((spot, info.created_ms))
            })
        };
        let before = find()?;
        let seen = act(before.0.data, before.0.bytes);
        // SYNC(region): as in `each_region`; what was loaded was the region's if it still is there.
        self.mem.fence(Ordering::Acquire);
        (find() == Some(before)).then_some(seen)
    }
}
