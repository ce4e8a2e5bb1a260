//! The two clocks.

use std::mem::MaybeUninit;
use std::time::Duration;

/// Milliseconds since 1970 by the wall clock: comparable between processes and across reboots, but
/// it may jump when somebody sets it.
#[inline]
pub fn now_ms() -> u64 {
    u64::try_from(read(libc::CLOCK_REALTIME).as_millis()).unwrap_or(u64::MAX)
}

/// The monotonic clock: only differences mean anything. It is the same for all processes of one
/// boot, and stands still while the machine sleeps.
#[inline]
pub fn monotonic() -> Duration {
    read(libc::CLOCK_MONOTONIC)
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to a timespec; the call fills it or fails.
    let result = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    if result != 0 {
        // Linux has had both clocks for ever: this cannot happen.
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
