//! A small seeded generator. Every random test starts with [`Rng::for_test`], which prints what replays it.

use hashmere_os::random::SplitMix64;

/// xoshiro256**: fast, good enough for tests, the same on every machine.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

/// The seed when `HASHMERE_SEED` is not set.
const DEFAULT_SEED: u64 = 0x4d45_5245_2026;

/// One step of splitmix64, also used as a hash.
pub fn mix(word: u64) -> u64 {
    SplitMix64(word).next()
}

/// The seed of this run: `HASHMERE_SEED` (decimal or 0x...), or a fixed one.
///
/// # Panics
/// If `HASHMERE_SEED` is not a number: a replay with the wrong seed would prove nothing.
pub fn run_seed() -> u64 {
    match std::env::var("HASHMERE_SEED") {
        Err(_) => DEFAULT_SEED,
        Ok(text) => match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).expect("HASHMERE_SEED is not a number"),
            None => text.parse().expect("HASHMERE_SEED is not a number"),
        },
    }
}

impl Rng {
    /// The generator of the named test, from [`run_seed`]. Prints how to replay; the test harness shows that
    /// with the failure.
    pub fn for_test(name: &str) -> Rng {
        let seed = run_seed();
        println!("{name}: replay with HASHMERE_SEED={seed:#x}");
        let named = name.bytes().fold(seed, |sum, byte| mix(sum ^ u64::from(byte)));
        Rng::from_seed(named)
    }

    /// A generator from a seed.
    pub fn from_seed(seed: u64) -> Rng {
        let mut state = [0; 4];
        let mut word = seed;
        for part in &mut state {
            word = mix(word);
            *part = word;
        }
        Rng { state }
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound` (which is not zero).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into something of this length (which is not zero).
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True in this many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }

    /// This many random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.word().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    /// In random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_numbers_and_all_in_bounds() {
        let (mut a, mut b) = (Rng::from_seed(7), Rng::from_seed(7));
        for bound in 1..1000 {
            let word = a.below(bound);
            assert_eq!(word, b.below(bound));
            assert!(word < bound);
        }
        assert_eq!(a.bytes(13).len(), 13);
    }
}
