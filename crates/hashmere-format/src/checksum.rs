//! The checksum word of a record in a durable store: proof that the record is whole, and when it died.
//!
//! ```text
//!  63                            32 31                             0
//! +--------------------------------+--------------------------------+
//! | checksum                       | stamp                          |
//! +--------------------------------+--------------------------------+
//! ```
//! The checksum (CRC-32C) covers the words behind the checksum word except the expiry and the period of a transaction,
//! which change in place; then the
//! head word without its marks of death and of being kept; then the offset of the record and the seed of the file. So
//! an image of a record inside a value, or one that an older life of the segment left, is no record.

use crate::crc32c::Crc;
use crate::record::field;

/// Offset of the word in its record.
pub const AT: u64 = 8;
/// Stamp of a record that lives.
pub const ALIVE: u64 = 0;
/// Stamp of a record that was not committed, at least not yet: before every sync.
pub const NEVER: u64 = 1;
/// The largest stamp, and so the last sync.
pub const STAMP_MAX: u64 = u32::MAX as u64;

/// The checksum word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum(pub u64);

impl Checksum {
    /// Packs the word.
    pub fn new(checksum: u32, stamp: u64) -> Checksum {
        Checksum(u64::from(checksum) << 32 | stamp & STAMP_MAX)
    }
    /// The checksum; 0 is none.
    pub fn checksum(self) -> u32 {
        (self.0 >> 32) as u32
    }
    /// The number of the sync that closes the period in which the record died, or [`ALIVE`] or [`NEVER`].
    pub fn stamp(self) -> u64 {
        self.0 & STAMP_MAX
    }
    /// The same with another stamp.
    pub fn stamped(self, stamp: u64) -> Checksum {
        Checksum::new(self.checksum(), stamp)
    }
}

/// Which word of a record is its expiry, if it has one.
pub fn expiry_word(head: u64) -> Option<u64> {
    let member = 2 * u64::from(head & field::MEMBER != 0);
    (head & field::EXPIRES != 0).then_some(AT / 8 + 1 + (head & field::LONG) + member)
}

/// Which word is the period of a member of a transaction, if it is one.
fn period_word(head: u64) -> Option<u64> {
    (head & field::MEMBER != 0).then_some(AT / 8 + 1 + (head & field::LONG))
}

/// The checksum of the words behind the checksum word, `words` in all, header and checksum included.
pub fn of_payload(head: u64, words: u64, mut load: impl FnMut(u64) -> u64) -> u32 {
    let skipped = [expiry_word(head), period_word(head)];
    let covered = (AT / 8 + 1..words).filter(|word| !skipped.contains(&Some(*word)));
    covered.fold(Crc::EMPTY, |crc, word| crc.word(load(word))).value()
}

/// The checksum of the whole record, given that of its payload.
pub fn of_record(payload: u32, head: u64, offset: u64, seed: u64) -> u32 {
    // Zero is the value of a word that was never written.
    Crc::resume(payload).word(head & !(field::DEAD | field::RETAINED)).word(offset ^ seed).value().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Head, Lengths};

    #[test]
    fn the_expiry_is_found_and_left_out() {
        let lengths = Lengths::VARIABLE.with_sums();
        for value_len in [5, 600] {
            let head = Head { key_len: 3, value_len, expires: Some(77), flags: 9, hash: Some(8), ..Head::default() };
            let mut words = vec![0; (head.record_bytes(lengths) / 8) as usize];
            head.write(lengths, head.header(lengths), |i, w| words[i as usize] = w);
            let at = expiry_word(words[0]).unwrap() as usize;
            assert_eq!(words[at], 77);
            let sum = |words: &[u64]| of_payload(words[0], words.len() as u64, |w| words[w as usize]);
            let before = sum(&words);
            words[at] = 78;
            assert_eq!(sum(&words), before);
            words[at + 1] ^= 1;
            assert_ne!(sum(&words), before);
        }
    }

    #[test]
    fn place_seed_and_version_count_and_marks_do_not() {
        let sum = of_record(1, 1 << 22, 4096, 7);
        assert_eq!(sum, of_record(1, 1 << 22 | field::DEAD | field::RETAINED, 4096, 7));
        for other in [of_record(2, 1 << 22, 4096, 7), of_record(1, 2 << 22, 4096, 7), of_record(1, 1 << 22, 4104, 7)] {
            assert_ne!(sum, other);
        }
        assert_ne!(sum, of_record(1, 1 << 22, 4096, 8));
        assert_eq!(Checksum::new(5, 6).stamped(9), Checksum::new(5, 9));
    }
}
