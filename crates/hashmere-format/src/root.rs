//! The root block of the index: where the two directories are and where leaves come from.
//!
//! A directory is an array of leaf offsets in least-significant-bit order, in chunks that never move: chunk 0 holds
//! the entries below [`CHUNK_0`], chunk `k` those from `CHUNK_0 << (k-1)` to `CHUNK_0 << k`. Doubling appends a chunk
//! and stores the new depth.

/// Most bits of the hash that a directory uses.
pub const DEPTH_MAX: u32 = 20;
/// The same in the overflow tree.
pub const DEPTH_MAX_1: u32 = 17;
/// Entries of the first chunk.
pub const CHUNK_0: u64 = 64;
/// Bytes of the root block with the first chunk of both directories.
pub const BYTES: u64 = 2048;

/// Words of the root block, as byte offsets in it.
pub mod at {
    /// Depth of the first directory.
    pub const DEPTH_0: u64 = 0;
    /// Depth of the overflow directory plus one; 0 while there is none.
    pub const DEPTH_1: u64 = 8;
    /// Pointers to the chunks of the first directory, each less the offset of its first entry.
    pub const DIR_0: u64 = 16;
    /// The same for the overflow directory.
    pub const DIR_1: u64 = 144;
    /// Next free byte of the index arena.
    pub const ARENA: u64 = 272;
    /// End of the arena's segment.
    pub const ARENA_END: u64 = 280;
    /// First of the spare leaves.
    pub const SPARE: u64 = 288;
    /// Version that fresh buckets start from.
    pub const VERSION: u64 = 296;
    /// Version that the last clear left behind: no record up to it belongs to this index.
    pub const FLOOR: u64 = 304;
    /// Entries of chunk 0 of the first directory.
    pub const ENTRIES_0: u64 = 512;
    /// Entries of chunk 0 of the overflow directory.
    pub const ENTRIES_1: u64 = 1024;
}

/// Chunks of a directory of full depth.
pub const CHUNKS: u64 = 1 + (DEPTH_MAX - CHUNK_0.trailing_zeros()) as u64;

/// Which chunk holds entry `index`.
#[inline(always)]
pub fn chunk_of(index: u64) -> u64 {
    u64::from((index | (CHUNK_0 - 1)).ilog2()) - u64::from(CHUNK_0.ilog2() - 1)
}

/// First entry of a chunk.
pub fn chunk_start(chunk: u64) -> u64 {
    if chunk == 0 {
        0
    } else {
        CHUNK_0 << (chunk - 1)
    }
}

const _: () = {
    assert!(at::DIR_0 + 8 * CHUNKS <= at::DIR_1);
    assert!(at::DIR_1 + 8 * CHUNKS <= at::ARENA);
    assert!(at::ENTRIES_1 + 8 * CHUNK_0 <= BYTES);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_directory_without_overlap() {
        for index in 0..1u64 << 12 {
            let c = chunk_of(index);
            assert!(chunk_start(c) <= index && index < chunk_start(c + 1), "{index} {c}");
        }
        assert_eq!(chunk_of((1 << DEPTH_MAX) - 1), CHUNKS - 1);
    }
}
