//! Sampling of what this process does, while an observer asks for it: `docs/internals/sampling.md`.
//!
//! Off, it is one addition and one branch beside each count. What is called when a sample is due is cold.

use super::writer::Pace;
use crate::engine::{Engine, KeyHash};
use crate::fault::{self, Fault};
use hashmere_format::header::at;
use hashmere_format::row::{Stat, Trigger};
use hashmere_format::sample::{self, Sample, Sampling, Use, WEIGHT_MAX};
use hashmere_mem::{Host, Mem};
use std::borrow::Cow;
use std::sync::atomic::Ordering;

/// The key of an operation that is sampled, and its hash; `None`: it is not known any more.
pub(crate) type Named<'k> = Option<(Cow<'k, [u8]>, u64)>;

impl<M: Mem, H: Host> Engine<M, H> {
    /// Counts a read of a key for this thread.
    #[inline(always)]
    pub fn count_read(&self, is_hit: bool, key: &[u8], kh: KeyHash) {
        let use_ = if is_hit { Use::Hit } else { Use::Miss };
        let row = self.row_of_thread();
        // One way out of line: what it needs is in registers up to here.
        if row == 0 || self.count_use(row, use_, 1) {
            self.read_out_of_line(row, use_, key, kh.hash);
        }
    }

    /// Counts hits, the keys of which `name` knows by their number.
    #[inline(always)]
    pub(crate) fn count_hits<'k>(&self, n: u64, name: impl Fn(u64) -> Named<'k>) {
        self.count_some(Use::Hit, n, &name);
    }

    /// Counts a read of a key that `name` knows.
    pub(crate) fn count_read_of<'k>(&self, is_hit: bool, name: impl Fn() -> Named<'k>) {
        self.count_some(if is_hit { Use::Hit } else { Use::Miss }, 1, &|_| name());
    }

    #[inline(always)]
    fn count_some<'k>(&self, use_: Use, n: u64, name: &impl Fn(u64) -> Named<'k>) {
        let row = self.row_of_thread();
        if row == 0 {
            self.count_beside_others(use_, n, name);
        } else if self.count_use(row, use_, n) {
            self.sample(row, use_, n, name);
        }
    }

    /// Counts a set of a key in the row of a writer that this thread has.
    #[inline(always)]
    pub(in crate::engine) fn count_set(&self, row: u64, key: &[u8], kh: KeyHash) {
        if self.count_use(row, Use::Set, 1) {
            self.sample_one(row, Use::Set, key, kh.hash);
        }
    }

    /// Counts a delete of a key.
    #[inline(always)]
    pub(in crate::engine) fn count_delete(&self, row: u64, key: &[u8], kh: KeyHash) {
        self.count_deletes(row, 1, |_| Some((Cow::Borrowed(key), kh.hash)));
    }

    /// Counts sets, the keys of which `name` knows by their number.
    #[inline(always)]
    pub(in crate::engine) fn count_sets<'k>(&self, row: u64, n: u64, name: impl Fn(u64) -> Named<'k>) {
        if self.count_use(row, Use::Set, n) {
            self.sample(row, Use::Set, n, &name);
        }
    }

    /// The same for deletes.
    #[inline(always)]
    pub(in crate::engine) fn count_deletes<'k>(&self, row: u64, n: u64, name: impl Fn(u64) -> Named<'k>) {
        self.count_at(row, Stat::Deletes, n);
        if self.mem.load(row + Trigger::Write.at(), Ordering::Relaxed) != 0 {
            self.deletes_counted(row, n, &name);
        }
    }

    /// Brings the trigger of writes nearer, which is beside the count of sets.
    #[cold]
    fn deletes_counted<'k>(&self, row: u64, n: u64, name: &dyn Fn(u64) -> Named<'k>) {
        let at = row + Trigger::Write.at();
        let trigger = self.mem.load(at, Ordering::Relaxed);
        if trigger != Trigger::NEXT {
            self.mem.store(at, trigger.wrapping_add(n), Ordering::Relaxed);
        }
        if self.is_due(row, Use::Delete) {
            self.sample(row, Use::Delete, n, name);
        }
    }

    /// Counts operations of one kind; whether one of them is to be sampled.
    #[inline(always)]
    fn count_use(&self, row: u64, use_: Use, n: u64) -> bool {
        let (stat, trigger) = of_use(use_);
        let offset = row + stat.at();
        let now = self.mem.load(offset, Ordering::Relaxed).wrapping_add(n);
        self.mem.store(offset, now, Ordering::Relaxed);
        now.overflowing_add(self.mem.load(row + trigger.at(), Ordering::Relaxed)).1
    }

    fn is_due(&self, row: u64, use_: Use) -> bool {
        let (stat, trigger) = of_use(use_);
        self.figure(row, stat).overflowing_add(self.mem.load(row + trigger.at(), Ordering::Relaxed)).1
    }

    /// Reads by a thread that has no writer yet, or none of its own: others count the same in that row.
    #[cold]
    #[inline(never)]
    fn count_beside_others<'k>(&self, use_: Use, n: u64, name: &dyn Fn(u64) -> Named<'k>) {
        let row = self.claim_row();
        if row != 0 {
            self.mem.fetch_add(row + of_use(use_).0.at(), n, Ordering::Relaxed);
            if self.is_due(row, use_) {
                self.sample(row, use_, n, name);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn sample_one(&self, row: u64, use_: Use, key: &[u8], hash: u64) {
        self.sample(row, use_, 1, &|_| Some((Cow::Borrowed(key), hash)));
    }

    /// A read that is to be sampled; or, with row 0, one that is not counted yet.
    #[cold]
    #[inline(never)]
    fn read_out_of_line(&self, row: u64, use_: Use, key: &[u8], hash: u64) {
        if row == 0 {
            self.count_beside_others(use_, 1, &|_| Some((Cow::Borrowed(key), hash)));
        } else {
            self.sample_one(row, use_, key, hash);
        }
    }

    /// Samples those of the last `n` operations of a kind that are due, and says when the next is.
    #[cold]
    #[inline(never)]
    fn sample<'k>(&self, row: u64, use_: Use, n: u64, name: &dyn Fn(u64) -> Named<'k>) {
        let (stat, trigger) = of_use(use_);
        let at = row + trigger.at();
        // SYNC(sampling): a client that sees it on can write to the ring, and sees the rate.
        let sampling = Sampling(self.mem.load(at::SAMPLING, Ordering::Acquire));
        let Some(paces) = self.clients.writers.paces_of(row) else { return };
        let is_on = sampling.is_on(self.host.now_ms()) || fault::is(Fault::SamplingUnended);
        if n == 0 || !is_on {
            // Of no operation none is due: only a damaged trigger leads here.
            return self.mem.store(at, 0, Ordering::Relaxed);
        }
        let pace = &paces[trigger as usize];
        let due = self.mem.load(at, Ordering::Relaxed);
        let last = self.figure(row, stat);
        let mut index = n.saturating_sub(1).saturating_sub(last.wrapping_sub(due.wrapping_neg()));
        if due == Trigger::NEXT {
            pace.begin(sampling.session());
            index = 0;
        } else if !pace.is_of(sampling.session()) {
            // Drawn in another session: its weight is not known.
            return self.mem.store(at, Trigger::NEXT, Ordering::Relaxed);
        }
        let rate = self.mem.load(at::SAMPLE_RATE, Ordering::Relaxed);
        while index < n {
            if let Some((key, hash)) = name(index) {
                self.put_sample(&Sample::new(use_, pace.period(), hash, &key));
            }
            let now = self.host.monotonic().as_nanos() as u64;
            pace.adapt(now, rate);
            index = index.saturating_add(pace.gap(now ^ row.rotate_left(40) ^ last.rotate_left(20)));
        }
        let next = last.wrapping_add(1 + index - n);
        self.mem.store(at, next.wrapping_neg(), Ordering::Relaxed);
    }

    fn put_sample(&self, sample: &Sample) {
        let position = self.mem.fetch_add(sample::BEGUN, 1, Ordering::AcqRel);
        let slot = sample::offset(position);
        let words = sample.encode(position);
        for (n, word) in words.iter().enumerate().skip(1) {
            self.mem.store(slot + 8 * n as u64, *word, Ordering::Relaxed);
        }
        // SYNC(sample): a reader that finds it sees the other words, or later ones that do not fit.
        self.mem.store(slot, words[0], Ordering::Release);
    }
}

/// The statistic and the trigger that a use has its turn by. (Deletes are taken off the trigger.)
#[inline(always)]
fn of_use(use_: Use) -> (Stat, Trigger) {
    match use_ {
        Use::Hit => (Stat::Hits, Trigger::Hit),
        Use::Miss => (Stat::Misses, Trigger::Miss),
        Use::Set | Use::Delete => (Stat::Sets, Trigger::Write),
    }
}

impl Pace {
    fn begin(&self, session: u16) {
        self.period.store(1, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
        self.session.store(u64::from(session) + 1, Ordering::Relaxed);
    }

    fn is_of(&self, session: u16) -> bool {
        self.session.load(Ordering::Relaxed) == u64::from(session) + 1
    }

    /// One operation of this number is sampled.
    fn period(&self) -> u64 {
        self.period.load(Ordering::Relaxed).clamp(1, WEIGHT_MAX)
    }

    /// Sampled now, and `rate` a second are wanted.
    fn adapt(&self, now_ns: u64, rate: u64) {
        let interval = 1_000_000_000 / rate.clamp(1, 1_000_000);
        let elapsed = now_ns.saturating_sub(self.last.swap(now_ns, Ordering::Relaxed));
        let period = self.period();
        if elapsed < interval / 2 {
            self.period.store((2 * period).min(WEIGHT_MAX), Ordering::Relaxed);
        } else if elapsed > 2 * interval {
            self.period.store((period / 2).max(1), Ordering::Relaxed);
        }
    }

    /// How many operations further the next sample is: geometrically distributed, so that each is sampled with the same
    /// probability whatever was before.
    fn gap(&self, seed: u64) -> u64 {
        let period = self.period();
        if period == 1 {
            return 1;
        }
        // The 53 upper bits of a mixed word, above 0 and below 1.
        let drawn = ((mixed(seed) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        1 + (drawn.ln() / (1.0 - 1.0 / period as f64).ln()) as u64
    }
}

/// splitmix64.
fn mixed(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_their_mean_and_no_memory() {
        let pace = Pace::default();
        pace.begin(3);
        assert!(pace.is_of(3) && !pace.is_of(4) && pace.gap(1) == 1);
        pace.period.store(1000, Ordering::Relaxed);
        let gaps: Vec<u64> = (0..100_000).map(|seed| pace.gap(seed)).collect();
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        // Its own deviation is 1000 / sqrt(100,000): 3.2.
        assert!((mean - 1000.0).abs() < 20.0, "{mean}");
        // Of those that are above 1000, by how much: as long again.
        let rest: Vec<u64> = gaps.iter().filter(|gap| **gap > 1000).map(|gap| gap - 1000).collect();
        let mean = rest.iter().sum::<u64>() as f64 / rest.len() as f64;
        assert!((mean - 1000.0).abs() < 40.0, "{mean}");
        assert!((gaps.iter().filter(|gap| **gap <= 10).count() as f64 / 1000.0 - 1.0).abs() < 0.2);
    }

    #[test]
    fn a_pace_finds_the_rate_that_is_wanted() {
        for operation_ns in [20, 1000, 100_000] {
            let pace = Pace::default();
            pace.begin(0);
            let (mut now, mut samples) = (0, 0);
            // 1000 samples a second, for five seconds; the first tenth is for finding it.
            while now < 5_000_000_000u64 {
                pace.adapt(now, 1000);
                now += pace.gap(now ^ 77) * operation_ns;
                samples += u64::from(now > 500_000_000);
            }
            assert!((1500..9000).contains(&samples), "{samples} samples of operations of {operation_ns} ns");
        }
    }
}
