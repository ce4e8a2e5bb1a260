//! Faults on purpose: the tests break one mechanism of the engine at a time and expect to see it. Elsewhere every switch is
//! off and costs nothing.

/// The number of the next sync is loaded before the commit.
#[cfg(test)]
pub(super) const EARLY_NUMBER: u32 = 1;
/// What is emptied is free at once.
pub(super) const NO_QUARANTINE: u32 = 2;
/// A record lives before its commit.
pub(super) const ALIVE_BEFORE_COMMIT: u32 = 3;
/// A sync returns before its number is on the medium.
pub(super) const POINT_NOT_FLUSHED: u32 = 4;
/// A repair leaves the stamps of an unfinished commit as they are.
pub(super) const NO_STAMP_IN_REPAIR: u32 = 5;
/// A rebuild leaves what it cannot read where it is.
pub(super) const GHOSTS_STAY: u32 = 6;
/// A rebuild does not look at what a clear left behind.
pub(super) const NO_FLOOR: u32 = 7;
/// A rebuild takes the first record of a key that it meets.
pub(super) const FIRST_WINS: u32 = 8;
/// A sync does not wait for commits under way.
pub(super) const NO_WAIT: u32 = 9;
/// A rebuild takes every record for whole.
pub(super) const NO_SUMS: u32 = 10;
/// The dead are not stamped.
pub(super) const NO_STAMPS: u32 = 11;
/// A sync writes its number before what it stands for is on the medium.
pub(super) const POINT_BEFORE_DATA: u32 = 12;

pub(super) use switch::*;

#[cfg(not(test))]
mod switch {
    #[inline(always)]
    pub(in crate::engine) fn is_on(_fault: u32) -> bool {
        false
    }

    #[inline(always)]
    pub(in crate::engine) fn early_number() -> Option<u64> {
        None
    }

    #[inline(always)]
    pub(in crate::engine) fn note_number(_load: impl FnOnce() -> u64) {}
}

#[cfg(test)]
mod switch {
    use std::cell::Cell;
    thread_local! {
        static ON: Cell<u32> = const { Cell::new(0) };
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }

    /// Whether this fault is to be made.
    pub(in crate::engine) fn is_on(fault: u32) -> bool {
        ON.get() == fault
    }

    /// Makes one fault from now on in this thread; 0 none.
    pub(in crate::engine) fn set(fault: u32) {
        ON.set(fault);
    }

    /// The number that was loaded too early, if that is the fault.
    pub(in crate::engine) fn early_number() -> Option<u64> {
        is_on(super::EARLY_NUMBER).then(|| NUMBER.get())
    }

    /// Where the faulty load would stand.
    pub(in crate::engine) fn note_number(load: impl FnOnce() -> u64) {
        if is_on(super::EARLY_NUMBER) {
            NUMBER.set(load());
        }
    }
}
