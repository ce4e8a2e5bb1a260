//! What a slot leads to.

use crate::engine::index::Tree;
use hashmere_format::leaf::Slot;
use hashmere_format::record::RecordHeader;

/// A record that a slot points at.
///
/// What it holds beyond the header is loaded when it is asked for, which is sound as long as the record is: under its
/// key's lock, under a pin, or before the proof that nothing was recycled.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub(crate) header: RecordHeader,
    /// Offset of the record.
    pub(crate) record: u64,
    /// Offset of the slot.
    pub(crate) slot_offset: u64,
    /// What it held.
    pub(crate) slot: Slot,
    pub(in crate::engine) leaf: u64,
    pub(in crate::engine) tree: Tree,
}

impl Found {
    /// Offset of the key's first byte.
    #[inline(always)]
    pub(crate) fn key(&self) -> u64 {
        self.record + self.header.key_at()
    }
    /// Bytes of the key.
    #[inline(always)]
    pub fn key_len(&self) -> usize {
        self.header.key_len as usize
    }
    /// Offset of the value.
    #[inline(always)]
    pub(crate) fn value(&self) -> u64 {
        self.record + self.header.value_at()
    }
    /// Bytes of the value.
    #[inline(always)]
    pub fn value_len(&self) -> usize {
        self.header.value_len as usize
    }
    /// Bytes of the whole record.
    #[inline(always)]
    pub(in crate::engine) fn bytes(&self) -> u64 {
        self.header.bytes()
    }
    /// The version.
    #[inline(always)]
    pub fn version(&self) -> u64 {
        self.header.version()
    }
}
