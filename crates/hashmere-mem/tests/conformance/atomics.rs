//! Words that several threads change at once, and two words in one instruction.

use super::PAGE;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

pub fn pairs(mem: &impl Mem) {
    assert_eq!(mem.has_pairs(), cfg!(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))));
    if !mem.has_pairs() {
        return;
    }
    mem.back(0, PAGE).unwrap();
    for off in [0, 16, PAGE - 16] {
        mem.store(off, 1, Relaxed);
        mem.store(off + 8, 2, Relaxed);
        for other in [[0, 2], [1, 0], [2, 1]] {
            assert!(!mem.compare_exchange_pair(off, other, [9, 9]), "{other:?}");
        }
        assert_eq!([off, off + 8].map(|off| mem.load(off, Relaxed)), [1, 2]);
        assert!(mem.compare_exchange_pair(off, [1, 2], [u64::MAX, 1 << 63]));
        assert_eq!([off, off + 8].map(|off| mem.load(off, Relaxed)), [u64::MAX, 1 << 63]);
    }
}

/// The first word of a pair grows, the second is its double, and who finds the first unchanged has a pair.
pub fn pairs_add_up(mem: &impl Mem) {
    if !mem.has_pairs() {
        return;
    }
    mem.back(0, PAGE).unwrap();
    let rounds = 10_000;
    let pair = || loop {
        let first = mem.load(128, Acquire);
        let second = mem.load(136, Relaxed);
        mem.fence(Acquire);
        if mem.load(128, Relaxed) == first {
            return [first, second];
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    while {
                        let [first, second] = pair();
                        assert_eq!(second, 2 * first);
                        !mem.compare_exchange_pair(128, [first, second], [first + 1, second + 2])
                    } {}
                }
            });
        }
    });
    assert_eq!(pair(), [3 * rounds, 6 * rounds]);
}

pub fn threads_add_up(mem: &impl Mem) {
    mem.back(0, PAGE).unwrap();
    let rounds = if cfg!(miri) { 20 } else { 10_000 };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    mem.fetch_add(64, 1, Relaxed);
                    let mut seen = mem.load(72, Relaxed);
                    while let Err(now) = mem.compare_exchange(72, seen, seen + 1) {
                        seen = now;
                    }
                }
            });
        }
    });
    assert_eq!((mem.load(64, Relaxed), mem.load(72, Relaxed)), (3 * rounds, 3 * rounds));
}
