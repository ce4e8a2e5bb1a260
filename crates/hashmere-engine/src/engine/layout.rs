//! Sizes of a store and places within it: what its header fixed when it was created.

use crate::engine::index::Tree;
use crate::engine::log::segments::RESERVE;
use hashmere_format::hash::Hasher;
use hashmere_format::header::{at, limit, Shape};
use hashmere_format::leaf::{self, SLOTS};
use hashmere_format::record::{Head, Lengths};

/// What never changes in a store, and what follows from it. Words that a process damages later in the header change
/// nothing here.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    /// Fixed key length and fixed value length, each on its own.
    pub(crate) fixed: (Option<u32>, Option<u32>),
    pub(crate) seed: u64,
    pub(in crate::engine) lengths: Lengths,
    pub(in crate::engine) hasher: Hasher,
    /// Whether any of the two lengths is fixed.
    pub(in crate::engine) has_fixed: bool,
    segment_bytes: u64,
    leaf_bytes: u64,
    /// Of the bits of an offset those that a leaf's may have: leaves lie at multiples of their size.
    pub(in crate::engine) leaf_mask: u64,
    /// Lines of a leaf, its first bucket line, its buckets.
    pub(in crate::engine) lines: u64,
    pub(in crate::engine) first: u64,
    /// Bytes of a leaf before that.
    pub(in crate::engine) first_bytes: u64,
    pub(in crate::engine) buckets: u64,
}

impl Layout {
    pub(crate) fn new(shape: Shape, fixed: (Option<u32>, Option<u32>), durable: bool, seed: u64) -> Layout {
        let lines = (1u64 << shape.leaf_shift) / leaf::LINE;
        let first = leaf::first_bucket(lines, shape.cache);
        let lengths = match fixed {
            (Some(key), Some(value)) => Lengths::fixed(key, value),
            _ => Lengths::VARIABLE,
        };
        Layout {
            shape,
            fixed,
            seed,
            lengths: if durable { lengths.with_sums() } else { lengths },
            hasher: Hasher::new(seed),
            has_fixed: fixed != (None, None),
            segment_bytes: 1 << shape.segment_shift,
            leaf_bytes: 1 << shape.leaf_shift,
            leaf_mask: u64::MAX << shape.leaf_shift,
            lines,
            first,
            first_bytes: first * leaf::LINE,
            buckets: lines - first,
        }
    }

    /// Why no store can be like this; `None` if one can.
    pub(crate) fn contradiction(&self) -> Option<String> {
        if self.is_durable() && self.is_cache() {
            return Some("it is a cache and durable, and no store is both".into());
        }
        let (key, value) = self.fixed_lengths();
        if key + value > limit::PAYLOAD {
            return Some(format!(
                "its keys have {key} bytes and its values {value}, which is more than the {} that a record can hold",
                limit::PAYLOAD
            ));
        }
        None
    }

    /// The fixed lengths; 0 for one that is not fixed.
    fn fixed_lengths(&self) -> (u64, u64) {
        (self.fixed.0.map_or(0, u64::from), self.fixed.1.map_or(0, u64::from))
    }

    /// The least maximum size with which such a store can be used: an index, and room to clean, for a record of its
    /// lengths.
    pub(crate) fn least_max(&self) -> u64 {
        let segment = self.segment_bytes;
        let least = at::DATA + 8 * segment;
        let (key_len, value_len) = self.fixed_lengths();
        let record = Head { key_len, value_len, ..Head::default() }.record_bytes(self.lengths);
        // One segment is the index's, and some are the cleaner's.
        least.max(at::DATA + (record.div_ceil(segment) + 1 + RESERVE) * segment)
    }

    /// Leaves of an index for this many items, a power of two; `None` if no index has room for them.
    pub(crate) fn leaves_for(&self, items: u64) -> Option<u64> {
        let leaves = items.div_ceil((self.buckets * SLOTS * 3 / 4).max(1)).max(1).checked_next_power_of_two()?;
        (leaves <= 1 << Tree::First.depth_max()).then_some(leaves)
    }

    /// Whether it drops records to make room.
    #[inline(always)]
    pub(crate) fn is_cache(&self) -> bool {
        self.shape.cache
    }

    /// Whether its records carry checksums, and a flush brings them to the medium.
    #[inline(always)]
    pub(crate) fn is_durable(&self) -> bool {
        self.lengths.have_sums()
    }

    #[inline(always)]
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    #[inline(always)]
    pub(crate) fn leaf_bytes(&self) -> u64 {
        self.leaf_bytes
    }

    /// Where a segment begins.
    #[inline(always)]
    pub(in crate::engine) fn segment_offset(&self, segment: u64) -> u64 {
        at::DATA + self.bytes_of(segment)
    }

    /// The segment in which an offset lies.
    #[inline(always)]
    pub(in crate::engine) fn segment_of(&self, offset: u64) -> u64 {
        self.segments_in(offset.wrapping_sub(at::DATA))
    }

    /// Bytes of this many segments.
    #[inline(always)]
    pub(in crate::engine) fn bytes_of(&self, segments: u64) -> u64 {
        segments << self.shape.segment_shift
    }

    /// Whole segments in this many bytes.
    #[inline(always)]
    pub(in crate::engine) fn segments_in(&self, bytes: u64) -> u64 {
        bytes >> self.shape.segment_shift
    }
}
