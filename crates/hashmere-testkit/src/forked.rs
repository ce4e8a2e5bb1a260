//! Children that are forked and go on in Rust.

use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::{alarm, ForkResult, Pid};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Seconds after which a child that hangs is ended by its alarm.
pub const CHILD_SECONDS: u32 = 300;

/// Runs it in a child, which ends with status 0 unless it panics, without running what is the parent's to run at its
/// end.
///
/// # Panics
/// If there can be no child.
pub fn fork(child: impl FnOnce()) -> Pid {
    // SAFETY: the child runs Rust code after a fork. Where other threads exist, it uses nothing whose locks they might
    // hold but the allocator, which the C library makes usable in the child.
    match unsafe { nix::unistd::fork() }.expect("fork") {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            alarm::set(CHILD_SECONDS);
            let result = catch_unwind(AssertUnwindSafe(child));
            // SAFETY: no memory is involved.
            unsafe { nix::libc::_exit(i32::from(result.is_err())) }
        }
    }
}

/// Waits for the end of a child.
///
/// # Panics
/// If its status is not 0.
#[track_caller]
pub fn wait(child: Pid) {
    assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)), "a forked child failed");
}
