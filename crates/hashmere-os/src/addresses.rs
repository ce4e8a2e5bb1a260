//! Where in the address space the mappings of files begin, and what limits them.
//!
//! A mapping grows only where the addresses behind it are free, and the kernel packs what it places itself closely. So
//! mappings of files begin at *positions*: 16,384 addresses at equal distances in a part of the address space that
//! programs leave alone. They are taken in bit-reversed order, each in the middle of a gap between two earlier ones:
//! the fewer are taken, the further they are apart. Nothing is reserved: a position that something else occupies is
//! skipped, and addresses that are merely free count towards no limit.

use crate::page::{page_size, LARGE_PAGE};
use std::fmt;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many positions there are: with addresses of 47 bits they are 3 GiB apart.
const POSITIONS: usize = 1 << BITS;
const BITS: u32 = 14;
const WORDS: usize = POSITIONS / u64::BITS as usize;

/// The positions that are taken, a bit each. No lock: a child may be forked while another thread would hold it. What
/// was mapped in the parent is mapped in the child, so it inherits the bits rightly.
static TAKEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// A position, which no other mapping of this process gets until it is dropped.
#[derive(Debug)]
pub(crate) struct Position(usize);

impl Position {
    /// Takes the lowest free position from number `from` on.
    pub(crate) fn take(from: usize) -> Option<Position> {
        for (index, word) in TAKEN.iter().enumerate().skip(from / 64) {
            let skipped = if index == from / 64 { (1u64 << (from % 64)) - 1 } else { 0 };
            let mut taken = word.load(Ordering::Relaxed) | skipped;
            while taken != u64::MAX {
                let bit = taken.trailing_ones();
                // Acquire: before it was given back, what was there was unmapped.
                let now = word.fetch_or(1 << bit, Ordering::Acquire);
                if now >> bit & 1 == 0 {
                    return Some(Position(index * 64 + bit as usize));
                }
                taken = now | skipped;
            }
        }
        None
    }

    /// Its number, in the order in which positions are taken.
    pub(crate) fn number(&self) -> usize {
        self.0
    }

    /// Its address: a multiple of a large page. `None` where the address space is too small for positions.
    pub(crate) fn address(&self) -> Option<usize> {
        let (start, step) = arena()?;
        let reversed = self.0.reverse_bits() >> (usize::BITS - BITS);
        Some(start + reversed * step)
    }
}

impl Drop for Position {
    fn drop(&mut self) {
        TAKEN[self.0 / 64].fetch_and(!(1 << (self.0 % 64)), Ordering::Release);
    }
}

/// Where the first position is, and how far they are apart.
///
/// From a quarter to five eighths of the address space: above what begins low (sanitizers, arenas of language
/// runtimes), below the program (at two thirds) and below what the kernel places (from the top down).
fn arena() -> Option<(usize, usize)> {
    // SAFETY: getauxval takes a plain value. This one is an address in the stack of the main thread, at the top of the
    // address space.
    let top = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
    let size = top.checked_next_power_of_two()?;
    let step = (size / 8 * 3 / POSITIONS) & !(LARGE_PAGE - 1);
    (step != 0).then_some((size / 4, step))
}

/// Why a process has no more room for mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressLimit {
    /// How many bytes of addresses the process may have: `RLIMIT_AS`.
    Process(u64),
    /// How many mappings the process may have: `vm.max_map_count`.
    Mappings(u64),
    /// Something else of this process occupies the addresses behind the mapping.
    Neighbour,
}

impl fmt::Display for AddressLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(bytes) => {
                write!(
                    f,
                    "RLIMIT_AS allows it {bytes} bytes of addresses; raise that (`ulimit -v`), or close other stores"
                )
            }
            Self::Mappings(count) => {
                write!(f, "vm.max_map_count allows it {count} mappings; raise that (`sysctl`), or close other stores")
            }
            Self::Neighbour => {
                f.write_str("the addresses behind its mapping are taken; close the store and open it again")
            }
        }
    }
}

impl AddressLimit {
    /// What refused `more` bytes just now.
    pub fn of_refused(more: u64) -> AddressLimit {
        let limit = process_limit();
        if limit != u64::MAX && used().is_none_or(|used| used.saturating_add(more).saturating_add(headroom()) > limit) {
            return AddressLimit::Process(limit);
        }
        let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|text| text.trim().parse().ok());
        match (most, mappings()) {
            (Some(most), Some(now)) if now + 2 >= most => AddressLimit::Mappings(most),
            _ => AddressLimit::Neighbour,
        }
    }
}

/// What a mapping leaves of a process's last addresses to others, whose allocator may end the program when it gets
/// nothing more: a sixteenth of all that it may have, within these bounds.
pub(crate) fn headroom() -> u64 {
    (process_limit() / 16).clamp(2 << 20, 64 << 20)
}

/// `RLIMIT_AS`; all ones: none.
fn process_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is to an rlimit.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY {
        limit.rlim_cur
    } else {
        u64::MAX
    }
}

/// Bytes of addresses that this process has.
fn used() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split(' ').next()?.parse::<u64>().ok().map(|pages| pages * page_size())
}

/// How many mappings this process has.
fn mappings() -> Option<u64> {
    let file = std::fs::File::open("/proc/self/maps").ok()?;
    Some(BufReader::new(file).lines().count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_util::most_addresses;

    #[test]
    fn positions_are_apart_and_come_back() {
        let _most = most_addresses();
        let held: Vec<Position> = (0..64).map(|_| Position::take(0).unwrap()).collect();
        let mut addresses: Vec<usize> = held.iter().filter_map(Position::address).collect();
        addresses.sort_unstable();
        assert_eq!(addresses.len(), held.len());
        // 64 of them and those of other tests: gaps are at most halved once or twice more.
        let (_, step) = arena().unwrap();
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] >= step * (POSITIONS / 256)), "{addresses:x?}");
        assert!(addresses.iter().all(|address| address % LARGE_PAGE == 0));
        let last = held.last().unwrap().number();
        drop(held);
        assert!(Position::take(0).unwrap().number() <= last);
    }

    #[test]
    fn all_positions_can_be_taken() {
        // One at a time: other tests map files at the same time.
        let (mut from, mut found) = (0, 0);
        while let Some(position) = Position::take(from) {
            assert!(position.number() >= from);
            from = position.number() + 1;
            found += 1;
        }
        assert!(found > POSITIONS / 2 && from > POSITIONS - 64, "{found} positions, the last is {from}");
    }
}
