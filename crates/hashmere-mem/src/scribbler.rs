//! For tests: what a client finds in a file that another process damages while it is in use. A seed decides, so what fails can be repeated.

use std::ops::Range;

/// Changes some of the words that a client loads.
#[derive(Clone, Debug)]
pub struct Scribbler {
    state: u64,
    /// One load of this number finds something else than is there.
    rate: u64,
    offsets: Range<u64>,
    /// What was found before: plausible, but somewhere else.
    seen: [u64; 16],
}

impl Scribbler {
    /// One load of `rate` finds something else; what looks like an offset lies in `offsets`.
    pub fn new(seed: u64, rate: u64, offsets: Range<u64>) -> Scribbler {
        Scribbler { state: seed, rate, offsets, seen: [0; 16] }
    }

    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn offset(&mut self) -> u64 {
        let words = (self.offsets.end - self.offsets.start) / 8;
        self.offsets.start + 8 * self.below(words)
    }

    /// What the client finds where `value` is.
    pub fn found(&mut self, value: u64) -> u64 {
        let any = self.next();
        self.seen[any as usize & 15] = value;
        if (any >> 8) % self.rate != 0 {
            return value;
        }
        match self.below(14) {
            0 => 0,
            1 => u64::MAX,
            2 | 3 => value ^ 1 << self.below(64),
            4 => value.wrapping_add(8 * self.below(4)).wrapping_sub(8),
            5 => value.wrapping_add(self.below(5)).wrapping_sub(2),
            6 => self.below(70),
            7 => self.offset(),
            8 => self.offset() + self.below(8),
            9 => value & u64::from(u32::MAX) | self.next() << 32,
            10 => value & !u64::from(u32::MAX) | self.next() >> 32,
            11 => self.next(),
            12 => self.next() >> self.below(64),
            _ => self.seen[self.below(16) as usize],
        }
    }
}
