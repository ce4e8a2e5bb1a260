//! Writing the header of a new store, and believing nothing in the header of an existing one.

use super::client::back_error;
use super::lane::Lanes;
use super::Engine;
use crate::error::WriteError;
use hashmere_format::hash::{Hasher, HASH_ID};
use hashmere_format::header::{self, at, feature, limit, RootWord, Shape, PAGE};
use hashmere_format::leaf;
use hashmere_format::record::{Lengths, VERSION_MAX};
use hashmere_format::root;
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
    pub(crate) life: u64,
    pub(crate) boot: [u64; 2],
    pub(crate) durable: bool,
}

/// Why a file is not opened: text for [`crate::OpenError::NotAStore`].
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) String);

/// How a client opens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) read_only: bool,
    pub(crate) busy_timeout: Duration,
    /// Durable stores: a write that finds the last sync older syncs.
    pub(crate) sync_every: Option<Duration>,
}

/// Words of the header that never change.
const FROZEN: u64 = at::CHECKSUM / 8;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Writes an empty store into memory that nobody else can see yet.
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
        let words: Vec<u64> = (0..FROZEN).map(|w| mem.load(8 * w, Ordering::Relaxed)).collect();
        put(at::CHECKSUM, header::checksum(&words));
        put(at::BOOT_LO, new.boot[0]);
        put(at::BOOT_HI, new.boot[1]);
        put(at::MAX_BYTES, new.max_bytes);
        put(at::LIFE, new.life);
        put(at::NEXT_EXPIRY, u64::MAX);
        put(at::CHUNKS, at::CHUNK_0);
        put(at::CLIENTS_HIGH, 0);
        let first = RootWord { generation: 1, segment: 0 };
        put(at::SEGMENTS, 1);
        put(at::CHUNK_0 + segment::at::STATE, Word::new(State::Index).pack());
        put(at::CHUNK_0 + segment::at::BORN, first.generation);
        put(at::CHUNK_0 + segment::at::EXPIRE_MIN, u64::MAX);
        let engine = Engine::assemble(mem, host, new.shape, new.fixed, new.seed, new.durable, access);
        engine.plant(first, engine.host.now_ms() & VERSION_MAX, 0)?;
        if new.durable {
            // The creation is the first sync: the caller flushes before anyone can see the file.
            engine.mem.store(at::SYNC_NEXT, 2, Ordering::Relaxed);
            engine.mem.store(at::SYNC_DONE, 1, Ordering::Relaxed);
            engine.write_point(SyncPoint { number: 1, floor: 0, time: engine.host.now_ms() });
        }
        engine.mem.back(engine.segment_offset(1) - PAGE, PAGE).map_err(back_error)?;
        engine.mem.store(at::ROOT, first.pack(), Ordering::Release);
        Ok(engine)
    }

    /// Opens what another process wrote. Nothing is scanned.
    #[cfg(test)]
    pub(crate) fn attach(mem: M, host: H, length: impl Fn(&M) -> u64, access: Access) -> Result<Engine<M, H>, Refusal> {
        let engine = Engine::examine(mem, host, &length, access)?;
        engine.check_extent(length)?;
        Ok(engine)
    }

    /// Believes what never changes in a header: after a power cut the rest may be anything.
    pub(crate) fn examine(
        mem: M,
        host: H,
        length: impl Fn(&M) -> u64,
        access: Access,
    ) -> Result<Engine<M, H>, Refusal> {
        let file_len = length(&mem);
        let refuse = |text: String| Err(Refusal(text));
        let get = |at: u64| mem.load(at, Ordering::Acquire);
        if file_len < at::CLIENTS + PAGE {
            return refuse(format!("it has {file_len} bytes, which is too short for a header"));
        }
        let magic = get(at::MAGIC);
        if magic == header::MAGIC.swap_bytes() {
            return refuse("it was written on a big-endian machine; such files cannot be opened here".into());
        }
        if magic != header::MAGIC {
            return refuse("it does not begin with the magic number of a store".into());
        }
        let format = get(at::FORMAT);
        if format != header::FORMAT {
            let advice = if format > header::FORMAT {
                "upgrade hashmere"
            } else {
                "dump it with the version that wrote it and load it with this one"
            };
            return refuse(format!("it has format {format}, this version opens format {}; {advice}", header::FORMAT));
        }
        let words: Vec<u64> = (0..FROZEN).map(|w| get(8 * w)).collect();
        if get(at::CHECKSUM) != header::checksum(&words) {
            return refuse("the checksum of its header is wrong; the file is damaged".into());
        }
        // From here on what was summed up, whatever becomes of the file.
        let get = |at: u64| words.get((at / 8) as usize).copied().unwrap_or(0);
        let unknown = get(at::INCOMPAT) & !feature::DURABLE;
        if unknown != 0 {
            return refuse(format!(
                "it uses features this version does not know (mask {unknown:#x}); upgrade hashmere"
            ));
        }
        if get(at::RO_COMPAT) != 0 && !access.read_only {
            return refuse(format!(
                "it uses features this version can only read (mask {:#x}); open it read-only or upgrade hashmere",
                get(at::RO_COMPAT)
            ));
        }
        if get(at::LAYOUT) != header::layout_hash() || get(at::HASH_ID) != HASH_ID {
            return refuse(
                "it was written by a build with another layout or hash function; dump it with that build".into(),
            );
        }
        let Some(shape) = Shape::unpack(get(at::SHAPE)) else {
            return refuse("its shape word is damaged".into());
        };
        let fixed = get(at::FIXED);
        let fixed = ((fixed as u32).checked_sub(1), ((fixed >> 32) as u32).checked_sub(1));
        let seed = get(at::SEED);
        let durable = get(at::INCOMPAT) & feature::DURABLE != 0;
        Ok(Engine::assemble(mem, host, shape, fixed, seed, durable, access))
    }

    /// Refuses a file that is shorter than its header says.
    pub(crate) fn check_extent(&self, length: impl Fn(&M) -> u64) -> Result<(), Refusal> {
        let refuse = |text: String| Err(Refusal(text));
        let root = RootWord::unpack(self.root());
        let segments = self.segments_said();
        // The file may have grown since; segments count only once the file reaches to their end.
        let file_len = length(&self.mem);
        let root_end = self.segment_offset(root.segment) + root::BYTES.max(self.leaf_bytes());
        if root.segment >= segments || root_end > file_len {
            return refuse(format!("it is cut short: its index begins at byte {root_end}, the file has {file_len}"));
        }
        let end = self.segment_offset(segments);
        if segments > limit::SEGMENTS || end > file_len {
            return refuse(format!(
                "it is cut short: its {segments} segments end at byte {end}, the file has {file_len}"
            ));
        }
        Ok(())
    }

    fn assemble(
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
            trusted_root: AtomicU64::new(0),
            spare: AtomicU64::new(0),
            unlimited: AtomicBool::new(false),
            evicted: super::evicted::Log::default(),
            lanes: Lanes::new(),
        }
    }

    /// Offset behind the row of the last client that fits: what every process maps at least.
    pub(crate) fn least_map() -> u64 {
        row::offset(limit::CLIENTS)
    }
}
