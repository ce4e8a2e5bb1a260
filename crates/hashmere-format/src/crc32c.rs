//! CRC-32C (Castagnoli): the checksum of iSCSI, ext4 and Btrfs. Eight bytes at a time, by tables.

/// The polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]`: what byte `b` does to the remainder when `k` more bytes follow in the same step.
const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        tables[0][byte] = rest;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// A checksum under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc(u32);

impl Crc {
    /// Of nothing so far.
    pub const EMPTY: Crc = Crc(u32::MAX);

    /// Goes on with one that was stopped at `value`.
    pub fn resume(value: u32) -> Crc {
        Crc(!value)
    }

    /// Adds the eight bytes of a little-endian word.
    #[inline]
    pub fn word(self, word: u64) -> Crc {
        let bytes = (word ^ u64::from(self.0)).to_le_bytes();
        let pick = |i: usize| TABLES[7 - i][bytes[i] as usize];
        Crc(pick(0) ^ pick(1) ^ pick(2) ^ pick(3) ^ pick(4) ^ pick(5) ^ pick(6) ^ pick(7))
    }

    /// Adds bytes, any number of them.
    pub fn bytes(self, bytes: &[u8]) -> Crc {
        let (words, rest) = bytes.split_at(bytes.len() & !7);
        let crc = words
            .chunks_exact(8)
            .fold(self, |crc, chunk| crc.word(chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))));
        let step = |rest: u32, byte: &u8| rest >> 8 ^ TABLES[0][usize::from(rest as u8 ^ byte)];
        Crc(rest.iter().fold(crc.0, step))
    }

    /// The checksum of what was added so far.
    pub fn value(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_words(bytes: &[u8]) -> u32 {
        assert!(bytes.len() % 8 == 0);
        let words = bytes.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap()));
        words.fold(Crc::EMPTY, Crc::word).value()
    }

    fn by_bits(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            let step = |rest: u32, _| if rest & 1 == 1 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 };
            (0..8).fold(crc ^ u32::from(*byte), step)
        })
    }

    #[test]
    fn published_vectors() {
        // RFC 3720, B.4, and the check value of the catalogue of parametrised CRC algorithms.
        let rising: Vec<u8> = (0..32).collect();
        let falling: Vec<u8> = (0..32).rev().collect();
        let vectors = [([0; 32], 0x8a91_36aa), ([0xff; 32], 0x62a8_ab43)];
        vectors.iter().for_each(|(bytes, crc)| assert_eq!(of_words(bytes), *crc));
        assert_eq!(of_words(&rising), 0x46dd_794e);
        assert_eq!(of_words(&falling), 0x113f_db5c);
        assert_eq!(by_bits(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn eight_at_a_time_is_the_same_as_bit_by_bit() {
        let mut state = 1u64;
        let bytes: Vec<u8> = (0..256)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            })
            .collect();
        (0..=256).step_by(8).for_each(|len| assert_eq!(of_words(&bytes[..len]), by_bits(&bytes[..len])));
        (0..=256).for_each(|len| assert_eq!(Crc::EMPTY.bytes(&bytes[..len]).value(), by_bits(&bytes[..len])));
        let (a, b) = (0x0123_4567_89ab_cdef, 42);
        let stopped = Crc::EMPTY.word(a).value();
        assert_eq!(Crc::resume(stopped).word(b), Crc::EMPTY.word(a).word(b));
    }
}
