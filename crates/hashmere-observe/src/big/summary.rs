//! What is counted of keys, in memory that does not grow with their number.

use super::count::Count;
use super::tree::{Line, Tree};
use hashmere::Metadata;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One of the largest keys. Ordered by size.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Large {
    /// Bytes of key and value.
    pub bytes: u64,
    /// Length of the value.
    pub value_len: u64,
    /// The key.
    pub key: Vec<u8>,
}

/// Bounds of the remaining times, in milliseconds, with their names. What lives longer than the last is `later`.
const TTL_BOUNDS: [(u64, &str); 8] = [
    (1_000, "1s"),
    (10_000, "10s"),
    (60_000, "1m"),
    (600_000, "10m"),
    (3_600_000, "1h"),
    (86_400_000, "1d"),
    (7 * 86_400_000, "7d"),
    (30 * 86_400_000, "30d"),
];

/// All that is counted.
#[derive(Debug)]
pub struct Summary {
    now_ms: u64,
    top: usize,
    total: Count,
    largest: BinaryHeap<Reverse<Large>>,
    /// By the power of two that the length of the value does not exceed; lengths 0 and 1 are in the first.
    sizes: [Count; 65],
    /// By bound; then those that live longer, then those that do not expire.
    ttls: [Count; TTL_BOUNDS.len() + 2],
    tree: Tree,
}

impl Summary {
    /// Nothing yet.
    pub(crate) fn new(top: usize, separators: &[u8], depth: usize, now_ms: u64) -> Summary {
        Summary {
            now_ms,
            top,
            total: Count::default(),
            largest: BinaryHeap::with_capacity(top + 1),
            sizes: [Count::default(); 65],
            ttls: [Count::default(); TTL_BOUNDS.len() + 2],
            tree: Tree::new(separators, depth),
        }
    }

    /// Counts a key.
    pub(crate) fn add(&mut self, key: &[u8], metadata: &Metadata) {
        let value_len = metadata.value_len;
        let bytes = value_len.saturating_add(key.len() as u64);
        self.total.add(bytes);
        self.sizes[power(value_len)].add(bytes);
        self.ttls[self.ttl(metadata.expires_at_ms)].add(bytes);
        self.tree.add(key, bytes);
        let is_large = self.largest.len() < self.top || self.largest.peek().is_some_and(|least| bytes > least.0.bytes);
        if is_large {
            self.largest.push(Reverse(Large { bytes, value_len, key: key.to_vec() }));
            if self.largest.len() > self.top {
                self.largest.pop();
            }
        }
    }

    fn ttl(&self, expires_at_ms: Option<u64>) -> usize {
        let Some(at) = expires_at_ms else { return TTL_BOUNDS.len() + 1 };
        let left = at.saturating_sub(self.now_ms);
        TTL_BOUNDS.iter().position(|(bound, _)| left <= *bound).unwrap_or(TTL_BOUNDS.len())
    }

    /// How many keys were counted.
    pub fn keys(&self) -> u64 {
        self.total.keys
    }

    /// All of them.
    pub fn total(&self) -> Count {
        self.total
    }

    /// The largest keys, largest first.
    pub fn largest(&self) -> Vec<Large> {
        let mut all: Vec<Large> = self.largest.iter().map(|one| one.0.clone()).collect();
        all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.key.cmp(&b.key)));
        all
    }

    /// Keys by the length of their values: the bound, which is a power of two, and how many.
    pub fn sizes(&self) -> impl Iterator<Item = (u64, Count)> + '_ {
        let bound = |power: usize| 1u64.checked_shl(power as u32).unwrap_or(u64::MAX);
        self.sizes.iter().enumerate().filter(|(_, count)| count.keys != 0).map(move |(n, count)| (bound(n), *count))
    }

    /// Keys by the time that they still live.
    pub fn ttls(&self) -> impl Iterator<Item = (&'static str, Count)> + '_ {
        let names = TTL_BOUNDS.iter().map(|(_, name)| *name).chain(["later", "never"]);
        names.zip(self.ttls).filter(|(_, count)| count.keys != 0)
    }

    /// Keys by prefix, as the lines of a tree: largest first, at most `top` on each level; what is left of a level
    /// comes last.
    pub fn prefixes(&self, top: usize) -> Vec<Line> {
        self.tree.lines(top)
    }
}

/// The smallest power of two that is not below a length.
fn power(length: u64) -> usize {
    (64 - length.saturating_sub(1).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_fall_below_their_powers() {
        let cases = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11), (u64::MAX, 64)];
        cases.into_iter().for_each(|(length, wanted)| assert_eq!(power(length), wanted, "{length}"));
    }

    #[test]
    fn the_largest_are_kept_whatever_comes_first() {
        for order in [[5u64, 1, 4, 2, 3], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1]] {
            let mut summary = Summary::new(2, b":", 3, 1000);
            for n in order {
                let metadata =
                    Metadata { value_len: n * 100, expires_at_ms: Some(1000 + n * 700), ..Metadata::default() };
                summary.add(&[b'0' + n as u8], &metadata);
            }
            let largest: Vec<_> = summary.largest().into_iter().map(|one| (one.key, one.bytes)).collect();
            assert_eq!(largest, [(b"5".to_vec(), 501), (b"4".to_vec(), 401)]);
            let ttls: Vec<_> = summary.ttls().map(|(name, count)| (name, count.keys)).collect();
            assert_eq!(ttls, [("1s", 1), ("10s", 4)]);
            assert_eq!(summary.total(), Count { keys: 5, bytes: 1505 });
        }
    }
}
