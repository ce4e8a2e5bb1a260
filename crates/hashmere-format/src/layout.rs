//! What all parts of the layout come to: one number for it, and that no part reaches into the next.

use crate::header::{at, checksum, limit, WAIT_GROUPS};
use crate::{cell, feed, hash, record, region, root, row, sample, segment, sync};

/// Folds the constants of this crate, so that two builds that disagree on the layout refuse each other.
pub fn layout_hash() -> u64 {
    checksum(&[
        at::CHECKSUM,
        at::ROOT,
        at::SPACE_LOCK,
        at::INDEX_LOCK,
        at::REGION_LOCK,
        at::WAITED,
        at::CHUNKS,
        at::CHUNK_0,
        at::CLIENTS,
        at::CELLS,
        at::DATA,
        row::BYTES,
        row::at::PINS,
        row::at::TRANSACTION,
        cell::BYTES,
        cell::CELL_WORDS,
        segment::BYTES,
        root::at::DIR_0,
        root::at::DIR_1,
        segment::State::Hole as u64,
        region::DATA,
        u64::from(hash::TAG_BITS),
        record::VERSION_SHIFT.into(),
        record::field::RETAINED,
        at::SNAPSHOT,
        at::RAISED,
        at::FEED,
        row::at::FEED,
        feed::at::RING,
        feed::ENTRY_HEAD,
        at::SAMPLING,
        at::SAMPLES,
        row::at::TRIGGERS,
        sample::BYTES,
    ])
}

const _: () = {
    assert!(at::CHUNKS + 8 * (limit::SEGMENTS / segment::CHUNK_ENTRIES) <= at::SAMPLES);
    assert!(at::SAMPLES + (1 + sample::SLOTS) * sample::BYTES <= at::CHUNK_0);
    assert!(at::CHUNK_0 + segment::CHUNK_BYTES <= at::CLIENTS);
    assert!(at::CLIENTS + limit::CLIENTS as u64 * row::BYTES <= at::CELLS);
    assert!(at::FREE_RING + 8 * at::FREE_RING_LEN <= at::SYNC_NEXT);
    assert!(at::SYNC_POINTS[1] + sync::BYTES <= at::WAITED);
    assert!(at::EVENTS + 8 * WAIT_GROUPS <= at::SAMPLING);
    assert!(at::SAMPLE_RATE < at::CHUNKS);
};
