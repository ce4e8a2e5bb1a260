//! Writing the header of a new store, and making an engine for one.

use crate::engine::back_error;
use crate::engine::client::writer::Writers;
use crate::engine::Engine;
use crate::error::WriteError;
use hashmere_format::hash::{Hasher, HASH_ID};
use hashmere_format::header::{self, at, feature, limit, RootWord, Shape, PAGE};
use hashmere_format::leaf;
use hashmere_format::record::{Lengths, VERSION_MAX};
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word};
use hashmere_format::sync::SyncPoint;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What is decided when a store is created.
#[derive(Clone, Debug)]
pub(crate) struct NewStore {
    pub(crate) shape: Shape,
    pub(crate) fixed: (Option<u32>, Option<u32>),
    pub(crate) max_bytes: u64,
    pub(crate) seed: u64,
    pub(crate) uuid: [u64; 2],
    pub(crate) life: u64,
    pub(crate) boot: [u64; 2],
    pub(crate) durable: bool,
}

/// How a client opens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) read_only: bool,
    pub(crate) busy_timeout: Duration,
    /// Durable stores: a write that finds the last sync older syncs.
    pub(crate) sync_every: Option<Duration>,
}

/// Words of the header that never change.
pub(super) const FROZEN: u64 = at::CHECKSUM / 8;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Writes an empty store into memory that no other process can see yet.
    pub(crate) fn format(mem: M, host: H, new: &NewStore, access: Access) -> Result<Engine<M, H>, WriteError> {
        for page in [0, at::CHUNKS, at::CHUNK_0, at::CLIENTS] {
            mem.back(page, PAGE).map_err(back_error)?;
        }
        let put = |at: u64, value: u64| mem.store(at, value, Ordering::Relaxed);
        put(at::MAGIC, header::MAGIC);
        put(at::FORMAT, header::FORMAT);
        put(at::LAYOUT, header::layout_hash());
        put(at::INCOMPAT, if new.durable { feature::DURABLE } else { 0 });
        put(at::HASH_ID, HASH_ID);
        put(at::SEED, new.seed);
        put(at::SHAPE, new.shape.pack());
        let plus_one = |len: Option<u32>| len.map_or(0, |l| u64::from(l) + 1);
        put(at::FIXED, plus_one(new.fixed.0) | plus_one(new.fixed.1) << 32);
        put(at::CREATED, host.now_ms());
        put(at::UUID, new.uuid[0]);
        put(at::UUID + 8, new.uuid[1]);
        let words: Vec<u64> = (0..FROZEN).map(|w| mem.load(8 * w, Ordering::Relaxed)).collect();
        put(at::CHECKSUM, header::checksum(&words));
        put(at::BOOT_LO, new.boot[0]);
        put(at::BOOT_HI, new.boot[1]);
        put(at::MAX_BYTES, new.max_bytes);
        put(at::LIFE, new.life);
        put(at::NEXT_EXPIRY, u64::MAX);
        put(at::CHUNKS, at::CHUNK_0);
        put(at::CLIENTS_HIGH, 0);
        put(at::HOLE_HAND, u64::MAX);
        let first = RootWord { generation: 1, segment: 0 };
        put(at::SEGMENTS, 1);
        put(at::CHUNK_0 + segment::at::STATE, Word::new(State::Index).pack());
        put(at::CHUNK_0 + segment::at::BORN, first.generation);
        put(at::CHUNK_0 + segment::at::EXPIRE_MIN, u64::MAX);
        let engine = Engine::assemble(mem, host, new.shape, new.fixed, new.seed, new.durable, access);
        engine.plant(first, engine.host.now_ms() & VERSION_MAX, 0)?;
        if new.durable {
            // The creation is the first sync: the caller flushes before any other process can see the file.
            engine.mem.store(at::SYNC_NEXT, 2, Ordering::Relaxed);
            engine.mem.store(at::SYNC_DONE, 1, Ordering::Relaxed);
            engine.write_point(SyncPoint { number: 1, floor: 0, time: engine.host.now_ms() });
        }
        engine.mem.back(engine.segment_offset(1) - PAGE, PAGE).map_err(back_error)?;
        engine.mem.store(at::ROOT, first.pack(), Ordering::Release);
        Ok(engine)
    }

    pub(super) fn assemble(
        mem: M,
        host: H,
        shape: Shape,
        fixed: (Option<u32>, Option<u32>),
        seed: u64,
        durable: bool,
        access: Access,
    ) -> Engine<M, H> {
        let lines = (1u64 << shape.leaf_shift) / leaf::LINE;
        let first = leaf::first_bucket(lines, shape.cache);
        let lengths = match fixed {
            (Some(key), Some(value)) => Lengths::fixed(key, value),
            _ => Lengths::VARIABLE,
        };
        let lengths = if durable { lengths.with_sums() } else { lengths };
        Engine {
            mem,
            host,
            shape,
            lengths,
            fixed,
            has_fixed: fixed != (None, None),
            hasher: Hasher::new(seed),
            seed,
            busy_timeout: access.busy_timeout,
            sync_every: access.sync_every,
            read_only: access.read_only,
            segment_bytes: 1 << shape.segment_shift,
            leaf_bytes: 1 << shape.leaf_shift,
            lines,
            first,
            buckets: lines - first,
            known: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            trusted_root: AtomicU64::new(0),
            spare: AtomicU64::new(0),
            refused: crate::engine::log::backing::Refused::default(),
            unlimited: AtomicBool::new(false),
            look: AtomicU64::new(0),
            evicted: crate::engine::reclaim::eviction_log::Log::default(),
            stalled: crate::engine::client::stalled::Stalled::default(),
            writers: Writers::new(),
        }
    }

    /// Offset behind the row of the last client that fits: what every process maps at least.
    pub(crate) fn least_map() -> u64 {
        row::offset(limit::CLIENTS)
    }
}
