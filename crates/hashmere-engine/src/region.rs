//! Regions of the file that objects other than keys live in: pools of queues, logs. For crates that build such objects;
//! their users need not know regions.

use crate::engine::{PinnedRegion, RegionInfo};
use crate::error::WriteError;
use crate::fork_handle::SharedEngine;
use crate::open::FileEngine;
use hashmere_mem::MapMem;
use hashmere_os::{fork, space};
use std::os::fd::AsFd;
use std::sync::Arc;

/// A living writer of a store, for others to find out whether it still is: its client slot, and how often that was
/// claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(u64);

impl ClientId {
    const SLOT_BITS: u32 = 16;

    pub(crate) fn new(slot: u32, times: u64) -> ClientId {
        ClientId(times << Self::SLOT_BITS | u64::from(slot + 1))
    }

    /// As one word that is never zero; the upper 8 bits are.
    pub fn pack(self) -> u64 {
        self.0 & ((1 << 56) - 1)
    }

    /// From such a word; `None` if it is none.
    pub fn unpack(word: u64) -> Option<ClientId> {
        let slot = word & ((1 << Self::SLOT_BITS) - 1);
        (1..=u64::from(hashmere_format::header::limit::CLIENTS)).contains(&slot).then_some(ClientId(word))
    }

    pub(crate) fn slot(self) -> u32 {
        (self.0 & ((1 << Self::SLOT_BITS) - 1)) as u32 - 1
    }

    pub(crate) fn times(self) -> u64 {
        self.0 >> Self::SLOT_BITS
    }
}

/// An open region. While it is held, its bytes stay where they are, even if it is dropped by another client.
///
/// In a forked child it is the parent's ([`is_ours`](Self::is_ours)): the child opens it again.
pub struct Region {
    shared: Arc<SharedEngine>,
    engine: *const FileEngine,
    place: PinnedRegion,
    born: u64,
}

