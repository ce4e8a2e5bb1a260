//! What every `Mem` must do, run against each of them.
//!
//! The suite knows no implementation: `suite!` at the end runs each of its functions on a fresh
//! memory. The small capacity leaves nothing mapped behind the last page, so a routine that
//! reads past the end of a range is found out there.

#![allow(clippy::unwrap_used)]

mod atomics;

use atomics::{pairs, pairs_add_up, threads_add_up};
use hashmere_mem::{BackError, HeapMem, Mem};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::time::{Duration, Instant};

const PAGE: u64 = 4096;
const CAPACITY: u64 = 4 * PAGE;
const MIB: usize = 1 << 20;
/// Capacity for large copies.
const BIG: u64 = if cfg!(miri) { CAPACITY } else { 2 * MIB as u64 };

/// Bytes in which no two neighbours are equal, nor any two words.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Lengths for copies: all small ones, and both sides of every threshold.
fn lengths() -> Vec<usize> {
    if cfg!(miri) {
        return vec![0, 1, 7, 8, 17];
    }
    (0..=40).chain([47, 48, 49, 63, 64, 65, 66, 127, 128, 129, 191, 255, 1000, 1535, 1536, 1537]).collect()
}

/// Offsets for copies: all alignments, around a page boundary, and at the very start.
fn offsets(len: usize) -> Vec<u64> {
    let end = CAPACITY - len as u64;
    let alignments = if cfg!(miri) { vec![3] } else { (1..16).collect() };
    let mut all: Vec<u64> = vec![0, end];
    all.extend(alignments.iter().map(|a| 64 + a));
    all.extend(alignments.iter().map(|a| PAGE - a));
    all.extend(alignments.iter().filter(|&a| *a <= end).map(|a| end - a));
    all
}

fn backed(mem: &impl Mem) -> Vec<u8> {
    mem.back(0, CAPACITY).unwrap();
    let bytes = pattern(CAPACITY as usize, 7);
    mem.write(0, &bytes);
    bytes
}

fn words(mem: &impl Mem) {
    mem.back(0, PAGE).unwrap();
    for off in [0, 8, 64, PAGE - 8] {
        assert_eq!(mem.load(off, Acquire), 0);
        mem.store(off, 5, Release);
        assert_eq!(mem.compare_exchange(off, 4, 9), Err(5));
        assert_eq!(mem.compare_exchange(off, 5, u64::MAX), Ok(5));
        assert_eq!(mem.fetch_add(off, 3, AcqRel), u64::MAX);
        assert_eq!(mem.fetch_or(off, 0xf0, Relaxed), 2);
        assert_eq!(mem.swap(off, 1 << 63, SeqCst), 0xf2);
        assert_eq!(mem.load(off, Relaxed), 1 << 63);
    }
    mem.fence(Acquire);
    mem.fence(SeqCst);
    mem.relax();
    for off in [0, 3, PAGE, u64::MAX] {
        mem.prefetch(off); // whatever the offset
    }
    assert!(mem.capacity() >= CAPACITY);
}

