//! Sleeping on a word that processes share.

use std::sync::OnceLock;
use std::time::Duration;

/// What is called around every sleep: it has to call its argument once, and return.
pub type Around = fn(sleep: &mut dyn FnMut());

static AROUND: OnceLock<Around> = OnceLock::new();

/// Has `around` called around every sleep of this process, so that an interpreter can let its other threads run. The
/// first call counts; later ones are ignored.
pub fn around_sleeps(around: Around) {
    let _ = AROUND.set(around);
}

/// Why [`wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Another thread woke us, or the kernel did for no reason.
    Woken,
    /// The word was not (or no longer) the expected one.
    Changed,
    /// The time is up.
    TimedOut,
    /// A signal arrived, or the address cannot be waited on. Look again and decide.
    Interrupted,
}

/// Sleeps while the word at `address` equals `expected`, at most `timeout`.
///
/// The comparison and the falling asleep are one step for every thread that changes the word and then
/// calls [`wake`]. The futex is shared: a waker in another process, with the file mapped at
/// another address, reaches us. Time is the monotonic clock's.
///
/// The kernel checks the address: a bad one is [`Wait::Interrupted`] and never a fault.
#[allow(clippy::not_unsafe_ptr_arg_deref)] // only the kernel looks behind it, and it checks
pub fn wait(address: *const u32, expected: u32, timeout: Duration) -> Wait {
    let limit = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let mut outcome = Wait::Interrupted;
    let mut sleep = || {
        // SAFETY: the kernel only reads the word, through its own checked access, and the
        // timespec outlives the call.
        let result = unsafe {
            libc::syscall(libc::SYS_futex, address, libc::FUTEX_WAIT, expected, &limit as *const libc::timespec)
        };
        outcome = match std::io::Error::last_os_error().raw_os_error() {
            _ if result == 0 => Wait::Woken,
            Some(libc::EAGAIN) => Wait::Changed,
            Some(libc::ETIMEDOUT) => Wait::TimedOut,
            _ => Wait::Interrupted,
        };
    };
    match AROUND.get() {
        Some(around) => around(&mut sleep),
        None => sleep(),
    }
    outcome
}

/// Wakes up to `count` sleepers on the word at `address`, in any process; returns how many there
/// were.
#[allow(clippy::not_unsafe_ptr_arg_deref)] // only the kernel looks behind it, and it checks
pub fn wake(address: *const u32, count: u32) -> u32 {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    // SAFETY: the kernel uses the address only to find the sleepers.
    let woken = unsafe { libc::syscall(libc::SYS_futex, address, libc::FUTEX_WAKE, count) };
    u32::try_from(woken).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_util::{spawn, wait as wait_for, Scratch};
    use crate::{space, Map};
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn outcomes_without_a_waker() {
        let word = AtomicU32::new(5);
        assert_eq!(wait(word.as_ptr(), 4, Duration::MAX), Wait::Changed);
        assert_eq!(wait(word.as_ptr(), 5, Duration::from_millis(2)), Wait::TimedOut);
        assert_eq!(wait(std::ptr::null(), 5, Duration::from_millis(2)), Wait::Interrupted);
        assert_eq!(wake(word.as_ptr(), u32::MAX), 0);
    }

    #[test]
    fn wakes_across_processes_and_mappings() {
        let scratch = Scratch::new("futex");
        let file = scratch.file("f");
        space::allocate(file.as_fd(), 0, 4096).unwrap();
        let map = Map::reserve(file.as_fd(), 4096, true).unwrap();
        let address = map.as_ptr().cast::<u32>();
        let sleeper = spawn(|| {
            let Ok(own) = Map::reserve(file.as_fd(), 4096, true) else {
                return 1;
            };
            let address = own.as_ptr().cast::<u32>();
            // SAFETY: an aligned word of an allocated page, accessed by atomics only.
            let word = unsafe { AtomicU32::from_ptr(address) };
            while word.load(Ordering::Acquire) == 0 {
                if wait(address, 0, Duration::from_secs(60)) == Wait::TimedOut {
                    return 2;
                }
            }
            0
        });
        std::thread::sleep(Duration::from_millis(20));
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(address) }.store(1, Ordering::Release);
        wake(address, u32::MAX);
        assert_eq!(wait_for(sleeper), 0);
    }
}
