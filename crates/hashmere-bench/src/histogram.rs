//! A histogram of durations: 32 steps for each power of two, so that a figure read from it is at most 3 % off; the
//! largest is kept exactly.

const STEPS: u64 = 32;

/// Counts of durations in nanoseconds.
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    /// The largest duration.
    pub max: u64,
}

impl Histogram {
    /// An empty one, all its memory touched.
    pub fn new() -> Histogram {
        Histogram { counts: vec![0; (STEPS * 64) as usize], total: 0, max: 0 }
    }

    /// Counts one duration.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.max = self.max.max(ns);
        if let Some(count) = self.counts.get_mut(index(ns)) {
            *count += 1;
        }
        self.total += 1;
    }

    /// The duration that the given share of them (0.5, 0.99) does not exceed.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.total as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (i, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return ceiling(i as u64).min(self.max);
            }
        }
        self.max
    }

    /// How many exceed this duration.
    pub fn above(&self, ns: u64) -> u64 {
        self.counts.iter().skip(index(ns) + 1).sum()
    }
}

fn index(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let power = u64::from(ns.ilog2()) - 5;
    ((power + 1) * STEPS + (ns >> power) - STEPS) as usize
}

fn ceiling(index: u64) -> u64 {
    if index < STEPS {
        return index;
    }
    let power = index / STEPS - 1;
    ((index % STEPS + STEPS + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_lies_in_its_step() {
        for ns in (0..5000).chain([123_456, 7_000_000_001, 1 << 40]) {
            let top = ceiling(index(ns) as u64);
            assert!(top >= ns && top - ns <= ns / 32, "{ns} {top}");
        }
    }

    #[test]
    fn quantiles() {
        let mut histogram = Histogram::new();
        (0..1000).for_each(|ns| histogram.add(ns));
        assert!((495..=515).contains(&histogram.quantile(0.5)));
        assert_eq!(histogram.max, 999);
        assert_eq!(histogram.quantile(1.0), 999);
    }
}