fn words_are_little_endian(mem: &impl Mem) {
    mem.back(0, PAGE).unwrap();
    mem.write(8, &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(mem.load(8, Relaxed), 0x0807_0605_0403_0201);
    mem.store(8, 0xff, Relaxed);
    let mut bytes = [9; 3];
    mem.read(8, &mut bytes);
    assert_eq!(bytes, [0xff, 0, 0]);
}

fn reads(mem: &impl Mem) {
    let bytes = backed(mem);
    for len in lengths() {
        for off in offsets(len) {
            let expected = &bytes[off as usize..][..len];
            // With a fence around the target, to see stores beside it.
            let mut got = vec![0xaa; len + 32];
            mem.read(off, &mut got[16..16 + len]);
            assert_eq!(&got[16..16 + len], expected, "{off}+{len}");
            assert!(got[..16].iter().chain(&got[16 + len..]).all(|&byte| byte == 0xaa));
            let mut appended = b"before".to_vec();
            mem.append_to(off, len, &mut appended);
            assert_eq!(&appended[..6], b"before");
            assert_eq!(&appended[6..], expected, "{off}+{len}");
        }
    }
}

fn writes(mem: &impl Mem) {
    let mut bytes = backed(mem);
    let mut seed = 100;
    for len in lengths() {
        for off in offsets(len) {
            seed += 1;
            let new = pattern(len, seed);
            mem.write(off, &new);
            bytes[off as usize..][..len].copy_from_slice(&new);
            // The neighbourhood, a little more than the words at the edges.
            let from = (off as usize).saturating_sub(24);
            let to = (off as usize + len + 24).min(bytes.len());
            let mut got = vec![0; to - from];
            mem.read(from as u64, &mut got);
            assert_eq!(got, bytes[from..to], "{off}+{len}");
        }
    }
    assert!(mem.matches(0, &bytes));
}

fn matching(mem: &impl Mem) {
    let bytes = backed(mem);
    for len in lengths() {
        for off in offsets(len) {
            let mut key = bytes[off as usize..][..len].to_vec();
            assert!(mem.matches(off, &key), "{off}+{len}");
            let step = if cfg!(miri) || len > 70 { len / 3 + 1 } else { 1 };
            for i in (0..len).step_by(step).chain(len.checked_sub(1)) {
                for flip in [1, 0x80] {
                    key[i] ^= flip;
                    assert!(!mem.matches(off, &key), "{off}+{len}, byte {i}");
                    key[i] ^= flip;
                }
            }
        }
    }
}

/// Only the bytes of the range count: neither those before nor those behind it.
fn matching_ignores_neighbours(mem: &impl Mem) {
    mem.back(0, PAGE).unwrap();
    for len in (0..=40).step_by(if cfg!(miri) { 7 } else { 1 }) {
        for off in 64..72 {
            let key = pattern(len, 3);
            for around in [0u8, 0xff] {
                mem.write(0, &[around; 160]);
                mem.write(off, &key);
                assert!(mem.matches(off, &key), "{off}+{len}");
            }
        }
    }
}

/// Each of the words with its own share in the pattern, each bit of the mask by itself.
fn agreeing(mem: &impl Mem) {
    mem.back(0, PAGE).unwrap();
    let word = |seed| u64::from_le_bytes(pattern(8, seed).try_into().unwrap());
    let (wanted, noise) = (word(3) as u32, word(4));
    for mask in (0..32).map(|bit| 1 << bit).chain([0, u32::MAX, (1 << 26) - 1]) {
        for chosen in [0u32, 1, 0x80, 0x55, 0xaa, 0xff, 0x7f, 0x1c, 0x100, 0x8000, 0x5555, 0xaa55, 0xffff, 0x1c7f] {
            // Two lines that are not neighbours; only what the mask names and the low halves count.
            for i in 0..16 {
                let same = noise & !u64::from(mask) | u64::from(wanted & mask);
                let word = if chosen >> i & 1 == 1 { same } else { same ^ u64::from(mask & mask.wrapping_neg()) };
                mem.store(64 + 8 * i + 128 * (i / 8), word, Relaxed);
            }
            let expected = if mask == 0 { 0xffff } else { chosen };
            assert_eq!(mem.agreeing(64, 256, wanted, mask), expected, "mask {mask:#x}");
            assert_eq!(mem.agreeing(256, 64, wanted, mask), (expected as u16).swap_bytes().into(), "mask {mask:#x}");
        }
    }
}

fn large(mem: &impl Mem) {
    let len = if cfg!(miri) { 1000 } else { MIB };
    mem.back(0, 2 * len as u64).unwrap();
    let bytes = pattern(len, 5);
    for off in [0, 1, 4093] {
        mem.write(off, &bytes);
        let mut got = vec![0; len];
        mem.read(off, &mut got);
        assert!(got == bytes);
        got.clear();
        mem.append_to(off, len, &mut got);
        assert!(got == bytes);
        assert!(mem.matches(off, &bytes));
        got[len - 1] ^= 1;
        assert!(!mem.matches(off, &got));
    }
}

fn copies_and_zeroes(mem: &impl Mem) {
    let mut bytes = backed(mem);
    let lengths = [0, 72, 8, 16, 56, 64, 128, 136, 1016, 1024, 1536, 4096];
    let pairs = [(PAGE - 8, 2 * PAGE + 8), (0, 8192), (8200, 64)];
    for &len in if cfg!(miri) { &lengths[1..2] } else { &lengths[..] } {
        for &(from, to) in &pairs[..if cfg!(miri) { 1 } else { pairs.len() }] {
            mem.copy(from, to, len);
            let (from, to, len) = (from as usize, to as usize, len as usize);
            bytes.copy_within(from..from + len, to);
            assert!(mem.matches(0, &bytes), "{from} -> {to}, {len}");
        }
        let off = 2 * PAGE - 16;
        mem.zero(off, len);
        bytes[off as usize..][..len as usize].fill(0);
        assert!(mem.matches(0, &bytes), "{len}");
    }
    // Ranges that overlap, as a damaged file makes them: nothing but the target changes.
    mem.copy(PAGE, PAGE + 8, 1024);
    assert!(mem.matches(0, &bytes[..PAGE as usize + 8]) && mem.matches(PAGE + 1032, &bytes[PAGE as usize + 1032..]));
}

fn slices(mem: &impl Mem) {
    let bytes = backed(mem);
    for (off, len) in [(0, 0), (3, 5), (PAGE - 1, 2), (0, CAPACITY as usize)] {
        // SAFETY: backed, and no other thread uses this memory.
        let slice = unsafe { mem.slice(off, len) };
        assert_eq!(slice, &bytes[off as usize..][..len]);
    }
    // Whole words under Miri, which fails itself on an atomic store to a word whose part was
    // stored to plainly before.
    let off = if cfg!(miri) { 8 } else { 5 };
    // SAFETY: as above.
    unsafe { mem.slice_mut(off, 16) }.fill(1);
    let (start, end) = (off as usize, off as usize + 16);
    assert!(mem.matches(off, &[1; 16]));
    assert!(mem.matches(0, &bytes[..start]) && mem.matches(end as u64, &bytes[end..64]));
    mem.write(off + 1, &[2]);
    // SAFETY: as above.
    assert_eq!(unsafe { mem.slice(off, 3) }, [1, 2, 1]);
}

fn backing(mem: &impl Mem) {
    mem.back(0, PAGE).unwrap();
    mem.write(100, b"kept");
    mem.back(0, 2 * PAGE).unwrap();
    mem.back(PAGE + 100, 8).unwrap();
    mem.back(5, 0).unwrap();
    assert!(mem.matches(100, b"kept"));
    assert!(mem.matches(PAGE, &[0; PAGE as usize]));

    mem.write(PAGE - 4, b"12345678");
    assert!(mem.unback(PAGE, PAGE));
    assert!(mem.matches(PAGE - 4, b"1234\0\0\0\0"));
    mem.back(PAGE, PAGE).unwrap();
    assert!(mem.matches(PAGE, &[0; PAGE as usize]));
    // A part of a page: its bytes are zeroed and those around them stay.
    mem.write(0, &[7; 64]);
    assert!(mem.unback(3, 20));
    assert!(mem.matches(0, &[7; 3]) && mem.matches(3, &[0; 20]) && mem.matches(23, &[7; 41]));
}

fn backing_beyond_the_end(mem: &impl Mem) {
    let limit = mem.capacity_limit();
    for (off, len) in [(0, mem.capacity() + 1), (mem.capacity(), 1), (u64::MAX, 8), (8, u64::MAX)] {
        let is_beyond = off.saturating_add(len) > mem.capacity();
        assert!(!is_beyond || !mem.unback(off, len));
        let wanted = off.saturating_add(len);
        match mem.back(off, len) {
            Err(BackError::BeyondReserve { end, capacity: told }) => assert_eq!((end, told), (wanted, limit)),
            Err(BackError::AddressSpace { end, .. }) => assert_eq!((end, end > 1 << 60), (wanted, true)),
            Ok(()) => assert!(wanted <= mem.capacity() && wanted <= limit),
            other => unreachable!("{other:?}"),
        }
    }
    assert!(mem.extend(mem.capacity()) && !mem.extend(u64::MAX));
}

fn waiting(mem: &impl Mem) {
    mem.back(0, PAGE).unwrap();
    let long = Duration::from_secs(100);
    let start = Instant::now();
    // The upper half of the word does not count.
    mem.store(8, 7 << 32 | 1, Relaxed);
    mem.wait(8, 2, long);
    mem.wait(8, 1, Duration::from_millis(2));
    mem.wait(8, 1, Duration::ZERO);
    mem.wake(8);
    assert!(start.elapsed() < long);
}

fn waking(mem: &impl Mem) {
    mem.back(0, PAGE).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while mem.load(16, Acquire) == 0 {
                mem.wait(16, 0, Duration::from_secs(100));
            }
            mem.store(24, 1, Release);
            mem.wake(24);
        });
        mem.store(16, 1, Release);
        mem.wake(16);
        while mem.load(24, Acquire) == 0 {
            mem.wait(24, 0, Duration::from_secs(100));
        }
    });
}

