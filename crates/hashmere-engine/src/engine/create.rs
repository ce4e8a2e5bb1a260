//! Writing the header of a new store, and making an engine for one.

use crate::engine::back_error;
use crate::engine::client::Clients;
use crate::engine::index::Index;
use crate::engine::layout::Layout;
use crate::engine::log::Log;
use crate::engine::reclaim::eviction_log::EvictionLog;
use crate::engine::Engine;
use crate::error::WriteError;
use hashmere_format::hash::HASH_ID;
use hashmere_format::header::{self, at, feature, limit, RootWord, PAGE};
use hashmere_format::record::VERSION_MAX;
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word};
use hashmere_format::sync::SyncPoint;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What is decided when a store is created.
#[derive(Clone, Debug)]
pub(crate) struct NewStore {
    pub(crate) layout: Layout,
    pub(crate) max_bytes: u64,
    pub(crate) uuid: [u64; 2],
    pub(crate) status: u64,
    pub(crate) boot: [u64; 2],
}

/// How a client opens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) read_only: bool,
    pub(crate) busy_timeout: Duration,
    /// Durable stores: a write that finds the last sync older syncs.
    pub(crate) sync_every: Option<Duration>,
    /// What its changes are marked with in the feed.
    pub(crate) origin: u32,
}

/// Words of the header that never change.
pub(super) const FROZEN: u64 = at::CHECKSUM / 8;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Writes an empty store into memory that no other process can see yet.
    pub(crate) fn format(mem: M, host: H, new: &NewStore, access: Access) -> Result<Engine<M, H>, WriteError> {
        for page in [0, at::CHUNKS, at::CHUNK_0, at::CLIENTS] {
            mem.back(page, PAGE).map_err(back_error)?;
        }
        let layout = &new.layout;
        let put = |at: u64, value: u64| mem.store(at, value, Ordering::Relaxed);
        put(at::MAGIC, header::MAGIC);
        put(at::FORMAT, header::FORMAT);
        put(at::LAYOUT, hashmere_format::layout::layout_hash());
        put(at::INCOMPAT, if layout.is_durable() { feature::DURABLE } else { 0 });
        put(at::HASH_ID, HASH_ID);
        put(at::SEED, layout.seed);
        put(at::SHAPE, layout.shape.pack());
        let plus_one = |len: Option<u32>| len.map_or(0, |l| u64::from(l) + 1);
        put(at::FIXED, plus_one(layout.fixed.0) | plus_one(layout.fixed.1) << 32);
        put(at::CREATED, host.now_ms());
        put(at::UUID, new.uuid[0]);
        put(at::UUID + 8, new.uuid[1]);
        let words: Vec<u64> = (0..FROZEN).map(|w| mem.load(8 * w, Ordering::Relaxed)).collect();
        put(at::CHECKSUM, header::checksum(&words));
        put(at::BOOT_LO, new.boot[0]);
        put(at::BOOT_HI, new.boot[1]);
        put(at::MAX_BYTES, new.max_bytes);
        put(at::STATUS, new.status);
        put(at::NEXT_EXPIRY, u64::MAX);
        put(at::CHUNKS, at::CHUNK_0);
        put(at::CLIENTS_HIGH, 0);
        put(at::HOLE_HAND, u64::MAX);
        let first = RootWord { generation: 1, segment: 0 };
        put(at::SEGMENTS, 1);
        put(at::CHUNK_0 + segment::at::STATE, Word::new(State::Index).pack());
        put(at::CHUNK_0 + segment::at::BORN, first.generation);
        put(at::CHUNK_0 + segment::at::EXPIRE_MIN, u64::MAX);
        let engine = Engine::assemble(mem, host, layout.clone(), access);
        engine.plant(first, engine.host.now_ms() & VERSION_MAX, 0)?;
        if new.layout.is_durable() {
            // The creation is the first sync: the caller flushes before any other process can see the file.
            engine.mem.store(at::SYNC_NEXT, 2, Ordering::Relaxed);
            engine.mem.store(at::SYNC_DONE, 1, Ordering::Relaxed);
            engine.write_point(SyncPoint { number: 1, floor: 0, time: engine.host.now_ms() });
        }
        engine.mem.back(engine.segment_offset(1) - PAGE, PAGE).map_err(back_error)?;
        engine.mem.store(at::ROOT, first.pack(), Ordering::Release);
        Ok(engine)
    }

    pub(super) fn assemble(mem: M, host: H, layout: Layout, access: Access) -> Engine<M, H> {
        Engine {
            mem,
            host,
            layout,
            access,
            clients: Clients::new(),
            log: Log::default(),
            index: Index::default(),
            evictions: EvictionLog::default(),
        }
    }

    /// Offset behind the row of the last client that fits: what every process maps at least.
    pub(crate) fn least_map() -> u64 {
        row::offset(limit::CLIENTS)
    }
}