// SAFETY: the engine pointer is used for its mapping and for atomic operations only. `SharedEngine` outlives the region
// and never frees an engine before its own drop.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    fn new(shared: &Arc<SharedEngine>, place: PinnedRegion) -> Region {
        Region { shared: shared.clone(), engine: shared.engine(), place, born: fork::generation() }
    }

    #[inline(always)]
    fn engine(&self) -> &FileEngine {
        // SAFETY: the engine lives as long as `shared`, which we hold.
        unsafe { &*self.engine }
    }

    /// The memory of the file, at whose [`offset`](Self::offset) the region begins.
    #[inline(always)]
    pub fn mem(&self) -> &MapMem {
        &self.engine().mem
    }

    /// Where its bytes begin in the file.
    #[inline(always)]
    pub fn offset(&self) -> u64 {
        self.place.spot.data
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.place.spot.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this process opened it, rather than the one it was forked from.
    #[inline(always)]
    pub fn is_ours(&self) -> bool {
        self.born == fork::generation()
    }

    /// Whether it has lost its name: it cannot be opened any more, and is freed when the last process that has it open
    /// closes it.
    pub fn is_dropped(&self) -> bool {
        self.engine().is_dropped(self.place.spot)
    }

    /// Does something that only one client at a time may do, in any region of the store: short, and without system
    /// calls. If it is killed in there, the next one finds what it had stored so far.
    ///
    /// # Errors
    /// [`Busy`](WriteError::Busy) if a living process keeps the lock, and what claiming a client slot can fail with.
    pub fn exclusively<R>(&self, act: impl FnOnce() -> R) -> Result<R, WriteError> {
        let writer = self.engine().writer()?;
        self.engine().with_region_lock(&writer, act)
    }

    /// The store that it is in.
    pub fn store(&self) -> &Arc<SharedEngine> {
        &self.shared
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.is_ours() {
            self.engine().close_region(self.place);
        }
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region").field("offset", &self.offset()).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl SharedEngine {
    /// Makes a region of `bytes` bytes, filled by `fill`, which is given the memory and where in it the region begins.
    /// The bytes are undefined before. `None`: there is one of this kind and name.
    ///
    /// # Errors
    /// [`Full`](WriteError::Full) or [`NoSpace`](WriteError::NoSpace) if there is no row of free segments for it,
    /// [`InvalidState`](WriteError::InvalidState) if the name is empty or longer than 128 bytes or this thread holds 24
    /// views and regions.
    pub fn create_region(
        self: &Arc<Self>,
        kind: u64,
        name: &[u8],
        bytes: u64,
        fill: impl FnOnce(&MapMem, u64),
    ) -> Result<Option<Region>, WriteError> {
        let engine = self.engine();
        // Do not search for an extent that cannot exist: in a large file system that takes seconds.
        space::refuse_what_cannot_fit(engine.mem.file().as_fd(), bytes).map_err(WriteError::NoSpace)?;
        let mut writer = engine.writer()?;
        let place = engine.create_region(&mut writer, (kind, name), bytes, |spot| fill(&engine.mem, spot.data))?;
        Ok(place.map(|place| Region::new(self, place)))
    }

    /// Opens a region. `None`: there is none of this kind and name. Looks through the table of segments.
    ///
    /// # Errors
    /// [`ReadOnly`](WriteError::ReadOnly), [`InvalidState`](WriteError::InvalidState) as above.
    pub fn open_region(self: &Arc<Self>, kind: u64, name: &[u8]) -> Result<Option<Region>, WriteError> {
        if self.is_read_only() {
            return Err(WriteError::ReadOnly);
        }
        Ok(self.engine().open_region(kind, name)?.map(|place| Region::new(self, place)))
    }

    /// Loads words of a region without opening it, as a read-only process can: `act` is called with the memory, where
    /// the region begins and how long it is. It must store nothing, and be ready for any words: the region may be
    /// dropped and its room reused during the call. Then, or if there is none, the result is `None`.
    pub fn peek_region<R>(&self, kind: u64, name: &[u8], act: impl FnOnce(&MapMem, u64, u64) -> R) -> Option<R> {
        let engine = self.engine();
        engine.peek_region(kind, name, |at, len| act(&engine.mem, at, len))
    }

    /// Takes a region's name off it at once; its room is free when no process has it open any more. `false`: there is
    /// none.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn drop_region(&self, kind: u64, name: &[u8]) -> Result<bool, WriteError> {
        let engine = self.engine();
        let writer = engine.writer()?;
        engine.drop_region(&writer, kind, name)
    }

    /// All regions of the store.
    pub fn regions(&self) -> Vec<RegionInfo> {
        self.engine().regions()
    }

    /// This process's identity for others: for as long as it has the store open, [`is_gone`](Self::is_gone) is false of
    /// it, whichever of its threads end. Takes a client slot, once.
    ///
    /// # Errors
    /// [`ReadOnly`](WriteError::ReadOnly), [`TooManyClients`](WriteError::TooManyClients).
    pub fn client(&self) -> Result<ClientId, WriteError> {
        let (slot, times) = self.engine().identity()?;
        Ok(ClientId::new(slot, times))
    }

    /// Whether a client is dead or has closed the store: for certain, by a lock that the kernel drops with the process
    /// and not by its process id or by time. A stopped one is not gone.
    ///
    /// # Errors
    /// Those of repairing what it left.
    pub fn is_gone(&self, client: ClientId) -> Result<bool, WriteError> {
        self.engine().is_gone(client.slot(), client.times())
    }

    /// The process of a client, in that one's PID namespace, and what it calls itself. `None`: it has closed the store,
    /// or another client has its place. One that is dead counts until that is noticed.
    pub fn process_of(&self, client: ClientId) -> Option<(u32, String)> {
        self.engine().process_of(client.slot(), client.times())
    }
}
