//! The keys. `bench/peers/common.hh` has the same generator, shuffle and texts, bit for bit.

use crate::Outcome;
use hdrhistogram::Histogram;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// The text of a number, as key and as value.
#[derive(Clone, Copy)]
pub struct Text {
    bytes: [u8; 15],
    length: u8,
}

impl Text {
    /// Decimal, as it is: `0`, `17`, `9999`.
    pub fn decimal(n: u32) -> Text {
        let mut text = Text { bytes: [0; 15], length: 0 };
        for (to, from) in text.bytes.iter_mut().zip(n.to_string().bytes()) {
            *to = from;
            text.length += 1;
        }
        text
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Eight decimal digits: `00000017`. All eight at once in one word, so that making a key costs next to nothing beside
/// the operation that is measured.
#[inline]
pub fn eight_digits(n: u32) -> [u8; 8] {
    let n = u64::from(n);
    let fours = (n / 10_000) | ((n % 10_000) << 32);
    let upper = ((fours * 10_486) >> 20) & 0x7F_0000_007F; // each four by 100
    let twos = upper | (fours.wrapping_sub(100 * upper) << 16);
    let tens = ((twos * 103) >> 10) & 0xF_000F_000F_000F; // each two by 10
    let digits = tens | (twos.wrapping_sub(10 * tens) << 8);
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

/// The numbers below `n`, shuffled.
pub fn shuffled(n: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    let mut random = Random(seed);
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order
}

/// A histogram of durations in nanoseconds, of up to a minute. It does not grow while it is used; what is read from it
/// is at most 0.1 % too large.
pub fn durations() -> Outcome<Histogram<u64>> {
    Ok(Histogram::new_with_max(60_000_000_000, 3)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_printf_makes() {
        assert_eq!(Text::decimal(0).bytes(), b"0");
        assert_eq!(Text::decimal(u32::MAX).bytes(), b"4294967295");
        for n in (0..100_000_000).step_by(997).chain([17, 9_999, 10_000, 99_999_999]) {
            assert_eq!(eight_digits(n), format!("{n:08}").as_bytes());
        }
    }

    #[test]
    fn a_shuffle_is_a_permutation() {
        let mut order = shuffled(1000, 7);
        assert_ne!(order[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        order.sort_unstable();
        assert!(order.iter().copied().eq(0..1000));
    }
}
