//! Clearing: a new, empty index takes the place of the old one in one store.
//!
//! A writer that had begun before may still commit into the old index: it then happened before the clear. What the
//! old index led to is freed afterwards, once no operation is under way that began under it.

use crate::engine::log::segments::{Memory, Need};
use crate::engine::{Engine, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::{at, RootWord};
use hashmere_format::record::VERSION_MAX;
use hashmere_format::root;
use hashmere_format::row::Stat;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Removes every key at once.
    pub fn clear(&self, writer: &mut Writer) -> Result<(), WriteError> {
        self.refuse_if_poisoned()?;
        self.reach_file()?;
        match self.try_clear(writer) {
            // Durable: there may be room after a sync.
            Err(error) if error.is_no_room() && self.sync_for_room(writer)? => self.try_clear(writer)?,
            cleared => cleared?,
        }
        self.all_changed();
        self.retire_segment(writer);
        for segment in 0..self.segments() {
            self.free_if_dead(writer, segment)?;
        }
        Ok(())
    }

    fn try_clear(&self, writer: &Writer) -> Result<(), WriteError> {
        self.acquire_global(writer.slot, at::INDEX_LOCK)?;
        let swapped = self.swap_root(writer);
        self.release_global(at::INDEX_LOCK);
        swapped
    }

    fn swap_root(&self, writer: &Writer) -> Result<(), WriteError> {
        let old = RootWord::unpack(self.root());
        // In a full store the reserve lends the segment: the old index gives more than that back.
        let segment = self.claim_patiently(writer.slot, Need::Reserve, self.index_step(self.plant_bytes()))?;
        let new = RootWord { generation: old.generation + 1, segment };
        // Versions grow across clears: a version seen before a clear must not come again.
        let version = self.host.now_ms().max(self.next_version()) & VERSION_MAX;
        if fault::is(Fault::RootEarly) {
            self.mem.store(at::ROOT, new.pack(), Ordering::SeqCst);
        }
        if let Err(error) = self.plant(new, version, version) {
            self.free(segment, 1, writer.slot, Memory::Most);
            return Err(error);
        }
        self.set_field(segment, segment::at::BORN, new.generation);
        self.set_state(segment, Word::owned(State::Index, writer.slot));
        // SYNC(root): the new index is complete before any client can see it. This is the point at which the store is
        // empty.
        self.mem.store(at::ROOT, new.pack(), Ordering::SeqCst);
        self.set_state(segment, Word::new(State::Index));
        Ok(())
    }

    /// A version above every one that was given out so far: no bucket can have gone further from where all of them
    /// started than there were writes in all. (Clients that die between a write and its count are in the margin.)
    fn next_version(&self) -> u64 {
        let block = self.block_within(self.root());
        // Under a backup, versions begin above its floor. What writes asked for is not in their number.
        let base = self.mem.load(block + root::at::VERSION, Ordering::Relaxed);
        // SYNC(raised): pairs with the store in `ask_version`, under the same lock.
        let base = base.max(self.snapshot().floor()).max(self.raised());
        let writes =
            [Stat::Sets, Stat::Deletes, Stat::Evicted, Stat::Expired, Stat::Takeovers].map(|stat| self.total(stat));
        writes.iter().fold(base, |sum, writes| sum.wrapping_add(*writes)).wrapping_add(1 << 20)
    }
}