macro_rules! suite {
    ($name:ident, $make:expr) => {
        suite!($name, $make,
            small: words words_are_little_endian reads writes matching matching_ignores_neighbours agreeing
                copies_and_zeroes slices backing backing_beyond_the_end waiting waking
                threads_add_up pairs pairs_add_up;
            big: large);
    };
    ($name:ident, $make:expr, small: $($small:ident)*; big: $($big:ident)*) => {
        mod $name {
            $(#[test]
            fn $small() {
                super::$small(&$make(super::CAPACITY));
            })*
            $(#[test]
            fn $big() {
                super::$big(&$make(super::BIG));
            })*
        }
    };
}

suite!(heap, hashmere_mem::HeapMem::new);
#[cfg(not(miri))]
suite!(map, super::mapped::memory);

#[test]
fn heap_limits() {
    let mem = HeapMem::new(CAPACITY);
    let full = |off, len| matches!(mem.back(off, len), Err(BackError::NoSpace(_)));
    mem.back(0, PAGE).unwrap();
    mem.set_limit(PAGE);
    assert!(full(0, PAGE + 1) && full(2 * PAGE, 1));
    mem.back(8, 16).unwrap();
    mem.set_limit(u64::MAX);
    mem.set_budget(2 * PAGE);
    mem.back(3 * PAGE, PAGE).unwrap();
    assert!(full(PAGE, 1));
    assert_eq!(mem.backed_bytes(), 2 * PAGE);
    assert!(mem.unback(3 * PAGE, PAGE));
    mem.back(PAGE, 1).unwrap();
    let image = mem.image();
    mem.store(0, 1, Relaxed);
    assert_eq!((image.load(0, Relaxed), image.backed_bytes()), (0, 2 * PAGE));
}

