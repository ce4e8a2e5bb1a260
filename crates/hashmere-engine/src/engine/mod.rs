//! The engine: what happens to the bytes. Generic over memory and host, so the same code runs on a real mapping, under
//! Miri and under a model checker.
//!
//! Each folder is a part, and imports and calls only those before it: [`client`] (writers and their locks), [`log`]
//! (where records are), [`index`] (where a key's slot is), [`read`], [`commit`], [`reclaim`], [`mod@write`]; for
//! durable stores [`durable`], for backups [`backup`]; [`check`] reads it all and names what contradicts itself.
//! [`recover`] repairs what a crashed process left.

mod backup;
mod cells;
mod check;
mod client;
mod commit;
mod create;
mod durable;
mod examine;
mod feed;
mod index;
mod layout;
mod log;
mod observe;
mod read;
mod reclaim;
mod recover;
mod sampling;
mod stats;
mod store_state;
mod transact;
mod write;

#[cfg(test)]
mod tests;

pub use check::{CheckReport, Problem};
pub(crate) use client::thread::Lender;
pub use client::writer::{OperationCounts, WriterGuard};
pub use client::writer_state::Writer;
pub(crate) use create::{Access, NewStore};
pub(crate) use examine::Refusal;
pub use feed::{FeedInfo, FeedStep};
pub use index::found::Found;
pub use index::scan::Step as ScanStep;
pub(crate) use layout::Layout;
pub(crate) use log::append::Draft;
pub(crate) use log::pin::Pin;
pub(crate) use log::region::PinnedRegion;
pub use log::region::RegionInfo;
pub use observe::{Activity, ClientActivity, Figures, PinActivity};
pub use read::ahead::BATCH;
pub(crate) use read::ahead::{Ahead, Lookahead};
pub(crate) use read::fetch::{Fetched, PIN_FROM};
pub(crate) use read::pinned::Showing;
pub(crate) use read::Probe;
pub(crate) use reclaim::resize::Resized;
pub use stats::{ClientStats, Stats};
pub(crate) use transact::{Change, Guard, Outcome as TransactionOutcome, Part, Room, Span, Value};
pub use write::counter::{step, Tick};
pub use write::counter_kind::{CounterKind, Signed, Unsigned};
pub use write::draft::When;
pub use write::fairness::Rounds;
pub use write::fraction::{add_fractions, FractionStep};
pub(crate) use write::{Current, Decision, Outcome};

use crate::error::{ReadError, WriteError};
use crate::fault::{self, Fault};
use client::Clients;
use hashmere_format::header::{at, RootWord};
use hashmere_format::leaf::Slot;
use hashmere_mem::{BackError, Host, Mem};
use index::Index;
use log::Log;
use reclaim::eviction_log::EvictionLog;
use std::sync::atomic::Ordering;

/// One store, mapped.
pub struct Engine<M: Mem, H: Host> {
    pub(crate) mem: M,
    pub(crate) host: H,
    pub(crate) layout: Layout,
    pub(crate) access: Access,
    clients: Clients,
    log: Log,
    index: Index,
    evictions: EvictionLog,
}

/// A key's hash, and whether the caller supplied it (then records carry it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash {
    pub(crate) hash: u64,
    pub(crate) is_supplied: bool,
}

impl KeyHash {
    /// What a record of this key has in its hash word.
    #[inline(always)]
    fn word(self) -> Option<u64> {
        self.is_supplied.then_some(self.hash)
    }
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// The hash of a key.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash { hash: self.layout.hasher.key(key), is_supplied: false }
    }

    /// The hash used for one the caller supplied.
    pub fn supplied(&self, hash: u64) -> KeyHash {
        KeyHash { hash: self.layout.hasher.supplied(hash), is_supplied: true }
    }

    #[inline(always)]
    fn root(&self) -> u64 {
        // SYNC(root): pairs with the store of a clear: the index that this leads to is complete.
        self.mem.load(at::ROOT, Ordering::Acquire)
    }

    #[inline(always)]
    fn root_block(&self, root: u64) -> u64 {
        self.segment_offset(RootWord::unpack(root).segment)
    }

    /// The same for a root word that nothing has followed yet: one that leads out of the file, damaged while the store
    /// is open, is replaced by the last good one.
    fn block_within(&self, root: u64) -> u64 {
        let block = self.root_block(root);
        if self.is_inside(block, hashmere_format::root::BYTES) {
            block
        } else {
            self.root_block(self.index.trusted_root())
        }
    }

    /// The slot word at an offset.
    #[inline(always)]
    pub(crate) fn slot(&self, offset: u64) -> Slot {
        // SYNC(commit): pairs with the store of a slot: the words of the record that it leads to are seen as they were
        // written.
        Slot(self.mem.load(offset, Ordering::Acquire))
    }

    /// Bytes of a segment.
    #[inline(always)]
    pub fn segment_bytes(&self) -> u64 {
        self.layout.segment_bytes()
    }

    #[inline(always)]
    pub(crate) fn leaf_bytes(&self) -> u64 {
        self.layout.leaf_bytes()
    }

    #[inline(always)]
    fn segment_offset(&self, segment: u64) -> u64 {
        self.layout.segment_offset(segment)
    }

    #[inline(always)]
    fn segment_of(&self, offset: u64) -> u64 {
        self.layout.segment_of(offset)
    }

    /// Whether `len` bytes at `offset` lie within segments that exist. The file may have grown since we last looked.
    #[inline(always)]
    fn is_inside(&self, offset: u64, len: u64) -> bool {
        let at = offset.wrapping_sub(at::DATA);
        let known = self.log.known();
        at < known && len <= known - at || self.is_inside_now(at, len) || fault::is(Fault::BoundsIgnored)
    }

    /// The same of something that is whole within a segment if its start is: a word at a multiple of 8, or a leaf at a
    /// multiple of its size.
    #[inline(always)]
    fn is_inside_if_aligned(&self, offset: u64) -> bool {
        let at = offset.wrapping_sub(at::DATA);
        at < self.log.known() || self.is_inside_now(at, 8) || fault::is(Fault::BoundsIgnored)
    }

    #[cold]
    #[inline(never)]
    fn is_inside_now(&self, at: u64, len: u64) -> bool {
        let said = self.layout.bytes_of(self.segments_said());
        if at >= said || len > said - at {
            return false;
        }
        let known = self.learn(said);
        at < known && len <= known - at
    }
}

#[cold]
fn corrupt(what: &'static str, offset: u64) -> ReadError {
    ReadError::Corrupt { what, offset }
}

/// What a failure to back memory means to a writer.
fn back_error(error: BackError) -> WriteError {
    match error {
        BackError::NoSpace(source) => WriteError::NoSpace(source),
        BackError::BeyondReserve { capacity, .. } => WriteError::Full { max_bytes: capacity },
        BackError::AddressSpace { end, limit } => WriteError::AddressSpace { needed: end, limit },
        BackError::Io(source) => WriteError::Io { action: "extend the file", source },
        _ => WriteError::Io { action: "extend the file", source: std::io::Error::other("unknown cause") },
    }
}
