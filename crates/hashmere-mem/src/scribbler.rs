//! For tests: what a client finds in a file that another process damages while it is in use. A seed decides, so what
//! fails can be repeated.

use hashmere_os::random::SplitMix64;
use std::ops::Range;

/// Changes some of the words that a client loads.
#[derive(Clone, Debug)]
pub struct Scribbler {
    random: SplitMix64,
    /// One load of this number finds something else than is there.
    rate: u64,
    offsets: Range<u64>,
    /// What was found before: plausible, but somewhere else.
    seen: [u64; 16],
}

impl Scribbler {
    /// One load of `rate` finds something else; what looks like an offset lies in `offsets`.
    pub fn new(seed: u64, rate: u64, offsets: Range<u64>) -> Scribbler {
        Scribbler { random: SplitMix64(seed), rate, offsets, seen: [0; 16] }
    }

    fn offset(&mut self) -> u64 {
        let words = (self.offsets.end - self.offsets.start) / 8;
        self.offsets.start + 8 * self.random.below(words)
    }

    /// What the client finds where `value` is.
    pub fn found(&mut self, value: u64) -> u64 {
        let any = self.random.next();
        self.seen[any as usize & 15] = value;
        if (any >> 8) % self.rate != 0 {
            return value;
        }
        match self.random.below(14) {
            0 => 0,
            1 => u64::MAX,
            2 | 3 => value ^ 1 << self.random.below(64),
            4 => value.wrapping_add(8 * self.random.below(4)).wrapping_sub(8),
            5 => value.wrapping_add(self.random.below(5)).wrapping_sub(2),
            6 => self.random.below(70),
            7 => self.offset(),
            8 => self.offset() + self.random.below(8),
            9 => value & u64::from(u32::MAX) | self.random.next() << 32,
            10 => value & !u64::from(u32::MAX) | self.random.next() >> 32,
            11 => self.random.next(),
            12 => self.random.next() >> self.random.below(64),
            _ => self.seen[self.random.below(16) as usize],
        }
    }
}
