//! The two clocks, and the counter of the processor.

use std::mem::MaybeUninit;
use std::time::Duration;

/// Milliseconds since 1970 by the wall clock: comparable between processes and across reboots, but
/// it may jump when it is set.
#[inline]
pub fn now_ms() -> u64 {
    u64::try_from(read(libc::CLOCK_REALTIME).as_millis()).unwrap_or(u64::MAX)
}

/// The same, as exact as the kernel's timer (1 to 10 ms), for a quarter of the price.
#[inline]
pub fn coarse_ms() -> u64 {
    u64::try_from(read(libc::CLOCK_REALTIME_COARSE).as_millis()).unwrap_or(u64::MAX)
}

/// The monotonic clock: only differences mean anything. It is the same for all processes of one
/// boot, and stops while the machine sleeps.
#[inline]
pub fn monotonic() -> Duration {
    read(libc::CLOCK_MONOTONIC)
}

/// The wall clock since 1970, to the nanosecond.
#[inline]
pub fn wall() -> Duration {
    read(libc::CLOCK_REALTIME)
}

/// Whether [`ticks`] is the same on all cores of this machine and never stops: the kernel itself uses it as its clock.
/// Reads a file of `/sys`.
pub fn has_ticks() -> bool {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(all(target_arch = "x86_64", not(miri)))
        && std::fs::read_to_string(CURRENT).is_ok_and(|name| name.trim() == "tsc")
}

/// The processor's counter: not read before what comes before it in the program has been loaded. Without one,
/// nanoseconds of the monotonic clock.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let (high, low): (u64, u64);
        // SAFETY: reads a register that every program may read; touches no memory. It is declared as an access to
        // memory all the same, so that the compiler keeps it where it is.
        unsafe {
            core::arch::asm!("lfence", "rdtsc", out("rdx") high, out("rax") low, options(nostack, preserves_flags));
        }
        high << 32 | low
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        monotonic().as_nanos() as u64
    }
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to a timespec; the call fills it or fails.
    let result = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    if result != 0 {
        // Linux has had both clocks forever: this cannot happen.
        return Duration::ZERO;
    }
    // SAFETY: the call succeeded.
    let time = unsafe { time.assume_init() };
    // A wall clock set before 1970 counts as 1970.
    match (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec)) {
        (Ok(seconds), Ok(nanos)) => Duration::new(seconds, nanos),
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_is_that_of_std() {
        let std_ms = || {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.unwrap().as_millis() as u64
        };
        let before = std_ms();
        let now = now_ms();
        assert!(before <= now && now <= std_ms());
    }

    #[test]
    fn ticks_never_go_back() {
        let mut last = ticks();
        for _ in 0..1000 {
            let now = ticks();
            assert!(now >= last || !has_ticks());
            last = now;
        }
    }

    #[test]
    fn monotonic_never_goes_back() {
        let mut last = monotonic();
        for _ in 0..1000 {
            let now = monotonic();
            assert!(now >= last);
            last = now;
        }
        assert!(last > Duration::ZERO);
    }
}