#[test]
#[should_panic(expected = "never backed")]
fn strict_heap_reports_what_would_be_a_sigbus() {
    let mem = HeapMem::new(CAPACITY);
    mem.back(0, PAGE).unwrap();
    mem.set_strict(true);
    mem.load(PAGE - 8, Relaxed);
    mem.load(PAGE, Relaxed);
}

#[cfg(not(miri))]
mod mapped {
    use super::*;
    use hashmere_mem::{MapMem, BLOCK};
    use hashmere_os::{file, Map};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::path::Path;

    /// An unnamed file in memory: it leaves nothing behind.
    fn unnamed() -> File {
        let made = file::create_unnamed(Path::new("/dev/shm"), 0o600).unwrap();
        made.file().try_clone().unwrap()
    }

    pub fn memory(capacity: u64) -> MapMem {
        let file = unnamed();
        let map = Map::reserve(file.as_fd(), capacity, true).unwrap();
        MapMem::new(file, map, true)
    }

    #[test]
    fn two_mappings_are_one_memory() {
        let a = memory(CAPACITY);
        a.back(0, PAGE).unwrap();
        let map = Map::reserve(a.file().as_fd(), CAPACITY, false).unwrap();
        let b = MapMem::new(a.file().try_clone().unwrap(), map, false);
        a.write(11, b"seen by both");
        assert!(b.matches(11, b"seen by both"));
        assert!(a.writable() && !b.writable());
    }

