//! Reading a value into a buffer: the hottest read there is.

use crate::engine::index::Tree;
use crate::engine::read::Probe;
use crate::engine::{Engine, Found, KeyHash};
use crate::error::ReadError;
use crate::types::{Metadata, Uid, Version};
use hashmere_format::segment::State;
use hashmere_mem::{Host, Mem};
use std::sync::atomic::Ordering;

/// Values above this are copied under a pin: copying them optimistically could fail again and again.
pub(crate) const PIN_FROM: u64 = 32 << 10;

/// What a read found: the bytes are in the caller's buffer, or the value is long and should be pinned.
pub(crate) enum Fetched<R> {
    Copied(R),
    Long,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Everything about a record except key and value.
    #[inline(always)]
    pub fn meta_of_found(&self, found: &Found) -> Metadata {
        let flags = self.flags_of(found);
        Metadata {
            value_len: found.header.value_len,
            flags: flags as u32,
            marks: (flags >> 32) as u32,
            version: Version(found.version()),
            expires_at_ms: self.expiry_of(found),
            uid: Uid(self.uid(found.tree, found.leaf, found.slot_offset, found.slot.tag())),
        }
    }

    /// Copies a value to the end of `buffer` (which keeps its content on a miss), and returns what `also` makes of the
    /// record.
    #[inline(always)]
    pub(crate) fn fetch<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        buffer: &mut Vec<u8>,
        also: impl Fn(&Found) -> R,
    ) -> Result<Option<Fetched<R>>, ReadError> {
        let start = buffer.len();
        match self.probe(key, kh) {
            Probe::At(found, epoch) if found.header.value_len <= PIN_FROM => {
                self.mem.append_to(found.value(), found.value_len(), buffer);
                self.visit(&found);
                let also = also(&found);
                if self.validate(&found, epoch) {
                    self.count_read(true, key, kh);
                    return Ok(Some(Fetched::Copied(also)));
                }
                buffer.truncate(start);
            }
            Probe::Absent => {
                self.count_read(false, key, kh);
                return Ok(None);
            }
            _ => {}
        }
        self.fetch_slowly(key, kh, buffer, also)
    }

    #[cold]
    #[inline(never)]
    fn fetch_slowly<R>(
        &self,
        key: &[u8],
        kh: KeyHash,
        buffer: &mut Vec<u8>,
        also: impl Fn(&Found) -> R,
    ) -> Result<Option<Fetched<R>>, ReadError> {
        let start = buffer.len();
        let fetched = self.read_by_generation(key, kh, &mut |found| {
            if found.header.value_len > PIN_FROM {
                return Ok(Fetched::Long);
            }
            buffer.truncate(start);
            self.mem.append_to(found.value(), found.value_len(), buffer);
            self.visit(found);
            Ok(Fetched::Copied(also(found)))
        })?;
        self.count_read(fetched.is_some(), key, kh);
        Ok(fetched)
    }

    /// Everything about a key but its value.
    #[inline(always)]
    pub fn peek(&self, key: &[u8], kh: KeyHash) -> Result<Option<Metadata>, ReadError> {
        self.read(key, kh, |found| Ok(self.meta_of_found(found)))
    }

    /// Notes that a record was used (cache mode; a hint, set only if it is not).
    #[inline(always)]
    pub fn visit(&self, found: &Found) {
        if let Some((word, bit)) = self.missing_mark(found) {
            self.mark_visited(found.tree, found.leaf, found.slot.tag(), word, bit);
        }
    }

    /// The same by an operation that has entered, and has the key's lock.
    #[inline(always)]
    pub(in crate::engine) fn visit_locked(&self, found: &Found) {
        if let Some((word, bit)) = self.missing_mark(found) {
            self.mem.fetch_or(word, bit, Ordering::Relaxed);
        }
    }

    /// The mark of a record that should have one and has not.
    #[inline(always)]
    fn missing_mark(&self, found: &Found) -> Option<(u64, u64)> {
        if !self.layout.is_cache() || self.access.read_only {
            return None;
        }
        let (word, bit) = self.mark(found.leaf, found.slot_offset);
        // Uses right after the write, while its segment is still open, say nothing about whether it will be wanted
        // later (what S3-FIFO's small queue is for).
        let unmarked = || self.mem.load(word, Ordering::Relaxed) & bit == 0;
        (unmarked() && self.state(self.segment_of(found.record)).state != State::Open).then_some((word, bit))
    }

    /// Sets a mark, as an operation under the root of now: a leaf of the past may be something else already.
    #[cold]
    fn mark_visited(&self, tree: Tree, leaf: u64, tag: u64, word: u64, bit: u64) {
        let Ok(mut writer) = self.writer() else { return };
        let root = self.enter(&mut writer);
        if matches!(self.leaf_of(root, tree, tag), Ok(Some(now)) if now == leaf) {
            self.mem.fetch_or(word, bit, Ordering::Relaxed);
        }
        self.mem.store(writer.row + hashmere_format::row::at::ACTIVE, 0, Ordering::Release);
    }
}
