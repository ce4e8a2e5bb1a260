//! The hash of a key, and which bits of it mean what.
//!
//! ```text
//!  63            48 47            32 31    26 25      20 19                0
//! +----------------+----------------+--------+----------+-------------------+
//! | second bucket  | first bucket   | unused | tag only | directory and tag |
//! +----------------+----------------+--------+----------+-------------------+
//! ```
//! The low [`TAG_BITS`] are in the slot, so that a split and most mismatches read no record; the
//! directory uses at most [`DEPTH_MAX`](crate::root::DEPTH_MAX) of them, lowest first.
//!
//! The function is rapidhash version 3 with the seed of the file, whose output is frozen
//! (`HASH_ID` is in the header, test vectors below).

use rapidhash::v3::{rapidhash_v3_inline, RapidSecrets};

/// Names the hash function in the header.
pub const HASH_ID: u64 = 1;
/// How many low bits of the hash a slot holds.
pub const TAG_BITS: u32 = 26;
/// Mask of those bits.
pub const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

/// The seeded hash functions of one file.
#[derive(Clone, Debug)]
pub struct Hasher {
    primary: RapidSecrets,
    overflow: RapidSecrets,
    mix: u64,
}

impl Hasher {
    /// The functions for a file's seed.
    pub fn new(seed: u64) -> Hasher {
        Hasher {
            primary: RapidSecrets::seed_cpp(seed),
            // Any fixed function of the seed does: keys that collide in one tree must not collide in the other.
            overflow: RapidSecrets::seed_cpp(finalize(seed ^ 0x6f76_6572_666c_6f77)),
            mix: finalize(seed),
        }
    }

    /// The hash of a key, by which the first tree is searched.
    #[inline(always)]
    pub fn key(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, false, false>(key, &self.primary)
    }

    /// The two hashes of a key for the overflow tree. The second, for when the leaf of the first cannot be split, is
    /// its complement: it leads to another leaf as soon as there are two, and no tag is that of both.
    pub fn overflow(&self, key: &[u8]) -> [u64; 2] {
        let hash = rapidhash_v3_inline::<true, false, false>(key, &self.overflow);
        [hash, !hash]
    }

    /// Spreads a hash that the caller supplied: callers' hashes are often weak in some bits. A bijection, so it
    /// adds no collision.
    #[inline(always)]
    pub fn supplied(&self, hash: u64) -> u64 {
        finalize(hash ^ self.mix)
    }

    /// The hash that the caller supplied, from what [`supplied`](Self::supplied) made of it.
    pub fn as_supplied(&self, spread: u64) -> u64 {
        definalize(spread) ^ self.mix
    }
}

/// The inverse of [`finalize`]: the inverse factors in the opposite order. (A shift by more than half of the bits
/// undoes itself.)
fn definalize(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0x9cb4_b2f8_1293_37db);
    x ^= x >> 33;
    x = x.wrapping_mul(0x4f74_430c_22a5_4005);
    x ^ (x >> 33)
}

/// The 64-bit finaliser of MurmurHash3 (Austin Appleby, public domain): a bijection with full avalanche.
#[inline(always)]
fn finalize(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// The two candidate buckets of a hash, among `buckets` of them (at least 2). They differ.
#[inline(always)]
pub fn buckets(hash: u64, buckets: u64) -> (u64, u64) {
    let first = ((hash >> 32 & 0xffff) * buckets) >> 16;
    let second = ((hash >> 48) * buckets) >> 16;
    let second = if second == first {
        if first + 1 == buckets {
            0
        } else {
            first + 1
        }
    } else {
        second
    };
    (first, second)
}

/// The fingerprint of an entry id: bits that neither the UID nor the directory uses.
#[inline(always)]
pub fn fingerprint(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_differ_and_stay_in_range() {
        for n in [2u64, 3, 7, 503, 511] {
            for i in 0..20_000u64 {
                let (a, b) = buckets(finalize(i), n);
                assert!(a < n && b < n && a != b, "{n} {i} {a} {b}");
            }
        }
    }

    #[test]
    fn the_hash_is_frozen() {
        let h = Hasher::new(42);
        let got: Vec<u64> = [&b""[..], b"a", b"12345678", b"the quick brown fox jumps over the lazy dog"]
            .iter()
            .map(|k| h.key(k))
            .collect();
        let all = [got[0], got[1], got[2], got[3], h.supplied(7), h.overflow(b"a")[0]];
        assert_eq!(all, VECTORS, "the hash of existing files changed");
    }

    /// Of the four keys, of a supplied 7, and of "a" in the overflow tree; seed 42.
    const VECTORS: [u64; 6] = [
        0x9293_ba21_a570_895d,
        0x0c4b_4535_681a_d65d,
        0x4ae6_adae_3091_9a37,
        0x32ee_c01d_ba24_92f2,
        0xf328_0a2b_1610_be4c,
        0xc2fb_fc40_6bce_575a,
    ];
}