    #[test]
    fn read_only_neither_grows_nor_shrinks() {
        let a = memory(CAPACITY);
        a.back(0, PAGE).unwrap();
        a.store(0, 5, Relaxed);
        let file = a.file().try_clone().unwrap();
        let map = Map::reserve(file.as_fd(), CAPACITY, false).unwrap();
        let b = MapMem::new(file, map, true);
        match b.back(0, PAGE) {
            Err(BackError::Io(error)) => {
                assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
            }
            other => unreachable!("{other:?}"),
        }
        assert!(!b.unback(0, PAGE));
        assert_eq!(b.load(0, Relaxed), 5);
    }

    #[test]
    fn the_file_grows_by_what_is_backed() {
        let mem = memory(1 << 30);
        assert_eq!((mem.file_len().unwrap(), mem.allocated_bytes().unwrap()), (0, 0));
        mem.back(1 << 20, 1 << 16).unwrap();
        assert_eq!(mem.file_len().unwrap(), (1 << 20) + (1 << 16));
        assert_eq!(mem.allocated_bytes().unwrap(), 1 << 16);
        assert!(mem.unback(1 << 20, 1 << 16));
        assert_eq!(mem.allocated_bytes().unwrap(), 0);
        assert_eq!(mem.file_len().unwrap(), (1 << 20) + (1 << 16));
    }

    /// Whether or not this machine has large pages, a block keeps what was in it, reads as zero elsewhere, and ends the
    /// file at most at its own end.
    #[test]
    fn a_block_keeps_what_is_there() {
        let mem = memory(4 * BLOCK);
        mem.back(BLOCK + 4 * PAGE, PAGE).unwrap();
        mem.write(BLOCK + 4 * PAGE + 5, b"still here");
        for block in [BLOCK, BLOCK, 3 * BLOCK, 4 * BLOCK, !(BLOCK - 1)] {
            mem.back_block(block);
        }
        assert!(mem.file_len().unwrap() <= 4 * BLOCK);
        mem.back(BLOCK, BLOCK).unwrap();
        assert!(mem.matches(BLOCK + 4 * PAGE + 5, b"still here"));
        mem.write(BLOCK + 4 * PAGE + 5, &[0; 10]);
        assert!((0..BLOCK).step_by(8).all(|word| mem.load(BLOCK + word, Relaxed) == 0));
        assert!(mem.unback(BLOCK, BLOCK / 2));
    }

    #[test]
    #[should_panic(expected = "beyond the mapping")]
    fn long_ranges_are_always_checked() {
        memory(CAPACITY).read(CAPACITY - 100, &mut [0; 200]);
    }

    /// The assembly and the words do the same, whatever the sequence.
    #[test]
    fn same_as_the_heap() {
        let (map, heap) = (memory(CAPACITY), HeapMem::new(CAPACITY));
        map.back(0, CAPACITY).unwrap();
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..20_000 {
            let bound = [9, 40, 200, 3000][below(4) as usize];
            let len = below(bound) as usize;
            let off = below(CAPACITY - len as u64 + 1);
            match below(3) {
                0 => {
                    let bytes = pattern(len, below(1 << 30));
                    map.write(off, &bytes);
                    heap.write(off, &bytes);
                }
                1 => {
                    let (off, len) = (off & !7, len as u64 & !7);
                    map.zero(off, len);
                    heap.zero(off, len);
                }
                _ => {
                    let mut bytes = vec![0; len];
                    map.read(off, &mut bytes);
                    assert!(heap.matches(off, &bytes) && map.matches(off, &bytes));
                }
            }
        }
        let mut all = vec![0; CAPACITY as usize];
        map.read(0, &mut all);
        assert!(heap.matches(0, &all));
    }
}
