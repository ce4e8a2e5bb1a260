//! Random numbers: from the kernel, and from a seed.

use std::io;

/// 64 bits from the kernel's random generator, good enough for secrets.
///
/// # Errors
/// Only where a sandbox forbids `getrandom`.
pub fn random_u64() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    loop {
        // SAFETY: the pointer and the length are those of `bytes`.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        // Requests of at most 256 bytes are never answered in part.
        if got == 8 {
            return Ok(u64::from_le_bytes(bytes));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINTR) {
            return Err(error);
        }
    }
}

/// A random UUID (version 4 of RFC 9562), as the two words that hold its 16 bytes in the order in which it is written.
///
/// # Errors
/// As [`random_u64`].
pub fn random_uuid() -> io::Result<[u64; 2]> {
    let (first, second) = (random_u64()?, random_u64()?);
    // The version is in the upper half of byte 6, the variant in the upper two bits of byte 8.
    Ok([first & !(0xf0 << 48) | 0x40 << 48, second & !0xc0 | 0x80])
}

/// SplitMix64 (Steele, Lea, Flood 2014): numbers from a seed, for choices that are no secret.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`; 0 if `n` is 0. Small numbers are a little more likely, by `n` in 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_differs() {
        assert_ne!(random_u64().unwrap(), random_u64().unwrap());
    }

    #[test]
    fn a_uuid_is_random_and_says_its_version() {
        let [uuid, other] = [random_uuid().unwrap(), random_uuid().unwrap()];
        assert_ne!(uuid, other);
        for [first, second] in [uuid, other] {
            assert_eq!(first.to_le_bytes()[6] >> 4, 4);
            assert_eq!(second.to_le_bytes()[0] >> 6, 0b10);
        }
    }

    #[test]
    fn the_published_sequence() {
        // The first numbers of the authors' program with the seed 1234567.
        let mut numbers = SplitMix64(1234567);
        assert_eq!([0; 3].map(|_| numbers.next()), [6457827717110365317, 3203168211198807973, 9817491932198370423]);
        assert_eq!(numbers.below(0), 0);
    }
}
