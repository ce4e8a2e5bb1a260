//! Samples of the operations on a store: a ring at a fixed place of the file, which clients write to while
//! [`Sampling`] is on. `docs/internals/sampling.md` draws it.

use crate::header::{self, at};

/// Words of a sample.
pub const WORDS: usize = 16;
/// Bytes of a sample, and of the slot before the first.
pub const BYTES: u64 = 8 * WORDS as u64;
/// Samples that the ring holds.
pub const SLOTS: u64 = (at::CHUNK_0 - at::SAMPLES) / BYTES - 1;
/// Bytes of a key that a sample holds.
pub const KEY_MAX: usize = 8 * (WORDS - KEY);
/// Offset of the word that says how many samples were begun.
pub const BEGUN: u64 = at::SAMPLES;

/// The first word of the key.
const KEY: usize = 5;
const USE_SHIFT: u32 = 32;

/// Offset of the sample with this position.
pub fn offset(position: u64) -> u64 {
    at::SAMPLES + BYTES * (1 + position % SLOTS)
}

/// What was done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Use {
    /// Its value was read.
    Hit = 0,
    /// It was looked for and not there.
    Miss = 1,
    /// A value was stored.
    Set = 2,
    /// It was deleted.
    Delete = 3,
}

impl Use {
    const ALL: [Use; 4] = [Use::Hit, Use::Miss, Use::Set, Use::Delete];

    /// Whether the key was written.
    pub fn is_write(self) -> bool {
        matches!(self, Use::Set | Use::Delete)
    }
}

/// One sampled operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What it was.
    pub use_: Use,
    /// Operations that it represents.
    pub weight: u64,
    /// Hash of the key.
    pub hash: u64,
    /// Length of the key.
    pub key_len: u32,
    /// What of the key fits, zeros behind it.
    pub bytes: [u8; KEY_MAX],
}

impl Sample {
    /// An operation on a key.
    pub fn new(use_: Use, weight: u64, hash: u64, key: &[u8]) -> Sample {
        let mut bytes = [0; KEY_MAX];
        let len = key.len().min(KEY_MAX);
        bytes[..len].copy_from_slice(&key[..len]);
        Sample { use_, weight, hash, key_len: key.len() as u32, bytes }
    }

    /// The key, or what of it fits.
    pub fn key(&self) -> &[u8] {
        &self.bytes[..(self.key_len as usize).min(KEY_MAX)]
    }

    /// Its words at this position, the checksum first.
    pub fn encode(&self, position: u64) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[1] = position;
        words[2] = u64::from(self.key_len) | (self.use_ as u64) << USE_SHIFT;
        words[3] = self.weight;
        words[4] = self.hash;
        for (word, bytes) in words[KEY..].iter_mut().zip(self.bytes.chunks_exact(8)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        words[0] = checksum(&words);
        words
    }

    /// The sample with this position; `None`: the words are not, or not all, of it.
    pub fn decode(words: &[u64; WORDS], position: u64) -> Option<Sample> {
        if words[0] != checksum(words) || words[1] != position {
            return None;
        }
        let use_ = *Use::ALL.get((words[2] >> USE_SHIFT) as usize)?;
        let mut bytes = [0; KEY_MAX];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(&words[KEY..]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        // A weight above this is damage: no client does as much within a session.
        let weight = words[3].clamp(1, WEIGHT_MAX);
        Some(Sample { use_, weight, hash: words[4], key_len: words[2] as u32, bytes })
    }
}

/// The longest period between two samples.
pub const WEIGHT_MAX: u64 = 1 << 24;

/// What the first word of a sample is, by the others.
pub fn checksum(words: &[u64; WORDS]) -> u64 {
    header::checksum(&words[1..]) | 1
}

/// The header's word that says whether clients sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling(pub u64);

impl Sampling {
    /// A time further ahead than this comes of a clock that was set back.
    const AHEAD_MAX_MS: u64 = 60_000;

    /// On until this time, in milliseconds since 1970.
    pub fn until(ms: u64, session: u16) -> Sampling {
        Sampling(ms << 16 | u64::from(session))
    }

    /// Whether it is on at this time.
    pub fn is_on(self, now_ms: u64) -> bool {
        (1..=Self::AHEAD_MAX_MS).contains(&(self.0 >> 16).saturating_sub(now_ms))
    }

    /// The number of its session.
    pub fn session(self) -> u16 {
        self.0 as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_round_trip_and_nothing_else_reads_as_one() {
        let long = [b'k'; 200];
        for (use_, key) in [(Use::Hit, &b""[..]), (Use::Miss, b"user:7"), (Use::Set, &long[..88]), (Use::Delete, &long)]
        {
            let sample = Sample::new(use_, 1234, 0xabcd, key);
            let words = sample.encode(77);
            assert_eq!(Sample::decode(&words, 77), Some(sample));
            assert_eq!(sample.key(), &key[..key.len().min(KEY_MAX)]);
            assert_eq!(Sample::decode(&words, 78), None);
            for i in 0..WORDS {
                let mut torn = words;
                torn[i] ^= 1 << 17;
                assert_eq!(Sample::decode(&torn, 77), None, "word {i}");
            }
        }
        assert_eq!(Sample::decode(&[0; WORDS], 0), None);
    }

    #[test]
    fn sampling_ends_by_itself_and_does_not_believe_a_far_future() {
        let on = Sampling::until(1_000_000, 7);
        assert!(on.session() == 7 && on.is_on(999_999) && on.is_on(940_000));
        assert!(!on.is_on(1_000_000) && !on.is_on(2_000_000) && !on.is_on(900_000));
        assert!(!Sampling(0).is_on(0) && !Sampling(u64::MAX).is_on(1));
    }

    #[test]
    fn the_ring_lies_where_the_file_had_nothing() {
        assert_eq!(SLOTS, 351);
        assert!(offset(SLOTS - 1) + BYTES <= at::CHUNK_0 && offset(0) == offset(SLOTS) && offset(0) > BEGUN);
    }
}
