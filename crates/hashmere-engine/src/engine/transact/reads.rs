//! What a transaction looks up before it takes a lock: the keys that it reads, and those that it only writes.
//!
//! Where a key was found is remembered. Under its lock two or three words are compared; the key is looked up again only
//! if one of them has changed.

use crate::engine::commit::locate::Reach;
use crate::engine::index::Tree;
use crate::engine::read::fetch::PIN_FROM;
use crate::engine::transact::locks::Held;
use crate::engine::transact::part::Way;
use crate::engine::transact::{Guard, Part};
use crate::engine::{Engine, Found};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::record::field;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Keys whose cache misses overlap without being asked for beforehand.
const FEW: usize = 4;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Reads a part's key as [`fetch`](Self::fetch) does, to the end of `buffer`, and notes in the part what and where
    /// it was; returns what `also` makes of it. The caller counts it. `None`: it is absent, long, or something is out
    /// of the ordinary; the general read is to do it.
    #[inline(always)]
    pub(crate) fn read_part<R>(
        &self,
        bytes: &[u8],
        part: &mut Part,
        buffer: &mut Vec<u8>,
        also: impl FnOnce(&Found) -> R,
    ) -> Option<R> {
        let (key, kh) = (part.key.of(bytes), part.kh);
        let epoch = self.mem.load(at::EPOCH, Ordering::Acquire);
        let root = self.root();
        let Ok(Some(path)) = self.path_of(root, Tree::First, kh.hash) else { return None };
        let place = self.place(path.leaf, kh.hash);
        let mut mask = self.matching(place, kh.hash);
        if mask == 0 {
            return None;
        }
        let found = self.found_at(key, kh, Tree::First, place, place.take_slot(&mut mask), Fault::ReadUncompared)?;
        if found.header.value_len > PIN_FROM || self.has_expired(&found) {
            return None;
        }
        let start = buffer.len();
        if buffer.capacity() == 0 {
            // In one step, and no larger than it must be.
            *buffer = Vec::with_capacity(found.value_len());
        }
        self.mem.append_to(found.value(), found.value_len(), buffer);
        self.visit(&found);
        let seen = if Self::has_more(&found) { Some(self.meta_of_found(&found)) } else { None };
        let also = also(&found);
        if !self.validate(&found, epoch) {
            buffer.truncate(start);
            return None;
        }
        part.guard = seen.map_or(Guard::Version(found.version()), Guard::Seen);
        part.way = Some(Way { root, path, place });
        part.looked_up = Some(epoch);
        (part.site.found, part.site.leaf) = (Some(found), place.leaf);
        Some(also)
    }

    /// Whether a record has marks or an expiry beside its version.
    #[inline(always)]
    pub(super) fn has_more(found: &Found) -> bool {
        found.header.has(field::EXPIRES | field::FLAGS)
    }

    /// Looks the keys up that were not read. The exchanges of the locks keep the processor from doing this ahead of
    /// them; here the cache misses of all keys overlap.
    #[inline(always)]
    pub(super) fn look_up_parts(&self, bytes: &[u8], parts: &mut [Part]) {
        if parts.len() > FEW {
            for part in parts.iter() {
                if let Some(way) = part.way.filter(|_| part.looked_up.is_none()) {
                    self.prefetch_record(way.place, part.kh);
                }
            }
        }
        let epoch = self.mem.load(at::EPOCH, Ordering::Acquire);
        for part in parts.iter_mut() {
            let Some(way) = part.way.as_ref().filter(|_| part.looked_up.is_none()) else { continue };
            let mut mask = self.matching(way.place, part.kh.hash);
            if mask != 0 {
                let slot = way.place.take_slot(&mut mask);
                let key = part.key.of(bytes);
                part.site.found = self.found_at(key, part.kh, Tree::First, way.place, slot, Fault::KeyUncompared);
                // Should another key have the same tag, `find_part` looks on.
                if part.site.found.is_none() {
                    continue;
                }
            }
            part.site.leaf = way.place.leaf;
            part.looked_up = Some(epoch);
        }
    }

    /// With all locks held, and the epoch of then: whether a part's key is as it was looked up. Of one that is absent,
    /// with a free slot if there is one.
    #[inline(always)]
    pub(super) fn still_holds(&self, part: &mut Part, held: &Held<'_>, epoch: u64) -> bool {
        let (Some(before), Some(way)) = (part.looked_up, &part.way) else { return false };
        if let Some(found) = &part.site.found {
            // The epoch was loaded when the slot could not change any more: so if it is the same, the slot leads to
            // this record since it was looked up.
            let same = self.slot(found.slot_offset) == found.slot && before == epoch;
            return (same || fault::is(Fault::LookupBelieved)) && self.is_not_replaced(found);
        }
        let may_overflow = part.reach != Reach::First || held.locks[part.lock].word.has_overflow();
        if may_overflow || self.matching(way.place, part.kh.hash) != 0 {
            return false;
        }
        part.site.free = self.free_slot(way.place);
        true
    }

    /// With all locks held: where a part's key is, or could be, if that is not known.
    #[cold]
    #[inline(never)]
    pub(super) fn locate_part(
        &self,
        root: u64,
        bytes: &[u8],
        part: &mut Part,
        held: &Held<'_>,
    ) -> Result<(), WriteError> {
        part.looked_up = None;
        part.site = self.find_part(root, bytes, part, held)?;
        Ok(())
    }
}
